// Internal to the kernels of qsa_score: keys and queries as operands.
#pragma once

#include "device/kernel.h"
#include "ops/qsa_score/device_kernel.h"

namespace strata {

__device__ inline const char* score_key(const QsaScoreKernel& a, int64_t block) {
  if (a.pages == nullptr) return a.keys + block * a.key_bytes;
  return static_cast<const char*>(a.pages[block / a.page_rows]) + block % a.page_rows * a.key_bytes;
}

__device__ inline float score_key_element(int form, const char* key, int64_t i) {
  if (form == 0) return reinterpret_cast<const float*>(key)[i];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(key)[i];
  return form == 1 ? gpu::f32_of_bf16(bits) : gpu::f32_of_f16(bits);
}

__device__ inline uint16_t score_operand_bits(int form, float x) {
  return form == 1 ? gpu::bf16_of_f32(x) : gpu::f16_of_f32(x);
}
// A query's element rounded to the type of the keys.
__device__ inline float score_operand(int form, float x) {
  if (form == 0) return x;
  return form == 1 ? gpu::f32_of_bf16(gpu::bf16_of_f32(x)) : gpu::f32_of_f16(gpu::f16_of_f32(x));
}

__device__ inline int64_t score_blocks(const QsaScoreKernel& a, int64_t row) {
  if (row >= a.rows) return 0;
  const int64_t n = a.n_kv[row] / static_cast<int32_t>(a.ratio);
  return n < 0 ? 0 : (n < a.limit ? n : a.limit);
}

}  // namespace strata
