// The tensors of a synthetic model: names, shapes and how their values are drawn.
#pragma once

#include <string>
#include <vector>

#include "model/synth.h"
#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {

enum class SynthFill {
  Matrix,   // mean 0, standard deviation `spread`
  Norm,     // spread · (0.9 .. 1.1)
  Decay,    // ssm_a: -(0.5 .. 16), evenly in the logarithm
  TimeStep  // ssm_dt.bias: softplus of it is 0.001 .. 0.1, evenly in the logarithm
};

struct SynthTensor {
  std::string name;
  std::vector<uint64_t> ne;
  SynthFill fill = SynthFill::Matrix;
  double spread = 1;
};

struct SynthFamily {
  bool experts, hybrid, hyper, qk_norm;
};
SynthFamily synth_family(const SynthShape& shape);

// Layers that are delta net. All of the trunk, in order.
std::vector<bool> synth_recurrent(const SynthShape& shape);
inline int rotary_dims(const SynthShape& shape, const SynthFamily& family) {
  if (shape.rotary > 0) return shape.rotary;
  return family.hybrid ? shape.head_dim / 4 : shape.head_dim;
}

// ngram: the constants of the one module, or empty head sizes.
std::vector<SynthTensor> synth_tensors(const SynthShape& shape, const NgramParams& ngram);

}  // namespace strata
