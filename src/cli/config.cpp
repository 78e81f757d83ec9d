// strata config: the effective settings with their origin, in a form that --config reads back.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/settings_text.h"
#include "cli/commands.h"

namespace strata::cli {
namespace {

std::string origin_text(const EffectiveSetting& setting) {
  const std::string_view origin = to_string(setting.origin);
  return setting.source.empty() ? std::string(origin) : fmt::format("{} {}", origin, setting.source);
}

std::string plain_text(const EffectiveSetting& setting) {
  if (setting.values.empty()) return fmt::format("# {} is not set\n", setting.spec->name);
  std::string text;
  for (const std::string& value : setting.values) {
    const std::string line = fmt::format("{} = {}", setting.spec->name, config_text(value));
    text += fmt::format("{:<32}  # {}\n", line, origin_text(setting));
  }
  return text;
}

nlohmann::ordered_json json_value(const SettingSpec& spec, const std::string& text) {
  const char* end = text.data() + text.size();
  if (spec.type == SettingType::Bool) return text == "true";
  if (spec.type == SettingType::Int) {
    int64_t value = 0;
    std::from_chars(text.data(), end, value);
    return value;
  }
  if (spec.type == SettingType::Real) {
    double value = 0;
    std::from_chars(text.data(), end, value);
    return value;
  }
  return text;
}

nlohmann::ordered_json json_entry(const EffectiveSetting& setting) {
  nlohmann::ordered_json value;
  if (setting.spec->repeatable)
    value = setting.values;
  else if (!setting.values.empty())
    value = json_value(*setting.spec, setting.values.front());
  return {{"value", value}, {"origin", to_string(setting.origin)}, {"source", setting.source}};
}

int run(CommandContext& context) {
  std::string text;
  if (context.settings.get_bool("json")) {
    nlohmann::ordered_json document = nlohmann::ordered_json::object();
    for (const EffectiveSetting& setting : context.settings.effective())
      document[std::string(setting.spec->name)] = json_entry(setting);
    text = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  } else {
    for (const EffectiveSetting& setting : context.settings.effective()) text += plain_text(setting);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

Command config_command() {
  return {.name = "config",
          .summary = "Print every setting with its value and where the value comes from.",
          .settings = {"json", "threads"},
          .run = run};
}

}  // namespace strata::cli
