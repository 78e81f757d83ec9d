// What the SIMD arms of qsa_score differ in. Plain types: also included where AVX flags are set.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int64_t kQsaTile = 64;  // blocks of a tile; the lanes of a vector run along them

enum class QsaForm { F32, Bf16, F16 };

// How a key lies in a tile: for each step 64 elements, one per block. A step is one dim as f32, or two dims as a pair
// of bf16 (the lower one in the low half) in the bits of a float, an odd last one with a zero.
enum class QsaLayout { Dims, Pairs };

struct QsaScoreKernels {
  QsaLayout layout;
  // Transposes `count` <= 64 keys of d elements, stride_bytes apart, into a tile; lanes from count on become 0.
  void (*pack)(const void* keys, int64_t stride_bytes, int64_t count, int64_t d, QsaForm form, float* tile);
  // Scores of the first `count` blocks of a tile. The query is laid out for each group of four heads (the last one may
  // be smaller) as steps of one element a head.
  void (*score)(const float* tile, const float* query, int64_t steps, int64_t heads, int64_t count, float* scores);
};

extern const QsaScoreKernels kQsaScoreAvx2, kQsaScoreAvx512, kQsaScoreAvx512Bf16;

}  // namespace strata
