// What strata bench -m runs: the product of its lists, checked before anything is timed.
#include "cli/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/processors.h"
#include "base/settings_text.h"
#include "cli/model_settings.h"
#include "cli/synth_model.h"

namespace strata::cli {
namespace {

constexpr size_t kMostTests = 10000;
constexpr int64_t kSweepContext = 8192;  // of a sweep, unless -c or -d say otherwise

// A path may have commas itself: it is taken whole where such a file exists.
std::vector<std::string> model_paths(const Settings& settings) {
  std::vector<std::string> paths;
  for (const std::string& text : settings.get_texts("bench.model")) {
    std::error_code ignored;
    if (std::filesystem::exists(text, ignored))
      paths.push_back(text);
    else
      for (std::string& path : split_text(text, ',')) paths.push_back(std::move(path));
  }
  for (std::string& path : paths)
    if (is_made_model(path)) path = made_model_path(path, default_model_path());
  if (paths.empty()) paths.push_back(model_path(settings));
  return paths;
}

// The values of a list of this command, or, when it is not given, of the setting that other commands have.
std::vector<int64_t> numbers(const Settings& settings, const char* own, const char* shared) {
  if (settings.origin(own) == SettingOrigin::Default && settings.origin(shared) != SettingOrigin::Default)
    return {settings.get_int(shared)};
  return settings.get_ints(own);
}

std::vector<DType> cache_types(const Settings& settings, const char* own, const char* shared) {
  std::vector<std::string> names = settings.get_choices(own);
  if (settings.origin(own) == SettingOrigin::Default && settings.origin(shared) != SettingOrigin::Default)
    names = {settings.get_text(shared)};
  std::vector<DType> types;
  for (const std::string& name : names) types.push_back(dtype_from_name(name).value());
  return types;
}

std::vector<double> real_list(const std::string& text, const char* flag) {
  std::vector<double> values;
  for (const std::string& part : split_text(text, ',')) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || !(value >= 0 && value <= 1))
      throw Error(ErrorKind::Usage, quoted_text(part) + " is no probability: 0 to 1, with commas between", flag);
    values.push_back(value);
  }
  return values;
}

DraftTrialOptions draft_options(const Settings& settings) {
  DraftTrialOptions options;
  options.limit = static_cast<int>(settings.get_int("draft_max"));
  options.synthetic.length = settings.get_real("bench.synth_len");
  options.synthetic.rates = real_list(settings.get_text("bench.synth_rates"), "--spec-synth-rates");
  if (options.synthetic.length > 0 && !options.synthetic.rates.empty())
    throw Error(ErrorKind::Usage, "give either --spec-synth-len or --spec-synth-rates");
  const double longest = options.limit + 1;
  if (options.synthetic.length > 0 && (options.synthetic.length < 1 || options.synthetic.length > longest))
    throw Error(ErrorKind::Usage, fmt::format("a window keeps 1 to {} tokens (draft-max + 1)", longest),
                "--spec-synth-len");
  if (options.synthetic.rates.size() > static_cast<size_t>(options.limit))
    throw Error(ErrorKind::Usage, fmt::format("has more rates than drafts ({}, draft-max)", options.limit),
                "--spec-synth-rates");
  return options;
}

std::vector<std::pair<int64_t, int64_t>> prompt_output_pairs(const Settings& settings) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const std::string& text : settings.get_texts("bench.pg")) {
    const std::vector<std::string> parts = split_text(text, ',');
    int64_t values[2] = {0, 0};
    bool valid = parts.size() == 2;
    for (size_t i = 0; valid && i < 2; ++i) {
      const auto [end, error] = std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), values[i]);
      valid =
          error == std::errc{} && end == parts[i].data() + parts[i].size() && values[i] >= 0 && values[i] <= 16777216;
    }
    if (!valid) throw Error(ErrorKind::Usage, quoted_text(text) + " is no pair of lengths such as 512,128", "-pg");
    pairs.emplace_back(values[0], values[1]);
  }
  return pairs;
}

DraftKind draft_kind(const std::string& name) {
  for (const DraftKind kind : {DraftKind::None, DraftKind::Lookup, DraftKind::Mtp})
    if (name == draft_name(kind)) return kind;
  return DraftKind::Auto;
}

// Prompt and output lengths of the tests at one depth; of a sweep's points.
std::vector<std::pair<int64_t, int64_t>> lengths(const Settings& settings) {
  if (settings.get_bool("bench.sweep")) {
    const std::vector<int64_t> prompts = settings.get_ints("bench.n_prompt"),
                               outputs = settings.get_ints("bench.n_gen");
    if (prompts.size() != 1 || outputs.size() != 1 || !settings.get_texts("bench.pg").empty() ||
        prompts.front() + outputs.front() < 1)
      throw Error(ErrorKind::Usage, "a sweep takes one -p, one -n and no -pg");
    return {{prompts.front(), outputs.front()}};
  }
  std::vector<std::pair<int64_t, int64_t>> list;
  for (const int64_t prompt : settings.get_ints("bench.n_prompt"))
    if (prompt > 0) list.emplace_back(prompt, 0);
  for (const int64_t output : settings.get_ints("bench.n_gen"))
    if (output > 0) list.emplace_back(0, output);
  for (const auto& [prompt, output] : prompt_output_pairs(settings))
    if (prompt + output > 0) list.emplace_back(prompt, output);
  if (list.empty()) throw Error(ErrorKind::Usage, "no test is left: give -p, -n or -pg");
  return list;
}

// Tests of one model, in the order in which they run: what a deeper test can build on comes before it.
std::vector<ModelTest> make_tests(const Settings& settings) {
  ModelTest test;
  test.caches = cache_options(settings);
  test.drafts = draft_options(settings);
  const std::vector<std::string> drafts = settings.get_choices("bench.draft");
  const bool chosen = std::any_of(drafts.begin(), drafts.end(), [](const std::string& name) { return name != "none"; });
  if (test.drafts.synthetic.given() && !chosen)
    throw Error(ErrorKind::Usage, "synthetic acceptance needs drafts: give --draft lookup or --draft mtp");
  const auto cases = lengths(settings);
  std::vector<ModelTest> tests;
  const std::vector<int64_t> micro_batches = numbers(settings, "bench.ubatch", "ubatch_size");
  std::vector<int64_t> depths{0};  // a sweep walks them
  if (!settings.get_bool("bench.sweep")) depths = settings.get_ints("bench.n_depth");
  const auto types_k = cache_types(settings, "bench.type_k", "cache_type_k"),
             types_v = cache_types(settings, "bench.type_v", "cache_type_v");
  for (const int64_t batch : settings.get_ints("bench.batch"))
    for (const int64_t micro_batch : micro_batches)
      for (const DType keys : types_k)
        for (const DType values : types_v)
          for (const std::string& draft : drafts)
            for (const int64_t depth : depths)
              for (const auto& [prompt, output] : cases) {
                if (tests.size() == kMostTests)
                  throw Error(ErrorKind::Usage, fmt::format("the lists make more than {} tests", kMostTests));
                test.batch = batch;
                test.micro_batch = micro_batch;
                test.caches.keys = keys;
                test.caches.values = values;
                test.drafts.kind = output > 0 ? draft_kind(draft) : DraftKind::None;
                test.chosen = output > 0 && chosen;
                test.depth = depth;
                test.prompt = prompt;
                test.output = output;
                if (output > 0 || draft == drafts.front()) tests.push_back(test);
              }
  return tests;
}

void check_forms(Settings& settings) {
  const bool cold = settings.get_bool("bench.cold");
  const bool sweep = settings.get_bool("bench.sweep");
  if (!settings.get_text("bench.plot").empty() && !sweep)
    throw Error(ErrorKind::Usage, "draws a sweep: give --sweep too", "--plot");
  if (cold && sweep) throw Error(ErrorKind::Usage, "--cold and --sweep: a walk along a context is warm");
  for (const int64_t depth : settings.get_ints("bench.n_depth"))
    if (cold && depth > 0) throw Error(ErrorKind::Usage, "--cold and -d: reading the depth warms the model");
  for (const std::string& arm : settings.get_texts("bench.arm")) settings.set("arm", arm, SettingOrigin::Flag, "--arm");
}

// Depths of a sweep: those of -d, or every prompt's length up to the end of the context.
std::vector<int64_t> sweep_depths(const Settings& settings, const ModelTest& point, const ModelSpec& spec) {
  std::vector<int64_t> depths;
  if (settings.origin("bench.n_depth") != SettingOrigin::Default) {
    depths = settings.get_ints("bench.n_depth");
    std::sort(depths.begin(), depths.end());
    depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
    return depths;
  }
  const int64_t longest = std::max(point.prompt, point.output), step = point.prompt > 0 ? point.prompt : point.output;
  int64_t end = settings.get_int("ctx_size");
  if (end == 0) end = std::min(kSweepContext, spec.context);
  for (int64_t depth = 0; depth + longest <= end; depth += step) {
    if (depths.size() == kMostTests)
      throw Error(ErrorKind::Usage, fmt::format("more than {} points; ask for larger steps (-p)", kMostTests));
    depths.push_back(depth);
  }
  if (depths.empty())
    throw Error(ErrorKind::Usage, fmt::format("a context of {} has no room for {} tokens", end, longest), "-c");
  return depths;
}

// The tests as this model can run them. Every one is checked before the first one runs.
BenchGroup group_for(const Settings& settings, const std::string& path, const std::vector<ModelTest>& tests) {
  const EngineOptions options = engine_options(settings);
  const Model model = Model::load(path, options.rope);
  model.file().check_sizes();
  BenchGroup group{.model = path, .description = describe_bench_model(model, path), .tests = tests};
  for (ModelTest& test : group.tests) {
    test.drafts.kind = resolved_draft(test.drafts.kind, model.spec());
    ModelTest longest = test;
    if (settings.get_bool("bench.sweep")) {
      group.depths = sweep_depths(settings, test, model.spec());
      longest.depth = group.depths.back();
      (test.prompt > test.output ? longest.output : longest.prompt) = 0;  // both begin at the same depth
    }
    check_test(longest, model, options.memory_floor, options.device == "cpu");
  }
  return group;
}

}  // namespace

std::vector<BenchGroup> plan_model_bench(Settings& settings) {
  check_forms(settings);
  std::vector<std::string> masks = settings.get_texts("bench.cpu_mask");
  if (masks.empty()) masks.emplace_back("0x0");
  for (const std::string& mask : masks) ProcessorSet::parse_mask(mask, "-C").check_allowed("-C");
  const std::vector<ModelTest> tests = make_tests(settings);
  const std::vector<int64_t> threads = numbers(settings, "bench.threads", "threads");
  std::vector<BenchGroup> groups;
  for (const std::string& path : model_paths(settings)) {
    settings.set("model", path, SettingOrigin::Flag, "-m");
    BenchGroup group = group_for(settings, path, tests);
    for (const std::string& mask : masks)
      for (const int64_t count : threads) {
        group.cpu_mask = mask;
        group.threads = count;
        groups.push_back(group);
        if (groups.size() * tests.size() > kMostTests)
          throw Error(ErrorKind::Usage, fmt::format("the lists make more than {} tests", kMostTests));
      }
  }
  return groups;
}

}  // namespace strata::cli
