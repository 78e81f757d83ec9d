// Loops that keep one unit of the device busy. The sums are written only when they have a value that they never have,
// so that no compiler leaves them out.
#include "device/kernel.h"
#include "evidence/device_ceiling_arguments.h"

using namespace strata;
using namespace strata::gpu;

__extension__ typedef unsigned __int128 Word;  // in registers, on every compiler

extern "C" __global__ void ceiling_copy(const CeilingKernel a) {
  const int64_t step = blocks_x() * threads();
  const int64_t first = block_x() * threads() + thread();
  const auto* from = static_cast<const Word*>(a.from);
  auto* to = static_cast<Word*>(a.to);
  for (int64_t i = first; i < a.words; i += 4 * step) {
    Word word[4] = {};
    for (int k = 0; k < 4; ++k)
      if (i + k * step < a.words) word[k] = from[i + k * step];
    for (int k = 0; k < 4; ++k)
      if (i + k * step < a.words) to[i + k * step] = word[k];
  }
}

extern "C" __global__ void ceiling_read(const CeilingKernel a) {
  const int64_t step = blocks_x() * threads();
  const int64_t first = block_x() * threads() + thread();
  const auto* from = static_cast<const Bits16*>(a.from);
  uint32_t sum = 0;
  for (int64_t i = first; i < a.words; i += 8 * step) {
    Bits16 word[8];
    for (int k = 0; k < 8; ++k)
      if (i + k * step < a.words) word[k] = from[i + k * step];
    for (int k = 0; k < 8; ++k)
      if (i + k * step < a.words) sum += word[k].word[0] ^ word[k].word[1] ^ word[k].word[2] ^ word[k].word[3];
  }
  if (sum == 0x9e3779b9u && a.turns < 0) static_cast<uint32_t*>(a.to)[0] = sum;
}

extern "C" __global__ void ceiling_f32(const CeilingKernel a) {
  float sum[8];
  for (int k = 0; k < 8; ++k) sum[k] = static_cast<float>(thread() + k);
  const float x = 0.999f, y = 1e-3f;
  for (int64_t i = 0; i < a.turns; ++i)
    for (int k = 0; k < 8; ++k) sum[k] = fma_f32(sum[k], x, y);
  float all = 0;
  for (int k = 0; k < 8; ++k) all += sum[k];
  if (all == -1.0f) static_cast<float*>(a.to)[0] = all;
}
