// strata evidence: every arm and the state of its record.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/evidence_settings.h"
#include "evidence/record.h"

namespace strata::cli {
namespace {

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string folder = records_folder(settings);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!settings.get_bool("json"))
    fmt::print("{:<18} {:<12} {:<15} {:<8} {:<10} {:>9} {:>6}  {:<10}\n", "operator", "arm", "class", "use", "state",
               "of bound", "cases", "date");
  for (const Chosen& chosen : chosen_arms(settings)) {
    const std::string& op = chosen.evidence->op;
    const auto record = read_record(folder, op, chosen.arm.name, chosen.arm.device_class);
    const std::string state = record_state(record, chosen.evidence->source_folder(), chosen.arm.image);
    if (settings.get_bool("json")) {
      rows.push_back({{"operator", op},
                      {"arm", chosen.arm.name},
                      {"class", chosen.arm.device_class},
                      {"default", !chosen.arm.opt_in},
                      {"state", state}});
      if (record)
        rows.back().update({{"utilisation", record->utilisation}, {"date", record->date}, {"device", record->device}});
      continue;
    }
    fmt::print("{:<18} {:<12} {:<15} {:<8} {:<10} {:>9} {:>6}  {:<10}\n", op, chosen.arm.name, chosen.arm.device_class,
               chosen.arm.opt_in ? "opt-in" : "default", state,
               record ? fmt::format("{:.4f}", record->utilisation) : "-", record ? std::to_string(record->cases) : "-",
               record ? record->date : "-");
  }
  if (settings.get_bool("json")) fmt::print("{}\n", rows.dump(2));
  return 0;
}

}  // namespace

Command evidence_command() {
  return {.name = "evidence",
          .summary = "List every arm with the state of its parity record.",
          .settings = {"op", "only_arm", "records", "json"},
          .run = run};
}

}  // namespace strata::cli
