// The forward pass of every family: walks the spec and calls operators.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/arena.h"
#include "device/device.h"
#include "model/model.h"
#include "model/sequence.h"
#include "ops/qsa_select/qsa_select.h"
#include "ops/weight_dot/rounded.h"

namespace strata {

class SideBySide;

enum class MtpHiddenNorm {
  Joint,      // one RMS over all streams
  PerStream,  // one RMS per stream
};

struct ForwardOptions {
  QsaSemantics qsa = QsaSemantics::Blocks;
  // Of products with weights on the CPU: quantised weights may meet rounded ones. Accelerators take them as they are.
  Activations activations = Activations::F32;
  MtpHiddenNorm mtp_hidden_norm = MtpHiddenNorm::Joint;  // models.md, section 6: disputed; only acceptance is affected
  // Called with intermediate values, for tests and tools: name, layer (-1 outside layers), tensor.
  std::function<void(const char*, int, const Tensor&)> observe;
};

// Tokens that one call runs at the end of one sequence.
struct Segment {
  Sequence* sequence = nullptr;
  std::span<const int32_t> tokens;
  Tensor logits{};  // f32 [r, V]: of the last r tokens; empty for none
  Tensor tap{};     // f32 [tokens, streams · H]: what an MTP block reads for each token; empty for none
  // The first so many of the tokens will never be taken back by Sequence::truncate; -1: all. Nor will any token of an
  // earlier call. The results do not depend on it.
  int64_t certain = -1;
  // i32 [r, 1]: of the last r tokens the most likely one to follow, among those that allow() names, as argmax gives it
  // (ops/argmax); empty for none. With logits too, r is the same.
  Tensor greedy{};
  Tensor hidden{};  // f32 [r, H]: of the last r tokens what the head reads; empty for none
};

class Forward {
 public:
  Forward(const Model& model, Queue& queue, ForwardOptions options = {});

  // Runs the tokens of every segment at positions length .. length + n - 1 of its sequence, and advances the sequences.
  // Rows are independent of each other's company: any split into calls and any mixture of sequences gives the same
  // bits. A sequence may stand in one segment only. Before anything is written: Error{Argument} when a token id is
  // outside the vocabulary, a sequence is full or its window does not hold the tokens that are not certain,
  // Error{Memory} when the pool is full.
  void run(std::span<const Segment> segments);
  void run(std::span<const int32_t> tokens, Sequence& sequence, const Tensor& logits, const Tensor& tap = {});

  // Applies what a sequence keeps of tokens that were not certain: the last call's can no longer be taken back, and
  // Sequence::hash() and save() are allowed. Error{Memory} before anything is written.
  void settle(Sequence& sequence);

  // One step of MTP block 0 for n pairs (tap of position p, token of position p + 1), at positions first .. first + n -
  // 1 of p. Logits [rows, V] propose the token of position p + 2 for the last `rows` pairs. next_tap [n, streams · H]
  // feeds the next draft step. Error{Model} when the model has no MTP block.
  void draft(const Tensor& tap, std::span<const int32_t> tokens, int64_t first, Sequence& sequence,
             const Tensor& logits, const Tensor& next_tap = {});

  // Which tokens Segment::greedy may name; every one before the first call.
  void allow(const std::function<bool(int32_t)>& allowed);

  const ModelSpec& spec() const { return spec_; }
  Queue& queue() { return queue_; }
  uint64_t scratch_bytes() const { return arena_.bytes(); }  // taken for intermediate values so far

 private:
  // The rows of one sequence in a batch.
  struct Part {
    Sequence* sequence = nullptr;
    int64_t row = 0, rows = 0;
    int64_t first = 0;    // cell of the first row: how many the layer's caches hold before
    int64_t certain = 0;  // rows that will never be taken back

    Tensor of(const Tensor& batch) const { return batch.slice(row, rows); }
  };
  struct Inputs {
    Tensor ids;       // i32 [rows]
    Tensor cos, sin;  // f32 [rows, R/2]
    Tensor n_kv;      // i32 [rows]: cells visible to each row
    Tensor scored;    // i32 [indexers, rows]: cells whose blocks are scored, 0 where all of them are selected
  };
  // Rows of one call and their positions, shared by its layers.
  struct Batch {
    int64_t rows = 0;
    std::vector<Part> parts;
    // What the host knows about the rows: where it writes it, and where operators read it.
    Inputs given, in;
  };
  Batch make_batch(std::span<const Segment> segments);
  Inputs inputs_at(char* memory, int64_t rows, size_t& bytes) const;  // memory may be null
  void take_memory(Batch& batch);                                     // for what every row has
  void set_positions(Batch& batch, const Part& part, std::span<const int32_t> tokens, int64_t first_position);
  void send(const Batch& batch);
  void finish(const Batch& batch, std::span<const Segment> segments, const Tensor& x);
  void layer(size_t index, const Batch& batch, const Tensor& x);
  void ngram(const LayerSpec& layer, const NgramWeights& w, const Batch& batch, const Tensor& x, int index);
  void attend(size_t index, const AttentionWeights& w, const Batch& batch, const Tensor& u, const Tensor& out);
  void attend_selected(const LayerSpec& layer, const Batch& batch, const Part& part, LayerCaches& caches,
                       const Tensor& index_q, const Tensor& q, const Tensor& out);
  void index_keys(const LayerSpec& layer, const AttentionWeights& w, const Part& part, LayerCaches& caches,
                  const Tensor& raw);
  void delta_net(size_t index, const DeltaWeights& w, const Batch& batch, const Tensor& u, const Tensor& out);
  // The rows of `wide`, the first of which are for those that the state has pending. Takes the others in.
  struct SerialDelta {
    DeltaState* state;
    DeltaState::Rows wide;
    int64_t certain;
    Tensor read;
  };
  void delta_serial(std::span<const SerialDelta> parts);
  void delta_anchored(DeltaState& state, const DeltaState::Rows& rows, int64_t first, const Tensor& read);
  void dense_mlp(const DenseWeights& w, const Tensor& u, const Tensor& out);
  void expert_mlp(const ExpertWeights& w, const Tensor& u, const Tensor& out, int index);
  void head_input(const Tensor& wide, const Tensor& out);
  // Mean of the gated, normed streams; inject gets the write gates when given.
  void hyper_input(const HyperWeights& w, const Tensor& x, const Tensor& u, const Tensor& inject);

  Activations activations() const;  // of products on this queue
  void apply(const Linear& map, const Tensor& x, const Tensor& y, float scale = 1);
  void apply_norm(const Tensor& x, const Tensor& weight, const Tensor& y);
  void observe(const char* name, int index, const Tensor& value) const;
  size_t indexer_of(const LayerSpec& layer) const;
  // The caller's tensors lie in host memory. Where operators write one of them, and after the pass: bring them there.
  Tensor result(const Tensor& host);
  void deliver();

  const ModelSpec& spec_;
  const Weights& weights_;
  Queue& queue_;
  std::shared_ptr<const SideBySide> beside_;
  ForwardOptions options_;
  RopeFrequencies rope_;
  SpaceMemory choices_;  // a bit for each token that may be named
  Arena arena_;
  std::vector<IndexerSpec> indexers_;  // that differ in what is scored
  std::vector<char> staging_;          // inputs on their way to an accelerator
  struct Result {
    Tensor from, to;
  };
  std::vector<Result> results_;  // of the pass under way
};

}  // namespace strata
