// Settings that several commands share.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpu_features.h"
#include "base/settings.h"

namespace strata::cli {

// Accepted by every command.
inline constexpr std::array<std::string_view, 4> kEverywhere{"config", "log_level", "log_file", "verbose"};

std::span<const SettingSpec> common_settings();  // kEverywhere, threads, json
std::span<const SettingSpec> kernel_settings();  // how arms are chosen

// What --arm, the arm.* settings and their short names ask for: operator and arm.
std::vector<std::pair<std::string, std::string>> requested_arms(const Settings& settings,
                                                                const std::vector<std::string>& operators);

CpuFeatures allowed_cpu(const Settings& settings);  // this processor as far as cpu.isa allows

}  // namespace strata::cli
