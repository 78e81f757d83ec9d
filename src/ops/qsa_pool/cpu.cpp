#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/fault.h"
#include "base/fmath.h"
#include "base/half.h"
#include "ops/qsa_pool/qsa_pool.h"
#include "ops/rope/rotate.h"

namespace strata {
namespace {

struct Scratch {
  explicit Scratch(const QsaPoolArgs& args)
      : key(static_cast<size_t>(args.raw.extent(1))), angles(static_cast<size_t>(args.rope->rotary_dims())) {}
  std::vector<float> key, angles;
};

void store_key(const Tensor& pooled, int64_t block, const std::vector<float>& key) {
  if (pooled.dtype == DType::F32)
    std::copy(key.begin(), key.end(), pooled.row<float>(block));
  else
    std::transform(key.begin(), key.end(), pooled.row<uint16_t>(block),
                   pooled.dtype == DType::BF16 ? f32_to_bf16 : f32_to_f16);
}

// Mean over the block in order of position, RMS norm, rotation at the block's first position, rounding.
void pool_block(const QsaPoolArgs& args, int64_t block, Scratch& scratch) {
  const int64_t d = args.raw.extent(1), ratio = args.tail.extent(0), half = args.rope->rotary_dims() / 2;
  float* key = scratch.key.data();
  std::memcpy(key, args.tail.row<float>(0), static_cast<size_t>(d) * sizeof(float));
  for (int64_t slot = 1; slot < ratio; ++slot) {
    const float* raw = args.tail.row<const float>(slot);
    for (int64_t i = 0; i < d; ++i) key[i] += raw[i];
  }
  for (int64_t i = 0; i < d; ++i) key[i] /= static_cast<float>(ratio);
  const float scale = 1.0f / std::sqrt(sum_squares_f32(key, d) / static_cast<float>(d) + args.eps);
  for (int64_t i = 0; i < d; ++i) key[i] = key[i] * scale * args.weight.f32()[i];
  const int64_t position = block * ratio + (fault(Fault::RopeAtLastCell) ? ratio - 1 : 0);
  args.rope->angles(position, scratch.angles.data(), scratch.angles.data() + half);
  rotate_head(key, scratch.angles.data(), scratch.angles.data() + half, half, args.rope->pairs);
  if (fault(Fault::DropLane))
    for (int64_t i = 5; i < d; i += 16) key[i] = 0;
  store_key(args.pooled, block - args.first_block, scratch.key);
}

}  // namespace

void qsa_pool_portable(Queue&, const QsaPoolArgs& args) {
  const int64_t d = args.raw.extent(1), ratio = args.tail.extent(0);
  Scratch scratch(args);
  for (int64_t t = 0; t < args.raw.extent(0); ++t) {
    const int64_t position = args.first + t, slot = position % ratio;
    std::memcpy(args.tail.row<float>(slot), args.raw.row<float>(t), static_cast<size_t>(d) * sizeof(float));
    if (slot == ratio - 1) pool_block(args, position / ratio, scratch);
  }
}

}  // namespace strata
