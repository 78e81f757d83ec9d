// kernel.h on the CPU: threads of a block take turns on one thread of the processor and change at barriers and at
// exchanges within a wave (emulation.cpp), in an order that varies.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __device__
#define __global__
#define __launch_bounds__(...)
#define STRATA_UNROLL  // before a loop whose indices must be constants
#define STRATA_ONCE    // before a loop whose copies would cost registers

namespace strata::gpu {

inline constexpr int kWave = 32;

// The thread that runs now.
struct EmulatedThread {
  int thread = 0, threads = 0;
  int64_t block_x = 0, block_y = 0, block_z = 0, blocks_x = 0;
  char* shared = nullptr;
  mutable bool begun = false;  // begin_early
};
const EmulatedThread& emulated_thread();
void emulated_barrier();
// Gives what every lane of the wave brought, in the order of the lanes. Zeros for lanes that have ended.
void emulated_exchange(const void* own, void* all, size_t bytes);
inline constexpr size_t kMaxExchange = 32;  // bytes a lane

inline int thread() { return emulated_thread().thread; }
inline int threads() { return emulated_thread().threads; }
inline int64_t block_x() { return emulated_thread().block_x; }
inline int64_t block_y() { return emulated_thread().block_y; }
inline int64_t block_z() { return emulated_thread().block_z; }
inline int64_t blocks_x() { return emulated_thread().blocks_x; }
inline int lane() { return emulated_thread().thread % kWave; }
inline int wave_index() { return emulated_thread().thread / kWave; }
inline char* shared_memory() { return emulated_thread().shared; }

inline void barrier() { emulated_barrier(); }

template <class T>
struct Wave {
  T lane[kWave];
  explicit Wave(const T& own) { emulated_exchange(&own, lane, sizeof(T)); }
  static_assert(sizeof(T) <= kMaxExchange);
};
inline void wave_barrier() { (void)Wave<uint32_t>(0); }

template <class T>
inline T shuffle_xor(T value, int mask) {
  return Wave<T>(value).lane[(lane() ^ mask) % kWave];
}
template <class T>
inline T shuffle(T value, int from) {
  return Wave<T>(value).lane[static_cast<unsigned>(from) % kWave];
}
inline uint32_t shuffle_up(uint32_t value, int steps) {
  const Wave<uint32_t> wave(value);
  return lane() >= steps ? wave.lane[lane() - steps] : value;
}
inline uint32_t ballot(bool vote) {
  const Wave<uint32_t> wave(vote ? 1 : 0);
  uint32_t bits = 0;
  for (int i = 0; i < kWave; ++i) bits |= wave.lane[i] << i;
  return bits;
}

inline float fma_f32(float a, float b, float c) { return std::fma(a, b, c); }
inline float mul_f32(float a, float b) { return a * b; }
inline float add_f32(float a, float b) { return a + b; }
inline float div_f32(float a, float b) { return a / b; }
inline float near_div_f32(float a, float b) { return a / b; }
inline float sqrt_f32(float x) { return std::sqrt(x); }
inline float fmax_f32(float a, float b) { return a > b ? a : b; }
inline float relu_f32(float x) { return x < 0 ? 0.0f : x; }
inline double fma_f64(double a, double b, double c) { return std::fma(a, b, c); }
inline int popcount(uint32_t bits) { return std::popcount(bits); }
inline uint32_t byte_permute(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = low | static_cast<uint64_t>(high) << 32;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<uint32_t>(bytes >> (selector >> 4 * i & 7u) * 8 & 255u) << 8 * i;
  return result;
}
inline uint32_t and_or(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; }
uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c);

float f32_of_f16(uint16_t bits);
uint16_t f16_of_f32(float value);

inline uint32_t f16x2_of_f32(float first, float second) {
  return f16_of_f32(first) | static_cast<uint32_t>(f16_of_f32(second)) << 16;
}
inline uint32_t bf16x2_of_f32(float first, float second) {
  const auto half = [](float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    return std::isnan(value) ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  };
  return half(first) | half(second) << 16;
}

inline int64_t computed_again(int64_t uniform) { return uniform; }

inline uint32_t atomic_add(uint32_t* to, uint32_t value) { return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST); }
inline uint32_t atomic_max(uint32_t* to, uint32_t value) {
  const uint32_t before = *to;  // threads take turns at barriers alone
  if (value > before) *to = value;
  return before;
}
inline void memory_fence() {}
inline void begin_early() { emulated_thread().begun = true; }

// The bytes come when they are asked for: a kernel that reads too early reads what was there.
void emulated_copy16(void* shared, const void* global);
void emulated_copy_group();
void emulated_copy_wait(int groups);
inline Bits16 load16_once(const void* global) { return *static_cast<const Bits16*>(global); }
inline void copy16_async(void* shared, const void* global) { emulated_copy16(shared, global); }
inline void copy_group() { emulated_copy_group(); }
template <int N>
inline void copy_wait() {
  emulated_copy_wait(N);
}

struct EmulatedOperands {
  uint32_t a[4], b[2];
};
template <class Convert>
inline void emulated_mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Convert convert) {
  EmulatedOperands own{};
  std::memcpy(own.a, a, sizeof(own.a));
  std::memcpy(own.b, b, sizeof(own.b));
  const Wave<EmulatedOperands> wave(own);
  for (int i = 0; i < 4; ++i) {
    const int row = lane() / 4 + (i / 2) * 8, column = 2 * (lane() % 4) + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int pair = k % 8 / 2, half = k % 2 * 16;
      const uint32_t left = wave.lane[row % 8 * 4 + pair].a[row / 8 + k / 8 * 2] >> half;
      const uint32_t right = wave.lane[column * 4 + pair].b[k / 8] >> half;
      d[i] += convert(static_cast<uint16_t>(left)) * convert(static_cast<uint16_t>(right));
    }
  }
}
inline void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulated_mma(d, a, b, f32_of_f16);
}
inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulated_mma(d, a, b, [](uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); });
}
inline void mma_bf16_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  for (float& value : d) value = 0;
  mma_bf16(d, a, b);
}
inline void mma_f16_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  for (float& value : d) value = 0;
  mma_f16(d, a, b);
}
inline void load_matrices(uint32_t (&d)[4], const void* row) {
  const Wave<const void*> rows(row);
  for (int i = 0; i < 4; ++i)
    std::memcpy(&d[i], static_cast<const char*>(rows.lane[8 * i + lane() / 4]) + lane() % 4 * 4, sizeof(d[i]));
}
inline void load_matrices_transposed(uint32_t (&d)[4], const void* row) {
  const Wave<const void*> rows(row);
  for (int i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (int half = 0; half < 2; ++half)
      std::memcpy(&pair[half], static_cast<const char*>(rows.lane[8 * i + lane() % 4 * 2 + half]) + lane() / 4 * 2, 2);
    std::memcpy(&d[i], pair, sizeof(d[i]));
  }
}
inline void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  EmulatedOperands own{};
  std::memcpy(own.a, a, sizeof(own.a));
  std::memcpy(own.b, b, sizeof(own.b));
  const Wave<EmulatedOperands> wave(own);
  for (int i = 0; i < 4; ++i) {
    const int row = lane() / 4 + (i / 2) * 8, column = 2 * (lane() % 4) + i % 2;
    for (int k = 0; k < 32; ++k) {
      const int four = k % 16 / 4, byte = k % 4 * 8;
      const auto left = static_cast<int8_t>(wave.lane[row % 8 * 4 + four].a[row / 8 + k / 16 * 2] >> byte);
      const auto right = static_cast<int8_t>(wave.lane[column * 4 + four].b[k / 16] >> byte);
      d[i] += int32_t{left} * int32_t{right};
    }
  }
}
inline int32_t dot4_s8(uint32_t a, uint32_t b, int32_t c) {
  for (int shift = 0; shift < 32; shift += 8)
    c += int32_t{static_cast<int8_t>(a >> shift)} * int32_t{static_cast<int8_t>(b >> shift)};
  return c;
}

}  // namespace strata::gpu
