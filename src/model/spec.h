// ModelSpec: what a file's metadata says about the model, as values. Every family is one of these values; the forward
// pass (forward.cpp) walks it and knows no family.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "ops/gate_act/gate_act.h"
#include "ops/gated_delta/gated_delta.h"
#include "ops/ngram_embedding/ngram_embedding.h"
#include "ops/rope/rope.h"

namespace strata {

struct AttentionSpec {
  int heads = 0, kv_heads = 0, head_dim = 0;
  bool gated = false;  // attn_q gives per head q, then the gate
  bool qk_norm = false;
  float scale = 0;  // on q·k
};

// Block selection in front of attention (QSA). ratio 0: the layer attends to everything.
struct IndexerSpec {
  int heads = 0, dim = 0, ratio = 0, budget = 0;  // budget in cells
};

struct DeltaSpec {
  int key_heads = 0, value_heads = 0, dk = 0, dv = 0, conv_width = 0;
  HeadMapping mapping = HeadMapping::Grouped;
  Activation output_gate = Activation::Silu;
  int channels() const { return 2 * key_heads * dk + value_heads * dv; }
};

struct ExpertsSpec {
  int count = 0, used = 0, inner = 0, shared_inner = 0;  // shared_inner 0: no shared expert
  bool normalise = true;
  float scale = 1;
};

struct NgramSpec {
  NgramParams params;
  int width = 0;                                   // of a table row
  int conv_width = 0;                              // taps, dilation is N
  int order() const { return params.orders + 1; }  // N
};

enum class MixerKind { Attention, GatedDelta };
enum class MlpKind { Dense, Experts };

struct LayerSpec {
  MixerKind mixer = MixerKind::Attention;
  AttentionSpec attention;
  IndexerSpec indexer;
  MlpKind mlp = MlpKind::Dense;
  int inner = 0;   // of the dense MLP
  int ngram = -1;  // index into ModelSpec::ngrams of the module in front of the mixer
};

struct ModelSpec {
  std::string arch;  // as in the file
  std::string name;
  int64_t vocabulary = 0, hidden = 0;
  int64_t context = 0;  // positions the model was trained for, or to which RoPE scaling extends them
  float eps = 1e-6f;
  RopeParams rope;
  DeltaSpec delta;      // of every delta-net layer
  ExpertsSpec experts;  // of every layer with experts
  int streams = 1;      // hyper-connection streams; 1: plain residual
  int low_rank = 0;     // of the hyper-connection mixers
  std::vector<NgramSpec> ngrams;
  std::vector<LayerSpec> layers;  // the trunk, then the MTP blocks
  int mtp_layers = 0;

  int trunk_layers() const { return static_cast<int>(layers.size()) - mtp_layers; }
  bool hyper() const { return streams > 1; }
  // Values per token between layers: the plain residual, or all streams.
  int64_t residual_width() const { return hidden * streams; }
};

// Settings of a run that change the mathematics; a cache belongs to one value of them.
struct RopeOverride {
  std::string scaling;                                // empty: as the file says; none, linear, yarn
  double factor = 0, original_context = 0, base = 0;  // 0: as the file says
  double attention_factor = 0;                        // at most 0: as the file says
  double ext = -1;                                    // below 0: as the file says
  double beta_fast = 0, beta_slow = 0;                // at most 0: as the file says
};
// A longer context than this is refused: every position up to it is exact in f32, as the angles of RoPE need.
inline constexpr int64_t kMaxContext = int64_t{1} << 24;

// Reads and checks the metadata. Error{Model} naming the key, its value and what is possible; Error{Usage} for settings
// of a scaling that is not in use.
ModelSpec read_spec(const gguf::File& file, const RopeOverride& rope = {});

// Architectures that read_spec knows.
const std::vector<std::string>& known_architectures();

// One line for people: "qwen4exp, 8 layers (6 delta net, 2 QSA), hidden 320, 8 experts".
std::string describe(const ModelSpec& spec);

// "YaRN, scale 2: 262144 to 524288 positions, attention factor 1.0693"; empty without scaling. A stated attention
// factor is taken as it is, which is said.
std::string describe_rope(const ModelSpec& spec);

}  // namespace strata
