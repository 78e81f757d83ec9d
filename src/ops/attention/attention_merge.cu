// The splits of a row become its result. A block has 64 channels of a (row, head): four threads to a channel, which
// take every fourth split in ascending order; their four sums are added as a tree. Weights are made once for each
// split, against the largest maximum of all.
#include "ops/attention/device_cells.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = 256, kChannels = 64, kParts = kThreads / kChannels;
constexpr int kChunk = kMergeChunk, kAhead = 16;  // splits at a time, loads that a thread has under way

// ln x of a positive number, far more exact than f32.
__device__ double log_f64(float x) {
  uint32_t bits = bits_of_f32(x);
  int exponent = static_cast<int>(bits >> 23) - 127;
  float mantissa = f32_of_bits((bits & 0x7fffffu) | 0x3f800000u);
  if (mantissa > 1.41421356f) {
    mantissa *= 0.5f;
    ++exponent;
  }
  const double t = (static_cast<double>(mantissa) - 1) / (static_cast<double>(mantissa) + 1), square = t * t;
  double series = 0;
  for (int i = 19; i >= 1; i -= 2) series = series * square + 1.0 / i;
  return exponent * 0.69314718055994530942 + 2 * t * series;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) attention_merge(const AttentionKernel a) {
  auto* weights = reinterpret_cast<float*>(shared_memory());  // [kChunk]; -1: a split without a cell of weight
  float* parts_of_l = weights + kChunk;                       // [kChunk]
  float* sums = parts_of_l + kChunk;                          // [2, kThreads]
  const int heads = a.kv_heads * a.group, parts = (a.dim + kChannels - 1) / kChannels;
  const int64_t pair = block_x() / parts, row = pair / heads, head = pair % heads;
  const int channel = static_cast<int>(block_x() % parts) * kChannels + thread() % kChannels;
  const int part = thread() / kChannels;
  const int count = a.counts[row] < a.width ? a.counts[row] : a.width;
  const int splits = count <= 0 ? 0 : (count + kCellSplit - 1) / kCellSplit;
  const float *m = a.m + pair * a.splits, *l = a.l + pair * a.splits;
  const float* values = a.a + pair * a.splits * a.dim + (channel < a.dim ? channel : 0);
  float largest = minus_infinity();
  for (int j = thread(); j < splits; j += kThreads) largest = fmax_f32(m[j], largest);
  largest = wave_max(largest);
  if (lane() == 0) sums[wave_index()] = largest;
  barrier();
  for (int w = 0; w < kThreads / kWave; ++w) largest = fmax_f32(sums[w], largest);
  float sum = 0, total = 0;
  for (int first = 0; first < splits; first += kChunk) {
    const int end = first + kChunk < splits ? first + kChunk : splits;
    barrier();
    for (int i = thread(); i < kChunk; i += kThreads) {
      const int j = first + i < end ? first + i : end - 1;
      weights[i] = first + i >= end || m[j] == minus_infinity() ? -1.0f : exp_f32(m[j] - largest);
      parts_of_l[i] = l[j];
    }
    barrier();
    for (int next = first + part; next < end; next += kAhead * kParts) {
      float value[kAhead];
      STRATA_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int j = next + i * kParts;
        value[i] = values[int64_t{j < end ? j : end - 1} * a.dim];
      }
      STRATA_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const float weight = weights[next + i * kParts - first];
        const float more = fma_f32(parts_of_l[next + i * kParts - first], weight, total);
        const float next_sum = fma_f32(value[i], weight, sum);
        total = weight < 0 ? total : more;
        sum = weight < 0 ? sum : next_sum;
      }
    }
  }
  barrier();
  sums[thread()] = sum;
  sums[kThreads + thread()] = total;
  barrier();
  if (part != 0) return;
  auto tree = [&](const float* x) { return (x[0] + x[kChannels]) + (x[2 * kChannels] + x[3 * kChannels]); };
  sum = tree(sums + thread());
  total = tree(sums + kThreads + thread());
  const bool none = total == 0;
  if (channel < a.dim) a.out[row * a.out_row + head * a.out_head + channel] = none ? 0.0f : div_f32(sum, total);
  if (a.lse == nullptr || channel != 0) return;
  const bool number = total > 0 && total <= 3.4028234e38f;
  const double log = number ? log_f64(total) : static_cast<double>(total);  // infinity and NaN stay
  a.lse[row * a.lse_row + head] = none ? minus_infinity() : static_cast<float>(static_cast<double>(largest) + log);
}
