// What kernels are written on: one source for the device compilers and for the emulation on the CPU. Kernels use this
// header, plain structs and nothing else: no vendor header, no library. A kernel is
//   extern "C" __global__ void name(const Arguments a)
// in a .cu file; shared memory is what shared_memory() gives. Vendors differ below this line, never above it. Files
// whose kernels multiply fragments of mma.sync say  // only: cuda  in their first lines: they are not built for AMD
// GPUs.
#pragma once

#include <cstdint>

namespace strata::gpu {
// Sixteen bytes that move together.
struct alignas(16) Bits16 {
  uint32_t word[4];
};
}  // namespace strata::gpu

#if defined(__AMDGCN__)  // clang, -x hip
#include "device/kernel_hip.h"
#elif defined(__CUDACC__)  // nvcc
#include "device/kernel_cuda.h"
#else
#include "device/kernel_emulation.h"
#endif

namespace strata::gpu {

__device__ inline Bits16 load16(const void* from) { return *static_cast<const Bits16*>(from); }
__device__ inline void store16(void* to, const Bits16& bits) { *static_cast<Bits16*>(to) = bits; }

struct alignas(16) Float4 {
  float v[4];
};
__device__ inline Float4 load_float4(const float* from) { return *reinterpret_cast<const Float4*>(from); }
__device__ inline void store_float4(float* to, const Float4& four) { *reinterpret_cast<Float4*>(to) = four; }

__device__ inline float f32_of_bits(uint32_t bits) {
  union {
    uint32_t u;
    float f;
  } both{bits};
  return both.f;
}
__device__ inline uint32_t bits_of_f32(float value) {
  union {
    float f;
    uint32_t u;
  } both{value};
  return both.u;
}
__device__ inline float f32_of_bf16(uint16_t bits) { return f32_of_bits(static_cast<uint32_t>(bits) << 16); }
// To nearest, ties to even; NaN stays NaN.
__device__ inline uint16_t bf16_of_f32(float value) {
  const uint32_t bits = bits_of_f32(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
// f32_of_f16, f16_of_f32: by the vendor's header.

// Sum over the lanes of a wave, in every lane: a tree whose order does not depend on the values.
__device__ inline float wave_sum(float value) {
  for (int step = kWave / 2; step > 0; step /= 2) value += shuffle_xor(value, step);
  return value;
}
__device__ inline float wave_max(float value) {
  for (int step = kWave / 2; step > 0; step /= 2) value = fmax_f32(value, shuffle_xor(value, step));
  return value;
}

// Sum over the threads of a block, in every thread: lanes, then waves in ascending order. `scratch`: a float of shared
// memory for each wave, which other waves may still read afterwards: before it is written again comes a barrier.
__device__ inline float block_sum(float value, float* scratch) {
  const int waves = static_cast<int>(threads()) / kWave;
  value = wave_sum(value);
  if (waves == 1) return value;
  if (lane() == 0) scratch[wave_index()] = value;
  barrier();
  float sum = 0;
  for (int i = 0; i < waves; ++i) sum += scratch[i];
  return sum;
}

}  // namespace strata::gpu
