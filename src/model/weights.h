// The tensors of a model, bound to the places where the forward pass uses them. Large ones are views of the mapped
// file; every shape was compared with the spec when it was bound.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "gguf/gguf.h"
#include "model/spec.h"

namespace strata {

// A linear map [out, in], in one or several row ranges of file tensors (fused and regrouped layouts).
struct Linear {
  struct Part {
    Tensor weight;       // [rows, in]
    int64_t column = 0;  // first output column of these rows
  };
  std::vector<Part> parts;
  int64_t out = 0;
  float scale = 1;
  Tensor bias;  // f32 [out], optional
  bool empty() const { return parts.empty(); }
};

struct AttentionWeights {
  Linear q, k, v, output;             // q [heads · dim, H], gated: [heads · 2 dim, H]
  Tensor q_norm, k_norm;              // f32 [dim]
  Linear index_q, index_k;            // [index heads · d, H], [d, H]
  Tensor index_q_norm, index_k_norm;  // f32 [d]
};

struct DeltaWeights {
  Linear qkv;          // [channels, H]: all q, all k, all v
  Linear z;            // [value heads · dv, H]
  Linear beta, alpha;  // [value heads, H]
  Tensor conv;         // f32 [channels, width]
  Tensor dt_bias, a;   // f32 [value heads]
  Tensor norm;         // f32 [dv]
  Linear output;       // [H, value heads · dv]
};

struct DenseWeights {
  Linear gate, up, down;  // [I, H], [I, H], [H, I]
};

struct ExpertWeights {
  Linear router;                            // [E, H]
  Tensor gate, up, down;                    // [E, I, H], [E, I, H], [E, H, I]
  Tensor gate_scale, up_scale, down_scale;  // f32 [E], optional
  Linear shared_gate;                       // [1, H]
  DenseWeights shared;
};

// Read gates of hyper-connections, and the write gate (absent in a final mixer).
struct HyperWeights {
  Tensor norm;      // f32 [streams, H]
  Linear down, up;  // [l, n · H], [n · H, l]
  Linear inject;    // [n, n · H]
};

struct NgramWeights {
  Linear key, value;                       // [n · H, heads · width], [H, heads · width]
  Tensor norm_key, norm_query, norm_conv;  // f32 [n, H]
  Tensor conv;                             // f32 [n · H, width]
};

struct LayerWeights {
  Tensor attention_norm, mlp_norm;  // f32 [H], plain residual
  HyperWeights attention_hyper, mlp_hyper;
  AttentionWeights attention;
  DeltaWeights delta;
  DenseWeights dense;
  ExpertWeights experts;
  NgramWeights ngram;
};

struct MtpWeights {
  Linear merge;           // eh_proj [H, 2H]: columns of the embedding first
  Tensor embedding_norm;  // f32 [H]
  Tensor hidden_norm;     // f32 [H], or [streams, H]
  Tensor head_norm;       // f32 [H]: own, or the trunk's
  Tensor table;           // own embedding, or the trunk's
  Linear head;            // own head, or the trunk's
  HyperWeights mixer;     // own final mixer (hyper-connections)
};

struct Weights {
  Tensor table;  // token embedding [V, H]
  Linear head;   // [V, H]; the table itself when tied
  bool tied = false;
  Tensor output_norm;  // f32 [H], plain residual
  HyperWeights output_mixer;
  Tensor ngram_table;  // [rows, width]
  std::vector<LayerWeights> layers;
  std::vector<MtpWeights> mtp;
  std::vector<Buffer> owned;  // small tensors that were decoded to f32
};

// Error{Model} naming the first tensor that is missing or has the wrong shape. Sets rope.pair_factors of the spec when
// the file has them.
Weights bind_weights(const gguf::File& file, ModelSpec& spec);

}  // namespace strata
