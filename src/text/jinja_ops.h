// What expressions do with values: the operators, attributes, methods, filters, tests and functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_limits.h"
#include "text/jinja_value.h"

namespace strata::text::jinja {

std::string type_name(const Value& value);  // as Python names it
void require_defined(const Value& value);   // fails with the reason why it is not

bool truthy(const Value& value);
bool equal(const Value& a, const Value& b, Budget&);
bool less(const Value& a, const Value& b, std::string_view operator_text, Budget&);
bool compare(Operator op, const Value& a, const Value& b, Budget&);
bool contains(const Value& container, const Value& item, Budget&);
Value arithmetic(Operator op, Value a, const Value& b, Budget&);
Value negate(const Value& value);

// str() and repr() of Python. Undefined is empty.
void append_str(MarkedText& out, const Value& value, Budget&);
MarkedText to_str(const Value& value, Budget&);
std::string real_text(double value);
MarkedText concat(const std::vector<Value>& parts, Budget&);

// `x.name` and `x[key]`. What is not there is undefined; of an undefined value it is an error.
Value get_attribute(const Value& value, std::string_view name);
Value get_item(const Value& value, const Value& key, Budget&);
Value get_path(const Value& value, const Value& path, Budget&);  // "a.b.0" of the filters
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step, Budget&);  // None: left out
Value iterate(const Value& value, Budget&);  // a List of what a loop would see
size_t length_of(const Value& value, Budget&);

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Takes arguments by position or name; finish() refuses what is left over.
class ArgumentReader {
 public:
  ArgumentReader(std::string_view function, const Arguments& arguments) : function_(function), arguments_(arguments) {}

  const Value* optional(std::string_view name);
  const Value& required(std::string_view name);
  int64_t integer(std::string_view name, int64_t fallback);
  bool boolean(std::string_view name, bool fallback);
  const MarkedText* text(std::string_view name);  // nullptr: not given, or none
  const MarkedText& required_text(std::string_view name);
  void finish() const;
  std::string_view function() const { return function_; }

 private:
  std::string function_;
  const Arguments& arguments_;
  size_t position_ = 0;
  size_t named_used_ = 0;
};

Value call_method(const MethodObject& method, const Arguments& arguments, Budget&);
Value call_function(Function function, const Arguments& arguments, int64_t now, Budget&);
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget&);
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Budget&);
bool is_filter(std::string_view name);
bool is_test(std::string_view name);

int64_t as_index(const Value& value, std::string_view what);  // an integer or boolean

}  // namespace strata::text::jinja
