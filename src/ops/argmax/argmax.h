// The most likely token of each row. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct ArgmaxArgs {
  Tensor logits;   // f32 [rows, V], rows may be strided
  Tensor allowed;  // i32 [(V + 31) / 32], optional: bit i % 32 of word i / 32 says whether i may be chosen
  Tensor ids;      // i32 [rows, 1]
};

inline constexpr int32_t kNoneAllowed = -1;
// Of a row with a logit that is not finite: minus two minus the first such id.
inline constexpr int32_t not_finite_at(int64_t id) { return static_cast<int32_t>(-2 - id); }

void argmax(Queue& queue, const ArgmaxArgs& args);

void argmax_oracle(const ArgmaxArgs& args, double* out);  // [rows]

}  // namespace strata
