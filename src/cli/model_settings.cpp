#include "cli/model_settings.h"

#include <array>
#include <filesystem>
#include <random>

#include "base/dtype.h"
#include "base/error.h"
#include "cli/common_settings.h"
#include "cli/synth_model.h"

namespace strata::cli {
namespace {

constexpr std::string_view kDefaultModel = "strata-mini-q8_0.gguf";

constexpr const char* kCacheTypes = "f16|f32|bf16|q8_0|q4_0";

constexpr std::array kModel{
    SettingSpec{.name = "model",
                .flags = "-m,--model",
                .type = SettingType::Path,
                .group = "Model",
                .help =
                    "GGUF file (of a split set: any shard), or synth:SHAPE:TYPE: random weights of a known shape; not "
                    "set: the default model that comes with Strata"},
    SettingSpec{.name = "device",
                .flags = "--device",
                .type = SettingType::Text,
                .default_text = "cpu",
                .group = "Model",
                .help =
                    "where operators run and weights and caches lie: cpu, cuda:0, hip:0 (strata devices lists them), "
                    "emu: device kernels on the CPU from their source, or sim:gfx1100: their machine code for an "
                    "AMD GPU in an interpreter; both are slow and prove no device"},
    SettingSpec{.name = "cpu_mask",
                .flags = "-C,--cpu-mask",
                .type = SettingType::Text,
                .default_text = "0x0",
                .group = "Model",
                .help = "processors that compute, as a hexadecimal mask such as 0xff; 0x0: all; threads, unless given: "
                        "one per processor"},
    SettingSpec{.name = "cpu_range",
                .flags = "-Cr,--cpu-range",
                .type = SettingType::Text,
                .group = "Model",
                .help = "the same as a range such as 0-7; with a mask: both"},
    SettingSpec{.name = "cpu_strict",
                .type = SettingType::Choice,
                .default_text = "0",
                .choices = "0|1",
                .group = "Model",
                .help = "1: each thread stays on a processor of its own, of the mask or of all; changes speed, never "
                        "the text"},
    SettingSpec{.name = "load_mode",
                .flags = "-lm,--load-mode",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|mmap|populate",
                .group = "Model",
                .help = "auto, mmap: weights are read when first used; populate: all threads read them into memory "
                        "before the first run"},
    SettingSpec{.name = "ctx_size",
                .flags = "-c,--ctx-size",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 16777216,
                .group = "Model",
                .help = "context in tokens; 0: what prompt and output need, at most what the model was trained for"},
    SettingSpec{.name = "ubatch_size",
                .flags = "-ub,--ubatch-size",
                .type = SettingType::Int,
                .default_text = "512",
                .min = 1,
                .max = 65536,
                .group = "Model",
                .help = "prompt tokens computed at a time; results do not depend on it"},
    SettingSpec{.name = "cache_type_k",
                .flags = "-ctk,--cache-type-k",
                .type = SettingType::Choice,
                .default_text = "f16",
                .choices = kCacheTypes,
                .group = "Model",
                .help = "how keys are stored; q8_0 and q4_0 need heads of a multiple of 32 channels"},
    SettingSpec{.name = "cache_type_v",
                .flags = "-ctv,--cache-type-v",
                .type = SettingType::Choice,
                .default_text = "f16",
                .choices = kCacheTypes,
                .group = "Model",
                .help = "how values are stored, as for keys"},
    SettingSpec{.name = "kv_resident",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 16777216,
                .group = "Model",
                .help = "keep keys and values of all positions in a file, and in memory those of N positions of each "
                        "attention layer, in pages of 64; changes memory and speed, never the text; 0: all in memory"},
    SettingSpec{.name = "kv_file_dir",
                .type = SettingType::Path,
                .default_text = kDefaultTierFolder,
                .group = "Model",
                .help = "folder on a disk for the file of --kv-resident; the file has no name and goes with the run"},
    SettingSpec{.name = "rope_scaling",
                .type = SettingType::Choice,
                .default_text = "file",
                .choices = "file|none|linear|yarn",
                .group = "Model",
                .help = "how positions beyond the trained context are rotated; the context grows by the scale"},
    SettingSpec{.name = "rope_scale",
                .type = SettingType::Real,
                .default_text = "0",
                .min = 0,
                .max = 10000,
                .group = "Model",
                .help = "context scaling factor, linear unless --rope-scaling says otherwise; 0: as the file says"},
    SettingSpec{.name = "rope_freq_base",
                .type = SettingType::Real,
                .default_text = "0",
                .min = 0,
                .max = 1e15,
                .group = "Model",
                .help = "RoPE base; 0: as the file says"},
    SettingSpec{.name = "yarn_orig_ctx",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 16777216,
                .group = "Model",
                .help = "YaRN: context before scaling; 0: as the file says"},
    SettingSpec{.name = "yarn_ext_factor",
                .type = SettingType::Real,
                .default_text = "-1",
                .min = -1,
                .max = 1,
                .group = "Model",
                .help = "YaRN: share of extrapolation; 0: interpolation alone; below 0: as the file says"},
    SettingSpec{.name = "yarn_attn_factor",
                .type = SettingType::Real,
                .default_text = "-1",
                .min = -1,
                .max = 100,
                .group = "Model",
                .help = "YaRN: factor on cosine and sine, taken as it is; up to 0: the file's, else 1 + 0.1 ln(scale)"},
    SettingSpec{
        .name = "yarn_beta_fast",
        .type = SettingType::Real,
        .default_text = "-1",
        .min = -1,
        .max = 1000000,
        .group = "Model",
        .help = "YaRN: pairs that turn more often than this keep their frequency; up to 0: the file's, else 32"},
    SettingSpec{.name = "yarn_beta_slow",
                .type = SettingType::Real,
                .default_text = "-1",
                .min = -1,
                .max = 1000000,
                .group = "Model",
                .help = "YaRN: pairs that turn less often than this are slowed; up to 0: the file's, else 1"},
    SettingSpec{
        .name = "qsa.select",
        .type = SettingType::Choice,
        .default_text = "blocks",
        .choices = "blocks|fixed-width",
        .group = "Model",
        .help = "block selection: whole blocks and the tail, or a fixed width for comparison with other engines"},
    SettingSpec{
        .name = "qsa.keys",
        .type = SettingType::Choice,
        .default_text = "bf16",
        .choices = "bf16|f32",
        .group = "Model",
        .help = "block selection: how index keys are stored; f32 takes twice the memory, as reference code does"},
    SettingSpec{.name = "mem_floor",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 1073741824,
                .group = "Model",
                .help = "MiB of memory that stay free: a run that would take more is refused, or ends; 0: off"},
    SettingSpec{.name = "gdn.form",
                .type = SettingType::Choice,
                .default_text = "serial",
                .choices = "serial|anchored",
                .group = "Model",
                .help = "delta nets row by row, or in chunks from every 64th position; bits differ between the two; "
                        "anchored takes up to two thirds more memory for states and about a fifth more time"},
    SettingSpec{.name = "matmul.activations",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|f32|int8",
                .group = "Model",
                .help =
                    "what quantised weights are multiplied with: f32, or rows rounded to int8 in blocks of 32, which "
                    "is up to three times as fast; auto: int8 on the CPU, f32 on other devices"},
    SettingSpec{.name = "mtp.hidden_norm",
                .type = SettingType::Choice,
                .default_text = "joint",
                .choices = "joint|per-stream",
                .group = "Model",
                .help = "MTP: one norm over all streams or one per stream; changes acceptance only"},
};

constexpr std::array kCache{
    SettingSpec{.name = "kv_budget",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 1 << 30,
                .group = "Cache",
                .help = "memory of all sequences in MiB, at most; 0: no limit"},
    SettingSpec{.name = "cache_prompt",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Cache",
                .help = "keep sequences for prompts that begin with the same tokens; changes speed, never the text"},
    SettingSpec{.name = "cache_ram",
                .type = SettingType::Int,
                .default_text = "2048",
                .min = 0,
                .max = 1 << 30,
                .group = "Cache",
                .help = "sequences are kept while all take less than this many MiB"},
    SettingSpec{.name = "session",
                .type = SettingType::Path,
                .group = "Cache",
                .help = "go on from this file where it exists, and write the state to it at the end",
                .persistent = false},
};

constexpr std::array kSampler{
    SettingSpec{.name = "draft",
                .type = SettingType::Choice,
                .default_text = "none",
                .choices = "none|lookup|mtp|auto",
                .group = "Speculation",
                .help =
                    "guess tokens and check them together: from the text so far, or by the model's MTP block; changes "
                    "speed, never the text"},
    SettingSpec{.name = "draft_max",
                .flags = "--draft-max,--spec-draft-n-max",
                .type = SettingType::Int,
                .default_text = "7",
                .min = 0,
                .max = 7,
                .group = "Speculation",
                .help = "tokens guessed at a time, at most; fewer when they do not hold"},
    SettingSpec{.name = "ignore_eos",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Sampling",
                .help = "go on past the end of the text",
                .persistent = false},
    SettingSpec{.name = "repeat_limit",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 1048576,
                .group = "Sampling",
                .help = "equal tokens in a row that end the output; 0: no limit"},
    SettingSpec{.name = "temp",
                .type = SettingType::Real,
                .default_text = "0",
                .min = 0,
                .max = 100,
                .group = "Sampling",
                .help = "temperature; 0: always the most likely token"},
    SettingSpec{.name = "top_k",
                .type = SettingType::Int,
                .default_text = "40",
                .min = 0,
                .max = 16777216,
                .group = "Sampling",
                .help = "sample among this many tokens; 0: all"},
    SettingSpec{.name = "top_p",
                .type = SettingType::Real,
                .default_text = "0.95",
                .min = 0,
                .max = 1,
                .group = "Sampling",
                .help = "sample among the tokens that make up this probability; 1: all"},
    SettingSpec{.name = "min_p",
                .type = SettingType::Real,
                .default_text = "0.05",
                .min = 0,
                .max = 1,
                .group = "Sampling",
                .help = "drop tokens less likely than this share of the best; 0: none"},
    SettingSpec{.name = "repeat_penalty",
                .type = SettingType::Real,
                .default_text = "1",
                .min = 0.01,
                .max = 100,
                .group = "Sampling",
                .help = "weaken tokens that occurred; 1: off"},
    SettingSpec{.name = "repeat_last_n",
                .type = SettingType::Int,
                .default_text = "64",
                .min = -1,
                .max = 16777216,
                .group = "Sampling",
                .help = "tokens that the penalties look back at; -1: all"},
    SettingSpec{.name = "presence_penalty",
                .type = SettingType::Real,
                .default_text = "0",
                .min = -100,
                .max = 100,
                .group = "Sampling",
                .help = "subtracted once from tokens that occurred"},
    SettingSpec{.name = "frequency_penalty",
                .type = SettingType::Real,
                .default_text = "0",
                .min = -100,
                .max = 100,
                .group = "Sampling",
                .help = "subtracted for every time a token occurred"},
    SettingSpec{.name = "seed",
                .flags = "-s,--seed",
                .type = SettingType::Int,
                .default_text = "0",
                .min = -1,
                .max = 9007199254740992.0,
                .group = "Sampling",
                .help = "the same seed gives the same text; -1: a new one each time"},
};

std::vector<std::string_view> names_of(std::span<const SettingSpec> specs) {
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : specs) names.push_back(spec.name);
  return names;
}

}  // namespace

std::span<const SettingSpec> model_settings() { return kModel; }
std::span<const SettingSpec> cache_settings() { return kCache; }
std::span<const SettingSpec> sampler_settings() { return kSampler; }

const std::vector<std::string>& operator_names() {
  static const std::vector<std::string> names{"argmax",
                                              "attention",
                                              "causal_conv",
                                              "embedding",
                                              "experts",
                                              "gate_act",
                                              "gated_delta",
                                              "gated_delta_anchored",
                                              "gated_delta_gates",
                                              "hyper_read",
                                              "hyper_write",
                                              "matmul",
                                              "ngram_embedding",
                                              "ngram_gate",
                                              "norm",
                                              "qsa_pool",
                                              "qsa_score",
                                              "qsa_select",
                                              "rope",
                                              "route",
                                              "sparse_attention",
                                              "store_rows"};
  return names;
}

std::vector<std::string_view> engine_setting_names() {
  std::vector<std::string_view> names = names_of(kModel);
  names.insert(names.end(), {"kv_budget", "threads", "arm", "strict_arms", "cpu.isa", "select.wmma", "gdn.wy"});
  return names;
}

std::vector<std::string_view> prompt_cache_setting_names() { return {"cache_prompt", "cache_ram"}; }

void set_prompt_cache(const Settings& settings, EngineOptions& options) {
  if (settings.get_bool("cache_prompt"))
    options.prompt_cache_bytes = static_cast<uint64_t>(settings.get_int("cache_ram")) << 20;
}

std::vector<std::string_view> sampler_setting_names() { return names_of(kSampler); }

CacheOptions cache_options(const Settings& settings) {
  const auto type = [&](const char* name) { return dtype_from_name(settings.get_text(name)).value(); };
  CacheOptions options;
  options.keys = type("cache_type_k");
  options.values = type("cache_type_v");
  options.index_keys = type("qsa.keys");
  options.resident = settings.get_int("kv_resident");
  return options;
}

namespace {

ThreadPlacement thread_placement(const Settings& settings) {
  ThreadPlacement placement;
  placement.processors = ProcessorSet::parse_mask(settings.get_text("cpu_mask"), "--cpu-mask");
  placement.processors.check_allowed("--cpu-mask");
  if (const std::string& range = settings.get_text("cpu_range"); !range.empty()) {
    const ProcessorSet more = ProcessorSet::parse_range(range, "--cpu-range");
    more.check_allowed("--cpu-range");
    placement.processors.add(more);
  }
  placement.strict = settings.get_text("cpu_strict") == "1";
  if (placement.strict && placement.processors.empty()) placement.processors = ProcessorSet::allowed();
  return placement;
}

Activations activations(const Settings& settings, const std::string& device) {
  const std::string& choice = settings.get_text("matmul.activations");
  if (choice == "int8" && device != "cpu")
    throw Error(ErrorKind::Usage, "int8 is for products on the CPU: take auto or f32 with --device " + device,
                "matmul.activations");
  return choice == "f32" ? Activations::F32 : Activations::Int8;
}

}  // namespace

EngineOptions engine_options(const Settings& settings, Profiler* profiler) {
  EngineOptions options;
  options.profiler = profiler;
  options.model = model_path(settings);
  options.device = settings.get_text("device");
  options.threads = static_cast<int>(settings.get_int("threads"));
  options.placement = thread_placement(settings);
  options.read_ahead = settings.get_text("load_mode") == "populate";
  options.micro_batch = settings.get_int("ubatch_size");
  if (settings.get_text("rope_scaling") != "file") options.rope.scaling = settings.get_text("rope_scaling");
  options.rope.factor = settings.get_real("rope_scale");
  options.rope.base = settings.get_real("rope_freq_base");
  options.rope.original_context = static_cast<double>(settings.get_int("yarn_orig_ctx"));
  options.rope.ext = settings.get_real("yarn_ext_factor");
  options.rope.attention_factor = settings.get_real("yarn_attn_factor");
  options.rope.beta_fast = settings.get_real("yarn_beta_fast");
  options.rope.beta_slow = settings.get_real("yarn_beta_slow");
  options.forward.qsa =
      settings.get_text("qsa.select") == "fixed-width" ? QsaSemantics::FixedWidth : QsaSemantics::Blocks;
  options.forward.activations = activations(settings, options.device);
  options.memory_floor = static_cast<uint64_t>(settings.get_int("mem_floor")) << 20;
  options.caches = cache_options(settings);
  options.tier_folder = settings.get_text("kv_file_dir");
  options.caches.anchored = settings.get_text("gdn.form") == "anchored";
  options.forward.mtp_hidden_norm =
      settings.get_text("mtp.hidden_norm") == "joint" ? MtpHiddenNorm::Joint : MtpHiddenNorm::PerStream;
  options.sequence_bytes = static_cast<uint64_t>(settings.get_int("kv_budget")) << 20;
  options.cpu = allowed_cpu(settings);
  options.strict_arms = settings.get_bool("strict_arms");
  options.arms = requested_arms(settings, operator_names());
  return options;
}

namespace {

SamplerOptions sampler_options(const Settings& settings) {
  SamplerOptions options;
  options.temperature = settings.get_real("temp");
  options.top_k = settings.get_int("top_k");
  options.top_p = settings.get_real("top_p");
  options.min_p = settings.get_real("min_p");
  options.repetition_penalty = settings.get_real("repeat_penalty");
  options.penalty_window = settings.get_int("repeat_last_n");
  options.presence_penalty = settings.get_real("presence_penalty");
  options.frequency_penalty = settings.get_real("frequency_penalty");
  const int64_t seed = settings.get_int("seed");
  options.seed = seed >= 0 ? static_cast<uint64_t>(seed) : std::random_device{}();
  return options;
}

}  // namespace

void set_generation(const Settings& settings, GenerateRequest& request) {
  const std::string& draft = settings.get_text("draft");
  request.draft = draft == "lookup" ? DraftKind::Lookup
                  : draft == "mtp"  ? DraftKind::Mtp
                  : draft == "auto" ? DraftKind::Auto
                                    : DraftKind::None;
  request.draft_max = static_cast<int>(settings.get_int("draft_max"));
  request.repeat_limit = settings.get_int("repeat_limit");
  request.ignore_end = settings.get_bool("ignore_eos");
  request.sampler = sampler_options(settings);
}

std::string model_path(const Settings& settings) {
  if (const std::string& path = settings.get_text("model"); !path.empty())
    return is_made_model(path) ? made_model_path(path, default_model_path()) : path;
  return default_model_path();
}

std::string default_model_path() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string looked;
  for (const fs::path& folder : {program / "../../models", program / "../share/strata/models", fs::path("models")}) {
    const fs::path candidate = (folder / kDefaultModel).lexically_normal();
    if (fs::exists(candidate, ignored)) {
      const std::string near = fs::proximate(candidate, ignored).string();
      return near.empty() || near.starts_with("..") ? candidate.string() : near;
    }
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  throw Error(ErrorKind::File, "no model: give one with -m FILE; the default model was looked for as " + looked);
}

}  // namespace strata::cli
