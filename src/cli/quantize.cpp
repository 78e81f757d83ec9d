// strata quantize: one GGUF file to another with other types.
#include "gguf/quantize.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/progress.h"

namespace strata::cli {
namespace {

constexpr std::array kOwn{
    SettingSpec{.name = "importance",
                .flags = "--importance,--imatrix",
                .type = SettingType::Path,
                .group = "Quantize",
                .help = "GGUF file with the importance of input columns (tensors NAME.in_sum2 and NAME.counts)",
                .persistent = false},
    SettingSpec{.name = "quantize_dry_run",
                .flags = "--dry-run",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Quantize",
                .help = "show the types and sizes, write nothing",
                .persistent = false},
};

double mib(uint64_t bytes) { return static_cast<double>(bytes) / 1048576; }

std::string shape_text(const gguf::TensorInfo& tensor) {
  return fmt::format("{}", fmt::join(tensor.ne, tensor.ne + tensor.dims, " x "));
}

void print_table(const gguf::QuantizeReport& report, bool measured) {
  fmt::print("{:<40} {:>20} {:<17} {:>9}{}\n", "tensor", "shape", "type", "MiB",
             measured ? "   rel. RMS  max error" : "");
  for (const gguf::TensorReport& one : report.tensors) {
    const std::string types = one.encoded ? fmt::format("{} -> {}", to_string(one.source.type), to_string(one.type))
                                          : std::string(to_string(one.type));
    fmt::print("{:<40} {:>20} {:<17} {:>9.3f}", gguf::printable(one.source.name), shape_text(one.source), types,
               mib(one.bytes));
    if (measured && one.encoded) fmt::print("  {:>8.3f} %  {:>9.3e}", 100 * one.relative_rms, one.max_error);
    if (one.weighted) fmt::print("  importance");
    if (!one.note.empty()) fmt::print("  {}", one.note);
    fmt::print("\n");
  }
  fmt::print("{} tensors, {:.2f} MiB -> {:.2f} MiB, {:.3f} bits per weight\n", report.tensors.size(),
             mib(report.source_bytes), mib(report.bytes), report.bits_per_weight());
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string &input = context.arguments[0], &output = context.arguments[1], &name = context.arguments[2];
  const auto scheme = gguf::quant_scheme(name);
  if (!scheme)
    throw Error(ErrorKind::Usage, "cannot write the type '" + name + "'; possible are " + gguf::quant_scheme_names(),
                "TYPE");
  gguf::QuantizeOptions options;
  options.scheme = *scheme;
  options.importance = settings.get_text("importance");
  options.threads = static_cast<int>(settings.get_int("threads"));
  options.cancelled = &context.interrupted;
  options.warn = [&](const std::string& message) { context.log.warn(message); };
  if (settings.get_bool("quantize_dry_run")) {
    print_table(gguf::plan_quantize(input, options), false);
    return 0;
  }
  Progress progress;
  options.progress = [&](uint64_t done, uint64_t total, const std::string& tensor) {
    if (progress.due())
      progress.show(fmt::format("{:3} %  {:<60.60}", total == 0 ? 100 : done * 100 / total, gguf::printable(tensor)));
  };
  const gguf::QuantizeReport report = gguf::quantize(input, output, options);
  progress.clear();
  print_table(report, true);
  fmt::print("{}\n", output);
  return 0;
}

}  // namespace

Command quantize_command() {
  return {
      .name = "quantize",
      .summary = "Write a GGUF file with other tensor types.",
      .own = kOwn,
      .settings = {"threads"},
      .positional = {.name = "IN OUT TYPE",
                     .help =
                         "the file to read, the file to write, and a type such as Q4_K or a mix such as Q4_K_M; any "
                         "other word lists them",
                     .min = 3,
                     .max = 3},
      .run = run};
}

}  // namespace strata::cli
