// strata plan: what a run would take, before anything is loaded.
#include "runtime/plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "model/model.h"
#include "runtime/engine.h"

namespace strata::cli {
namespace {

constexpr std::array kOwn{
    SettingSpec{.name = "plan.slots",
                .flags = "--slots",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 1,
                .max = 4096,
                .group = "Plan",
                .help = "sequences at a time",
                .persistent = false},
};

void print_line(const char* name, uint64_t bytes, const char* note) {
  fmt::print("  {:<22} {:>12.2f}  {}\n", name, static_cast<double>(bytes) / 1048576, note);
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const EngineOptions options = engine_options(settings);
  const Model model = Model::load(options.model, options.rope);
  const ModelSpec& spec = model.spec();
  PlanRequest request{.context = settings.get_int("ctx_size"),
                      .slots = settings.get_int("plan.slots"),
                      .micro_batch = options.micro_batch,
                      .caches = options.caches,
                      .tier_folder = options.tier_folder};
  if (request.context == 0) request.context = spec.context;
  const MemoryPlan plan = plan_memory(spec, model.file(), request);
  const std::string refusal = does_not_fit(spec, model.file(), request, options.memory_floor);
  if (settings.get_bool("json")) {
    fmt::print("{}\n", nlohmann::ordered_json{{"model", options.model},
                                              {"context", request.context},
                                              {"slots", request.slots},
                                              {"weights", plan.weights},
                                              {"kv", plan.states.kv},
                                              {"index_keys", plan.states.index},
                                              {"delta_states", plan.states.delta},
                                              {"histories", plan.states.convolution + plan.states.ngram},
                                              {"scratch", plan.scratch},
                                              {"total", plan.total()},
                                              {"need", plan.need()},
                                              {"available", plan.available},
                                              {"kv_memory", plan.kv_memory},
                                              {"kv_file", plan.kv_file},
                                              {"disk_available", plan.disk},
                                              {"fits", refusal.empty()}}
                           .dump(2));
    return refusal.empty() ? 0 : 1;
  }
  const bool tiered = options.caches.resident > 0;
  fmt::print("{} | {}\n{} x {} positions, micro-batch {} (MiB)\n", options.model, describe(spec), request.slots,
             request.context, options.micro_batch);
  print_line("weights", plan.weights, "mapped from the file, read when used");
  if (tiered) {
    print_line("KV, in a file", plan.kv_file, "grows with the length");
    print_line("KV, in memory", plan.kv_memory, "at most: working sets, a pass, one layer");
  } else {
    print_line("KV", plan.states.kv, "grows with the length");
  }
  print_line("index keys", plan.states.index, "grow with the length");
  print_line("delta-net states", plan.states.delta, "fixed");
  print_line("histories", plan.states.convolution + plan.states.ngram, "fixed");
  print_line("scratch", plan.scratch, "one pass, estimated");
  print_line("total", plan.total(), "");
  print_line("must be in memory", plan.need(), "all but the weights");
  print_line("available", plan.available, "");
  if (tiered) print_line("available on disk", plan.disk, options.tier_folder.c_str());
  if (refusal.empty()) {
    fmt::print("fits\n");
    return 0;
  }
  throw Error(ErrorKind::Memory, refusal);
}

}  // namespace

Command plan_command() {
  Command command{.name = "plan",
                  .summary = "Show what a model and a context take in memory, before anything is loaded.",
                  .own = kOwn,
                  .settings = engine_setting_names(),
                  .run = run};
  command.settings.push_back("json");
  return command;
}

}  // namespace strata::cli
