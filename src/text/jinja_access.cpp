// Attributes, items, slices, iteration; arguments of calls.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "text/jinja_object.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {

template <size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 9> kStringMethods = {"split",    "strip",   "lstrip", "rstrip", "startswith",
                                                            "endswith", "replace", "upper",  "lower"};
constexpr std::array<std::string_view, 4> kMapMethods = {"get", "items", "keys", "values"};

// Methods of Python that this engine does not have: an error rather than an undefined value.
constexpr std::array<std::string_view, 38> kOtherStringMethods = {
    "capitalize", "casefold",   "center",       "count",        "encode",    "expandtabs", "find",    "format",
    "format_map", "index",      "isalnum",      "isalpha",      "isascii",   "isdecimal",  "isdigit", "isidentifier",
    "islower",    "isnumeric",  "isprintable",  "isspace",      "istitle",   "isupper",    "join",    "ljust",
    "maketrans",  "partition",  "removeprefix", "removesuffix", "rfind",     "rindex",     "rjust",   "rpartition",
    "rsplit",     "splitlines", "swapcase",     "title",        "translate", "zfill"};
constexpr std::array<std::string_view, 7> kOtherMapMethods = {"clear",   "copy",       "fromkeys", "pop",
                                                              "popitem", "setdefault", "update"};
constexpr std::array<std::string_view, 11> kOtherListMethods = {
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"};

[[noreturn]] void no_method(const Value& value, std::string_view name) {
  fail(fmt::format("the method '{}' of {} is not supported", name, type_name(value)));
}

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("a {} has no attribute '{}'", type_name(value), name.substr(0, 40)));
}

Value loop_attribute(const Value& value, std::string_view name) {
  const LoopObject& loop = value.as_loop();
  const auto& items = loop.items.items();
  const auto integer = [](size_t number) { return Value::integer(static_cast<int64_t>(number)); };
  if (name == "index") return integer(loop.index + 1);
  if (name == "index0") return integer(loop.index);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(loop.index + 1 >= items.size());
  if (name == "length") return integer(items.size());
  if (name == "previtem")
    return loop.index == 0 ? Value::undefined("there is no previous item") : items[loop.index - 1];
  if (name == "nextitem") {
    return loop.index + 1 >= items.size() ? Value::undefined("there is no next item") : items[loop.index + 1];
  }
  fail(fmt::format("'loop.{}' is not supported", name.substr(0, 40)));
}

// Methods, which Python finds before keys: `x.items` of a mapping with a key "items" is the method.
Value own_attribute(const Value& value, std::string_view name) {
  if (value.is(Kind::String)) {
    if (among(kStringMethods, name)) return Value::method(value, std::string(name));
    if (among(kOtherStringMethods, name)) no_method(value, name);
  } else if (value.is(Kind::Map)) {
    if (among(kMapMethods, name)) return Value::method(value, std::string(name));
    if (among(kOtherMapMethods, name)) no_method(value, name);
  } else if (value.is(Kind::List)) {
    if (among(kOtherListMethods, name)) no_method(value, name);
  } else if (value.is(Kind::Loop)) {
    return loop_attribute(value, name);
  } else if (value.is(Kind::Namespace)) {
    const auto& values = value.as_namespace().values;
    const auto found = values.find(name);
    if (found != values.end()) return found->second;
  }
  return missing(value, name);
}

const Value* find_key(const Value& map, std::string_view key) { return map.entries().find(key); }

}  // namespace

Value get_attribute(const Value& value, std::string_view name) {
  require_defined(value);
  if (value.is(Kind::Map) && !among(kMapMethods, name) && !among(kOtherMapMethods, name)) {
    if (const Value* found = find_key(value, name)) return *found;
  }
  return own_attribute(value, name);
}

Value get_item(const Value& value, const Value& key, Budget& budget) {
  require_defined(value);
  if (key.is(Kind::String)) {
    if (value.is(Kind::Map)) {
      if (const Value* found = find_key(value, key.bytes())) return *found;
    }
    if (key.bytes().starts_with('_') && !value.is(Kind::Map)) {
      fail(fmt::format("attributes with an underscore are out of reach: '{}'", key.bytes().substr(0, 40)));
    }
    if (!key.bytes().starts_with('_')) return own_attribute(value, key.bytes());
    return missing(value, key.bytes());
  }
  if (key.is(Kind::Int) || key.is(Kind::Bool)) {
    int64_t index = as_index(key, "an index");
    if (value.is(Kind::List)) {
      const auto size = static_cast<int64_t>(value.items().size());
      if (index < 0) index += size;
      if (index >= 0 && index < size) return value.items()[static_cast<size_t>(index)];
    } else if (value.is(Kind::String)) {
      const auto starts = char_starts(value.bytes(), budget);
      const auto size = static_cast<int64_t>(starts.size()) - 1;
      if (index < 0) index += size;
      if (index >= 0 && index < size) {
        const size_t begin = starts[static_cast<size_t>(index)], end = starts[static_cast<size_t>(index) + 1];
        return Value::string(value.text().part(begin, end - begin), &budget);
      }
    }
    return Value::undefined(fmt::format("a {} has no element {}", type_name(value), as_index(key, "")));
  }
  return Value::undefined(fmt::format("a {} has no element of that {}", type_name(value), type_name(key)));
}

Value get_path(const Value& value, const Value& path, Budget& budget) {
  if (!path.is(Kind::String)) return get_item(value, path, budget);
  Value found = value;
  std::string_view rest = path.bytes();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = error == std::errc() && end == part.data() + part.size() && !part.starts_with('-');
    found = get_item(found, number ? Value::integer(index) : Value::plain(part), budget);
    if (dot == std::string_view::npos) return found;
    rest.remove_prefix(dot + 1);
  }
}

namespace {

struct SliceBounds {
  int64_t begin, end, step;
};

// slice.indices() of Python.
SliceBounds slice_bounds(const Value& begin, const Value& end, const Value& step, int64_t size) {
  SliceBounds b{};
  b.step = step.is(Kind::None) ? 1 : as_index(step, "the step of a slice");
  if (b.step == 0) fail("the step of a slice is zero");
  const int64_t lowest = b.step < 0 ? -1 : 0, highest = b.step < 0 ? size - 1 : size;
  const auto clamp = [&](const Value& v, int64_t fallback) {
    if (v.is(Kind::None)) return fallback;
    int64_t index = as_index(v, "a bound of a slice");
    if (index < 0) index += size;
    return std::clamp(index, lowest, highest);
  };
  b.begin = clamp(begin, b.step < 0 ? highest : lowest);
  b.end = clamp(end, b.step < 0 ? lowest : highest);
  return b;
}

template <typename Take>
void each_index(const SliceBounds& b, Take take) {
  if (b.step > 0) {
    for (int64_t i = b.begin; i < b.end; i += std::min(b.step, b.end - i)) take(static_cast<size_t>(i));
  } else {
    for (int64_t i = b.begin; i > b.end; i += std::max(b.step, b.end - i)) take(static_cast<size_t>(i));
  }
}

}  // namespace

Value slice(const Value& value, const Value& begin, const Value& end, const Value& step, Budget& budget) {
  require_defined(value);
  if (value.is(Kind::List)) {
    const SliceBounds b = slice_bounds(begin, end, step, static_cast<int64_t>(value.items().size()));
    std::vector<Value> items;
    each_index(b, [&](size_t i) {
      budget.step();
      items.push_back(value.items()[i]);
    });
    return value.is_tuple() ? Value::tuple(std::move(items), &budget) : Value::list(std::move(items), &budget);
  }
  if (value.is(Kind::String)) {
    const auto starts = char_starts(value.bytes(), budget);
    const SliceBounds b = slice_bounds(begin, end, step, static_cast<int64_t>(starts.size()) - 1);
    budget.moved(value.bytes().size());
    MarkedText text;
    if (b.step == 1) {
      if (b.begin < b.end) {
        const size_t from = starts[static_cast<size_t>(b.begin)];
        text = value.text().part(from, starts[static_cast<size_t>(b.end)] - from);
      }
    } else {
      each_index(b, [&](size_t i) { text.append(value.text(), starts[i], starts[i + 1] - starts[i]); });
    }
    return Value::string(std::move(text), &budget);
  }
  fail(fmt::format("a {} cannot be sliced", type_name(value)));
}

Value iterate(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::List: return value;
    case Kind::Undefined: return Value::list({});
    case Kind::Map: {
      std::vector<Value> keys;
      budget.step(value.entries().entries().size());
      for (const auto& entry : value.entries().entries()) keys.push_back(entry.first);
      return Value::list(std::move(keys), &budget);
    }
    case Kind::String: {
      const auto starts = char_starts(value.bytes(), budget);
      std::vector<Value> characters;
      for (size_t i = 0; i + 1 < starts.size(); ++i) {
        budget.step();
        characters.push_back(Value::string(value.text().part(starts[i], starts[i + 1] - starts[i]), &budget));
      }
      return Value::list(std::move(characters), &budget);
    }
    default: fail(fmt::format("a {} has no items to go through", type_name(value)));
  }
}

size_t length_of(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::Undefined: return 0;
    case Kind::List: return value.items().size();
    case Kind::Map: return value.entries().entries().size();
    case Kind::String: budget.step(value.bytes().size() / 16); return char_count(value.bytes());
    default: fail(fmt::format("a {} has no length", type_name(value)));
  }
}

const Value* ArgumentReader::optional(std::string_view name) {
  for (const auto& [given, value] : arguments_.named) {
    if (given != name) continue;
    if (position_ < arguments_.positional.size()) fail(fmt::format("{}: '{}' is given twice", function_, name));
    ++named_used_;
    return &value;
  }
  return position_ < arguments_.positional.size() ? &arguments_.positional[position_++] : nullptr;
}

const Value& ArgumentReader::required(std::string_view name) {
  const Value* value = optional(name);
  if (value == nullptr) fail(fmt::format("{}: the argument '{}' is missing", function_, name));
  return *value;
}

int64_t ArgumentReader::integer(std::string_view name, int64_t fallback) {
  const Value* value = optional(name);
  return value == nullptr || value->is(Kind::None) ? fallback
                                                   : as_index(*value, fmt::format("{}: '{}'", function_, name));
}

bool ArgumentReader::boolean(std::string_view name, bool fallback) {
  const Value* value = optional(name);
  return value == nullptr ? fallback : truthy(*value);
}

const MarkedText* ArgumentReader::text(std::string_view name) {
  const Value* value = optional(name);
  if (value == nullptr || value->is(Kind::None)) return nullptr;
  require_defined(*value);
  if (!value->is(Kind::String)) {
    fail(fmt::format("{}: '{}' must be a string, not {}", function_, name, type_name(*value)));
  }
  return &value->text();
}

const MarkedText& ArgumentReader::required_text(std::string_view name) {
  const MarkedText* value = text(name);
  if (value == nullptr) fail(fmt::format("{}: the argument '{}' is missing", function_, name));
  return *value;
}

void ArgumentReader::finish() const {
  if (position_ < arguments_.positional.size()) fail(fmt::format("{}: too many arguments", function_));
  if (named_used_ < arguments_.named.size()) {
    fail(fmt::format("{}: unknown or repeated argument, one of those is '{}'", function_,
                     arguments_.named.back().first));
  }
}

}  // namespace strata::text::jinja
