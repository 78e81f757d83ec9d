#include "base/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/number_list.h"
#include "base/settings_text.h"

namespace strata {
namespace {

constexpr std::string_view kArm = "arm";

bool valid_name(std::string_view name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

bool is_list(SettingType type) { return type == SettingType::Ints || type == SettingType::Choices; }

bool needs_value(const SettingSpec& spec) {
  return !spec.repeatable && spec.type != SettingType::Text && spec.type != SettingType::Path;
}

std::vector<std::string> keys_of(const auto& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

}  // namespace

std::string_view to_string(SettingOrigin origin) {
  switch (origin) {
    case SettingOrigin::Default: return "default";
    case SettingOrigin::File: return "file";
    case SettingOrigin::Environment: return "environment";
    case SettingOrigin::Flag: return "flag";
  }
  return "unknown";
}

Settings::Settings(const std::vector<std::span<const SettingSpec>>& groups, const std::vector<std::string>& operators) {
  for (const std::span<const SettingSpec> group : groups)
    for (const SettingSpec& spec : group) add(spec);
  add_arms(operators);
}

void Settings::add(const SettingSpec& spec) {
  const std::string name(spec.name);
  if (!valid_name(spec.name))
    throw Error(ErrorKind::Argument, "setting name " + quoted_text(spec.name) + " is malformed");
  if (spec.repeatable && spec.type != SettingType::Text && spec.type != SettingType::Path && !is_list(spec.type))
    throw Error(ErrorKind::Argument, "only texts, paths and lists can be repeatable", "setting " + name);
  if (is_list(spec.type) && !spec.repeatable)
    throw Error(ErrorKind::Argument, "a list has to be repeatable", "setting " + name);

  auto created = std::make_unique<Entry>();
  created->spec = spec;
  if (!spec.default_text.empty() || needs_value(spec))
    created->values.push_back(checked_value(spec, spec.default_text, "default of setting " + name));
  const bool new_name = by_name_.emplace(name, created.get()).second;
  const bool new_variable = by_variable_.emplace(variable_name(name), created.get()).second;
  if (!new_name || !new_variable)
    throw Error(ErrorKind::Argument, "is registered twice (" + variable_name(name) + ")", "setting " + name);
  entries_.push_back(std::move(created));
}

void Settings::add_arms(const std::vector<std::string>& operators) {
  add({.name = kArm,
       .group = "Arms",
       .help = "use this implementation of an operator, written operator=arm",
       .repeatable = true,
       .persistent = false});
  const auto keep = [this](std::string text) {
    texts_.push_back(std::make_unique<const std::string>(std::move(text)));
    return std::string_view(*texts_.back());
  };
  for (const std::string& name : operators)
    add({.name = keep("arm." + name), .group = "Arms", .help = keep("implementation of " + name)});
}

const SettingSpec* Settings::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second->spec;
}

void Settings::set(std::string_view name, std::string_view value, SettingOrigin origin, const std::string& source) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end())
    throw Error(ErrorKind::Usage, "unknown setting " + quoted_text(name) + did_you_mean(name, keys_of(by_name_)),
                source);
  if (name == kArm) return set_arm(value, origin, source);

  Entry& target = *found->second;
  if (origin == SettingOrigin::File && !target.spec.persistent)
    throw Error(ErrorKind::Usage,
                fmt::format("{} cannot stand in a config file; use {} or {}", name, flag_names(target.spec).back(),
                            variable_name(name)),
                source);
  std::string checked = checked_value(target.spec, value, source);
  if (origin < target.origin) return;
  if (origin > target.origin || !target.spec.repeatable) target.values.clear();
  target.values.push_back(std::move(checked));
  target.origin = origin;
  target.source = source;
}

void Settings::set_arm(std::string_view assignment, SettingOrigin origin, const std::string& source) {
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == assignment.size())
    throw Error(ErrorKind::Usage, "an arm is chosen as operator=arm, not " + quoted_text(assignment), source);
  const std::string_view name = assignment.substr(0, equals);
  const std::string setting = "arm." + std::string(name);
  if (find(setting) == nullptr) {
    std::vector<std::string> operators;
    for (const auto& [known, entry] : by_name_)
      if (known.starts_with("arm.")) operators.push_back(known.substr(4));
    throw Error(ErrorKind::Usage, "unknown operator " + quoted_text(name) + did_you_mean(name, operators), source);
  }
  set(setting, assignment.substr(equals + 1), origin, source);
}

void Settings::load_environment(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    if (!variable.starts_with(kVariablePrefix)) continue;
    const size_t equals = std::min(variable.find('='), variable.size());
    const std::string_view name = variable.substr(0, equals);
    const auto found = by_variable_.find(name);
    if (found == by_variable_.end()) {
      // Compared without the common prefix, which would make every name look near.
      std::vector<std::string> known;
      for (const auto& [other, entry] : by_variable_) known.push_back(other.substr(kVariablePrefix.size()));
      const std::string hint = did_you_mean(name.substr(kVariablePrefix.size()), known, kVariablePrefix);
      throw Error(ErrorKind::Usage, "unknown environment variable " + quoted_text(name) + hint);
    }
    const std::string_view value = variable.substr(std::min(equals + 1, variable.size()));
    set(found->second->spec.name, value, SettingOrigin::Environment, std::string(name));
  }
}

const Settings::Entry& Settings::entry(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) throw Error(ErrorKind::Argument, "no setting is named " + quoted_text(name));
  return *found->second;
}

const Settings::Entry& Settings::typed_entry(std::string_view name, std::string_view type, bool matches) const {
  if (!matches) throw Error(ErrorKind::Argument, fmt::format("is not a {}", type), "setting " + std::string(name));
  return entry(name);
}

bool Settings::get_bool(std::string_view name) const {
  return typed_entry(name, "boolean", entry(name).spec.type == SettingType::Bool).values.front() == "true";
}

int64_t Settings::get_int(std::string_view name) const {
  const std::string& text = typed_entry(name, "whole number", entry(name).spec.type == SettingType::Int).values.front();
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double Settings::get_real(std::string_view name) const {
  const std::string& text = typed_entry(name, "number", entry(name).spec.type == SettingType::Real).values.front();
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

const std::string& Settings::get_text(std::string_view name) const {
  static const std::string kNone;
  const SettingSpec& spec = entry(name).spec;
  const bool textual =
      spec.type == SettingType::Text || spec.type == SettingType::Choice || spec.type == SettingType::Path;
  const Entry& found = typed_entry(name, "single text", textual && !spec.repeatable);
  return found.values.empty() ? kNone : found.values.front();
}

const std::vector<std::string>& Settings::get_texts(std::string_view name) const {
  const SettingSpec& spec = entry(name).spec;
  return typed_entry(name, "list of texts", spec.repeatable && !is_list(spec.type)).values;
}

std::vector<int64_t> Settings::get_ints(std::string_view name) const {
  std::vector<int64_t> numbers;
  for (const std::string& text :
       typed_entry(name, "list of numbers", entry(name).spec.type == SettingType::Ints).values)
    append_numbers(text, numbers);
  return numbers;
}

std::vector<std::string> Settings::get_choices(std::string_view name) const {
  std::vector<std::string> choices;
  for (const std::string& text :
       typed_entry(name, "list of choices", entry(name).spec.type == SettingType::Choices).values)
    for (std::string& choice : split_text(text, ',')) choices.push_back(std::move(choice));
  return choices;
}

SettingOrigin Settings::origin(std::string_view name) const { return entry(name).origin; }

std::vector<EffectiveSetting> Settings::effective() const {
  std::vector<EffectiveSetting> list;
  for (const std::unique_ptr<Entry>& item : entries_)
    if (item->spec.persistent) list.push_back({&item->spec, item->values, item->origin, item->source});
  return list;
}

}  // namespace strata
