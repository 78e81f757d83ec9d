// Shapes by name, and a small one of every architecture.
#include <algorithm>

#include "base/error.h"
#include "model/spec.h"
#include "model/synth.h"

namespace strata {
namespace {

const std::vector<SynthShape>& named_shapes() {
  static const std::vector<SynthShape> shapes{
      {.name = "qwen3-0.6b",
       .arch = "qwen3",
       .layers = 28,
       .hidden = 1024,
       .heads = 16,
       .kv_heads = 8,
       .head_dim = 128,
       .inner = 3072,
       .context = 40960,
       .rope_base = 1e6,
       .tied = true,
       .vocabulary = 151936},
      {.name = "qwen35-0.8b",
       .arch = "qwen35",
       .layers = 24,
       .hidden = 1024,
       .heads = 8,
       .kv_heads = 2,
       .head_dim = 256,
       .inner = 3584,
       .context = 262144,
       .rope_base = 1e7,
       .tied = true,
       .vocabulary = 248320,
       .key_heads = 16,
       .value_heads = 16,
       .state_size = 128},
      {.name = "qwen35-9b",
       .arch = "qwen35",
       .layers = 32,
       .hidden = 4096,
       .heads = 16,
       .kv_heads = 4,
       .head_dim = 256,
       .inner = 12288,
       .context = 262144,
       .rope_base = 1e7,
       .vocabulary = 248320,
       .key_heads = 16,
       .value_heads = 32,
       .state_size = 128},
      {.name = "qwen3-30b-a3b",
       .arch = "qwen3moe",
       .layers = 48,
       .hidden = 2048,
       .heads = 32,
       .kv_heads = 4,
       .head_dim = 128,
       .inner = 6144,
       .context = 40960,
       .rope_base = 1e6,
       .vocabulary = 151936,
       .experts = 128,
       .experts_used = 8,
       .expert_inner = 768},
      {.name = "qwen4exp-mini",
       .arch = "qwen4exp",
       .layers = 8,
       .hidden = 320,
       .heads = 6,
       .kv_heads = 1,
       .head_dim = 128,
       .rotary = 64,
       .context = 2048,
       .rope_base = 1e6,
       .tied = true,
       .vocabulary = 8192,
       .experts = 8,
       .experts_used = 2,
       .expert_inner = 128,
       .shared_inner = 128,
       .key_heads = 2,
       .value_heads = 6,
       .state_size = 128,
       .streams = 4,
       .low_rank = 32,
       .index_heads = 4,
       .index_dim = 128,
       .index_budget = 256,
       .index_ratio = 4,
       .ngram_heads = 5,
       .ngram_base = 8009},
      {.name = "qwen4exp-flash",
       .arch = "qwen4exp",
       .layers = 48,
       .hidden = 2560,
       .heads = 24,
       .kv_heads = 2,
       .head_dim = 256,
       .context = 262144,
       .rope_base = 1e7,
       .vocabulary = 248320,
       .experts = 512,
       .experts_used = 10,
       .expert_inner = 640,
       .shared_inner = 640,
       .key_heads = 16,
       .value_heads = 48,
       .state_size = 128,
       .streams = 4,
       .low_rank = 320,
       .index_heads = 4,
       .index_dim = 128,
       .index_budget = 2048,
       .index_ratio = 4,
       .ngram_heads = 8,
       .ngram_base = 20000000},
  };
  return shapes;
}

}  // namespace

std::optional<SynthShape> named_synth_shape(std::string_view name) {
  for (const SynthShape& shape : named_shapes())
    if (shape.name == name) return shape;
  return std::nullopt;
}

std::string synth_shape_names() {
  std::string names;
  for (const SynthShape& shape : named_shapes()) names += (names.empty() ? "" : ", ") + shape.name;
  return names;
}

SynthShape small_synth_shape(const std::string& arch) {
  const std::vector<std::string>& known = known_architectures();
  if (std::find(known.begin(), known.end(), arch) == known.end()) {
    std::string names;
    for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
    throw Error(ErrorKind::Usage, "unknown architecture '" + arch + "'; possible are " + names, "--arch");
  }
  SynthShape shape{.name = arch + " (random weights)",
                   .arch = arch,
                   .layers = 4,
                   .hidden = 256,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_dim = 64,
                   .inner = 512,
                   .tied = true};
  const bool hybrid = arch == "qwen3next" || arch.starts_with("qwen35") || arch == "qwen4exp";
  if (arch == "qwen3moe" || (hybrid && arch != "qwen35")) {
    shape.experts = 8;
    shape.experts_used = 2;
    shape.expert_inner = 256;
    if (hybrid) shape.shared_inner = 256;
  }
  if (hybrid) {
    shape.key_heads = 2;
    shape.value_heads = 4;
    shape.state_size = 64;
  }
  if (arch != "qwen4exp") return shape;
  shape.streams = 4;
  shape.low_rank = 64;
  shape.index_heads = 2;
  shape.index_dim = 64;
  shape.index_budget = 64;
  shape.index_ratio = 4;
  shape.ngram_heads = 4;
  shape.ngram_base = 1009;
  return shape;
}

}  // namespace strata
