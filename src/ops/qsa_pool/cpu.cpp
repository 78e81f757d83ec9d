#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/fmath.h"
#include "ops/qsa_pool/qsa_pool.h"
#include "ops/rope/rotate.h"

namespace strata {
namespace {

// Mean over the block in order of position, RMS norm, rotation at the block's first position.
void pool_block(const QsaPoolArgs& args, int64_t block, float* cos_row, float* sin_row) {
  const int64_t d = args.raw.extent(1), ratio = args.tail.extent(0);
  float* key = args.pooled.row<float>(block);
  std::memcpy(key, args.tail.row<float>(0), static_cast<size_t>(d) * sizeof(float));
  for (int64_t slot = 1; slot < ratio; ++slot) {
    const float* raw = args.tail.row<const float>(slot);
    for (int64_t i = 0; i < d; ++i) key[i] += raw[i];
  }
  for (int64_t i = 0; i < d; ++i) key[i] /= static_cast<float>(ratio);
  const float scale = 1.0f / std::sqrt(sum_squares_f32(key, d) / static_cast<float>(d) + args.eps);
  for (int64_t i = 0; i < d; ++i) key[i] = key[i] * scale * args.weight.f32()[i];
  args.rope->angles(block * ratio, cos_row, sin_row);
  rotate_head(key, cos_row, sin_row, args.rope->rotary_dims() / 2, args.rope->pairs);
}

}  // namespace

void qsa_pool_portable(Queue&, const QsaPoolArgs& args) {
  const int64_t d = args.raw.extent(1), ratio = args.tail.extent(0);
  std::vector<float> angles(static_cast<size_t>(args.rope->rotary_dims()));
  for (int64_t t = 0; t < args.raw.extent(0); ++t) {
    const int64_t position = args.first + t, slot = position % ratio;
    std::memcpy(args.tail.row<float>(slot), args.raw.row<float>(t), static_cast<size_t>(d) * sizeof(float));
    if (slot == ratio - 1)
      pool_block(args, position / ratio, angles.data(), angles.data() + args.rope->rotary_dims() / 2);
  }
}

}  // namespace strata
