// Weights of any dtype in kernels: the decoders of gguf/quant.h as (scale, levels). A weight of a block format is
// exactly scale · level, or that minus a minimum, rounded once. Levels are small: exact in bf16.
#pragma once

#include "device/kernel.h"
#include "iq_grid_codes.inc"

namespace strata::gpu {

// The ids of GGUF files, as in base/dtype.h.
enum WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIq2Xxs = 16,
  kIq2Xs = 17,
  kIq3Xxs = 18,
  kIq1S = 19,
  kIq4Nl = 20,
  kIq3S = 21,
  kIq2S = 22,
  kIq4Xs = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIq1M = 29,
  kBf16 = 30,
  kTq1_0 = 34,
  kTq2_0 = 35,
  kMxfp4 = 39,
  kNvfp4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

using Bytes = const uint8_t*;

// Little-endian words at addresses that are multiples of kAlign.
__device__ inline uint32_t load_u16(Bytes p) { return *reinterpret_cast<const uint16_t*>(p); }
template <int kAlign>
__device__ inline uint32_t load_u32(Bytes p) {
  if (kAlign >= 4) return *reinterpret_cast<const uint32_t*>(p);
  if (kAlign == 2) return load_u16(p) | load_u16(p + 2) << 16;
  return p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}
__device__ inline float load_f16(Bytes p) { return f32_of_f16(*reinterpret_cast<const uint16_t*>(p)); }
__device__ inline uint32_t nibble(uint8_t byte, int high) { return high != 0 ? byte >> 4 : byte & 15u; }

// A small whole number as f32, minus another: exact, without the slow conversion.
__device__ inline float level(uint32_t value, float minus) {
  return f32_of_bits(0x4b000000u | value) - (8388608.0f + minus);
}
// The bytes of a word, each minus `minus`.
__device__ inline void put_bytes(uint32_t bytes, float minus, float (&q)[4]) {
  for (int k = 0; k < 4; ++k) q[k] = level(bytes >> 8 * k & 255u, minus);
}
// Bit k of signs: element k is negative.
__device__ inline void put_signs(uint32_t signs, float (&q)[4]) {
  for (int k = 0; k < 4; ++k) q[k] = f32_of_bits(bits_of_f32(q[k]) ^ (signs >> k & 1u) << 31);
}

// Four two-bit fields of a byte as the bytes of `values` that they name.
__device__ inline uint32_t select_pairs(uint32_t values, uint32_t fields) {
  uint32_t s = (fields | fields << 4) & 0x0f0fu;
  s = (s | s << 2) & 0x3333u;
  return byte_permute(values, 0, s);
}
// Four nibbles, one in each byte, as the selector of byte_permute.
__device__ inline uint32_t selector_of(uint32_t nibbles) {
  const uint32_t pairs = nibbles | nibbles >> 4;
  return (pairs & 0xffu) | (pairs >> 8 & 0xff00u);
}
// Levels of IQ4_NL and IQ4_XS as signed bytes.
__device__ inline uint32_t iq4_bytes(uint32_t nibbles) {
  const uint32_t selector = selector_of(nibbles);
  const uint32_t low = byte_permute(0xbfad9881u, 0xf6eaddcfu, selector);
  const uint32_t high = byte_permute(0x26190d01u, 0x71594535u, selector);
  const uint32_t mask = (nibbles >> 3 & 0x01010101u) * 255u;
  return (low & ~mask) | (high & mask);
}
// E2M1 doubled; -0 keeps its sign.
__device__ inline void put_e2m1(uint32_t nibbles, float (&q)[4]) {
  put_bytes(byte_permute(0x03020100u, 0x0c080604u, selector_of(nibbles)), 0, q);
  for (int k = 0; k < 4; ++k) q[k] = f32_of_bits(bits_of_f32(q[k]) | (nibbles >> (8 * k + 3) & 1u) << 31);
}

// Seven stored signs; the eighth makes the count of minus signs even.
__device__ inline uint32_t even_signs(uint32_t seven) {
  return seven | (static_cast<uint32_t>(popcount(seven)) & 1u) << 7;
}

template <int kCount>
constexpr uint32_t packed(const int8_t (&values)[kCount], int first) {
  uint32_t bytes = 0;
  for (int i = first; i < kCount && i < first + 4; ++i)
    bytes |= static_cast<uint32_t>(values[i] & 255) << 8 * (i - first);
  return bytes;
}
constexpr uint32_t kIq2xxsPacked = packed(kIq2xxsValues, 0), kIq2xsPacked = packed(kIq2xsValues, 0),
                   kIq2sPacked = packed(kIq2sValues, 0), kIq1sPacked = packed(kIq1sValues, 0),
                   kIq3xxsLow = packed(kIq3xxsValues, 0), kIq3xxsHigh = packed(kIq3xxsValues, 4),
                   kIq3sLow = packed(kIq3sValues, 0), kIq3sHigh = packed(kIq3sValues, 4);
// Half of a grid row of 8 (two bits an element), and a grid row of 4 (three bits).
__device__ inline uint32_t grid_row8(uint32_t code, int half, uint32_t values) {
  return select_pairs(values, code >> 8 * half & 255u);
}
__device__ inline uint32_t grid_row4(uint32_t code, uint32_t low, uint32_t high) {
  const uint32_t selector = (code & 7u) | (code & 0x38u) << 1 | (code & 0x1c0u) << 2 | (code & 0xe00u) << 3;
  return byte_permute(low, high, selector);
}

struct Scale {
  float scale;
  float min = 0;  // of formats with kMin
};

// What every format says of itself: elements and bytes of a block, elements under one scale, whether there are minima.
// scale(block, i): of elements 16 i .. 16 i + 15;  levels(block, i, q): of elements 4 i .. 4 i + 3.
template <int kElementsOf, int kBytesOf, int kGroupOf, bool kMinOf = false>
struct Blocks {
  static constexpr int kElements = kElementsOf, kBytes = kBytesOf, kGroup = kGroupOf;
  static constexpr bool kMin = kMinOf;
  static constexpr int kAlign = kBytesOf % 4 == 0 ? 4 : (kBytesOf % 2 == 0 ? 2 : 1);
};

template <uint32_t kType>
struct Format;

// Levels that are bytes(block, i), each below 128, minus a constant.
template <class Self, int kMinusOf>
struct ByteLevels {
  static constexpr int kMinus = kMinusOf;
  __device__ static void levels(Bytes b, int i, float (&q)[4]) { put_bytes(Self::bytes(b, i), kMinus, q); }
};

// Levels that are signed_bytes(block, i).
template <class Self>
struct SignedLevels {
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    put_bytes(Self::signed_bytes(b, i) ^ 0x80808080u, 128, q);
  }
};

// Levels of grids: grid(block, i), bytes below 128, and signs(block, i): bit k is set where element k is negative; bits
// 4 to 7 are not looked at.
template <class Self>
struct GridLevels {
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    put_bytes(Self::grid(b, i), 0, q);
    put_signs(Self::signs(b, i), q);
  }
};

// Low nibbles of 16 bytes, then their high nibbles.
template <int kAlign>
__device__ inline uint32_t nibbles32(Bytes qs, int i) {
  return load_u32<kAlign>(qs + 4 * (i % 4)) >> 4 * (i / 4) & 0x0f0f0f0fu;
}
// Bits 0 .. 3 of a nibble as bit 4 of four bytes.
__device__ inline uint32_t fifth_bits(uint32_t four) {
  return (four & 1u) << 4 | (four & 2u) << 11 | (four & 4u) << 18 | (four & 8u) << 25;
}

template <>
struct Format<kQ4_0> : Blocks<32, 18, 32>, ByteLevels<Format<kQ4_0>, 8> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b)}; }
  __device__ static uint32_t bytes(Bytes b, int i) { return nibbles32<kAlign>(b + 2, i); }
};
template <>
struct Format<kQ4_1> : Blocks<32, 20, 32, true>, ByteLevels<Format<kQ4_1>, 0> {
  static constexpr float kTop = 15;  // largest level
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b), -load_f16(b + 2)}; }
  __device__ static uint32_t bytes(Bytes b, int i) { return nibbles32<kAlign>(b + 4, i); }
};
template <>
struct Format<kQ5_0> : Blocks<32, 22, 32>, ByteLevels<Format<kQ5_0>, 16> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b)}; }
  __device__ static uint32_t bytes(Bytes b, int i) {
    return nibbles32<kAlign>(b + 6, i) | fifth_bits(load_u32<kAlign>(b + 2) >> 4 * i);
  }
};
template <>
struct Format<kQ5_1> : Blocks<32, 24, 32, true>, ByteLevels<Format<kQ5_1>, 0> {
  static constexpr float kTop = 31;  // largest level
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b), -load_f16(b + 2)}; }
  __device__ static uint32_t bytes(Bytes b, int i) {
    return nibbles32<kAlign>(b + 8, i) | fifth_bits(load_u32<kAlign>(b + 4) >> 4 * i);
  }
};
template <>
struct Format<kQ8_0> : Blocks<32, 34, 32>, SignedLevels<Format<kQ8_0>> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b)}; }
  __device__ static uint32_t signed_bytes(Bytes b, int i) { return load_u32<kAlign>(b + 2 + 4 * i); }
};
template <>
struct Format<kQ1_0> : Blocks<128, 18, 32> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b)}; }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    for (float& one : q) one = 1;
    put_signs(~(static_cast<uint32_t>(b[2 + i / 2]) >> 4 * (i % 2)), q);
  }
};
template <>
struct Format<kQ2_0> : Blocks<64, 18, 32> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b)}; }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    for (int k = 0; k < 4; ++k) q[k] = level(static_cast<uint32_t>(b[2 + i]) >> 2 * k & 3u, 1);
  }
};
template <>
struct Format<kIq4Nl> : Blocks<32, 18, 32>, SignedLevels<Format<kIq4Nl>> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b)}; }
  __device__ static uint32_t signed_bytes(Bytes b, int i) { return iq4_bytes(nibbles32<kAlign>(b + 2, i)); }
};
template <>
struct Format<kIq4Xs> : Blocks<256, 136, 32>, SignedLevels<Format<kIq4Xs>> {
  __device__ static Scale scale(Bytes b, int i) {
    const int group = i / 2;
    const uint32_t steps = nibble(b[4 + group / 2], group % 2) | (load_u16(b + 2) >> 2 * group & 3u) << 4;
    return {load_f16(b) * level(steps, 32)};
  }
  __device__ static uint32_t signed_bytes(Bytes b, int i) {
    return iq4_bytes(nibbles32<kAlign>(b + 8 + 16 * (i / 8), i % 8));
  }
};
template <>
struct Format<kMxfp4> : Blocks<32, 17, 32> {
  __device__ static Scale scale(Bytes b, int) {
    return {f32_of_bits(b[0] < 2 ? 0x00200000u << b[0] : static_cast<uint32_t>(b[0] - 1) << 23)};
  }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) { put_e2m1(nibbles32<kAlign>(b + 1, i), q); }
};
template <>
struct Format<kNvfp4> : Blocks<64, 36, 16> {
  __device__ static Scale scale(Bytes b, int i) {  // unsigned E4M3; 0x7f counts as zero
    const uint32_t exponent = b[i] >> 3 & 15u, mantissa = b[i] & 7u;
    if (exponent == 15u && mantissa == 7u) return {0.0f};
    if (exponent == 0u) return {level(mantissa, 0) * 0.0009765625f};
    return {0.5f * f32_of_bits((exponent + 120u) << 23 | mantissa << 20)};
  }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    put_e2m1(load_u32<kAlign>(b + 4 + 8 * (i / 4) + 4 * (i % 2)) >> 4 * (i % 4 / 2) & 0x0f0f0f0fu, q);
  }
};

template <>
struct Format<kQ2_K> : Blocks<256, 84, 16, true> {
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b + 80) * level(b[i] & 15u, 0), load_f16(b + 82) * level(b[i] >> 4, 0)};
  }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    const int group = i / 4;
    const uint32_t word = load_u32<kAlign>(b + 16 + 32 * (group / 8) + 16 * (group % 2) + 4 * (i % 4));
    put_bytes(word >> 2 * (group % 8 / 2) & 0x03030303u, 0, q);
  }
};
template <>
struct Format<kQ3_K> : Blocks<256, 110, 16>, ByteLevels<Format<kQ3_K>, 4> {
  __device__ static Scale scale(Bytes b, int i) {
    const uint32_t steps = nibble(b[96 + i % 8], i >= 8) | (b[104 + i % 4] >> 2 * (i / 4) & 3u) << 4;
    return {load_f16(b + 108) * level(steps, 32)};
  }
  __device__ static uint32_t bytes(Bytes b, int i) {
    const int group = i / 4, at = 16 * (group % 2) + 4 * (i % 4);
    const uint32_t low = load_u32<kAlign>(b + 32 + 32 * (group / 8) + at) >> 2 * (group % 8 / 2) & 0x03030303u;
    return low | (load_u32<kAlign>(b + at) >> group / 2 & 0x01010101u) << 2;
  }
};

// The six-bit scale and minimum of sub-block s in the 12 bytes of Q4_K and Q5_K.
__device__ inline Scale scale_k(Bytes b, int s) {
  const uint8_t* c = b + 4;
  const uint32_t scale = s < 4 ? c[s] & 63u : (c[s + 4] & 15u) | static_cast<uint32_t>(c[s - 4] >> 6) << 4;
  const uint32_t min =
      s < 4 ? c[s + 4] & 63u : static_cast<uint32_t>(c[s + 4] >> 4) | static_cast<uint32_t>(c[s] >> 6) << 4;
  return {load_f16(b) * level(scale, 0), load_f16(b + 2) * level(min, 0)};
}
template <>
struct Format<kQ4_K> : Blocks<256, 144, 32, true>, ByteLevels<Format<kQ4_K>, 0> {
  static constexpr float kTop = 15;  // largest level
  __device__ static Scale scale(Bytes b, int i) { return scale_k(b, i / 2); }
  __device__ static uint32_t bytes(Bytes b, int i) {
    return load_u32<kAlign>(b + 16 + 32 * (i / 16) + 4 * (i % 8)) >> 4 * (i / 8 % 2) & 0x0f0f0f0fu;
  }
};
template <>
struct Format<kQ5_K> : Blocks<256, 176, 32, true>, ByteLevels<Format<kQ5_K>, 0> {
  static constexpr float kTop = 31;  // largest level
  __device__ static Scale scale(Bytes b, int i) { return scale_k(b, i / 2); }
  __device__ static uint32_t bytes(Bytes b, int i) {
    const uint32_t low = load_u32<kAlign>(b + 48 + 32 * (i / 16) + 4 * (i % 8)) >> 4 * (i / 8 % 2) & 0x0f0f0f0fu;
    return low | (load_u32<kAlign>(b + 16 + 4 * (i % 8)) >> i / 8 & 0x01010101u) << 4;
  }
};
template <>
struct Format<kQ6_K> : Blocks<256, 210, 16>, ByteLevels<Format<kQ6_K>, 32> {
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b + 208) * level(static_cast<uint32_t>(b[192 + i]) ^ 0x80u, 128)};
  }
  __device__ static uint32_t bytes(Bytes b, int i) {
    const int group = i / 4, n = group / 8, j = group % 8 / 2, at = 16 * (group % 2) + 4 * (i % 4);
    const uint32_t low = load_u32<kAlign>(b + 64 * n + 32 * (j % 2) + at) >> 4 * (j / 2) & 0x0f0f0f0fu;
    return low | (load_u32<kAlign>(b + 128 + 32 * n + at) >> 2 * j & 0x03030303u) << 4;
  }
};

template <>
struct Format<kIq2Xxs> : Blocks<256, 66, 32>, GridLevels<Format<kIq2Xxs>> {
  __device__ static uint32_t word(Bytes b, int group) { return load_u32<kAlign>(b + 6 + 8 * group); }
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b) * (0.5f + level(word(b, i / 2) >> 28, 0)) * 0.25f};
  }
  __device__ static uint32_t grid(Bytes b, int i) {
    const int group = i / 8, k = i % 8 / 2, half = i % 2;
    return grid_row8(kIq2xxsCodes[b[2 + 8 * group + k]], half, kIq2xxsPacked);
  }
  __device__ static uint32_t signs(Bytes b, int i) {
    const int group = i / 8, k = i % 8 / 2, half = i % 2;
    return even_signs(word(b, group) >> 7 * k & 127u) >> 4 * half;
  }
};
template <>
struct Format<kIq2Xs> : Blocks<256, 74, 16>, GridLevels<Format<kIq2Xs>> {
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b) * (0.5f + level(nibble(b[66 + i / 2], i % 2), 0)) * 0.25f};
  }
  __device__ static uint32_t grid(Bytes b, int i) {
    const uint32_t entry = load_u16(b + 2 + 2 * (i / 2));
    return grid_row8(kIq2xsCodes[entry & 511u], i % 2, kIq2xsPacked);
  }
  __device__ static uint32_t signs(Bytes b, int i) {
    const uint32_t entry = load_u16(b + 2 + 2 * (i / 2));
    return even_signs(entry >> 9) >> 4 * (i % 2);
  }
};
template <>
struct Format<kIq2S> : Blocks<256, 82, 16>, GridLevels<Format<kIq2S>> {
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b) * (0.5f + level(nibble(b[74 + i / 2], i % 2), 0)) * 0.25f};
  }
  __device__ static uint32_t grid(Bytes b, int i) {
    const int g = i / 2;
    return grid_row8(kIq2sCodes[b[2 + g] | (b[66 + g / 4] >> 2 * (g % 4) & 3u) << 8], i % 2, kIq2sPacked);
  }
  __device__ static uint32_t signs(Bytes b, int i) {
    const int g = i / 2;
    return static_cast<uint32_t>(b[34 + g]) >> 4 * (i % 2);
  }
};
template <>
struct Format<kIq3Xxs> : Blocks<256, 98, 32>, GridLevels<Format<kIq3Xxs>> {
  __device__ static uint32_t word(Bytes b, int group) { return load_u32<kAlign>(b + 66 + 4 * group); }
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b) * (0.5f + level(word(b, i / 2) >> 28, 0)) * 0.5f};
  }
  __device__ static uint32_t grid(Bytes b, int i) { return grid_row4(kIq3xxsCodes[b[2 + i]], kIq3xxsLow, kIq3xxsHigh); }
  __device__ static uint32_t signs(Bytes b, int i) {
    return even_signs(word(b, i / 8) >> 7 * (i % 8 / 2) & 127u) >> 4 * (i % 2);
  }
};
template <>
struct Format<kIq3S> : Blocks<256, 110, 32>, GridLevels<Format<kIq3S>> {
  __device__ static Scale scale(Bytes b, int i) {
    const int group = i / 2;
    return {load_f16(b) * level(1u + 2u * nibble(b[106 + group / 2], group % 2), 0)};
  }
  __device__ static uint32_t grid(Bytes b, int i) {
    return grid_row4(kIq3sCodes[b[2 + i] | (b[66 + i / 8] >> i % 8 & 1u) << 8], kIq3sLow, kIq3sHigh);
  }
  __device__ static uint32_t signs(Bytes b, int i) {
    return static_cast<uint32_t>(b[74 + i / 2]) >> 4 * (i % 2);
  }
};

// Grid values -1, 0, 1; an eighth is added or taken away.
__device__ inline void put_ternary_row(uint32_t code, int half, bool minus, float (&q)[4]) {
  put_bytes(select_pairs(kIq1sPacked, code >> 8 * half & 255u) ^ 0x80808080u, 128, q);
  for (float& value : q) value += minus ? -0.125f : 0.125f;
}
template <>
struct Format<kIq1S> : Blocks<256, 50, 32> {
  __device__ static Scale scale(Bytes b, int i) {
    return {load_f16(b) * level(2u * (load_u16(b + 34 + 2 * (i / 2)) >> 12 & 7u) + 1u, 0)};
  }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    const int group = i / 8, k = i % 8 / 2;
    const uint32_t word = load_u16(b + 34 + 2 * group);
    const uint32_t index = b[2 + 4 * group + k] | (word >> 3 * k & 7u) << 8;
    put_ternary_row(kIq1sCodes[index], i % 2, (word & 0x8000u) != 0, q);
  }
};
template <>
struct Format<kIq1M> : Blocks<256, 56, 16> {
  __device__ static Scale scale(Bytes b, int i) {
    uint32_t bits = 0;  // the top nibbles of the four scale words make the f16
    for (int k = 0; k < 4; ++k) bits |= load_u16(b + 48 + 2 * k) >> 12 << 4 * k;
    const uint32_t step = load_u16(b + 48 + 2 * (i / 4)) >> 3 * (i % 4) & 7u;
    return {f32_of_f16(static_cast<uint16_t>(bits)) * level(2u * step + 1u, 0)};
  }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    const int g = i / 2;
    const uint32_t extra = nibble(b[32 + g / 2], g % 2);
    put_ternary_row(kIq1sCodes[b[g] | (extra & 7u) << 8], i % 2, (extra & 8u) != 0, q);
  }
};

template <>
struct Format<kTq1_0> : Blocks<256, 54, 32> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b + 52)}; }
  __device__ static void levels(Bytes b, int i, float (&q)[4]) {
    int digit = (4 * i - 240) / 4, at = 48;  // five digits of 32 bytes, five of 16, four of 4
    if (i < 40)
      digit = i / 8, at = 4 * (i % 8);
    else if (i < 60)
      digit = (i - 40) / 4, at = 32 + 4 * (i % 4);
    uint32_t power = 1;
    for (int k = 0; k < digit; ++k) power *= 3;
    for (int k = 0; k < 4; ++k) q[k] = level((b[at + k] * power & 255u) * 3u >> 8, 1);
  }
};
template <>
struct Format<kTq2_0> : Blocks<256, 66, 32>, ByteLevels<Format<kTq2_0>, 1> {
  __device__ static Scale scale(Bytes b, int) { return {load_f16(b + 64)}; }
  __device__ static uint32_t bytes(Bytes b, int i) {
    const int s = i / 8;
    return load_u32<kAlign>(b + 32 * (s / 4) + 4 * (i % 8)) >> 2 * (s % 4) & 0x03030303u;
  }
};

// Plain elements.
template <class T>
struct Plain {
  static constexpr int kElements = 1, kBytes = sizeof(T), kGroup = 32;
  static constexpr bool kMin = false;
  __device__ static float value(Bytes p) { return static_cast<float>(*reinterpret_cast<const T*>(p)); }
};
template <>
struct Format<kF32> : Plain<float> {};
template <>
struct Format<kF64> : Plain<double> {};
template <>
struct Format<kI8> : Plain<int8_t> {};
template <>
struct Format<kI16> : Plain<int16_t> {};
template <>
struct Format<kI32> : Plain<int32_t> {};
template <>
struct Format<kI64> : Plain<int64_t> {};
template <>
struct Format<kF16> : Plain<uint16_t> {
  __device__ static float value(Bytes p) { return load_f16(p); }
};
template <>
struct Format<kBf16> : Plain<uint16_t> {
  __device__ static float value(Bytes p) { return f32_of_bf16(*reinterpret_cast<const uint16_t*>(p)); }
};

// Elements 8 i .. 8 i + 7 of a row, as the decoders give them; zeros from `count` on.
template <class F>
__device__ inline void decode8(Bytes row, int64_t i, int64_t count, float (&w)[8]) {
  if constexpr (F::kElements == 1) {
    for (int k = 0; k < 8; ++k) w[k] = 8 * i + k < count ? F::value(row + (8 * i + k) * F::kBytes) : 0.0f;
  } else {
    constexpr int kPerBlock = F::kElements / 8;
    const Bytes block = row + i / kPerBlock * F::kBytes;
    const int at = static_cast<int>(i % kPerBlock);
    const Scale scale = F::scale(block, at / 2);
    for (int half = 0; half < 2; ++half) {
      float q[4];
      F::levels(block, 2 * at + half, q);
      for (int k = 0; k < 4; ++k) {
        const float value = mul_f32(scale.scale, q[k]);
        w[4 * half + k] = F::kMin ? value - scale.min : value;
      }
    }
  }
}

// Calls visit(Format) with the format of a type.
template <class Visit>
__device__ inline void with_format(uint32_t type, Visit visit) {
  switch (type) {
    case kF32: return visit(Format<kF32>{});
    case kF16: return visit(Format<kF16>{});
    case kBf16: return visit(Format<kBf16>{});
    case kQ4_0: return visit(Format<kQ4_0>{});
    case kQ4_1: return visit(Format<kQ4_1>{});
    case kQ5_0: return visit(Format<kQ5_0>{});
    case kQ5_1: return visit(Format<kQ5_1>{});
    case kQ8_0: return visit(Format<kQ8_0>{});
    case kQ1_0: return visit(Format<kQ1_0>{});
    case kQ2_0: return visit(Format<kQ2_0>{});
    case kQ2_K: return visit(Format<kQ2_K>{});
    case kQ3_K: return visit(Format<kQ3_K>{});
    case kQ4_K: return visit(Format<kQ4_K>{});
    case kQ5_K: return visit(Format<kQ5_K>{});
    case kQ6_K: return visit(Format<kQ6_K>{});
    case kIq4Nl: return visit(Format<kIq4Nl>{});
    case kIq4Xs: return visit(Format<kIq4Xs>{});
    case kIq3Xxs: return visit(Format<kIq3Xxs>{});
    case kIq3S: return visit(Format<kIq3S>{});
    case kIq2Xxs: return visit(Format<kIq2Xxs>{});
    case kIq2Xs: return visit(Format<kIq2Xs>{});
    case kIq2S: return visit(Format<kIq2S>{});
    case kIq1S: return visit(Format<kIq1S>{});
    case kIq1M: return visit(Format<kIq1M>{});
    case kTq1_0: return visit(Format<kTq1_0>{});
    case kTq2_0: return visit(Format<kTq2_0>{});
    case kMxfp4: return visit(Format<kMxfp4>{});
    case kNvfp4: return visit(Format<kNvfp4>{});
    case kI8: return visit(Format<kI8>{});
    case kI16: return visit(Format<kI16>{});
    case kI32: return visit(Format<kI32>{});
    case kI64: return visit(Format<kI64>{});
    case kF64: return visit(Format<kF64>{});
    default: return;
  }
}

}  // namespace strata::gpu
