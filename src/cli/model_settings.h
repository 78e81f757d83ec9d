// Settings of the commands that run a model, and what they make of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "cli/command.h"
#include "runtime/engine.h"

namespace strata::cli {

std::span<const SettingSpec> model_settings();  // model, context, micro_batch, rope, ...
std::span<const SettingSpec> cache_settings();  // memory of sequences, and which are kept
std::span<const SettingSpec> sampler_settings();
const std::vector<std::string>& operator_names();  // each has a setting arm.<operator>

// Names of every setting above, for Command::settings.
std::vector<std::string_view> engine_setting_names();
std::vector<std::string_view> sampler_setting_names();
std::vector<std::string_view> prompt_cache_setting_names();  // for commands that run more than one prompt

CacheOptions cache_options(const Settings& settings);
EngineOptions engine_options(const Settings& settings, Profiler* profiler = nullptr);
void set_prompt_cache(const Settings& settings, EngineOptions& options);
void set_generation(const Settings& settings, GenerateRequest& request);  // sampler, drafts, limits

// The file that -m names, or the default model beside the program. Error{Usage} saying where it was looked for.
std::string model_path(const Settings& settings);
std::string default_model_path();

}  // namespace strata::cli
