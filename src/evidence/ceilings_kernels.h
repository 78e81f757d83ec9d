// The loops behind the multiply-add peaks: plain functions, one table for each instruction set.
#pragma once

#include <cstdint>

namespace strata {

// Runs the loop `iterations` times; returns operations (2 a multiply-add) of one iteration. `values` holds 64 floats
// that the compiler cannot know, and takes a result so that the loop cannot be dropped.
using PeakLoop = double (*)(int64_t iterations, float* values);

double peak_f32_portable(int64_t iterations, float* values);
double peak_f32_avx2(int64_t iterations, float* values);
double peak_int8_avx2(int64_t iterations, float* values);
double peak_f32_avx512(int64_t iterations, float* values);
double peak_bf16_avx512(int64_t iterations, float* values);
double peak_int8_avx512(int64_t iterations, float* values);

// The sum of n f32 values in some order, to read memory as fast as it goes.
using ReadLoop = float (*)(const float* values, int64_t n);
float read_portable(const float* values, int64_t n);
float read_avx2(const float* values, int64_t n);
float read_avx512(const float* values, int64_t n);

}  // namespace strata
