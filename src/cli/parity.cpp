// strata parity: every arm against its operator's oracle and bound.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common_settings.h"
#include "cli/evidence_settings.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "device/device.h"
#include "evidence/record.h"

namespace strata::cli {
namespace {

constexpr std::array kOwn{
    SettingSpec{.name = "parity_seed",
                .flags = "-s,--seed",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 0,
                .max = 9007199254740992.0,
                .group = "Evidence",
                .help = "the same seed gives the same inputs",
                .persistent = false},
    SettingSpec{.name = "record",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Evidence",
                .help = "write a record of each arm that passed",
                .persistent = false},
    SettingSpec{.name = "part",
                .type = SettingType::Text,
                .default_text = "1/1",
                .group = "Evidence",
                .help = "run a part of the cases: 2/8 is the second of eight. A part makes no record",
                .persistent = false},
};

RecordContext record_context(const std::string& source_folder, const Accelerator* accelerator) {
  RecordContext context;
  context.device = accelerator != nullptr ? accelerator->info().description + ", " + accelerator->info().driver
                                          : list_devices().front().description;
  context.compiler = std::string("g++ ") + __VERSION__;
  context.commit = build_commit();
  const bool cuda = accelerator != nullptr && accelerator->info().kind == AcceleratorKind::Cuda;
  context.source_hash = source_hash(source_folder, accelerator == nullptr ? SourceSet::Cpu
                                                   : cuda                 ? SourceSet::Cuda
                                                                          : SourceSet::Amd);
  const std::time_t now = std::time(nullptr);
  context.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
  return context;
}

// "2/8".
void read_part(const std::string& text, ParityOptions& options) {
  constexpr int kMost = 1000;
  int part = 0, parts = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%4d/%4d%c", &part, &parts, &rest) != 2 || part < 1 || part > parts || parts > kMost)
    throw Error(ErrorKind::Usage, "--part " + text + " is not PART/PARTS, from 1/1 to 1000/1000");
  options.part = part - 1;
  options.parts = parts;
}

std::string verdict(const ParityReport& report) {
  if (!report.ran()) return "not run";
  if (!report.passed()) return "FAIL";
  // Exact operators use nothing of a bound of zero.
  const bool crude = report.utilisation > 0 && report.utilisation < 0.001;
  return crude ? "pass (less than 0.1 % of the bound used: derive a tighter one)" : "pass";
}

void print_row(const ParityReport& report) {
  fmt::print("{:<18} {:<12} {:<15} {:>6} {:>9.4f} {:>9} {:>8} {:>8} {:>7.1f}  {}\n", report.op, report.arm,
             report.device_class, report.cases, report.utilisation, report.variants, report.controls,
             fmt::format("{}/{}", report.mutants_caught, report.mutants), report.seconds, verdict(report));
  std::fflush(stdout);
}

void print_details(const ParityReport& report) {
  for (const ParityFailure& failure : report.failures) fmt::print("    {}: {}\n", failure.test_case, failure.what);
  if (!report.ran())
    for (const std::string& reason : report.refusals) fmt::print("    refused: {}\n", reason);
}

nlohmann::ordered_json json_row(const ParityReport& report) {
  nlohmann::ordered_json failures = nlohmann::ordered_json::array();
  for (const ParityFailure& failure : report.failures)
    failures.push_back({{"case", failure.test_case}, {"what", failure.what}});
  return {{"operator", report.op},
          {"arm", report.arm},
          {"class", report.device_class},
          {"verdict", !report.ran()     ? "not run"
                      : report.passed() ? "pass"
                                        : "FAIL"},
          {"cases", report.cases},
          {"refused", report.refused},
          {"utilisation", report.utilisation},
          {"worst_case", report.worst_case},
          {"same_bits", report.variants},
          {"controls", report.controls},
          {"mutants", report.mutants},
          {"mutants_caught", report.mutants_caught},
          {"force", report.force},
          {"seconds", report.seconds},
          {"failures", failures},
          {"refusals", report.refusals}};
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const bool json = settings.get_bool("json");
  ParityOptions options;
  options.seed = static_cast<uint64_t>(settings.get_int("parity_seed"));
  if (settings.get_int("threads") > 0) options.threads = static_cast<int>(settings.get_int("threads"));
  options.cpu = allowed_cpu(settings);
  options.accelerator = chosen_accelerator(settings);
  read_part(settings.get_text("part"), options);
  if (settings.get_bool("record") && options.parts > 1)
    throw Error(ErrorKind::Usage, "--record needs every case: leave --part out");
  const bool accelerated = options.accelerator != nullptr;
  if (settings.get_bool("record") && accelerated && options.accelerator->info().kind == AcceleratorKind::Emulation)
    throw Error(ErrorKind::Usage, "a run on the emulation proves nothing about a device: there is nothing to record");
  options.cancelled = [&] { return context.interrupted.load(); };
  Progress progress;
  options.progress = [&](int done, int total) {
    if (progress.due()) progress.show(fmt::format("{} of {} cases", done, total));
  };
  if (!json)
    fmt::print("{:<18} {:<12} {:<15} {:>6} {:>9} {:>9} {:>8} {:>8} {:>7}  {}\n", "operator", "arm", "class", "cases",
               "of bound", "same bits", "controls", "mutants", "seconds", "");
  bool failed = false, incomplete = false;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Chosen& chosen : arms_of(chosen_arms(settings), options.accelerator.get())) {
    const ParityReport report = run_parity(*chosen.evidence, chosen.arm, options);
    progress.clear();
    if (context.interrupted) throw Error(ErrorKind::Interrupted, "interrupted");
    failed = failed || (report.ran() && !report.passed());
    incomplete = incomplete || !report.ran();
    if (json) {
      rows.push_back(json_row(report));
    } else {
      print_row(report);
      print_details(report);
    }
    if (settings.get_bool("record") && report.passed())
      write_record(records_folder(settings), report,
                   record_context(chosen.evidence->source_folder(), options.accelerator.get()));
  }
  if (json) fmt::print("{}\n", rows.dump(2));
  if (failed) return 1;
  return incomplete ? exit_code(ErrorKind::Evidence) : 0;
}

}  // namespace

Command parity_command() {
  return {.name = "parity",
          .summary = "Check arms against their operator's oracle and bound.",
          .own = kOwn,
          .settings = {"op", "only_arm", "device", "records", "threads", "json", "cpu.isa"},
          .run = run};
}

}  // namespace strata::cli
