#include "base/settings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/number_list.h"

namespace strata {
namespace {

constexpr std::array<std::string_view, 4> kTrue{"true", "on", "enabled", "1"};
constexpr std::array<std::string_view, 4> kFalse{"false", "off", "disabled", "0"};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

template <typename Number>
bool parse_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string folded_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(), folded);
  return text;
}

// Optimal string alignment distance: three rows of the usual table, the third for swaps.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replaced, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    default: break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte == 0x7f)
    out += fmt::format("\\x{:02x}", byte);
  else
    out += c;
}

[[noreturn]] void refuse(const SettingSpec& spec, std::string_view value, const std::string& source,
                         std::string_view reason) {
  std::string message = fmt::format("{} cannot be {}: {}", spec.name, quoted_text(value), reason);
  if (const std::string allowed = allowed_values(spec); !allowed.empty()) message += "; allowed: " + allowed;
  throw Error(ErrorKind::Usage, message, source);
}

}  // namespace

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string variable_name(std::string_view setting) {
  std::string name(kVariablePrefix);
  for (char c : setting) {
    if (c == '.' || c == '-')
      name += '_';
    else
      name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::vector<std::string> flag_names(const SettingSpec& spec) {
  if (!spec.flags.empty()) return split_text(spec.flags, ',');
  std::string flag = "--" + std::string(spec.name);
  std::replace_if(
      flag.begin(), flag.end(), [](char c) { return c == '.' || c == '_'; }, '-');
  return {flag};
}

std::vector<std::string> choice_names(const SettingSpec& spec) { return split_text(spec.choices, '|'); }

std::string allowed_values(const SettingSpec& spec) {
  switch (spec.type) {
    case SettingType::Bool: return "true/on/enabled/1 or false/off/disabled/0";
    case SettingType::Choice:
    case SettingType::Choices: return joined(choice_names(spec));
    case SettingType::Text:
    case SettingType::Path: return {};
    case SettingType::Int:
    case SettingType::Ints:
    case SettingType::Real: break;
  }
  if (std::isfinite(spec.min) && std::isfinite(spec.max)) return fmt::format("{} to {}", spec.min, spec.max);
  if (std::isfinite(spec.min)) return fmt::format("{} or more", spec.min);
  if (std::isfinite(spec.max)) return fmt::format("{} or less", spec.max);
  return {};
}

std::string checked_value(const SettingSpec& spec, std::string_view value, const std::string& source) {
  const auto is = [value](std::string_view name) { return name == value; };
  switch (spec.type) {
    case SettingType::Text: break;
    case SettingType::Path:
      if (value.empty()) refuse(spec, value, source, "a path must not be empty");
      if (value.find('\0') != std::string_view::npos) refuse(spec, value, source, "a path must not hold a zero byte");
      break;
    case SettingType::Bool:
      if (std::any_of(kTrue.begin(), kTrue.end(), is)) return "true";
      if (std::any_of(kFalse.begin(), kFalse.end(), is)) return "false";
      refuse(spec, value, source, "neither true nor false");
    case SettingType::Choice:
    case SettingType::Choices: {
      const std::vector<std::string> names = choice_names(spec);
      std::vector<std::string> wanted{std::string(value)};
      if (spec.type == SettingType::Choices) wanted = split_text(std::string(value) + ",", ',');
      for (const std::string& one : wanted)
        if (std::find(names.begin(), names.end(), one) == names.end())
          refuse(spec, value, source, "no such choice" + did_you_mean(one, names));
      break;
    }
    case SettingType::Ints: {
      std::vector<int64_t> numbers;
      if (const std::string reason = append_numbers(value, numbers); !reason.empty())
        refuse(spec, value, source, reason);
      for (const int64_t number : numbers)
        if (static_cast<double>(number) < spec.min || static_cast<double>(number) > spec.max)
          refuse(spec, value, source, fmt::format("{} is out of range", number));
      break;
    }
    case SettingType::Int: {
      int64_t number = 0;
      if (!parse_number(value, number)) refuse(spec, value, source, "not a whole number of 64 bits");
      const auto wide = static_cast<double>(number);
      if (wide < spec.min || wide > spec.max) refuse(spec, value, source, "out of range");
      break;
    }
    case SettingType::Real: {
      double number = 0;
      if (!parse_number(value, number)) refuse(spec, value, source, "not a number");
      if (!std::isfinite(number)) refuse(spec, value, source, "not finite");
      if (number < spec.min || number > spec.max) refuse(spec, value, source, "out of range");
      break;
    }
  }
  return std::string(value);
}

std::string quoted_text(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out = "\"";
  for (char c : text.substr(0, kShown)) append_escaped(out, c);
  return out + (text.size() > kShown ? "...\"" : "\"");
}

std::string config_text(std::string_view value) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const bool plain = !value.empty() && value.front() != ' ' && value.back() != ' ' && value.front() != '"' &&
                     value.find('#') == std::string_view::npos && std::none_of(value.begin(), value.end(), is_control);
  if (plain) return std::string(value);
  std::string out = "\"";
  for (char c : value) append_escaped(out, c);
  return out + '"';
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names, std::string_view prefix) {
  const std::string wanted = folded_name(typed);
  const std::string* best = nullptr;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (const std::string& name : names) {
    const std::string known = folded_name(name);
    const size_t shorter = std::min(wanted.size(), known.size());
    const size_t longer = std::max(wanted.size(), known.size());
    const size_t limit = shorter / 3;  // one slip in three letters; a very short name must match
    size_t distance = std::numeric_limits<size_t>::max();
    if (longer - shorter <= limit) distance = edit_distance(wanted, known);
    if (distance > limit) {
      const bool abbreviates = wanted.size() >= 3 && known.compare(0, wanted.size(), wanted) == 0;
      if (!abbreviates) continue;
      distance = longer;  // any name with a few slips is a better guess
    }
    if (distance < best_distance) {
      best = &name;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string{} : fmt::format("; did you mean {}{}?", prefix, *best);
}

}  // namespace strata
