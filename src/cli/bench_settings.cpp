#include "cli/bench_settings.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "base/settings_text.h"
#include "cli/model_settings.h"

namespace strata::cli {
namespace {

constexpr std::string_view kTest = "Tests of whole models", kOutput = "Output", kOperators = "Operators",
                           kForeign = "Accepted as in llama-bench";
constexpr double kMostTokens = 16777216;

constexpr SettingSpec ints(std::string_view name, std::string_view flags, std::string_view usual, double min,
                           double max, std::string_view help) {
  return {.name = name,
          .flags = flags,
          .type = SettingType::Ints,
          .default_text = usual,
          .min = min,
          .max = max,
          .group = kTest,
          .help = help,
          .repeatable = true,
          .persistent = false};
}

constexpr SettingSpec text(std::string_view name, std::string_view flags, std::string_view help) {
  return {.name = name, .flags = flags, .group = kTest, .help = help, .repeatable = true, .persistent = false};
}

constexpr SettingSpec cache_type(std::string_view name, std::string_view flags, std::string_view help) {
  return {.name = name,
          .flags = flags,
          .type = SettingType::Choices,
          .default_text = "f16",
          .choices = "f16|f32|bf16|q8_0|q4_0",
          .group = kTest,
          .help = help,
          .repeatable = true,
          .persistent = false};
}

constexpr SettingSpec flag(std::string_view name, std::string_view flags, bool usual, std::string_view group,
                           std::string_view help) {
  return {.name = name,
          .flags = flags,
          .type = SettingType::Bool,
          .default_text = usual ? "true" : "false",
          .group = group,
          .help = help,
          .persistent = false};
}

constexpr SettingSpec foreign(std::string_view name, std::string_view flags, std::string_view help) {
  return {.name = name, .flags = flags, .group = kForeign, .help = help, .repeatable = true, .persistent = false};
}

constexpr std::array kBench{
    SettingSpec{.name = "bench.model",
                .flags = "-m,--model",
                .type = SettingType::Path,
                .group = kTest,
                .help = "GGUF file, or several with commas between them; not set: the default model",
                .repeatable = true,
                .persistent = false},
    ints("bench.n_prompt", "-p,--n-prompt", "512", 0, kMostTokens, "tokens of a prompt; 0: no such test"),
    ints("bench.n_gen", "-n,--n-gen", "128", 0, kMostTokens, "tokens of output, one by one; 0: no such test"),
    text("bench.pg", "-pg", "pp,tg: a prompt and output, timed together"),
    ints("bench.n_depth", "-d,--n-depth", "0", 0, kMostTokens, "tokens that the sequence holds before; not timed"),
    ints("bench.batch", "-b,--batch-size", "2048", 1, kMostTokens, "prompt tokens handed over at a time"),
    ints("bench.ubatch", "-ub,--ubatch-size", "512", 1, 65536, "prompt tokens computed at a time"),
    cache_type("bench.type_k", "-ctk,--cache-type-k", "how keys are stored"),
    cache_type("bench.type_v", "-ctv,--cache-type-v", "how values are stored"),
    ints("bench.threads", "-t,--threads", "0", 0, 1024, "threads that compute; 0: one per core"),
    text("bench.cpu_mask", "-C,--cpu-mask", "processors to run on, as a hexadecimal mask; 0x0: all"),
    SettingSpec{.name = "bench.repetitions",
                .flags = "-r,--repetitions",
                .type = SettingType::Int,
                .default_text = "5",
                .min = 1,
                .max = 1000,
                .group = kTest,
                .help = "runs of each test; mean and standard deviation are printed",
                .persistent = false},
    flag("bench.warmup", "--warmup", true, kTest, "run each test once before it counts"),
    flag("bench.cold", "--cold", false, kTest,
         "before every run drop the model's pages from memory and load it again; without it runs are warm"),
    SettingSpec{.name = "bench.delay",
                .flags = "--delay",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 3600,
                .group = kTest,
                .help = "seconds between tests",
                .persistent = false},
    SettingSpec{.name = "bench.text",
                .flags = "-f,--file",
                .type = SettingType::Path,
                .group = kTest,
                .help = "run the tokens of this text, over and over, in place of random ones",
                .persistent = false},
    flag("bench.sweep", "--sweep", false, kTest,
         "walk one context once and print speed over depth: every -p tokens up to -c (8192), or at the depths of -d"),
    SettingSpec{.name = "bench.draft",
                .flags = "--draft,--spec-type",
                .type = SettingType::Choices,
                .default_text = "none",
                .choices = "none|lookup|mtp|auto",
                .group = "Speculation",
                .help = "drafts for output; with any but none the model chooses the output instead of the trace",
                .repeatable = true,
                .persistent = false},
    SettingSpec{
        .name = "bench.synth_len",
        .flags = "--spec-synth-len",
        .type = SettingType::Real,
        .default_text = "0",
        .min = 0,
        .max = 8,
        .group = "Speculation",
        .help = "keep so many tokens of a window on average, 1 to draft-max + 1, whatever the model says; 0: off",
        .persistent = false},
    SettingSpec{.name = "bench.synth_rates",
                .flags = "--spec-synth-rates",
                .group = "Speculation",
                .help = "a,b,c: keep the first draft with probability a, then the second with b, ..., whatever the "
                        "model says",
                .persistent = false},
    SettingSpec{.name = "bench.format",
                .flags = "-o,--output,--format",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|table|md|csv|json|jsonl|sql|none",
                .group = kOutput,
                .help = "how results are written; auto: table for operators, md for models"},
    SettingSpec{.name = "bench.format_err",
                .flags = "-oe,--output-err",
                .type = SettingType::Choice,
                .default_text = "none",
                .choices = "none|md|csv|json|jsonl|sql",
                .group = kOutput,
                .help = "write the results to standard error too",
                .persistent = false},
    SettingSpec{.name = "bench.plot",
                .flags = "--plot",
                .type = SettingType::Path,
                .group = kOutput,
                .help = "draw speed over depth, or with --suite the roofline, to this SVG file",
                .persistent = false},
    SettingSpec{.name = "bench.save",
                .flags = "--save",
                .type = SettingType::Path,
                .group = kOutput,
                .help = "write the results of models or of --suite as JSON to this file too",
                .persistent = false},
    flag("bench.progress", "--progress", false, kOutput, "say on standard error which test begins"),
    flag("bench.list_devices", "--list-devices", false, kOutput, "print the devices and end"),
    SettingSpec{
        .name = "bench.arm",
        .flags = "--arm,--only-arm",
        .group = kOperators,
        .help = "with --op: only this arm, default: the one that a model runs; with a model: operator=arm to use",
        .repeatable = true,
        .persistent = false},
    flag("bench.suite", "--suite", false, kOperators,
         "time products with weights of every format at 1, 4, 16 and 256 rows, with default arms, as shares of this "
         "machine's ceilings"),
    SettingSpec{.name = "bench.shape",
                .flags = "--shape",
                .group = kOperators,
                .help = "only shapes whose name has this in it, or another one given",
                .repeatable = true,
                .persistent = false},
    SettingSpec{.name = "bench.samples",
                .flags = "--samples",
                .type = SettingType::Int,
                .default_text = "9",
                .min = 1,
                .max = 1000,
                .group = kOperators,
                .help = "samples of each arm; their median is printed"},
    foreign("bench.ngl", "-ngl,--n-gpu-layers", "layers on a GPU: no effect"),
    foreign("bench.ncmoe", "-ncmoe,--n-cpu-moe", "experts on the CPU: they all are"),
    foreign("bench.sm", "-sm,--split-mode", "no effect"),
    foreign("bench.mg", "-mg,--main-gpu", "no effect"),
    foreign("bench.nkvo", "-nkvo,--no-kv-offload", "no effect"),
    foreign("bench.fa", "-fa,--flash-attn", "no effect: there is one attention"),
    foreign("bench.dev", "-dev", "cpu; others are refused"),
    foreign("bench.ts", "-ts,--tensor-split", "no effect"),
    foreign("bench.ot", "-ot,--override-tensor", "no effect"),
    foreign("bench.lm", "-lm,--load-mode", "mmap, or populate: all weights are read before a test; others: as mmap"),
    foreign("bench.lzm", "-lzm,--lazy-mode", "on: weights are read when used"),
    foreign("bench.embd", "-embd,--embeddings", "0; 1 is refused"),
    foreign("bench.nopo", "-nopo,--no-op-offload", "no effect"),
    foreign("bench.no_host", "--no-host", "no effect"),
    foreign("bench.fitt", "-fitt,--fit-target", "no effect"),
    foreign("bench.fitc", "-fitc,--fit-ctx", "no effect"),
    foreign("bench.numa", "--numa", "no effect"),
    foreign("bench.prio", "--prio", "no effect"),
    foreign("bench.poll", "--poll", "no effect"),
    foreign("bench.hf", "-hf,-hff,-hft,--hf-repo,--hf-file,--hf-token", "refused: nothing is downloaded"),
};

struct Foreign {
  std::string_view setting, flag;
  std::string_view silent;  // values that ask for what is done anyway: "0|1"
  std::string_view reason;
  bool refused = false;
};
constexpr std::string_view kNoGpu = "everything runs on the CPU";
constexpr Foreign kForeigns[] = {
    {"bench.ngl", "-ngl", "0", kNoGpu},
    {"bench.ncmoe", "-ncmoe", "0", kNoGpu},
    {"bench.sm", "-sm", "none", kNoGpu},
    {"bench.mg", "-mg", "0", kNoGpu},
    {"bench.nkvo", "-nkvo", "0|1", kNoGpu},
    {"bench.fa", "-fa", "auto|-1", "there is one attention, and it never stores a matrix of scores"},
    {"bench.dev", "-dev", "cpu|CPU|none|auto", "no such device here (strata devices lists them)", true},
    {"bench.ts", "-ts", "0", kNoGpu},
    {"bench.ot", "-ot", "none", kNoGpu},
    {"bench.lm", "-lm", "auto|mmap|populate", "weights are mapped and read when used"},
    {"bench.lzm", "-lzm", "auto|on", "weights are mapped and read when used"},
    {"bench.embd", "-embd", "0", "embeddings are not benchmarked", true},
    {"bench.nopo", "-nopo", "0|1", kNoGpu},
    {"bench.no_host", "--no-host", "0|1", kNoGpu},
    {"bench.fitt", "-fitt", "0", "nothing is moved to make room on a GPU"},
    {"bench.fitc", "-fitc", "0", "nothing is moved to make room on a GPU"},
    {"bench.numa", "--numa", "", "memory is placed by the system"},
    {"bench.prio", "--prio", "0", "use nice"},
    {"bench.poll", "--poll", "50", "how threads wait is fixed"},
    {"bench.hf", "-hf", "", "nothing is downloaded: give a file with -m", true},
};

}  // namespace

std::span<const SettingSpec> bench_settings() { return kBench; }

std::vector<std::string_view> bench_shared_settings() {
  std::vector<std::string_view> names = engine_setting_names();
  const auto replaced = [](std::string_view name) {
    for (const std::string_view own :
         {"model", "ubatch_size", "cache_type_k", "cache_type_v", "threads", "arm", "cpu_mask", "load_mode"})
      if (name == own) return true;
    return false;
  };
  std::erase_if(names, replaced);
  names.insert(names.end(), {"op", "json", "draft_max"});
  return names;
}

void check_foreign_flags(CommandContext& context) {
  for (const Foreign& each : kForeigns)
    for (const std::string& value : context.settings.get_texts(each.setting)) {
      const std::vector<std::string> silent = split_text(each.silent, '|');
      if (std::find(silent.begin(), silent.end(), value) != silent.end()) continue;
      const std::string what = std::string(each.flag) + " " + value;
      if (each.refused) throw Error(ErrorKind::Usage, std::string(each.reason), what);
      context.log.warn(what + " has no effect: " + std::string(each.reason));
    }
}

}  // namespace strata::cli
