#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja_json.h"
#include "text/jinja_object.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {

Value tojson(const Value& value, ArgumentReader& arguments, Budget& budget) {
  constexpr int64_t kMaxIndent = 100;
  JsonStyle style;
  style.ascii = arguments.boolean("ensure_ascii", false);
  const Value* indent = arguments.optional("indent");
  if (indent != nullptr && indent->is(Kind::String)) {
    style.indent = 0;
    style.indent_text = indent->bytes();
    if (style.indent_text.size() > kMaxIndent) exceed("indent", kMaxIndent);
  } else if (indent != nullptr && !indent->is(Kind::None)) {
    const int64_t spaces = as_index(*indent, "tojson: 'indent'");
    if (spaces > kMaxIndent) exceed("indent", kMaxIndent);
    style.indent = static_cast<int>(std::max<int64_t>(spaces, 0));
  }
  if (style.indent >= 0) style.item_separator = ",";
  if (const Value* separators = arguments.optional("separators"); separators && !separators->is(Kind::None)) {
    const bool pair = separators->is(Kind::List) && separators->items().size() == 2 &&
                      separators->items()[0].is(Kind::String) && separators->items()[1].is(Kind::String);
    if (!pair) fail("tojson: 'separators' must be two strings");
    style.item_separator = separators->items()[0].bytes();
    style.key_separator = separators->items()[1].bytes();
  }
  style.sort_keys = arguments.boolean("sort_keys", false);
  arguments.finish();
  return Value::string(to_json(value, style, &budget), &budget);
}

Value join(const Value& value, ArgumentReader& arguments, Budget& budget) {
  const Value* separator = arguments.optional("d");
  const Value* attribute = arguments.optional("attribute");
  arguments.finish();
  const MarkedText between = separator != nullptr ? to_str(*separator, budget) : MarkedText{};
  MarkedText text;
  const Value list = iterate(value, budget);
  for (size_t i = 0; i < list.items().size(); ++i) {
    budget.step();
    if (i != 0) {
      budget.moved(between.bytes.size());
      budget.string(text.bytes.size() + between.bytes.size());
      text.append(between);
    }
    const Value& item = list.items()[i];
    append_str(text, attribute != nullptr ? get_path(item, *attribute, budget) : item, budget);
  }
  return Value::string(std::move(text), &budget);
}

// int(float(text)): what is left when text is no whole number.
Value int_of_real(double value, int64_t fallback) {
  if (!(std::abs(value) < 9.2e18)) {
    if (std::isnan(value) || std::isinf(value)) return Value::integer(fallback);
    fail("int: the result exceeds the limit of 64 bits for integers");
  }
  return Value::integer(static_cast<int64_t>(value));
}

Value int_of_text(const MarkedText& text, int base, int64_t fallback, Budget& budget) {
  const MarkedText stripped = strip(text, {}, Side::Both, budget);
  std::string digits;
  for (const char c : stripped.bytes)
    if (c != '_') digits += c;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == prefix[1]) digits.erase(0, 2);
  const char* end = digits.data() + digits.size();
  int64_t value = 0;
  const auto whole = std::from_chars(digits.data(), end, value, base);
  if (whole.ptr == end && !digits.empty() && digits[0] != '-') {
    if (whole.ec == std::errc::result_out_of_range) fail("int: the result exceeds the limit of 64 bits for integers");
    return Value::integer(negative ? -value : value);
  }
  double real = 0;
  const auto parsed = std::from_chars(digits.data(), end, real);
  if (parsed.ec != std::errc() || parsed.ptr != end || digits.empty() || digits[0] == '-')
    return Value::integer(fallback);
  return int_of_real(negative ? -real : real, fallback);
}

Value to_int(const Value& value, ArgumentReader& arguments, Budget& budget) {
  const int64_t fallback = arguments.integer("default", 0);
  const int64_t base = arguments.integer("base", 10);
  arguments.finish();
  if (base < 2 || base > 36) fail("int: 'base' must be 2 to 36");
  require_defined(value);
  switch (value.kind()) {
    case Kind::Bool: return Value::integer(value.as_bool() ? 1 : 0);
    case Kind::Int:
    case Kind::BigInt: return value;
    case Kind::Float: return int_of_real(value.as_real(), fallback);
    case Kind::String: return int_of_text(value.text(), static_cast<int>(base), fallback, budget);
    default: return Value::integer(fallback);
  }
}

Value default_filter(const Value& value, ArgumentReader& arguments) {
  const Value* fallback = arguments.optional("default_value");
  const bool also_false = arguments.boolean("boolean", false);
  arguments.finish();
  if (!value.is(Kind::Undefined) && !(also_false && !truthy(value))) return value;
  return fallback != nullptr ? *fallback : Value::plain("");
}

// What map and select go through: they find nothing in a value that counts as false, also where that has no items.
Value iterate_if_true(const Value& value, Budget& budget) {
  return truthy(value) ? iterate(value, budget) : Value::list({});
}

Value map_filter(const Value& value, const Arguments& arguments, Budget& budget) {
  const Value list = iterate_if_true(value, budget);
  std::vector<Value> items;
  items.reserve(list.items().size());
  if (arguments.positional.empty()) {
    ArgumentReader reader("map", arguments);
    const Value& attribute = reader.required("attribute");
    const Value* fallback = reader.optional("default");
    reader.finish();
    for (const Value& item : list.items()) {
      budget.step();
      Value found = get_path(item, attribute, budget);
      items.push_back(found.is(Kind::Undefined) && fallback != nullptr ? *fallback : std::move(found));
    }
    return Value::list(std::move(items), &budget);
  }
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  const Value& name = arguments.positional[0];
  if (!name.is(Kind::String) || !is_filter(name.bytes())) {
    fail(fmt::format("map: the filter '{}' is not supported", to_str(name, budget).bytes.substr(0, 40)));
  }
  if (name.bytes() == "map") fail("map: the filter 'map' inside itself is not supported");
  for (const Value& item : list.items()) {
    budget.step();
    items.push_back(apply_filter(name.bytes(), item, rest, budget));
  }
  return Value::list(std::move(items), &budget);
}

// select, reject (on the items) and selectattr (on an attribute of each).
Value select(std::string_view filter, const Value& value, const Arguments& arguments, Budget& budget) {
  Arguments rest = arguments;
  const auto take = [&]() -> std::optional<Value> {
    if (rest.positional.empty()) return std::nullopt;
    Value first = std::move(rest.positional.front());
    rest.positional.erase(rest.positional.begin());
    return first;
  };
  std::optional<Value> attribute;
  if (filter == "selectattr") {
    attribute = take();
    if (!attribute) fail("selectattr: the name of the attribute is missing");
  }
  const std::optional<Value> test = take();
  if (test && (!test->is(Kind::String) || !is_test(test->bytes()))) {
    fail(fmt::format("{}: the test '{}' is not supported", filter, to_str(*test, budget).bytes.substr(0, 40)));
  }
  if (!test && !rest.named.empty()) fail(fmt::format("{}: the name of the test is missing", filter));
  const Value list = iterate_if_true(value, budget);
  std::vector<Value> items;
  for (const Value& item : list.items()) {
    budget.step();
    const Value looked_at = attribute ? get_path(item, *attribute, budget) : item;
    const bool holds = test ? apply_test(test->bytes(), looked_at, rest, budget) : truthy(looked_at);
    if (holds != (filter == "reject")) items.push_back(item);
  }
  return Value::list(std::move(items), &budget);
}

// A merge sort: stable, and what it does is bounded whatever the order says.
template <typename Before>
void merge_sort(std::vector<size_t>& order, Before before) {
  std::vector<size_t> merged(order.size());
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size()), end = std::min(begin + 2 * width, order.size());
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool take_right = left == middle || (right < end && before(order[right], order[left]));
        merged[out] = take_right ? order[right++] : order[left++];
      }
    }
    order.swap(merged);
  }
}

Value sort(const Value& value, ArgumentReader& arguments, Budget& budget) {
  const bool reverse = arguments.boolean("reverse", false);
  const bool case_sensitive = arguments.boolean("case_sensitive", false);
  const Value* attribute = arguments.optional("attribute");
  arguments.finish();
  const Value list = iterate(value, budget);
  std::vector<Value> keys;
  std::vector<size_t> order;
  for (const Value& item : list.items()) {
    budget.step();
    Value key = attribute != nullptr && !attribute->is(Kind::None) ? get_path(item, *attribute, budget) : item;
    if (key.is(Kind::String) && !case_sensitive) {
      budget.moved(key.bytes().size());
      key = Value::string(to_lower(key.text()), &budget);
    }
    keys.push_back(std::move(key));
    order.push_back(order.size());
  }
  merge_sort(order, [&](size_t a, size_t b) {
    return reverse ? less(keys[b], keys[a], "<", budget) : less(keys[a], keys[b], "<", budget);
  });
  std::vector<Value> sorted;
  for (const size_t i : order) sorted.push_back(list.items()[i]);
  return Value::list(std::move(sorted), &budget);
}

Value trim(const Value& value, ArgumentReader& arguments, Budget& budget) {
  const MarkedText* characters = arguments.text("chars");
  arguments.finish();
  const auto set = characters != nullptr ? std::optional<std::string_view>(characters->bytes) : std::nullopt;
  return Value::string(strip(to_str(value, budget), set, Side::Both, budget), &budget);
}

Value replace_filter(const Value& value, ArgumentReader& arguments, Budget& budget) {
  const MarkedText old = to_str(arguments.required("old"), budget);
  const MarkedText fresh = to_str(arguments.required("new"), budget);
  const int64_t most = arguments.integer("count", -1);
  arguments.finish();
  return Value::string(replace(to_str(value, budget), old.bytes, fresh, most, budget), &budget);
}

Value end_of(const Value& value, bool first, Budget& budget) {
  const Value list = iterate(value, budget);
  if (list.items().empty()) {
    return Value::undefined(fmt::format("there is no {} item, the sequence is empty", first ? "first" : "last"));
  }
  return first ? list.items().front() : list.items().back();
}

Value items_of(const Value& value, Budget& budget) {
  if (value.is(Kind::Undefined)) return Value::list({});
  if (!value.is(Kind::Map)) fail(fmt::format("items: needs a mapping, not {}", type_name(value)));
  return call_method(MethodObject(value, "items"), {}, budget);
}

constexpr std::array<std::string_view, 20> kFilters = {
    "tojson", "trim",   "length", "items",      "join", "string", "safe",  "default", "first", "last",
    "list",   "select", "reject", "selectattr", "map",  "upper",  "lower", "replace", "int",   "sort"};

}  // namespace

bool is_filter(std::string_view name) { return std::find(kFilters.begin(), kFilters.end(), name) != kFilters.end(); }

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget) {
  budget.step();
  if (name == "map") return map_filter(value, arguments, budget);
  if (name == "select" || name == "reject" || name == "selectattr") return select(name, value, arguments, budget);
  ArgumentReader reader(name, arguments);
  if (name == "tojson") return tojson(value, reader, budget);
  if (name == "join") return join(value, reader, budget);
  if (name == "default") return default_filter(value, reader);
  if (name == "int") return to_int(value, reader, budget);
  if (name == "sort") return sort(value, reader, budget);
  if (name == "trim") return trim(value, reader, budget);
  if (name == "replace") return replace_filter(value, reader, budget);
  reader.finish();
  if (name == "length") return Value::integer(static_cast<int64_t>(length_of(value, budget)));
  if (name == "items") return items_of(value, budget);
  if (name == "first" || name == "last") return end_of(value, name == "first", budget);
  if (name == "list") {
    const Value list = iterate(value, budget);
    return list.is_tuple() ? Value::list(list.items(), &budget) : list;
  }
  if (value.is(Kind::String) && (name == "string" || name == "safe")) return value;
  MarkedText text = to_str(value, budget);
  if (name == "upper") text = to_upper(std::move(text));
  if (name == "lower") text = to_lower(std::move(text));
  return Value::string(std::move(text), &budget);
}

}  // namespace strata::text::jinja
