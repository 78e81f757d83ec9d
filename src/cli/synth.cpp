// strata synth: a model of random weights.
#include "model/synth.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/progress.h"
#include "model/model.h"

namespace strata::cli {
namespace {

constexpr SettingSpec number(std::string_view name, std::string_view flag, std::string_view help) {
  return {.name = name,
          .flags = flag,
          .type = SettingType::Int,
          .default_text = "0",
          .min = 0,
          .max = 1 << 30,
          .group = "Shape (0: as the named shape or the small default says)",
          .help = help,
          .persistent = false};
}

constexpr std::array kOwn{
    SettingSpec{.name = "synth_out",
                .flags = "-o,--outfile",
                .type = SettingType::Path,
                .group = "Synth",
                .help = "GGUF file to write",
                .persistent = false},
    SettingSpec{.name = "synth_shape",
                .flags = "--shape",
                .group = "Synth",
                .help = "qwen3-0.6b, qwen35-0.8b, qwen35-9b, qwen3-30b-a3b, qwen4exp-mini or qwen4exp-flash",
                .persistent = false},
    SettingSpec{.name = "synth_arch",
                .flags = "--arch",
                .group = "Synth",
                .help = "instead of a shape: llama, qwen3, qwen3moe, qwen3next, qwen35, qwen35moe or qwen4exp",
                .persistent = false},
    SettingSpec{.name = "synth_quant",
                .flags = "--quant",
                .default_text = "Q8_0",
                .group = "Synth",
                .help = "type or mix of the large tensors, as for strata quantize",
                .persistent = false},
    SettingSpec{.name = "synth_seed",
                .flags = "-s,--seed",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 0,
                .max = 9007199254740992.0,
                .group = "Synth",
                .help = "the same seed gives the same file",
                .persistent = false},
    SettingSpec{.name = "synth_tokenizer",
                .flags = "--tokenizer",
                .type = SettingType::Path,
                .group = "Synth",
                .help = "GGUF file whose tokenizer is copied; not set: the default model's",
                .persistent = false},
    SettingSpec{.name = "synth_mtp",
                .flags = "--mtp",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Synth",
                .help = "with an MTP block (hybrid architectures)",
                .persistent = false},
    SettingSpec{.name = "synth_head",
                .flags = "--head",
                .type = SettingType::Choice,
                .default_text = "shape",
                .choices = "shape|tied|own",
                .group = "Synth",
                .help = "the embedding is the head, or there is an own one",
                .persistent = false},
    SettingSpec{.name = "synth_dry_run",
                .flags = "--dry-run",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Synth",
                .help = "print the size, write nothing",
                .persistent = false},
    number("synth_layers", "--layers", "layers, without the MTP block"),
    number("synth_hidden", "--hidden", "width of the residual stream"),
    number("synth_ffn", "--ffn", "width of the dense MLP"),
    number("synth_heads", "--heads", "query heads"),
    number("synth_kv_heads", "--kv-heads", "key and value heads"),
    number("synth_head_dim", "--head-dim", "dimensions of a head"),
    number("synth_context", "--context", "positions the file says it was trained for"),
    number("synth_vocab", "--vocab", "tokens; those that the tokenizer lacks are [PADn]"),
    number("synth_experts", "--experts", "experts of a layer"),
    number("synth_experts_used", "--experts-used", "experts of a token"),
    number("synth_expert_ffn", "--expert-ffn", "width of an expert"),
    number("synth_shared_ffn", "--shared-ffn", "width of the shared expert"),
    number("synth_interval", "--attention-interval", "every n-th layer of a hybrid is attention"),
    number("synth_key_heads", "--key-heads", "key heads of the delta net"),
    number("synth_value_heads", "--value-heads", "value heads of the delta net"),
    number("synth_state_size", "--state-size", "dimensions of a delta-net head"),
    number("synth_streams", "--streams", "hyper-connection streams"),
    number("synth_low_rank", "--low-rank", "rank of the hyper-connection mixers"),
    number("synth_index_heads", "--index-heads", "heads of the block index"),
    number("synth_index_dim", "--index-dim", "dimensions of an index head"),
    number("synth_index_budget", "--index-budget", "tokens that block selection keeps"),
    number("synth_index_ratio", "--index-ratio", "tokens of a block"),
    number("synth_ngram_heads", "--ngram-heads", "hash heads of each n-gram order"),
    number("synth_ngram_base", "--ngram-base", "least rows of an n-gram head"),
};

struct Field {
  const char* setting;
  int SynthShape::*field;
};

constexpr Field kFields[] = {
    {"synth_layers", &SynthShape::layers},
    {"synth_hidden", &SynthShape::hidden},
    {"synth_ffn", &SynthShape::inner},
    {"synth_heads", &SynthShape::heads},
    {"synth_kv_heads", &SynthShape::kv_heads},
    {"synth_head_dim", &SynthShape::head_dim},
    {"synth_context", &SynthShape::context},
    {"synth_vocab", &SynthShape::vocabulary},
    {"synth_experts", &SynthShape::experts},
    {"synth_experts_used", &SynthShape::experts_used},
    {"synth_expert_ffn", &SynthShape::expert_inner},
    {"synth_shared_ffn", &SynthShape::shared_inner},
    {"synth_interval", &SynthShape::interval},
    {"synth_key_heads", &SynthShape::key_heads},
    {"synth_value_heads", &SynthShape::value_heads},
    {"synth_state_size", &SynthShape::state_size},
    {"synth_streams", &SynthShape::streams},
    {"synth_low_rank", &SynthShape::low_rank},
    {"synth_index_heads", &SynthShape::index_heads},
    {"synth_index_dim", &SynthShape::index_dim},
    {"synth_index_budget", &SynthShape::index_budget},
    {"synth_index_ratio", &SynthShape::index_ratio},
    {"synth_ngram_heads", &SynthShape::ngram_heads},
    {"synth_ngram_base", &SynthShape::ngram_base},
};

SynthShape shape_of(const Settings& settings) {
  const std::string &name = settings.get_text("synth_shape"), &arch = settings.get_text("synth_arch");
  if (name.empty() == arch.empty()) throw Error(ErrorKind::Usage, "give one of --shape and --arch");
  SynthShape shape;
  if (!arch.empty()) {
    shape = small_synth_shape(arch);
  } else if (const auto named = named_synth_shape(name)) {
    shape = *named;
  } else {
    throw Error(ErrorKind::Usage, "unknown shape '" + name + "'; possible are " + synth_shape_names(), "--shape");
  }
  for (const Field& field : kFields)
    if (const int64_t value = settings.get_int(field.setting); value > 0) shape.*field.field = static_cast<int>(value);
  if (const std::string& head = settings.get_text("synth_head"); head != "shape") shape.tied = head == "tied";
  if (settings.get_bool("synth_mtp")) shape.mtp = 1;
  return shape;
}

void print_summary(const SynthSummary& summary, const gguf::QuantScheme& scheme) {
  fmt::print("{} tensors, {:.2f} M parameters, {:.2f} MiB as {}, {:.3f} bits per weight\n", summary.tensors,
             static_cast<double>(summary.parameters) / 1e6, static_cast<double>(summary.bytes) / 1048576, scheme.name,
             8.0 * static_cast<double>(summary.bytes) / static_cast<double>(summary.parameters));
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  SynthOptions options;
  options.shape = shape_of(settings);
  const std::string &quant = settings.get_text("synth_quant"), &path = settings.get_text("synth_out");
  const auto scheme = gguf::quant_scheme(quant);
  if (!scheme)
    throw Error(ErrorKind::Usage, "cannot write the type '" + quant + "'; possible are " + gguf::quant_scheme_names(),
                "--quant");
  options.scheme = *scheme;
  options.tokenizer = settings.get_text("synth_tokenizer");
  if (options.tokenizer.empty()) options.tokenizer = model_path(settings);
  options.seed = static_cast<uint64_t>(settings.get_int("synth_seed"));
  options.threads = static_cast<int>(settings.get_int("threads"));
  options.cancelled = &context.interrupted;
  if (settings.get_bool("synth_dry_run")) {
    print_summary(plan_synth(options), *scheme);
    return 0;
  }
  if (path.empty()) throw Error(ErrorKind::Usage, "name the file to write", "--outfile");
  Progress progress;
  options.progress = [&](uint64_t done, uint64_t total, const std::string& tensor) {
    if (progress.due()) progress.show(fmt::format("{:3} %  {:<60.60}", total == 0 ? 100 : done * 100 / total, tensor));
  };
  const SynthSummary summary = write_synth(path, options);
  progress.clear();
  fmt::print("{}: {}\n", path, describe(Model::load(path).spec()));  // loading checks what was written
  print_summary(summary, *scheme);
  return 0;
}

}  // namespace

Command synth_command() {
  return {.name = "synth",
          .summary = "Write a model of random weights, of any architecture and size.",
          .own = kOwn,
          .settings = {"threads"},
          .run = run};
}

}  // namespace strata::cli
