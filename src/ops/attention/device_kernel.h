// Internal to attention and sparse_attention: what their kernels get.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kCellSplit = 256;    // kSplit of softmax_kernel_types.h
inline constexpr int kMergeChunk = 1024;  // splits whose weights lie in shared memory together
inline constexpr int kMergeShared = (2 * kMergeChunk + 4 * 256 + 16) * 4;  // bytes

// `stream`: copies that a thread has under way, in steps of four pieces of 16 bytes.
inline constexpr int kStreamThreads = 256, kStreamStages = 4;
// Weights of 16 slots in three parts, or the sums of 64 channels of all waves but the first dim / 64.
constexpr int stream_weight_bytes(int dim) {
  const int weights = 3 * 16 * kCellSplit * 2, sums = (kStreamThreads / 32 - dim / 64) * 4096;
  return weights > sums ? weights : sums;
}
constexpr int stream_shared_bytes(int dim) {
  return 3 * 16 * dim * 2 + stream_weight_bytes(dim) + kStreamStages * 64 * kStreamThreads + 2 * 16 * 4 + 32;
}

struct KvDevice {
  const char* data;
  int64_t cell_bytes, head_bytes;  // from one to the next
  const void* const* pages;        // or null: one array
  int32_t page_shift;
  int32_t type;     // 0 f32, 1 f16, 2 bf16, 3 q8_0, 4 q4_0
  int32_t aligned;  // pieces of 16 bytes may be loaded
};

// Rows of one round. A slot is a (row, query head) pair of one kv head, in the order of rows and then heads.
struct AttentionKernel {
  const float* q;
  int64_t q_row, q_head;  // elements from one to the next
  KvDevice k, v;
  const int32_t* counts;  // cells that each row sees
  const int32_t* ids;     // the cells of each row, or null: 0, 1, 2, ...
  int64_t id_row;
  int32_t runs;  // 32 cells from a multiple of 32 on follow each other in memory
  float scale;
  int32_t dim, kv_heads, group, width;  // width: cells, or entries of a list, that a row can have
  int64_t rows;
  int64_t slots, tiles;  // slots of a tile of threads at most; tiles: of one kv head
  int32_t splits;
  // Partial results, [rows, heads, splits] and [.., dim]: of splits with cells alone.
  float *m, *l, *a;
  float* out;
  int64_t out_row, out_head;
  float* lse;  // or null
  int64_t lse_row;
};

}  // namespace strata
