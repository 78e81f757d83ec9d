// strata bench --suite: products with weights as shares of this machine's ceilings, with a roofline plot.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/bench_settings.h"
#include "cli/commands.h"
#include "cli/common_settings.h"
#include "cli/progress.h"
#include "cli/run_facts.h"
#include "measure/kernel_suite.h"

namespace strata::cli {
namespace {

std::string suite_format(const Settings& settings) {
  const std::string& format = settings.get_text("bench.format");
  if (settings.get_bool("json")) return "json";
  if (format == "auto" || format == "table") return "md";
  if (format == "jsonl" || format == "sql")
    throw Error(ErrorKind::Usage, "is a format of model benchmarks; with --suite: md, csv or json", "-o " + format);
  return format;
}

}  // namespace

int bench_suite(CommandContext& context) {
  const Settings& settings = context.settings;
  if (settings.get_text("device") != "cpu")
    throw Error(ErrorKind::Usage, "is of the CPU; with --device: --op matmul", "--suite");
  const std::string format = suite_format(settings);
  const BenchOptions options = operator_options(context);
  Progress progress;
  bool begun = false;
  const KernelSuite suite = run_kernel_suite(options, settings.get_texts("bench.shape"), [&](const SuiteRow& row) {
    progress.clear();
    if (format == "md") fmt::print("{}{}", begun ? "" : suite_head(), suite_line(row));
    std::fflush(stdout);
    begun = true;
    progress.show(fmt::format("{}, {} rows", to_string(row.type), row.rows));
  });
  progress.clear();
  if (format == "json") fmt::print("{}", suite_json(suite));
  if (format == "csv") fmt::print("{}", suite_csv(suite));
  if (format == "md")
    fmt::print("\nread {:.1f} GB/s, int8 {:.0f} Gop/s, f32 {:.0f} Gop/s: medians of the run, {} threads\n",
               suite.ceilings.read_bytes * 1e-9, suite.ceilings.int8 * 1e-9, suite.ceilings.f32 * 1e-9,
               options.threads);
  if (const std::string& path = settings.get_text("bench.save"); !path.empty())
    write_text_file(path, suite_json(suite));
  if (const std::string& path = settings.get_text("bench.plot"); !path.empty())
    write_text_file(path, roofline_svg(suite));
  if (context.interrupted) throw Error(ErrorKind::Interrupted, "interrupted; what was measured is printed");
  if (suite.rows.empty()) throw Error(ErrorKind::Usage, "no format of weights has this in its name", "--shape");
  return 0;
}

}  // namespace strata::cli
