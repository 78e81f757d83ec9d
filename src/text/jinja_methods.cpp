// Methods of strings and mappings, and the global functions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>

#include "base/error.h"
#include "text/jinja_object.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace strata::text::jinja {

using Kind = Value::Kind;

namespace {

std::optional<std::string_view> view_of(const MarkedText* text) {
  if (text == nullptr) return std::nullopt;
  return text->bytes;
}

Value strip_method(const Value& self, Side side, ArgumentReader& arguments, Budget& budget) {
  const auto characters = view_of(arguments.text("chars"));
  arguments.finish();
  return Value::string(strip(self.text(), characters, side, budget), &budget);
}

Value affix_method(const Value& self, bool prefix, ArgumentReader& arguments) {
  const Value& affix = arguments.required("prefix");
  arguments.finish();
  const auto matches = [&](const Value& v) {
    require_defined(v);
    if (!v.is(Kind::String)) {
      fail(fmt::format("{}: needs a string or a tuple of strings, not {}", arguments.function(), type_name(v)));
    }
    return prefix ? self.bytes().starts_with(v.bytes()) : self.bytes().ends_with(v.bytes());
  };
  if (affix.is(Kind::List) && affix.is_tuple()) {
    return Value::boolean(std::any_of(affix.items().begin(), affix.items().end(), matches));
  }
  return Value::boolean(matches(affix));
}

Value string_method(const Value& self, std::string_view name, ArgumentReader& arguments, Budget& budget) {
  if (name == "strip") return strip_method(self, Side::Both, arguments, budget);
  if (name == "lstrip") return strip_method(self, Side::Left, arguments, budget);
  if (name == "rstrip") return strip_method(self, Side::Right, arguments, budget);
  if (name == "startswith" || name == "endswith") return affix_method(self, name == "startswith", arguments);
  if (name == "split") {
    const auto separator = view_of(arguments.text("sep"));
    const int64_t most = arguments.integer("maxsplit", -1);
    arguments.finish();
    return Value::list(split(self.text(), separator, most, budget), &budget);
  }
  if (name == "replace") {
    const MarkedText& old = arguments.required_text("old");
    const MarkedText& fresh = arguments.required_text("new");
    const int64_t most = arguments.integer("count", -1);
    arguments.finish();
    return Value::string(replace(self.text(), old.bytes, fresh, most, budget), &budget);
  }
  arguments.finish();
  budget.moved(self.bytes().size());
  return Value::string(name == "upper" ? to_upper(self.text()) : to_lower(self.text()), &budget);
}

Value map_method(const Value& self, std::string_view name, ArgumentReader& arguments, Budget& budget) {
  const auto& entries = self.entries().entries();
  if (name == "get") {
    const Value& key = arguments.required("key");
    const Value* fallback = arguments.optional("default");
    arguments.finish();
    const Value* found = key.is(Kind::String) ? self.entries().find(key.bytes()) : nullptr;
    if (found != nullptr) return *found;
    return fallback != nullptr ? *fallback : Value::none();
  }
  arguments.finish();
  budget.step(entries.size());
  std::vector<Value> items;
  for (const auto& [key, value] : entries) {
    if (name == "keys") {
      items.push_back(key);
    } else if (name == "values") {
      items.push_back(value);
    } else {
      items.push_back(Value::tuple({key, value}, &budget));
    }
  }
  return Value::list(std::move(items), &budget);
}

Value new_namespace(const Arguments& arguments) {
  Value made = Value::new_namespace();
  auto& values = made.as_namespace().values;
  const auto put = [&](const std::string& name, const Value& value) {
    if (value.holds_reference()) fail("a namespace cannot hold a namespace or a loop");
    values[name] = value;
  };
  if (arguments.positional.size() > 1) fail("namespace: too many arguments");
  for (const Value& given : arguments.positional) {
    if (!given.is(Kind::Map)) fail("namespace: needs named arguments or a mapping");
    for (const auto& [key, value] : given.entries().entries()) put(key.bytes(), value);
  }
  for (const auto& [name, value] : arguments.named) put(name, value);
  return made;
}

Value range(const Arguments& arguments, Budget& budget) {
  ArgumentReader reader("range", arguments);
  int64_t begin = as_index(reader.required("start"), "range: 'start'"), end = 0, step = 1;
  if (const Value* stop = reader.optional("stop")) {
    end = as_index(*stop, "range: 'stop'");
  } else {
    std::swap(begin, end);
  }
  if (const Value* given = reader.optional("step")) step = as_index(*given, "range: 'step'");
  reader.finish();
  if (step == 0) fail("range: the step is zero");
  std::vector<Value> items;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (items.size() >= budget.limits.range_items) exceed("range items", budget.limits.range_items);
    budget.step();
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return Value::list(std::move(items), &budget);
}

constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};

std::string date_part(char code, const std::tm& t, bool pad) {
  const auto two = [&](int number) { return pad ? fmt::format("{:02}", number) : std::to_string(number); };
  const auto month = static_cast<size_t>(t.tm_mon), day = static_cast<size_t>(t.tm_wday);
  const int hour12 = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
  switch (code) {
    case 'Y': return std::to_string(t.tm_year + 1900);
    case 'y': return two(t.tm_year % 100);
    case 'm': return two(t.tm_mon + 1);
    case 'd': return two(t.tm_mday);
    case 'e': return fmt::format("{:2}", t.tm_mday);
    case 'H': return two(t.tm_hour);
    case 'I': return two(hour12);
    case 'M': return two(t.tm_min);
    case 'S': return two(t.tm_sec);
    case 'j': return pad ? fmt::format("{:03}", t.tm_yday + 1) : std::to_string(t.tm_yday + 1);
    case 'p': return t.tm_hour < 12 ? "AM" : "PM";
    case 'B': return std::string(kMonths[month]);
    case 'b': return std::string(kMonths[month].substr(0, 3));
    case 'A': return std::string(kDays[day]);
    case 'a': return std::string(kDays[day].substr(0, 3));
    case 'F': return fmt::format("{}-{:02}-{:02}", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
    case 'T': return fmt::format("{:02}:{:02}:{:02}", t.tm_hour, t.tm_min, t.tm_sec);
    case '%': return "%";
    default:
      fail(fmt::format("strftime_now: the format '%{}' is not supported", code >= ' ' && code <= '~' ? code : '?'));
  }
}

Value strftime_now(const Arguments& arguments, int64_t now, Budget& budget) {
  ArgumentReader reader("strftime_now", arguments);
  const MarkedText& format = reader.required_text("format");
  reader.finish();
  const auto seconds = static_cast<std::time_t>(now);
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) fail("strftime_now: the time is out of range");
  budget.step(format.bytes.size());
  std::string text;
  for (size_t i = 0; i < format.bytes.size(); ++i) {
    if (format.bytes[i] != '%') {
      text += format.bytes[i];
      continue;
    }
    const bool pad = i + 1 >= format.bytes.size() || format.bytes[i + 1] != '-';
    i += pad ? 1 : 2;
    if (i >= format.bytes.size()) fail("strftime_now: the format ends with '%'");
    text += date_part(format.bytes[i], local, pad);
    budget.string(text.size());
  }
  return Value::string(MarkedText::plain(text), &budget);
}

}  // namespace

Value call_method(const MethodObject& method, const Arguments& arguments, Budget& budget) {
  budget.step();
  ArgumentReader reader(method.name, arguments);
  if (method.self.is(Kind::String)) return string_method(method.self, method.name, reader, budget);
  return map_method(method.self, method.name, reader, budget);
}

Value call_function(Function function, const Arguments& arguments, int64_t now, Budget& budget) {
  switch (function) {
    case Function::Namespace: return new_namespace(arguments);
    case Function::Range: return range(arguments, budget);
    case Function::StrftimeNow: return strftime_now(arguments, now, budget);
    case Function::RaiseException: break;
  }
  ArgumentReader reader("raise_exception", arguments);
  const MarkedText message = to_str(reader.required("message"), budget);
  reader.finish();
  throw Error(ErrorKind::Argument, message.bytes.substr(0, 1000));
}

}  // namespace strata::text::jinja
