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
    SettingSpec{.name = "cpu.isa",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|portable|avx2|avx512|avx512-vnni|avx512-vbmi|avx512-bf16",
                .group = "Arms",
                .help = "the most that CPU arms may use; auto: all that the processor has"},
    SettingSpec{.name = "select.wmma",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Arms",
                .help = "as --arm qsa_score=wmma: score blocks on the matrix cores of AMD GPUs"},
    SettingSpec{.name = "gdn.wy",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Arms",
                .help = "as --arm gated_delta=wy-wmma: the delta rule in chunks on the matrix cores of AMD GPUs"},
};

}  // namespace

std::span<const SettingSpec> common_settings() { return kCommon; }
std::span<const SettingSpec> kernel_settings() { return kKernels; }

std::vector<std::pair<std::string, std::string>> requested_arms(const Settings& settings,
                                                                const std::vector<std::string>& operators) {
  std::vector<std::pair<std::string, std::string>> arms;
  if (settings.get_bool("select.wmma")) arms.emplace_back("qsa_score", "wmma");
  if (settings.get_bool("gdn.wy")) arms.emplace_back("gated_delta", "wy-wmma");
  for (const std::string& op : operators)  // after the short names: the later request holds
    if (const std::string& arm = settings.get_text("arm." + op); !arm.empty()) arms.emplace_back(op, arm);
  return arms;
}

CpuFeatures allowed_cpu(const Settings& settings) {
  const std::string& isa = settings.get_text("cpu.isa");
  const CpuFeatures found = cpu_features();
  if (isa == "portable") return found.limited_to(CpuIsa::Portable);
  if (isa == "avx2") return found.limited_to(CpuIsa::Avx2);
  if (isa == "avx512") return found.limited_to(CpuIsa::Avx512);
  if (isa == "avx512-vnni") return found.limited_to(CpuIsa::Avx512Vnni);
  if (isa == "avx512-vbmi") return found.limited_to(CpuIsa::Avx512Vbmi);
  return found;
}

}  // namespace strata::cli
