// kernel.h on nvcc, for sm_80 and newer.
#pragma once

#include <cstdint>

#define STRATA_UNROLL _Pragma("unroll")
#define STRATA_ONCE _Pragma("unroll 1")

namespace strata::gpu {

inline constexpr int kWave = 32;

__device__ inline int thread() { return static_cast<int>(threadIdx.x); }
__device__ inline int threads() { return static_cast<int>(blockDim.x); }
__device__ inline int64_t block_x() { return blockIdx.x; }
__device__ inline int64_t block_y() { return blockIdx.y; }
__device__ inline int64_t block_z() { return blockIdx.z; }
__device__ inline int64_t blocks_x() { return gridDim.x; }
__device__ inline int lane() { return static_cast<int>(threadIdx.x % kWave); }  // unsigned: no code for signs
__device__ inline int wave_index() { return static_cast<int>(threadIdx.x / kWave); }

__device__ inline void barrier() { __syncthreads(); }  // of the block; every thread comes
__device__ inline void wave_barrier() { __syncwarp(); }

// Every lane of the wave comes.
__device__ inline float shuffle_xor(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ inline uint32_t shuffle_xor(uint32_t value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ inline int shuffle_xor(int value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ inline float shuffle(float value, int from) { return __shfl_sync(0xffffffffu, value, from); }
__device__ inline uint32_t shuffle(uint32_t value, int from) { return __shfl_sync(0xffffffffu, value, from); }
__device__ inline int shuffle(int value, int from) { return __shfl_sync(0xffffffffu, value, from); }
// The value of the lane `steps` below; its own in the first ones.
__device__ inline uint32_t shuffle_up(uint32_t value, int steps) {
  return __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(steps));
}
__device__ inline uint32_t ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }

__device__ inline char* shared_memory() {
  extern __shared__ __align__(128) char strata_shared[];
  return strata_shared;
}

__device__ inline float fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// No contraction by the compiler across these.
__device__ inline float mul_f32(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float add_f32(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float div_f32(float a, float b) { return __fdiv_rn(a, b); }
__device__ inline float near_div_f32(float a, float b) { return __fdividef(a, b); }  // within 2 ulp where b < 2^126
__device__ inline float sqrt_f32(float x) { return __fsqrt_rn(x); }
__device__ inline float fmax_f32(float a, float b) { return a > b ? a : b; }  // b where one is NaN
__device__ inline float relu_f32(float x) {                                   // NaN stays NaN
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(0.0f));
  return result;
}
__device__ inline double fma_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ inline int popcount(uint32_t bits) { return __popc(bits); }
// Four of the eight bytes low, high: nibble i of the selector (its low three bits) says which becomes byte i.
__device__ inline uint32_t byte_permute(uint32_t low, uint32_t high, uint32_t selector) {
  return __byte_perm(low, high, selector);
}
// (a & b) | c in one instruction, also where b and c are constants.
__device__ inline uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
// a · b + c in both halves, rounded once.
__device__ inline uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

__device__ inline float f32_of_f16(uint16_t bits) {
  float value;
  asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"(bits));
  return value;
}
__device__ inline uint16_t f16_of_f32(float value) {
  uint16_t bits;
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(value));
  return bits;
}

// Two numbers in one word, the first in the low half; to nearest.
__device__ inline uint32_t f16x2_of_f32(float first, float second) {
  uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}
__device__ inline uint32_t bf16x2_of_f32(float first, float second) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

// The value, which is the same in every lane of a block; where registers are few what depends on it is computed again.
__device__ inline int64_t computed_again(int64_t uniform) { return uniform; }

// Returns the value before.
__device__ inline uint32_t atomic_add(uint32_t* to, uint32_t value) { return atomicAdd(to, value); }
__device__ inline uint32_t atomic_max(uint32_t* to, uint32_t value) { return atomicMax(to, value); }
__device__ inline void memory_fence() { __threadfence(); }  // writes before it are seen before those after it

// Of kernels whose launch says `early`: until the kernel before has ended and its writes are seen; then the next may
// start. Before it only memory is read that no kernel writes.
__device__ inline void begin_early() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Sixteen bytes of global memory that no kernel under way writes, and that this multiprocessor reads once.
__device__ inline Bits16 load16_once(const void* global) {
  Bits16 bits;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(bits.word[0]), "=r"(bits.word[1]), "=r"(bits.word[2]), "=r"(bits.word[3])
      : "l"(__cvta_generic_to_global(global)));
  return bits;
}

// Bytes that come while the wave goes on: 16-byte pieces from global to shared memory, in groups.
__device__ inline void copy16_async(void* shared, const void* global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(global)
      : "memory");
}
__device__ inline void copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most N groups of this thread are under way.
template <int N>
__device__ inline void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Matrix products of a wave: d [16, 8] += a [16, 16] · b [16, 8], 16-bit operands in pairs, f32 sums. Lane l holds
// a: rows l/4 and l/4 + 8, columns 2·(l%4) + {0, 1} and the same + 8: words (row, column half) (0, 0) (1, 0) (0, 1) (1,
// 1); b: rows 2·(l%4) + {0, 1} and the same + 8, column l/4;  d: rows l/4 (first two) and l/4 + 8, columns 2·(l%4) +
// {0, 1}.
__device__ inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The same from nothing: d = a · b.
__device__ inline void mma_bf16_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
__device__ inline void mma_f16_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}
// Operands from shared memory: four 8 x 8 matrices of 16-bit numbers, lane 8 i + r gives the 16 bytes of row r of
// matrix i. Lane l gets of each the pair in row l/4, columns 2·(l%4) + {0, 1}; transposed: rows 2·(l%4) + {0, 1},
// column l/4.
__device__ inline void load_matrices(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
// d [16, 8] += a [16, 32] · b [32, 8], signed bytes, exact: words as above with 4 columns (rows) each, 16 apart.
__device__ inline void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Four products of signed bytes and their sum, onto c.
__device__ inline int32_t dot4_s8(uint32_t a, uint32_t b, int32_t c) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
}

}  // namespace strata::gpu
