// The splits of a row become its result. A block has 64 channels of a (row, head), four to a thread: sixteen threads to
// the same channels, which take every sixteenth split in ascending order; their sums are added as a tree. Weights are
// made once for each split, against the largest maximum of all.
#include "ops/attention/device_cells.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = 256, kChannels = 64, kEach = 4, kParts = kThreads * kEach / kChannels;
constexpr int kChunk = kMergeChunk, kAhead = 8;  // splits at a time, loads that a thread has under way
static_assert(kMergeShared == (2 * kChunk + kThreads * kEach + kParts) * 4);

// `four` channels of a row of `dim` from `channel` on.
__device__ Float4 load_channels(const float* row, int channel, int dim) {
  if (dim % kEach == 0) return load_float4(row + channel);
  Float4 four{};
  STRATA_UNROLL
  for (int i = 0; i < kEach; ++i)
    if (channel + i < dim) four.v[i] = row[channel + i];
  return four;
}
__device__ float tree_of(const float* x, int stride) {
  float sum[kParts];
  STRATA_UNROLL
  for (int i = 0; i < kParts; ++i) sum[i] = x[i * stride];
  STRATA_UNROLL
  for (int step = 1; step < kParts; step *= 2) STRATA_UNROLL
  for (int i = 0; i < kParts; i += 2 * step) sum[i] += sum[i + step];
  return sum[0];
}

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
  float* sums = parts_of_l + kChunk;                          // [kParts, kChannels]
  float* totals = sums + kParts * kChannels;                  // [kParts]
  const int heads = a.kv_heads * a.group, parts = (a.dim + kChannels - 1) / kChannels;
  const int64_t pair = block_x() / parts, row = pair / heads, head = pair % heads;
  const int first_channel = static_cast<int>(block_x() % parts) * kChannels;
  const int own = thread() % (kChannels / kEach) * kEach, part = thread() / (kChannels / kEach);
  const bool inside = first_channel + own < a.dim;
  const int count = a.counts[row] < a.width ? a.counts[row] : a.width;
  const int splits = count <= 0 ? 0 : (count + kCellSplit - 1) / kCellSplit;
  const float *m = a.m + pair * a.splits, *l = a.l + pair * a.splits, *values = a.a + pair * a.splits * a.dim;
  const int channel = inside ? first_channel + own : 0;
  float largest = minus_infinity();
  for (int j = thread(); j < splits; j += kThreads) largest = fmax_f32(m[j], largest);
  largest = wave_max(largest);
  if (lane() == 0) sums[wave_index()] = largest;
  barrier();
  for (int w = 0; w < kThreads / kWave; ++w) largest = fmax_f32(sums[w], largest);
  float sum[kEach] = {}, total = 0;
  for (int first = 0; first < splits; first += kChunk) {
    const int end = first + kChunk < splits ? first + kChunk : splits;
    barrier();
    for (int i = thread(); i < kChunk && first + i < end; i += kThreads) {
      const int j = first + i;
      weights[i] = m[j] == minus_infinity() ? -1.0f : exp_f32(m[j] - largest);
      parts_of_l[i] = l[j];
    }
    barrier();
    for (int next = first + part; next < end; next += kAhead * kParts) {
      Float4 value[kAhead];
      STRATA_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int j = next + i * kParts;
        value[i] = load_channels(values + int64_t{j < end ? j : end - 1} * a.dim, channel, a.dim);
      }
      STRATA_UNROLL
      for (int i = 0; i < kAhead; ++i) {
        const int j = next + i * kParts;
        const float weight = j < end ? weights[j - first] : -1.0f;
        if (weight < 0) continue;
        total = fma_f32(parts_of_l[j - first], weight, total);
        STRATA_UNROLL
        for (int c = 0; c < kEach; ++c) sum[c] = fma_f32(value[i].v[c], weight, sum[c]);
      }
    }
  }
  barrier();
  store_float4(sums + part * kChannels + own, {{sum[0], sum[1], sum[2], sum[3]}});
  if (own == 0) totals[part] = total;
  barrier();
  if (thread() >= kChannels) return;
  const int to = first_channel + thread();
  total = tree_of(totals, 1);
  const bool none = total == 0;
  if (to < a.dim)
    a.out[row * a.out_row + head * a.out_head + to] = none ? 0.0f : div_f32(tree_of(sums + thread(), kChannels), total);
  if (a.lse == nullptr || to != 0) return;
  const bool number = total > 0 && total <= 3.4028234e38f;
  const double log = number ? log_f64(total) : static_cast<double>(total);  // infinity and NaN stay
  a.lse[row * a.lse_row + head] = none ? minus_infinity() : static_cast<float>(static_cast<double>(largest) + log);
}
