// Plain structs between the walk over rows and splits (softmax.cpp) and the kernels that are compiled once per
// instruction set.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int64_t kSplit = 256;  // cells; the results' bits depend on it

// The block formats: an f16 scale and 32 levels, one byte or half a byte each (docs/formats.md).
enum class KvType { F32, F16, BF16, Q8_0, Q4_0 };
inline constexpr int64_t kKvBlock = 32;

[[maybe_unused]] static constexpr bool in_blocks(KvType type) { return type == KvType::Q8_0 || type == KvType::Q4_0; }
// A block, or a channel.
[[maybe_unused]] static constexpr int64_t kv_unit_bytes(KvType type) {
  return type == KvType::F32 ? 4 : (type == KvType::Q8_0 ? 34 : (type == KvType::Q4_0 ? 18 : 2));
}
[[maybe_unused]] static constexpr int64_t kv_bytes(KvType type, int64_t dim) {
  return (in_blocks(type) ? dim / kKvBlock : dim) * kv_unit_bytes(type);
}

// Where the first of some kv heads has cell 0, and the ways to the next cell and to the next head. With pages, cell c
// is at pages[c >> page_shift] + (c & page_mask) · stride + offset, and data is not used.
struct KvCells {
  const char* data;
  int64_t stride, head_stride;  // bytes
  KvType type;
  const void* const* pages;  // null: one array
  int64_t offset;            // bytes to the first of the kv heads
  int page_shift;
  int64_t page_mask;
};

// One split of some kv heads, for the queries that share each of them.
struct SoftmaxSplit {
  KvCells k, v;
  const int32_t* ids;  // the cells of this split; null: first, first + 1, ...
  int64_t first;
  int64_t kv_heads, queries;  // queries of each kv head
  int64_t dim, width;         // width: dim rounded up to 16
  const float* q;             // [kv_heads, queries, width], zeros behind dim
  const int32_t* counts;      // [queries]: how many cells of the split a query sees, 0 .. kSplit
  float scale;
  float* scores;  // scratch [kv_heads, queries, kSplit]
  float* rows;    // scratch [kSoftmaxBlock, width]
  float* m;       // [kv_heads, queries]: the largest score, -infinity when nothing has a weight
  float* l;       // [kv_heads, queries]: sum of e^(s - m)
  float* a;       // [kv_heads, queries, width]: sum of e^(s - m) v
};
inline constexpr int64_t kSoftmaxBlock = 16;  // cells whose keys or values are in work at a time

// The sums of one query over the splits so far.
struct SoftmaxState {
  float m, l;
  float* a;  // [width]
};

struct SoftmaxKernel {
  void (*split)(const SoftmaxSplit&);
  // Takes one split more into the state.
  void (*merge)(SoftmaxState& state, float m, float l, const float* a, int64_t width);
  // out[0..dim) = a / l; zeros when no cell had a weight.
  void (*finish)(const SoftmaxState& state, float* out, int64_t dim);
};

extern const SoftmaxKernel kSoftmaxPortable, kSoftmaxAvx2, kSoftmaxAvx512;

}  // namespace strata
