#include "cli/common_settings.h"

namespace strata::cli {
namespace {

constexpr std::array kCommon{
    SettingSpec{.name = "config",
                .type = SettingType::Path,
                .group = "Common",
                .help = "read settings from a file of `key = value` lines",
                .persistent = false},
    SettingSpec{.name = "log_level",
                .type = SettingType::Choice,
                .default_text = "info",
                .choices = "error|warn|info|trace|debug",
                .group = "Common",
                .help = "how much is logged"},
    SettingSpec{
        .name = "log_file", .type = SettingType::Path, .group = "Common", .help = "log to a file instead of stderr"},
    SettingSpec{.name = "verbose",
                .flags = "-v,--verbose",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Common",
                .help = "log everything, as --log-level debug",
                .persistent = false},
    SettingSpec{.name = "threads",
                .flags = "-t,--threads",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 1024,
                .group = "Common",
                .help = "threads that compute; 0: one per core"},
    SettingSpec{.name = "json",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Common",
                .help = "write the result as JSON",
                .persistent = false},
};

constexpr std::array kKernels{
    SettingSpec{.name = "strict_arms",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Arms",
                .help = "a requested arm that cannot run is an error"},
};

}  // namespace

std::span<const SettingSpec> common_settings() { return kCommon; }
std::span<const SettingSpec> kernel_settings() { return kKernels; }

}  // namespace strata::cli
