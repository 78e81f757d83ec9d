// strata evidence: every arm and the state of its record.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands.h"
#include "cli/evidence_settings.h"
#include "evidence/record.h"

namespace strata::cli {
namespace {

constexpr std::array kOwn{
    SettingSpec{
        .name = "sanitizer",
        .type = SettingType::Path,
        .group = "Evidence",
        .help = "first write this summary of compute-sanitizer, made by gpu-check, into the records of its class",
        .persistent = false},
};

// "4/4": tools of compute-sanitizer that found nothing, of those that ran to their end.
std::string sanitizers_of(const std::optional<ParityRecord>& record) {
  return record && record->sanitizers > 0 ? fmt::format("{}/{}", record->sanitizers_clean, record->sanitizers) : "-";
}

// The arm's own class, then those of AMD GPUs that it can be executed as.
std::vector<std::string> classes_of(const ArmInfo& arm) {
  std::vector<std::string> classes{arm.device_class};
  if (arm.image == nullptr || arm.image->amd.empty()) return classes;
  for (const char* simulated : kSimulatedClasses)
    if (arm.device_class != simulated) classes.emplace_back(simulated);
  return classes;
}

nlohmann::ordered_json json_row(const Chosen& chosen, const std::string& device_class, const std::string& state,
                                const std::optional<ParityRecord>& record) {
  nlohmann::ordered_json row{{"operator", chosen.evidence->op},
                             {"arm", chosen.arm.name},
                             {"class", device_class},
                             {"default", !chosen.arm.opt_in},
                             {"state", state}};
  if (record)
    row.update({{"utilisation", record->utilisation},
                {"date", record->date},
                {"device", record->device},
                {"sanitizers", record->sanitizers},
                {"sanitizers_clean", record->sanitizers_clean}});
  return row;
}

void print_row(const Chosen& chosen, const std::string& device_class, const std::string& state,
               const std::optional<ParityRecord>& record) {
  fmt::print("{:<20} {:<12} {:<15} {:<8} {:<11} {:>9} {:>6}  {:<10} {:>5}\n", chosen.evidence->op, chosen.arm.name,
             device_class, chosen.arm.opt_in ? "opt-in" : "default", state,
             record ? fmt::format("{:.4f}", record->utilisation) : "-", record ? std::to_string(record->cases) : "-",
             record ? record->date : "-", sanitizers_of(record));
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string folder = records_folder(settings);
  const bool json = settings.get_bool("json");
  if (const std::string& summary = settings.get_text("sanitizer"); !summary.empty())
    add_sanitizer_summary(folder, summary);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!json)
    fmt::print("{:<20} {:<12} {:<15} {:<8} {:<11} {:>9} {:>6}  {:<10} {:>5}\n", "operator", "arm", "class", "use",
               "state", "of bound", "cases", "date", "sanitizers");
  bool interpreted = false;
  for (const Chosen& chosen : chosen_arms(settings))
    for (const std::string& device_class : classes_of(chosen.arm)) {
      const auto record = read_record(folder, chosen.evidence->op, chosen.arm.name, device_class);
      const std::string state = record_state(record, chosen.evidence->source_folder(), chosen.arm.image);
      interpreted = interpreted || state == "interpreted";
      if (json)
        rows.push_back(json_row(chosen, device_class, state, record));
      else
        print_row(chosen, device_class, state, record);
    }
  if (json) fmt::print("{}\n", rows.dump(2));
  if (interpreted && !json)
    fmt::print("interpreted: machine code executed in the interpreter, not yet run on AMD hardware (docs/amd.md)\n");
  return 0;
}

}  // namespace

Command evidence_command() {
  return {.name = "evidence",
          .summary = "List every arm with the state of its parity record.",
          .own = kOwn,
          .settings = {"op", "only_arm", "records", "json"},
          .run = run};
}

}  // namespace strata::cli
