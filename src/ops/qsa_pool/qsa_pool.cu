// A block of threads for each block of positions that the call completes, one at least: the first keeps the tail.
#include "device/kernel_math.h"
#include "ops/qsa_pool/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

// The raw key of a position: given now, or before.
__device__ inline const float* raw_key(const QsaPoolKernel& a, int64_t position) {
  return position >= a.first ? a.raw + (position - a.first) * a.raw_row : a.tail + position % a.ratio * a.tail_row;
}

__device__ inline void pool(const QsaPoolKernel& a) {
  auto* scratch = reinterpret_cast<float*>(shared_memory());
  float* key = scratch + threads() / kWave;
  const int64_t block = a.first / a.ratio + block_x(), start = block * a.ratio;
  float squares = 0;
  for (int64_t i = thread(); i < a.d; i += threads()) {
    float sum = raw_key(a, start)[i];
    for (int64_t p = start + 1; p < start + a.ratio; ++p) sum = add_f32(sum, raw_key(a, p)[i]);
    const float mean = div_f32(sum, static_cast<float>(a.ratio));
    key[i] = mean;
    squares = fma_f32(mean, mean, squares);
  }
  const float mean_square = div_f32(block_sum(squares, scratch), static_cast<float>(a.d));
  const float scale = div_f32(1.0f, sqrt_f32(add_f32(mean_square, a.eps)));
  for (int64_t i = thread(); i < a.d; i += threads()) key[i] = mul_f32(mul_f32(key[i], scale), a.weight[i]);
  barrier();
  for (int j = thread(); j < a.half; j += threads()) {
    const int at = a.adjacent != 0 ? 2 * j : j, partner = at + (a.adjacent != 0 ? 1 : a.half);
    double sine = 0, cosine = 0;
    sincos_f64(static_cast<double>(mul_f32(static_cast<float>(start), a.frequency[j])), sine, cosine);
    const float c = mul_f32(static_cast<float>(cosine), a.magnitude),
                s = mul_f32(static_cast<float>(sine), a.magnitude);
    const float x = key[at], y = key[partner];
    key[at] = mul_f32(x, c) - mul_f32(y, s);
    key[partner] = add_f32(mul_f32(x, s), mul_f32(y, c));
  }
  barrier();
  const int64_t row = (block - a.first_block) * a.pooled_row;
  for (int64_t i = thread(); i < a.d; i += threads()) {
    if (a.stored == 0)
      static_cast<float*>(a.pooled)[row + i] = key[i];
    else
      static_cast<uint16_t*>(a.pooled)[row + i] = a.stored == 1 ? bf16_of_f32(key[i]) : f16_of_f32(key[i]);
  }
}

// The last rows given, each in its slot.
__device__ inline void keep_tail(const QsaPoolKernel& a) {
  const int64_t kept = a.rows < a.ratio ? a.rows : a.ratio;
  int64_t slot = (a.first + a.rows - kept) % a.ratio;
  for (int64_t t = a.rows - kept; t < a.rows; ++t) {
    for (int64_t i = thread(); i < a.d; i += threads()) a.tail[slot * a.tail_row + i] = a.raw[t * a.raw_row + i];
    slot = slot + 1 == a.ratio ? 0 : slot + 1;
  }
}

}  // namespace

// Only the first block of positions has keys in the tail: its threads read them, then write the tail, each the dims
// that it has read.
extern "C" __global__ void qsa_pool_blocks(const QsaPoolKernel a) {
  if (block_x() < a.completed) pool(a);
  if (block_x() > 0) return;
  keep_tail(a);
}
