// Settings that several commands share.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/cpu_features.h"
#include "base/settings.h"

namespace strata::cli {

// Accepted by every command.
inline constexpr std::array<std::string_view, 4> kEverywhere{"config", "log_level", "log_file", "verbose"};

std::span<const SettingSpec> common_settings();  // kEverywhere, threads, json
std::span<const SettingSpec> kernel_settings();  // how arms are chosen

CpuFeatures allowed_cpu(const Settings& settings);  // this processor as far as cpu.isa allows

}  // namespace strata::cli
