// Truth, equality, order and text of values.
#include "text/jinja_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja_object.h"
#include "text/jinja_text.h"
#include "text/unicode.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined: return "Undefined";
    case Kind::None: return "NoneType";
    case Kind::Bool: return "bool";
    case Kind::Int:
    case Kind::BigInt: return "int";
    case Kind::Float: return "float";
    case Kind::String: return "str";
    case Kind::List: return value.is_tuple() ? "tuple" : "list";
    case Kind::Map: return "dict";
    case Kind::Namespace: return "namespace";
    case Kind::Loop: return "loop";
    case Kind::Method: return "method";
    case Kind::Macro: return "macro";
    case Kind::Function: return "function";
  }
  return "value";
}

void require_defined(const Value& value) {
  if (value.is(Kind::Undefined)) fail(value.what());
}

int64_t as_index(const Value& value, std::string_view what) {
  require_defined(value);
  if (value.is(Kind::Int)) return value.as_int();
  if (value.is(Kind::Bool)) return value.as_bool() ? 1 : 0;
  fail(fmt::format("{} must be an integer, not {}", what, type_name(value)));
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
    case Kind::None: return false;
    case Kind::Bool: return value.as_bool();
    case Kind::Int: return value.as_int() != 0;
    case Kind::Float: return value.as_real() != 0;
    case Kind::String: return !value.bytes().empty();
    case Kind::List: return !value.items().empty();
    case Kind::Map: return !value.entries().entries().empty();
    default: return true;
  }
}

namespace {

bool is_numeric(const Value& v) { return v.is_number() || v.is(Kind::Bool); }

// Integers and reals compare exactly where long double has 64 bits of mantissa, as on x86.
long double number_of(const Value& v) {
  switch (v.kind()) {
    case Kind::Bool: return v.as_bool() ? 1 : 0;
    case Kind::Int: return static_cast<long double>(v.as_int());
    case Kind::Float: return v.as_real();
    default: break;
  }
  double value = 0;
  const std::string& digits = v.what();
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return digits.starts_with('-') ? -HUGE_VALL : HUGE_VALL;
  return value;
}

bool both_integers(const Value& a, const Value& b) {
  const auto integer = [](const Value& v) { return v.is(Kind::Int) || v.is(Kind::Bool); };
  return integer(a) && integer(b);
}

bool equal_maps(const MapObject& a, const MapObject& b, Budget& budget) {
  if (a.entries().size() != b.entries().size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key.bytes());
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

bool equal_lists(const Value& a, const Value& b, Budget& budget) {
  if (a.is_tuple() != b.is_tuple()) return false;
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                    [&](const Value& x, const Value& y) { return equal(x, y, budget); });
}

}  // namespace

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (a.is(Kind::BigInt) && b.is(Kind::BigInt)) return a.what() == b.what();
  if (is_numeric(a) && is_numeric(b)) return number_of(a) == number_of(b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::String: budget.moved(std::min(a.bytes().size(), b.bytes().size())); return a.bytes() == b.bytes();
    case Kind::List: return equal_lists(a, b, budget);
    case Kind::Map: return equal_maps(a.entries(), b.entries(), budget);
    case Kind::Macro: return a.as_macro() == b.as_macro();
    case Kind::Function: return a.as_function() == b.as_function();
    case Kind::Namespace:
    case Kind::Loop:
    case Kind::Method: return a.same_object(b);
    default: return true;  // Undefined, None
  }
}

bool less(const Value& a, const Value& b, std::string_view operator_text, Budget& budget) {
  budget.step();
  require_defined(a);
  require_defined(b);
  if (both_integers(a, b)) return as_index(a, "") < as_index(b, "");
  if (is_numeric(a) && is_numeric(b)) return number_of(a) < number_of(b);
  if (a.is(Kind::String) && b.is(Kind::String)) {
    budget.moved(std::min(a.bytes().size(), b.bytes().size()));
    return a.bytes() < b.bytes();  // code points sort as their bytes do
  }
  if (a.is(Kind::List) && b.is(Kind::List) && a.is_tuple() == b.is_tuple()) {
    const size_t common = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < common; ++i) {
      if (!equal(a.items()[i], b.items()[i], budget)) return less(a.items()[i], b.items()[i], operator_text, budget);
    }
    return a.items().size() < b.items().size();
  }
  fail(fmt::format("'{}' is not supported between {} and {}", operator_text, type_name(a), type_name(b)));
}

bool compare(Operator op, const Value& a, const Value& b, Budget& budget) {
  switch (op) {
    case Operator::Equal: return equal(a, b, budget);
    case Operator::NotEqual: return !equal(a, b, budget);
    case Operator::Less: return less(a, b, "<", budget);
    case Operator::Greater: return less(b, a, ">", budget);
    case Operator::LessEqual: return less(a, b, "<=", budget) || equal(a, b, budget);
    case Operator::GreaterEqual: return less(b, a, ">=", budget) || equal(a, b, budget);
    case Operator::In: return contains(b, a, budget);
    default: return !contains(b, a, budget);
  }
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  switch (container.kind()) {
    case Kind::String:
      if (!item.is(Kind::String)) {
        fail(fmt::format("'in' on a string needs a string, not {}",
                         item.is(Kind::Undefined) ? item.what() : type_name(item)));
      }
      budget.step(container.bytes().size() / 16);
      return find_text(container.bytes(), item.bytes()) != std::string_view::npos;
    case Kind::List:
      return std::any_of(container.items().begin(), container.items().end(),
                         [&](const Value& other) { return equal(item, other, budget); });
    case Kind::Map:
      if (item.is(Kind::List) || item.is(Kind::Map)) fail(fmt::format("a {} is no key", type_name(item)));
      return item.is(Kind::String) && container.entries().find(item.bytes()) != nullptr;
    case Kind::Undefined: return false;
    default: fail(fmt::format("'in' is not supported on {}", type_name(container)));
  }
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  const size_t e = shortest.find('e');
  int exponent = 0;
  const char* digits = shortest.data() + e + 1;
  std::from_chars(*digits == '+' ? digits + 1 : digits, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);  // Python writes two digits of exponent too
  std::string fixed(std::begin(buffer),
                    std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

namespace {

// What repr() of Python escapes. Characters that Unicode has not assigned are kept.
bool is_printable(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD) return false;
  if (c < 0x500) return true;
  if (is_space(c)) return false;
  return !((c >= 0x600 && c <= 0x605) || c == 0x61C || c == 0x6DD || c == 0x70F || c == 0x180E ||
           (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) ||
           (c >= 0xE000 && c <= 0xF8FF) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) || (c & 0xFFFE) == 0xFFFE ||
           c >= 0xE0000);
}

void append_escaped(std::string& out, std::string_view bytes, char quote) {
  for (size_t pos = 0; pos < bytes.size();) {
    const Utf8Result c = decode_utf8(bytes.substr(pos, 4));
    const std::string_view character = bytes.substr(pos, c.length);
    pos += c.length;
    if (c.kind != Utf8Kind::Complete) {
      for (const char byte : character) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    } else if (c.code == static_cast<char32_t>(quote) || c.code == '\\') {
      out += '\\';
      out += character;
    } else if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      out += c.code == '\n' ? "\\n" : c.code == '\r' ? "\\r" : "\\t";
    } else if (is_printable(c.code)) {
      out += character;
    } else if (const auto code = static_cast<uint32_t>(c.code); code < 0x100) {
      out += fmt::format("\\x{:02x}", code);
    } else {
      out += code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
    }
  }
}

void append_repr_text(MarkedText& out, const MarkedText& text, Budget& budget) {
  budget.step(text.bytes.size() / 16);
  const bool single = text.bytes.find('\'') != std::string::npos && text.bytes.find('"') == std::string::npos;
  const char quote = single ? '"' : '\'';
  std::string escaped;
  append_escaped(escaped, text.bytes, quote);
  out.append(std::string_view(&quote, 1));
  text.data.empty() ? out.append(escaped) : out.append_data(escaped);
  out.append(std::string_view(&quote, 1));
  budget.string(out.bytes.size());
}

void append_repr(MarkedText& out, const Value& value, Budget& budget);

void append_items(MarkedText& out, const Value& list, Budget& budget) {
  out.append(list.is_tuple() ? "(" : "[");
  for (size_t i = 0; i < list.items().size(); ++i) {
    if (i != 0) out.append(", ");
    append_repr(out, list.items()[i], budget);
  }
  if (list.is_tuple()) {
    out.append(list.items().size() == 1 ? ",)" : ")");
  } else {
    out.append("]");
  }
}

void append_entries(MarkedText& out, const MapObject& map, Budget& budget) {
  out.append("{");
  for (size_t i = 0; i < map.entries().size(); ++i) {
    if (i != 0) out.append(", ");
    append_repr(out, map.entries()[i].first, budget);
    out.append(": ");
    append_repr(out, map.entries()[i].second, budget);
  }
  out.append("}");
}

void append_repr(MarkedText& out, const Value& value, Budget& budget) {
  budget.step();
  budget.string(out.bytes.size());
  if (value.is(Kind::String)) return append_repr_text(out, value.text(), budget);
  if (value.is(Kind::Undefined)) return out.append("Undefined");
  append_str(out, value, budget);
}

}  // namespace

void append_str(MarkedText& out, const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Kind::Undefined: return;
    case Kind::None: return out.append("None");
    case Kind::Bool: return out.append(value.as_bool() ? "True" : "False");
    case Kind::Int: return out.append(std::to_string(value.as_int()));
    case Kind::BigInt: return out.append(value.what());
    case Kind::Float: return out.append(real_text(value.as_real()));
    case Kind::String:
      budget.moved(value.bytes().size());
      budget.string(out.bytes.size() + value.bytes().size());
      return out.append(value.text());
    case Kind::List: return append_items(out, value, budget);
    case Kind::Map: return append_entries(out, value.entries(), budget);
    case Kind::Method:
      fail(fmt::format("the method '{}' of {} is printed, not called", value.as_method().name,
                       type_name(value.as_method().self)));
    default: fail(fmt::format("a {} cannot be printed", type_name(value)));
  }
}

MarkedText to_str(const Value& value, Budget& budget) {
  MarkedText out;
  append_str(out, value, budget);
  return out;
}

MarkedText concat(const std::vector<Value>& parts, Budget& budget) {
  MarkedText out;
  for (const Value& part : parts) append_str(out, part, budget);
  return out;
}

}  // namespace strata::text::jinja
