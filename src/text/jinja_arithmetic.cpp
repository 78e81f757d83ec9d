#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja_ops.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};
std::string_view sign_of(Operator op) { return kSigns[static_cast<size_t>(op)]; }

[[noreturn]] void overflow() { fail("the result exceeds the limit of 64 bits for integers"); }

[[noreturn]] void unsupported(Operator op, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  if (a.is(Kind::BigInt) || b.is(Kind::BigInt)) overflow();
  if (op == Operator::Modulo && a.is(Kind::String)) fail("formatting a string with '%' is not supported");
  fail(fmt::format("'{}' is not supported between {} and {}", sign_of(op), type_name(a), type_name(b)));
}

bool is_integer(const Value& v) { return v.is(Kind::Int) || v.is(Kind::Bool); }
bool is_numeric(const Value& v) { return is_integer(v) || v.is(Kind::Float); }
double real_of(const Value& v) { return v.is(Kind::Float) ? v.as_real() : static_cast<double>(as_index(v, "")); }

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

// Rounds down, as Python does.
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail("division by zero");
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) overflow();
    return -a;
  }
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) fail("division by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integer_arithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool too_large = false;
  switch (op) {
    case Operator::Add: too_large = __builtin_add_overflow(a, b, &result); break;
    case Operator::Subtract: too_large = __builtin_sub_overflow(a, b, &result); break;
    case Operator::Multiply: too_large = __builtin_mul_overflow(a, b, &result); break;
    case Operator::FloorDivide: return Value::integer(floor_divide(a, b));
    case Operator::Modulo: return Value::integer(modulo(a, b));
    case Operator::Divide:
      if (b == 0) fail("division by zero");
      return Value::real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    default:
      if (b >= 0) return Value::integer(integer_power(a, b));
      if (a == 0) fail("division by zero");
      return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
  if (too_large) overflow();
  return Value::integer(result);
}

Value real_arithmetic(Operator op, double a, double b) {
  const bool divides = op == Operator::Divide || op == Operator::FloorDivide || op == Operator::Modulo;
  if (divides && b == 0) fail("division by zero");
  switch (op) {
    case Operator::Add: return Value::real(a + b);
    case Operator::Subtract: return Value::real(a - b);
    case Operator::Multiply: return Value::real(a * b);
    case Operator::Divide: return Value::real(a / b);
    case Operator::FloorDivide: return Value::real(std::floor(a / b));
    case Operator::Modulo: {
      const double rest = std::fmod(a, b);
      return Value::real(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
    default: break;
  }
  const double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) fail("a power that is no real number");
  if (a == 0 && b < 0) fail("division by zero");
  return Value::real(result);
}

Value add_strings(Value a, const Value& b, Budget& budget) {
  const size_t size = a.bytes().size() + b.bytes().size();
  budget.string(size);
  budget.moved(b.bytes().size());
  if (StringObject* mine = a.unshared_string(); mine != nullptr && !b.same_object(a)) {
    mine->lease.grow(b.bytes().size() + b.text().data.size() * sizeof(DataRange));
    mine->text.append(b.text());
    return a;
  }
  budget.moved(a.bytes().size());
  MarkedText text;
  text.bytes.reserve(size);
  text.append(a.text());
  text.append(b.text());
  return Value::string(std::move(text), &budget);
}

Value make_list(bool tuple, std::vector<Value> items, Budget& budget) {
  return tuple ? Value::tuple(std::move(items), &budget) : Value::list(std::move(items), &budget);
}

Value add_lists(const Value& a, const Value& b, Budget& budget) {
  budget.step(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return make_list(a.is_tuple(), std::move(items), budget);
}

Value repeat(const Value& what, int64_t count, Budget& budget) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (what.is(Kind::String)) {
    const size_t size = what.bytes().size();
    if (size != 0 && times > budget.limits.string_bytes / size) exceed("string bytes", budget.limits.string_bytes);
    budget.moved(size * times);
    MarkedText text;
    if (size * times != 0) text = what.text();
    while (text.bytes.size() < size * times) {
      const MarkedText so_far = text;
      text.append(so_far, 0, std::min(so_far.bytes.size(), size * times - so_far.bytes.size()));
    }
    return Value::string(std::move(text), &budget);
  }
  const size_t size = what.items().size();
  if (size != 0 && times > budget.limits.range_items / size) exceed("range items", budget.limits.range_items);
  budget.step(size * times);
  std::vector<Value> items;
  for (uint64_t i = 0; i < times && size != 0; ++i) {
    items.insert(items.end(), what.items().begin(), what.items().end());
  }
  return make_list(what.is_tuple(), std::move(items), budget);
}

bool repeatable(const Value& v) { return v.is(Kind::String) || v.is(Kind::List); }

}  // namespace

Value arithmetic(Operator op, Value a, const Value& b, Budget& budget) {
  budget.step();
  if (is_integer(a) && is_integer(b)) return integer_arithmetic(op, as_index(a, ""), as_index(b, ""));
  if (is_numeric(a) && is_numeric(b)) return real_arithmetic(op, real_of(a), real_of(b));
  if (op == Operator::Add && a.is(Kind::String) && b.is(Kind::String)) return add_strings(std::move(a), b, budget);
  if (op == Operator::Add && a.is(Kind::List) && b.is(Kind::List) && a.is_tuple() == b.is_tuple()) {
    return add_lists(a, b, budget);
  }
  if (op == Operator::Multiply && repeatable(a) && is_integer(b)) return repeat(a, as_index(b, ""), budget);
  if (op == Operator::Multiply && is_integer(a) && repeatable(b)) return repeat(b, as_index(a, ""), budget);
  unsupported(op, a, b);
}

Value negate(const Value& value) {
  if (value.is(Kind::Float)) return Value::real(-value.as_real());
  if (!is_integer(value)) {
    require_defined(value);
    fail(fmt::format("'-' is not supported on {}", type_name(value)));
  }
  return integer_arithmetic(Operator::Subtract, 0, as_index(value, ""));
}

}  // namespace strata::text::jinja
