// Choice of experts for each token. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct RouteArgs {
  Tensor logits;          // f32 [rows, experts]
  bool normalise = true;  // weights divided by their sum (at least 6.1e-5)
  float scale = 1;        // multiplies the weights at the end
  Tensor ids;             // i32 [rows, k]: experts by falling probability, ties by the lower index
  Tensor weights;         // f32 [rows, k]
};

void route(Queue& queue, const RouteArgs& args);

// Probabilities in float64; the choice by the f32 logits (softmax keeps their order).
void route_oracle(const RouteArgs& args, int32_t* ids, double* weights);
// Bound on |error| of every weight (README.md, Error): [rows, k]. The ids have none.
void route_bound(const RouteArgs& args, double* out);

}  // namespace strata
