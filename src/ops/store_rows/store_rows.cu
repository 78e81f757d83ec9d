// Rows into a cache. A block of threads takes a stretch of one row.
#include "device/kernel.h"
#include "ops/store_rows/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

__device__ inline char* target_of(const StoreRowsKernel& a, int64_t row) {
  const int64_t at = a.first + row;
  if (a.pages == nullptr) return a.to + at * a.to_stride;
  return static_cast<char*>(const_cast<void*>(a.pages[at / a.page_rows])) + at % a.page_rows * a.to_stride;
}

// NaN counts as 0, and nothing is larger than the format holds.
__device__ inline float held(float x, float limit) {
  if (x != x) return 0.0f;
  return x < -limit ? -limit : (x > limit ? limit : x);
}

__device__ inline float magnitude(float x) { return f32_of_bits(bits_of_f32(x) & 0x7fffffffu); }

// The f16 step for magnitudes up to `largest`: the nearest, or the next where that leaves half a level uncovered.
__device__ inline uint16_t covering_f16(float largest, float levels) {
  constexpr uint16_t kLargestFinite = 0x7bff;
  const uint16_t rounded = f16_of_f32(div_f32(largest, levels));
  const uint16_t nearest = rounded < kLargestFinite ? rounded : kLargestFinite;
  const bool short_of_it = largest > mul_f32(levels + 0.5f, f32_of_f16(nearest));
  return short_of_it && nearest < kLargestFinite ? static_cast<uint16_t>(nearest + 1) : nearest;
}

__device__ inline float level_of(float x, float scale, float low, float high) {
  const float ratio = div_f32(x, scale);
  const float inside = ratio < low ? low : (ratio > high ? high : ratio);
  return add_f32(inside, 12582912.0f) - 12582912.0f;  // to nearest, ties to even
}

// Over groups of 32 lanes: the largest key.
__device__ inline uint32_t group_max(uint32_t key) {
  for (int step = 16; step > 0; step /= 2) {
    const uint32_t other = shuffle_xor(key, step);
    key = other > key ? other : key;
  }
  return key;
}

}  // namespace

extern "C" __global__ void store_words(const StoreRowsKernel a) {
  const int64_t row = block_x() / a.blocks, i = block_x() % a.blocks * threads() + thread();
  if (i >= a.width) return;
  reinterpret_cast<uint32_t*>(target_of(a, row))[i] = reinterpret_cast<const uint32_t*>(a.rows)[row * a.row_stride + i];
}

extern "C" __global__ void store_halves(const StoreRowsKernel a) {
  const int64_t row = block_x() / a.blocks, i = 2 * (block_x() % a.blocks * threads() + thread());
  if (i >= a.width) return;
  const float* from = a.rows + row * a.row_stride + i;
  auto* to = reinterpret_cast<uint16_t*>(target_of(a, row)) + i;
  for (int k = 0; k < 2; ++k)
    if (i + k < a.width) to[k] = a.bf16 != 0 ? bf16_of_f32(from[k]) : f16_of_f32(from[k]);
}

// A lane for each element of a block of 32.
extern "C" __global__ void store_blocks(const StoreRowsKernel a) {
  const int64_t row = block_x() / a.blocks, i = block_x() % a.blocks * threads() + thread();
  const bool inside = i < a.width;  // for all lanes of a block alike
  const float levels = a.four_bits != 0 ? 8.0f : 127.0f;
  const float x = inside ? held(a.rows[row * a.row_stride + i], mul_f32(levels, 65504.0f)) : 0.0f;
  // Magnitudes order as their bits do. Where the sign counts the first element of the largest decides: a vote of the
  // lanes that have it.
  const uint32_t largest = group_max(bits_of_f32(magnitude(x)));
  const int element = static_cast<int>(i % 32);
  const bool negative = (bits_of_f32(x) >> 31) != 0;
  const uint32_t key =
      bits_of_f32(magnitude(x)) == largest ? static_cast<uint32_t>(2 * (32 - element)) + (negative ? 1u : 0u) : 0u;
  const bool first_negative = (group_max(key) & 1u) != 0;
  const uint16_t step = covering_f16(f32_of_bits(largest), levels);
  const bool flipped = a.four_bits != 0 && !first_negative && largest != 0;
  const uint16_t d = flipped ? static_cast<uint16_t>(step | 0x8000u) : step;
  const float scale = f32_of_f16(d);
  const float low = a.four_bits != 0 ? -8.0f : -127.0f, high = a.four_bits != 0 ? 7.0f : 127.0f;
  const float level = step != 0 ? level_of(x, scale, low, high) : 0.0f;
  const auto code = static_cast<int>(level);
  const int above = shuffle_xor(code, 16);  // of the element 16 behind, in the first half
  if (!inside) return;
  char* block = target_of(a, row) + i / 32 * (a.four_bits != 0 ? 18 : 34);
  if (element == 0) *reinterpret_cast<uint16_t*>(block) = d;
  if (a.four_bits == 0)
    block[2 + element] = static_cast<char>(code);
  else if (element < 16)
    block[2 + element] = static_cast<char>((code + 8) | (above + 8) << 4);
}
