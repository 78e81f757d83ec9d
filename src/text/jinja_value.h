// Values of the template engine: immutable, with Python's meaning. Strings remember which of their bytes are data, that
// is text of a request, so that such text never becomes a control token (docs/templates.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace strata::text {

// A text of at most 4 GiB and its data: sorted ranges that neither touch nor overlap and are not empty.
struct MarkedText {
  std::string bytes;
  std::vector<DataRange> data;

  static MarkedText plain(std::string_view bytes) { return {std::string(bytes), {}}; }
  static MarkedText all_data(std::string_view bytes);

  void append(std::string_view plain) { bytes += plain; }
  void append_data(std::string_view text);
  void append(const MarkedText& other) { append(other, 0, other.bytes.size()); }
  void append(const MarkedText& other, size_t begin, size_t length);  // keeps the marks of the part
  MarkedText part(size_t begin, size_t length) const;
  bool operator==(const MarkedText&) const = default;
};

namespace jinja {

class Value;
struct Budget;  // what a rendering has used (jinja_limits.h)

// Memory of one value, given back to its budget at the end of the value. Values made outside a rendering have none.
class Lease {
 public:
  Lease() = default;
  Lease(Budget* budget, size_t bytes);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
  void grow(size_t bytes);

 private:
  Budget* budget_ = nullptr;
  size_t bytes_ = 0;
};

struct StringObject {
  StringObject(MarkedText text, Budget* budget);
  MarkedText text;
  Lease lease;
};

struct ListObject {
  ListObject(std::vector<Value> items, Budget* budget);
  std::vector<Value> items;
  Lease lease;
};

class MapObject;
struct NamespaceObject;
struct LoopObject;
struct MethodObject;
struct Macro;  // of the syntax tree, which outlives every rendering
enum class Function : uint8_t { Namespace, Range, RaiseException, StrftimeNow };

constexpr size_t kMaxDepth = 200;  // of lists and mappings inside each other: destructors recurse

class Value {
 public:
  enum class Kind : uint8_t {
    Undefined,
    None,
    Bool,
    Int,
    BigInt,  // a whole number beyond 64 bits, from JSON: it can be printed, not computed with
    Float,
    String,
    List,  // also tuples
    Map,
    Namespace,
    Loop,
    Method,  // a method of a value, not called yet
    Macro,
    Function,
  };

  Value() = default;                         // undefined
  static Value undefined(std::string what);  // "'x' is undefined"
  static Value none();
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value big_integer(std::string digits);
  static Value real(double value);
  static Value string(MarkedText text, Budget* budget = nullptr);
  static Value plain(std::string_view text) { return string(MarkedText::plain(text)); }
  static Value data(std::string_view text) { return string(MarkedText::all_data(text)); }
  static Value list(std::vector<Value> items, Budget* budget = nullptr);  // Error{Model} above kMaxDepth, as map()
  static Value tuple(std::vector<Value> items, Budget* budget = nullptr);
  // Later values replace earlier ones of the same key, at the place of the first, as in Python.
  static Value map(std::vector<std::pair<MarkedText, Value>> entries, Budget* budget = nullptr);
  static Value function(Function function);
  static Value macro(const Macro* macro);
  static Value method(Value self, std::string name);
  static Value new_namespace();
  static Value loop(std::shared_ptr<LoopObject> loop);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_tuple() const { return tuple_; }
  bool is_number() const { return kind_ >= Kind::Int && kind_ <= Kind::Float; }

  // Each is for its kind only; the caller has checked it.
  bool as_bool() const { return bool_; }
  int64_t as_int() const { return int_; }
  double as_real() const { return real_; }
  Function as_function() const { return function_; }
  const Macro* as_macro() const { return macro_; }
  const std::string& what() const;  // Undefined: why; BigInt: its digits
  const MarkedText& text() const { return static_cast<const StringObject*>(object_.get())->text; }
  const std::string& bytes() const { return text().bytes; }
  const std::vector<Value>& items() const { return static_cast<const ListObject*>(object_.get())->items; }
  const MapObject& entries() const { return *static_cast<const MapObject*>(object_.get()); }
  NamespaceObject& as_namespace() const { return *static_cast<NamespaceObject*>(object_.get()); }
  LoopObject& as_loop() const { return *static_cast<LoopObject*>(object_.get()); }
  const MethodObject& as_method() const { return *static_cast<const MethodObject*>(object_.get()); }

  // The string itself when nobody else holds it: `a + b + c` then appends in place.
  StringObject* unshared_string();

  size_t depth() const { return depth_; }              // 0 for what holds no values
  bool holds_reference() const { return reference_; }  // a namespace or loop is in it: it could close a circle
  bool same_object(const Value& other) const { return object_ == other.object_; }

 private:
  void contain(const Value& child);

  Kind kind_ = Kind::Undefined;
  bool tuple_ = false;
  bool reference_ = false;
  uint16_t depth_ = 0;
  union {
    bool bool_;
    int64_t int_ = 0;
    double real_;
    Function function_;
    const Macro* macro_;
  };
  std::shared_ptr<void> object_;
};

// Keys are strings, in order of insertion.
class MapObject {
 public:
  using Entry = std::pair<Value, Value>;  // the key is a String

  MapObject(std::vector<std::pair<MarkedText, Value>> entries, Budget* budget);
  const std::vector<Entry>& entries() const { return entries_; }
  const Value* find(std::string_view key) const;  // nullptr: no such key

 private:
  std::vector<Entry> entries_;
  std::vector<uint32_t> by_key_;  // indices of entries_, sorted by key
  std::optional<Lease> lease_;
};

struct MethodObject {
  MethodObject(Value s, std::string n) : self(std::move(s)), name(std::move(n)) {}
  Value self;
  std::string name;
};

}  // namespace jinja
}  // namespace strata::text
