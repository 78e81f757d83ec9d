// What every form of F32x16 must compute, as functions that each instruction set's file exports.
#pragma once

#include <cstdint>
#include <vector>

namespace strata {

struct SimdForm {
  const char* name;
  void (*exp)(const float* x, float* y, int64_t n);
  float (*dot)(const float* x, const float* y, int64_t n);
  void (*relu)(const float* x, float* y, int64_t n);
  void (*bf16)(const uint16_t* x, float* y);  // 16 values, as f16
  void (*f16)(const uint16_t* x, float* y);
  void (*all_f16)(uint16_t x, float* y);  // 16 times one value
  void (*i8)(const void* x, float* y);
  void (*level4)(const void* x, int shift, float* y);
  void (*copy_first)(const float* x, float* y, int64_t n);  // n of 16
  bool (*any_nan)(const float* x);
  float (*max)(const float* x);
};

extern const SimdForm kSimdPortable, kSimdAvx2, kSimdAvx512;

}  // namespace strata
