// What one sequence remembers: one state per layer (models.md, section 7). All tensors are f32 but where StateTypes says
// otherwise, and sized for a capacity in positions; memory that was never written costs nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "model/spec.h"

namespace strata {

// How states are stored. It is part of the result: other types give other text.
struct StateTypes {
  DType index_keys = DType::BF16;  // pooled keys of block-selected attention: f32 or bf16
};

struct LayerState {
  Tensor k, v;           // [capacity, kv_heads, head_dim], keys normed and rotated
  Tensor index_tail;     // [ratio, d]: raw index keys of the open block
  Tensor index_pooled;   // StateTypes::index_keys [capacity / ratio, d]
  Tensor delta;          // [value_heads, dk, dv]
  Tensor conv_history;   // [conv_width - 1, channels]: inputs before the convolution, oldest first
  Tensor ngram_history;  // [(conv_width - 1) · N, streams · H]
};

// Bytes of a sequence's states, by what they hold. What grows with the capacity: kv and pooled index keys.
struct StateBytes {
  uint64_t kv = 0, index = 0, delta = 0, convolution = 0, ngram = 0;
  uint64_t total() const { return kv + index + delta + convolution + ngram; }
};
// Without allocating any; total() as of SequenceState.
StateBytes state_bytes(const ModelSpec& spec, int64_t capacity, StateTypes types = {});

class SequenceState {
 public:
  SequenceState(const ModelSpec& spec, int64_t capacity, StateTypes types = {});  // Error{Memory}

  int64_t capacity() const { return capacity_; }
  uint64_t bytes() const;  // of all states at full capacity

  int64_t length = 0;      // positions in the trunk's states
  int64_t mtp_length = 0;  // cells in the MTP blocks' states
  Tensor ngram_context;    // i32 [N - 1]: the last tokens, oldest first; -1 before the start. Empty without n-grams
  std::vector<LayerState> layers;

 private:
  int64_t capacity_;
  std::vector<Buffer> buffers_;
};

}  // namespace strata
