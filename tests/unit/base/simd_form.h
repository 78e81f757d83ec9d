// One form of F32x16 behind plain functions; included once by each instruction set's file.
#pragma once

#include "base/simd.h"
#include "unit/base/simd_test.h"

namespace strata {
namespace {

void form_exp(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16)
    store16_first(y + i, exp16(load16_first(x + i, n - i < 16 ? n - i : 16)), n - i < 16 ? n - i : 16);
}
float form_dot(const float* x, const float* y, int64_t n) {
  F32x16 sum = zero16();
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t rest = n - i < 16 ? n - i : 16;
    sum = fma16(load16_first(x + i, rest), load16_first(y + i, rest), sum);
  }
  return sum16(sum);
}
void form_relu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) store16(y + i, relu16(load16(x + i)));
}
void form_bf16(const uint16_t* x, float* y) { store16(y, load16_bf16(x)); }
void form_f16(const uint16_t* x, float* y) { store16(y, load16_f16(x)); }
void form_all_f16(uint16_t x, float* y) { store16(y, broadcast16_f16(x)); }
void form_i8(const void* x, float* y) { store16(y, load16_i8(x)); }
void form_level4(const void* x, int shift, float* y) { store16(y, load16_level4(x, shift)); }
void form_copy_first(const float* x, float* y, int64_t n) { store16_first(y, load16_first(x, n), n); }
bool form_any_nan(const float* x) { return any_nan(load16(x)); }
float form_max(const float* x) { return max_of16(load16(x)); }

constexpr SimdForm form_of(const char* name) {
  return {name, form_exp, form_dot, form_relu, form_bf16, form_f16, form_all_f16, form_i8, form_level4, form_copy_first, form_any_nan, form_max};
}

}  // namespace
}  // namespace strata
