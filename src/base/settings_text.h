// Texts around settings: names of flags and variables, allowed values, quoting, and the nearest known name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace strata {

inline constexpr std::string_view kVariablePrefix = "STRATA_";

std::string variable_name(std::string_view setting);           // "log_level" -> "STRATA_LOG_LEVEL"
std::vector<std::string> flag_names(const SettingSpec& spec);  // {"-t", "--threads"}
std::vector<std::string> choice_names(const SettingSpec& spec);
std::string allowed_values(const SettingSpec& spec);  // "0 to 1024", "error, warn or info"; empty when anything is

std::vector<std::string> split_text(std::string_view text, char separator);  // none for an empty text

// The value as this setting stores it. Error{Usage} with `source` in front when it is not allowed.
std::string checked_value(const SettingSpec& spec, std::string_view value, const std::string& source);

// In double quotes, control characters escaped, cut after 60 bytes: for one-line messages about foreign text.
std::string quoted_text(std::string_view text);

// A value as load_file() reads it back.
std::string config_text(std::string_view value);

// "; did you mean NAME?" for the name nearest to `typed` if it is reasonably near, else "". Distance: insertions,
// deletions, replacements and swaps of neighbours; case, leading dashes and '-' against '_' do not count. The prefix is
// written before the name.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names, std::string_view prefix = {});

}  // namespace strata
