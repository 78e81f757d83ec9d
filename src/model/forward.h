// The forward pass of every family: walks the spec and calls operators.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/arena.h"
#include "device/device.h"
#include "model/model.h"
#include "model/state.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {

enum class MtpHiddenNorm {
  Joint,      // one RMS over all streams
  PerStream,  // one RMS per stream
};

struct ForwardOptions {
  QsaSemantics qsa = QsaSemantics::Blocks;
  MtpHiddenNorm mtp_hidden_norm = MtpHiddenNorm::Joint;  // models.md, section 6: disputed; only acceptance is affected
  // Called with intermediate values, for tests and tools: name, layer (-1 outside layers), tensor.
  std::function<void(const char*, int, const Tensor&)> observe;
};

class Forward {
 public:
  Forward(const Model& model, Queue& queue, ForwardOptions options = {});

  // Runs tokens at positions state.length .. state.length + n - 1 and advances the state. Rows are independent of the
  // number of tokens per call: any split gives the same bits. Error{Argument} before anything is written when a token
  // id is outside the vocabulary or the state is full.
  //   logits [rows, V] f32: of the last `rows` tokens; empty for none.
  //   tap [n, streams · H] f32: what an MTP block reads for each token; empty for none.
  void run(std::span<const int32_t> tokens, SequenceState& state, const Tensor& logits, const Tensor& tap = {});

  // One step of MTP block 0 for n pairs (tap of position p, token of position p + 1), at positions first .. first + n -
  // 1 of p. Logits [rows, V] propose the token of position p + 2 for the last `rows` pairs. next_tap [n, streams · H]
  // feeds the next draft step. Error{Model} when the model has no MTP block.
  void draft(const Tensor& tap, std::span<const int32_t> tokens, int64_t first, SequenceState& state,
             const Tensor& logits, const Tensor& next_tap = {});

  const ModelSpec& spec() const { return spec_; }
  Queue& queue() { return queue_; }

 private:
  // Rows of one call and their positions, shared by its layers.
  struct Batch {
    int64_t rows = 0, first = 0;
    Tensor ids;       // i32 [rows]
    Tensor cos, sin;  // f32 [rows, R/2]
    Tensor n_kv;      // i32 [rows]: cells visible to each row
  };
  Batch make_batch(std::span<const int32_t> tokens, int64_t first_cell, int64_t first_position);
  void layer(size_t index, const Batch& batch, SequenceState& state, const Tensor& x);
  void ngram(const LayerSpec& layer, const NgramWeights& w, const Batch& batch, SequenceState& state,
             LayerState& layer_state, const Tensor& x, int index);
  void attend(const LayerSpec& layer, const AttentionWeights& w, const Batch& batch, LayerState& state, const Tensor& u,
              const Tensor& out);
  void attend_selected(const LayerSpec& layer, const AttentionWeights& w, const Batch& batch, LayerState& state,
                       const Tensor& u, const Tensor& q, const Tensor& out);
  void delta_net(const DeltaWeights& w, const Batch& batch, LayerState& state, const Tensor& u, const Tensor& out);
  void dense_mlp(const DenseWeights& w, const Tensor& u, const Tensor& out);
  void expert_mlp(const ExpertWeights& w, const Tensor& u, const Tensor& out, int index);
  // Mean of the gated, normed streams; inject gets the write gates when given.
  void hyper_input(const HyperWeights& w, const Tensor& x, const Tensor& u, const Tensor& inject);

  void apply(const Linear& map, const Tensor& x, const Tensor& y, float scale = 1);
  void apply_norm(const Tensor& x, const Tensor& weight, const Tensor& y);
  void observe(const char* name, int index, const Tensor& value) const {
    if (options_.observe) options_.observe(name, index, value);
  }

  const ModelSpec& spec_;
  const Weights& weights_;
  Queue& queue_;
  ForwardOptions options_;
  RopeFrequencies rope_;
  Arena arena_;
};

}  // namespace strata
