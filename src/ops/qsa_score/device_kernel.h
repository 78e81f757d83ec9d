// Internal to qsa_score: what its kernels get.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kScoreWaves = 8;  // of a block of `mma`
inline constexpr int kScoreRows = 8;   // query rows that a wave multiplies at a time
inline constexpr int kScoreStages = 3;

struct QsaScoreKernel {
  const float* q;
  int64_t q_row, q_head;  // elements from one to the next
  const char* keys;
  int64_t key_bytes;  // from one block to the next
  const void* const* pages;
  int64_t page_rows;
  const char* dead;
  const int32_t* n_kv;
  float* scores;
  int64_t score_row;                     // elements
  int64_t rows, heads, d, limit, ratio;  // limit: blocks that a row can have
  int form;                              // of keys: 0 f32, 1 bf16, 2 f16
  int aligned;                           // keys are whole, aligned pieces of 16 bytes
  // `mma`: groups of kScoreRows query rows as 16-bit operands, or null: there is one group, and every block makes it.
  // `wmma`: groups of kWmmaQueries, [group, four heads, 16 rows, d].
  char* operands;
  int64_t groups, groups_each;  // of a block
};

}  // namespace strata
