// The operands of the products: what is stored, and a query rounded to the stored type.
#pragma once

#include <cstdint>
#include <vector>

#include "base/half.h"
#include "ops/qsa_score/qsa_score.h"

namespace strata {

inline float as_operand(DType form, float x) {
  if (form == DType::BF16) return bf16_to_f32(f32_to_bf16(x));
  return form == DType::F16 ? f16_to_f32(f32_to_f16(x)) : x;
}

// Element i of a stored key, exactly.
inline float key_element(DType form, const void* key, int64_t i) {
  if (form == DType::BF16) return bf16_to_f32(static_cast<const uint16_t*>(key)[i]);
  return form == DType::F16 ? f16_to_f32(static_cast<const uint16_t*>(key)[i]) : static_cast<const float*>(key)[i];
}

// The heads of one query after another: heads · d values; and one key.
template <class Real>
void load_query(const QsaScoreArgs& args, int64_t row, Real* out) {
  for (int64_t h = 0; h < args.q.extent(1); ++h)
    for (int64_t i = 0; i < args.q.extent(2); ++i)
      *out++ = static_cast<Real>(as_operand(args.pooled.dtype, args.q[row].row<float>(h)[i]));
}
template <class Real>
void load_key(const QsaScoreArgs& args, const void* key, Real* out) {
  for (int64_t i = 0; i < args.q.extent(2); ++i) out[i] = static_cast<Real>(key_element(args.pooled.dtype, key, i));
}

// Room for one of each.
template <class Real>
struct Operands {
  explicit Operands(const QsaScoreArgs& args)
      : query(static_cast<size_t>(args.q.extent(1) * args.q.extent(2))), key(static_cast<size_t>(args.q.extent(2))) {}
  std::vector<Real> query, key;
};

}  // namespace strata
