// kernel.h on clang for AMD GPUs, freestanding: no ROCm, no HIP headers, no device library.
//
// A wave of kernels is 32 lanes here too. gfx11 and gfx12 run such waves; a wave of gfx942 has 64 lanes and runs two,
// which read each other's lanes in no primitive below, so that sums have one order on every device.
#pragma once

#include <stdint.h>  // clang's own

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define STRATA_UNROLL _Pragma("unroll")

namespace strata::gpu {

inline constexpr int kWave = 32;
#if defined(__GFX9__)
inline constexpr int kHardwareWave = 64;
#else
inline constexpr int kHardwareWave = 32;
#endif
#if __AMDGCN_WAVEFRONT_SIZE__ != 32 && !defined(__GFX9__)
#error "gfx11 and gfx12 are compiled for waves of 32 lanes"
#endif

// What the host says about a launch (code object version 5): blocks of the grid, then threads of a block.
struct LaunchWords {
  uint32_t blocks[3];
  uint16_t threads[3];
};
using ConstantLaunchWords = const __attribute__((address_space(4))) LaunchWords;
__device__ inline ConstantLaunchWords* launch_words() {
  return (ConstantLaunchWords*)__builtin_amdgcn_implicitarg_ptr();  // no C++ cast goes between address spaces
}

__extension__ typedef unsigned __int128 Register16;  // sixteen bytes that are only moved

// Blocks have one dimension.
__device__ inline int thread() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
__device__ inline int threads() { return launch_words()->threads[0]; }
__device__ inline int64_t block_x() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline int64_t block_y() { return __builtin_amdgcn_workgroup_id_y(); }
__device__ inline int64_t block_z() { return __builtin_amdgcn_workgroup_id_z(); }
__device__ inline int64_t blocks_x() { return launch_words()->blocks[0]; }
__device__ inline int lane() { return static_cast<int>(__builtin_amdgcn_workitem_id_x() % kWave); }
__device__ inline int wave_index() { return static_cast<int>(__builtin_amdgcn_workitem_id_x() / kWave); }

// Of the block; every thread comes. Also for what threads left in global memory: kernels pass rows on that way.
__device__ inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// Lanes run in step, and their memory accesses in order: it binds the compiler alone.
__device__ inline void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// Every lane of the wave comes. By ds_bpermute, which no compiler pass moves under a condition.
__device__ inline unsigned hardware_lane(int of_wave) {
  const unsigned own = __builtin_amdgcn_workitem_id_x() % kHardwareWave;
  return (own & ~(kWave - 1u)) | (static_cast<unsigned>(of_wave) % kWave);
}
__device__ inline int shuffle(int value, int from) {
  return __builtin_amdgcn_ds_bpermute(static_cast<int>(4 * hardware_lane(from)), value);
}
__device__ inline uint32_t shuffle(uint32_t value, int from) {
  return static_cast<uint32_t>(shuffle(static_cast<int>(value), from));
}
__device__ inline float shuffle(float value, int from) {
  return __builtin_bit_cast(float, shuffle(__builtin_bit_cast(int, value), from));
}
template <class T>
__device__ inline T shuffle_xor(T value, int mask) {
  return shuffle(value, lane() ^ mask);
}
// The value of the lane `steps` below; its own in the first ones.
__device__ inline uint32_t shuffle_up(uint32_t value, int steps) {
  return shuffle(value, lane() >= steps ? lane() - steps : lane());
}
__device__ inline uint32_t ballot(bool vote) {
#if defined(__GFX9__)
  const uint64_t all = __builtin_amdgcn_ballot_w64(vote);
  return static_cast<uint32_t>(all >> (__builtin_amdgcn_workitem_id_x() & 32u));
#else
  return __builtin_amdgcn_ballot_w32(vote);
#endif
}

extern __attribute__((shared)) __attribute__((aligned(128))) char strata_shared[];
__device__ inline char* shared_memory() { return strata_shared; }

__device__ inline float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// Contraction is off (cmake/device_code.cmake); division and roots are rounded correctly.
__device__ inline float mul_f32(float a, float b) { return a * b; }
__device__ inline float add_f32(float a, float b) { return a + b; }
__device__ inline float div_f32(float a, float b) { return a / b; }
__device__ inline float near_div_f32(float a, float b) { return a / b; }
__device__ inline float sqrt_f32(float x) { return __builtin_sqrtf(x); }
__device__ inline float fmax_f32(float a, float b) { return a > b ? a : b; }  // b where one is NaN
__device__ inline float relu_f32(float x) { return x < 0 ? 0.0f : x; }        // NaN stays NaN
__device__ inline double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
__device__ inline int popcount(uint32_t bits) { return __builtin_popcount(bits); }
// Four of the eight bytes low, high: nibble i of the selector (its low three bits) says which becomes byte i.
__device__ inline uint32_t byte_permute(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t bytes = selector & 0x7777u;  // a byte for each nibble
  bytes = (bytes | bytes << 8) & 0x00ff00ffu;
  bytes = (bytes | bytes << 4) & 0x0f0f0f0fu;
  return __builtin_amdgcn_perm(high, low, bytes);
}
__device__ inline uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }

__device__ inline float f32_of_f16(uint16_t bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }
__device__ inline uint16_t f16_of_f32(float value) {
  return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
}

// The value, which is the same in every lane of a block; what depends on it is computed again instead of kept.
__device__ inline int64_t computed_again(int64_t uniform) {
  const auto low = static_cast<uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(uniform)));
  return static_cast<int64_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(uniform >> 32))) << 32 | low;
}

// Of memory that no thread of the launch writes, at an address that all lanes of the hardware's wave share: scalar
// loads.
using ConstantFloats = const __attribute__((address_space(4))) float*;
__device__ inline ConstantFloats constant_floats(const float* floats) { return (ConstantFloats)floats; }

// Returns the value before.
__device__ inline uint32_t atomic_add(uint32_t* to, uint32_t value) {
  return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline uint32_t atomic_max(uint32_t* to, uint32_t value) {
  return __hip_atomic_fetch_max(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline void begin_early() {}
__device__ inline void memory_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

// The bytes are there at once.
__device__ inline void copy16_async(void* shared, const void* global) {
  *static_cast<Register16*>(shared) = *static_cast<const Register16*>(global);
}
__device__ inline void copy_group() {}
template <int N>
__device__ inline void copy_wait() {}

// Four products of signed bytes and their sum, onto c.
__device__ inline int32_t dot4_s8(uint32_t a, uint32_t b, int32_t c) {
#if defined(__GFX9__)
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), c, false);
#else
  return __builtin_amdgcn_sudot4(true, static_cast<int>(a), true, static_cast<int>(b), c, false);
#endif
}

// Products of matrix units: c [16, 16] += a [16, 16] · b [16, 16], f16 or bf16 operands, f32 sums, by a wave of the
// hardware all of whose lanes come. A lane has a part of row lane % 16 of a (of column lane % 16 of b): the numbers
// from operand_first() on along the sum. Every lane of gfx11 has all 16 numbers, the upper half of the lanes again
// those of the lower one.
namespace matrix {

__device__ inline int lane() { return static_cast<int>(__builtin_amdgcn_workitem_id_x() % kHardwareWave); }

// The compiler moves no instruction past it: what comes later does not wait in registers.
__device__ inline void keep_order() { __builtin_amdgcn_sched_barrier(0); }

// Known to be the same in all lanes: conditions on it leave all of them on.
__device__ inline int wave() {
  return __builtin_amdgcn_readfirstlane(static_cast<int>(__builtin_amdgcn_workitem_id_x() / kHardwareWave));
}

#if defined(__GFX11__)
inline constexpr int kOperands = 16, kSums = 8;
#elif defined(__GFX12__)
inline constexpr int kOperands = 8, kSums = 8;
#else
inline constexpr int kOperands = 4, kSums = 4;
#endif
using Operand = _Float16 __attribute__((ext_vector_type(kOperands)));
using Sums = float __attribute__((ext_vector_type(kSums)));
using BrainOperand = short __attribute__((ext_vector_type(kOperands)));  // bf16 as words

// From memory, in rows on multiples of 16 bytes.
template <class AnyOperand>
__device__ inline AnyOperand load(const char* from) {
  using Stored = AnyOperand __attribute__((aligned(8)));
  return *reinterpret_cast<const Stored*>(from);
}
template <class AnyOperand>
__device__ inline void store(char* to, AnyOperand operand) {
  using Stored = AnyOperand __attribute__((aligned(8)));
  *reinterpret_cast<Stored*>(to) = operand;
}

__device__ inline int operand_first() { return kOperands == 16 ? 0 : kOperands * (lane() / 16); }
// Where sum i of a lane lies.
#if defined(__GFX11__)
inline constexpr int kRowStep = 2;
__device__ inline int first_row() { return lane() / 16; }
#else
inline constexpr int kRowStep = 1;
__device__ inline int first_row() { return kSums * (lane() / 16); }
#endif
__device__ inline int row(int i) { return first_row() + kRowStep * i; }
__device__ inline int column() { return lane() % 16; }

__device__ inline Sums product(Operand a, Operand b, Sums c) {
#if defined(__GFX11__)
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
#elif defined(__GFX12__)
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c);
#else
  return __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0);
#endif
}
__device__ inline Sums product(BrainOperand a, BrainOperand b, Sums c) {
#if defined(__GFX11__)
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c);
#elif defined(__GFX12__)
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c);
#else
  return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0);
#endif
}

// The numbers of a column that the lanes have where sums lie, as an operand along its rows.
__device__ inline Operand operand_of(const _Float16 (&x)[kSums]) {
  Operand operand;
#if defined(__GFX11__)
  STRATA_UNROLL
  for (int i = 0; i < kSums; i += 2) {
    const uint32_t own =
        __builtin_bit_cast(uint16_t, x[i]) | static_cast<uint32_t>(__builtin_bit_cast(uint16_t, x[i + 1])) << 16;
    const uint32_t other = shuffle_xor(own, 16), even = lane() < 16 ? own : other, odd = lane() < 16 ? other : own;
    operand[2 * i] = __builtin_bit_cast(_Float16, static_cast<uint16_t>(even));
    operand[2 * i + 1] = __builtin_bit_cast(_Float16, static_cast<uint16_t>(odd));
    operand[2 * i + 2] = __builtin_bit_cast(_Float16, static_cast<uint16_t>(even >> 16));
    operand[2 * i + 3] = __builtin_bit_cast(_Float16, static_cast<uint16_t>(odd >> 16));
  }
#else
  STRATA_UNROLL
  for (int i = 0; i < kSums; ++i) operand[i] = x[i];
#endif
  return operand;
}

// The largest of the lanes of a column.
__device__ inline float column_max(float x) {
  x = fmax_f32(shuffle_xor(x, 16), x);
#if defined(__GFX9__)
  const int from = 4 * (lane() ^ 32);
  x = fmax_f32(__builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(from, __builtin_bit_cast(int, x))), x);
#endif
  return x;
}

}  // namespace matrix

}  // namespace strata::gpu
