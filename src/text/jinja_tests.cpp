// The tests behind `is`.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja_ops.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {

constexpr std::array<std::string_view, 11> kPlainTests = {
    "defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number", "boolean", "true", "false"};

// Comparisons by name: selectattr("role", "equalto", "user").
constexpr std::array<std::pair<std::string_view, Operator>, 16> kComparisons = {{
    {"in", Operator::In},
    {"==", Operator::Equal},
    {"eq", Operator::Equal},
    {"equalto", Operator::Equal},
    {"!=", Operator::NotEqual},
    {"ne", Operator::NotEqual},
    {"<", Operator::Less},
    {"lt", Operator::Less},
    {"lessthan", Operator::Less},
    {"<=", Operator::LessEqual},
    {"le", Operator::LessEqual},
    {">", Operator::Greater},
    {"gt", Operator::Greater},
    {"greaterthan", Operator::Greater},
    {">=", Operator::GreaterEqual},
    {"ge", Operator::GreaterEqual},
}};

const std::pair<std::string_view, Operator>* find_comparison(std::string_view name) {
  const auto found =
      std::find_if(kComparisons.begin(), kComparisons.end(), [&](const auto& c) { return c.first == name; });
  return found == kComparisons.end() ? nullptr : &*found;
}

bool plain_test(std::string_view name, const Value& v) {
  const bool sequence = v.is(Kind::String) || v.is(Kind::List) || v.is(Kind::Map) || v.is(Kind::Undefined);
  if (name == "defined") return !v.is(Kind::Undefined);
  if (name == "undefined") return v.is(Kind::Undefined);
  if (name == "none") return v.is(Kind::None);
  if (name == "string") return v.is(Kind::String);
  if (name == "mapping") return v.is(Kind::Map);
  if (name == "sequence") return sequence;
  if (name == "iterable") return sequence || v.is(Kind::Loop);
  if (name == "number") return v.is_number() || v.is(Kind::Bool);
  if (name == "boolean") return v.is(Kind::Bool);
  return v.is(Kind::Bool) && v.as_bool() == (name == "true");
}

}  // namespace

bool is_test(std::string_view name) {
  return find_comparison(name) != nullptr ||
         std::find(kPlainTests.begin(), kPlainTests.end(), name) != kPlainTests.end();
}

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget) {
  budget.step();
  ArgumentReader reader(name, arguments);
  if (const auto* comparison = find_comparison(name)) {
    const Value& other = reader.required("other");
    reader.finish();
    return compare(comparison->second, value, other, budget);
  }
  reader.finish();
  return plain_test(name, value);
}

}  // namespace strata::text::jinja
