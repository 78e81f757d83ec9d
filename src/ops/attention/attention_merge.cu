// The splits of a row become its result: four threads to a channel, which take every fourth split in ascending order;
// their four sums are added as a tree. Weights are made against the largest maximum of all, a few splits at a time, so
// that shared memory does not grow with them. attention_merge: a block has 64 channels of a (row, head).
// attention_merge_quads: all of them up to 256, four to a thread, in pieces of 16 bytes. The same bits.
#include "ops/attention/device_cells.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = 256, kChannels = 64, kParts = kMergeParts;
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

// A (row, head) and its splits.
struct Pair {
  int64_t row, head;
  int splits;
  const float *m, *l, *a;

  __device__ Pair(const AttentionKernel& a_, int64_t pair) {
    const int heads = a_.kv_heads * a_.group;
    row = pair / heads;
    head = pair % heads;
    const int count = a_.counts[row] < a_.width ? a_.counts[row] : a_.width;
    splits = count <= 0 ? 0 : (count + kCellSplit - 1) / kCellSplit;
    m = a_.m + pair * a_.splits;
    l = a_.l + pair * a_.splits;
    a = a_.a + pair * a_.splits * a_.dim;
  }
};

// In every thread; `room`: a float for each wave.
__device__ inline float largest_of(const Pair& pair, float* room) {
  float largest = minus_infinity();
  for (int j = thread(); j < pair.splits; j += threads()) largest = fmax_f32(pair.m[j], largest);
  largest = wave_max(largest);
  if (lane() == 0) room[wave_index()] = largest;
  barrier();
  for (int w = 0; w < threads() / kWave; ++w) largest = fmax_f32(room[w], largest);
  return largest;
}

// Of splits first .. end - 1; -1: a split without a cell of weight, and those behind.
__device__ inline void make_weights(const Pair& pair, float largest, int first, int end, float* weights,
                                    float* parts_of_l) {
  barrier();
  for (int i = thread(); i < kChunk; i += threads()) {
    const int j = first + i < end ? first + i : end - 1;
    weights[i] = first + i >= end || pair.m[j] == minus_infinity() ? -1.0f : exp_f32(pair.m[j] - largest);
    parts_of_l[i] = pair.l[j];
  }
  barrier();
}

__device__ inline float tree(const float* x, int step) { return (x[0] + x[step]) + (x[2 * step] + x[3 * step]); }

__device__ inline void store_lse(const AttentionKernel& a, const Pair& pair, float largest, float total) {
  const bool number = total > 0 && total <= 3.4028234e38f;
  const double log = number ? log_f64(total) : static_cast<double>(total);  // infinity and NaN stay
  a.lse[pair.row * a.lse_row + pair.head] =
      total == 0 ? minus_infinity() : static_cast<float>(static_cast<double>(largest) + log);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) attention_merge(const AttentionKernel a) {
  auto* weights = reinterpret_cast<float*>(shared_memory());  // [kChunk]
  float* parts_of_l = weights + kChunk;                       // [kChunk]
  float* sums = parts_of_l + kChunk;                          // [2, kThreads]
  const int parts = (a.dim + kChannels - 1) / kChannels;
  const Pair pair(a, block_x() / parts);
  const int channel = static_cast<int>(block_x() % parts) * kChannels + thread() % kChannels;
  const int part = thread() / kChannels;
  const float* values = pair.a + (channel < a.dim ? channel : 0);
  const float largest = largest_of(pair, sums);
  float sum = 0, total = 0;
  for (int first = 0; first < pair.splits; first += kChunk) {
    const int end = first + kChunk < pair.splits ? first + kChunk : pair.splits;
    make_weights(pair, largest, first, end, weights, parts_of_l);
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
  sum = tree(sums + thread(), kChannels);
  total = tree(sums + kThreads + thread(), kChannels);
  if (channel < a.dim)
    a.out[pair.row * a.out_row + pair.head * a.out_head + channel] = total == 0 ? 0.0f : div_f32(sum, total);
  if (a.lse != nullptr && channel == 0) store_lse(a, pair, largest, total);
}

// dim is a multiple of four. Shared memory as above, with five sums for each of kThreads threads.
extern "C" __global__ void __launch_bounds__(256) attention_merge_quads(const AttentionKernel a) {
  constexpr int kQuadsAhead = 4;
  auto* weights = reinterpret_cast<float*>(shared_memory());
  float* parts_of_l = weights + kChunk;
  float* sums = parts_of_l + kChunk;  // [4 channels and the total, part, quad]
  const int parts = (a.dim + kMergeQuads * 4 - 1) / (kMergeQuads * 4);
  const int quads = a.dim < kMergeQuads * 4 ? a.dim / 4 : kMergeQuads, step = quads * kParts;
  const Pair pair(a, block_x() / parts);
  const int part = thread() / quads, quad = thread() % quads;  // threads behind the last part make weights alone
  const int channel = (static_cast<int>(block_x() % parts) * kMergeQuads + quad) * 4;
  const float* values = pair.a + (channel < a.dim ? channel : 0);
  const float largest = largest_of(pair, sums);
  float sum[4] = {}, total = 0;
  for (int first = 0; first < pair.splits; first += kChunk) {
    const int end = first + kChunk < pair.splits ? first + kChunk : pair.splits;
    make_weights(pair, largest, first, end, weights, parts_of_l);
    for (int next = first + part; part < kParts && next < end; next += kQuadsAhead * kParts) {
      Float4 value[kQuadsAhead];
      STRATA_UNROLL
      for (int i = 0; i < kQuadsAhead; ++i) {
        const int j = next + i * kParts;
        value[i] = load_float4(values + int64_t{j < end ? j : end - 1} * a.dim);
      }
      STRATA_UNROLL
      for (int i = 0; i < kQuadsAhead; ++i) {
        const float weight = weights[next + i * kParts - first];
        const float more = fma_f32(parts_of_l[next + i * kParts - first], weight, total);
        total = weight < 0 ? total : more;
        STRATA_UNROLL
        for (int c = 0; c < 4; ++c) sum[c] = weight < 0 ? sum[c] : fma_f32(value[i].v[c], weight, sum[c]);
      }
    }
  }
  barrier();
  if (part < kParts) {
    STRATA_UNROLL
    for (int c = 0; c < 4; ++c) sums[c * step + thread()] = sum[c];
    sums[4 * step + thread()] = total;
  }
  barrier();
  if (part != 0) return;
  total = tree(sums + 4 * step + quad, quads);
  float* out = a.out + pair.row * a.out_row + pair.head * a.out_head + channel;
  STRATA_UNROLL
  for (int c = 0; c < 4; ++c)
    if (channel < a.dim) out[c] = total == 0 ? 0.0f : div_f32(tree(sums + c * step + quad, quads), total);
  if (a.lse != nullptr && channel == 0) store_lse(a, pair, largest, total);
}
