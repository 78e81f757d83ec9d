// Internal to the kernels of attention on matrix units: three-part operands, products with 16-bit cells.
#pragma once

#include "ops/attention/device_cells.h"

namespace strata {
namespace attention_parts {
using namespace gpu;

inline constexpr int kSlots = 16, kParts = 3;

template <bool kF16>
__device__ inline void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if (kF16)
    mma_f16(d, a, b);
  else
    mma_bf16(d, a, b);
}
template <bool kF16>
__device__ inline void multiply_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if (kF16)
    mma_f16_first(d, a, b);
  else
    mma_bf16_first(d, a, b);
}
template <bool kF16>
__device__ inline uint16_t bits_of(float x) {
  return kF16 ? f16_of_f32(x) : bf16_of_f32(x);
}
template <bool kF16>
__device__ inline float value_of(uint16_t bits) {
  return kF16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

// The left operands lie as [kSlots, parts, columns], in pieces of eight columns: where a piece is.
__device__ inline int piece_at(int columns, int part, int slot, int piece) {
  return ((slot * kParts + part) * (columns / 8) + (piece ^ ((slot & 1) * 4))) * 16;
}

// x + rest as three parts; one, and not its rest, where x is no number.
template <bool kF16>
__device__ inline void split_value(float x, float rest, uint16_t (&parts)[kParts]) {
  const bool finite = (bits_of_f32(x) & 0x7f800000u) != 0x7f800000u;
  STRATA_UNROLL
  for (int i = 0; i < kParts; ++i) {
    parts[i] = bits_of<kF16>(x);
    x = finite ? x - value_of<kF16>(parts[i]) : 0.0f;
    if (i + 2 == kParts && finite) x += rest;
  }
}

template <bool kF16>
__device__ inline void store_parts(char* operands, int columns, int slot, int piece, const float (&x)[8],
                                   const float (&rest)[8]) {
  Bits16 bits[kParts] = {};
  STRATA_UNROLL
  for (int i = 0; i < 8; ++i) {
    uint16_t parts[kParts];
    split_value<kF16>(x[i], rest[i], parts);
    for (int p = 0; p < kParts; ++p) bits[p].word[i / 2] |= static_cast<uint32_t>(parts[p]) << 16 * (i % 2);
  }
  for (int p = 0; p < kParts; ++p) store16(operands + piece_at(columns, p, slot, piece), bits[p]);
}

// scale · q, exactly to twice the digits, kEach threads to a slot. With f16 parts it is multiplied by a power of two
// that brings the largest channel near the end of their range; `inverse` undoes that.
template <int kDim, bool kF16, int kEach>
__device__ inline void load_queries(const AttentionKernel& a, const Tile& tile, char* operands, float* inverse) {
  const int slot = thread() / kEach;
  const int at = tile.first + slot;
  const bool there = slot < tile.count;
  const float* q = a.q + (there ? slot_row(a, at) * a.q_row + slot_head(a, tile, at) * a.q_head : 0);
  float power = 1;
  if (kF16) {
    float largest = 0;
    for (int i = thread() % kEach; i < kDim; i += kEach) {
      const float x = there ? q[i] * a.scale : 0.0f;
      largest = fmax_f32(x < 0 ? -x : x, largest);
    }
    for (int step = 1; step < kEach; step *= 2) largest = fmax_f32(largest, shuffle_xor(largest, step));
    const int exponent = static_cast<int>(bits_of_f32(largest) >> 23) - 127;
    int shift = 14 - exponent;
    if (shift > 120) shift = 120;
    if (exponent == 128) shift = 0;
    power = f32_of_bits(static_cast<uint32_t>(shift + 127) << 23);
    if (thread() % kEach == 0) inverse[slot] = f32_of_bits(static_cast<uint32_t>(127 - shift) << 23);
  } else if (thread() % kEach == 0) {
    inverse[slot] = 1;
  }
  for (int piece = thread() % kEach; piece < kDim / 8; piece += kEach) {
    float x[8], rest[8];
    STRATA_UNROLL
    for (int i = 0; i < 8; ++i) {
      const float value = there ? q[piece * 8 + i] : 0.0f, product = value * a.scale;
      x[i] = product * power;
      rest[i] = fma_f32(value, a.scale, -product) * power;
    }
    store_parts<kF16>(operands, kDim, slot, piece, x, rest);
  }
}

// Eight channels of a cell, as they are: rows lie at multiples of 16 bytes.
__device__ inline Bits16 load_piece(const char* row, int piece) { return load16_once(row + piece * 16); }

// The left operand of 32 columns: rows l / 4 and l / 4 + 8 of one part.
struct Left {
  Bits16 upper, lower;
};
__device__ inline Left load_left(const char* operands, int columns, int part, int piece) {
  const int line = lane() / 4;
  return {load16(operands + piece_at(columns, part, line, piece)),
          load16(operands + piece_at(columns, part, line + 8, piece))};
}

// sum += 16 of the columns, all of them or one half of each four.
enum class Take { All, First, Second };
template <bool kF16>
__device__ inline void multiply_step_first(float (&sum)[4], const Left& left, int step, uint32_t b0, uint32_t b1) {
  const uint32_t* x = left.upper.word + 2 * step;
  const uint32_t* y = left.lower.word + 2 * step;
  multiply_first<kF16>(sum, {x[0], y[0], x[1], y[1]}, {b0, b1});
}

template <bool kF16, Take kTake = Take::All>
__device__ inline void multiply_step(float (&sum)[4], const Left& left, int step, uint32_t b0, uint32_t b1) {
  const uint32_t* x = left.upper.word + 2 * step;
  const uint32_t* y = left.lower.word + 2 * step;
  if constexpr (kTake == Take::All) multiply<kF16>(sum, {x[0], y[0], x[1], y[1]}, {b0, b1});
  if constexpr (kTake == Take::First) multiply<kF16>(sum, {x[0], y[0], 0, 0}, {b0, b1});
  if constexpr (kTake == Take::Second) multiply<kF16>(sum, {0, 0, x[1], y[1]}, {b0, b1});
}

// 32 channels: the sums of 16 (of 8, for small heads) start at zero and are added in f32.
template <int kDim, bool kF16>
__device__ inline void multiply_pair(float (&sum)[4], const Left (&left)[kParts], const Bits16& key) {
  float half[2][4] = {};
  STRATA_UNROLL
  for (int step = 0; step < 2; ++step) {
    const uint32_t b0 = key.word[2 * step], b1 = key.word[2 * step + 1];
    multiply_step_first<kF16>(half[step], left[2], step, b0, b1);
    multiply_step<kF16>(half[step], left[1], step, b0, b1);
    if constexpr (kDim > 64) {
      multiply_step<kF16>(half[step], left[0], step, b0, b1);
    } else {
      float other[4] = {};
      multiply_step<kF16, Take::First>(half[step], left[0], step, b0, b1);
      multiply_step<kF16, Take::Second>(other, left[0], step, b0, b1);
      for (int i = 0; i < 4; ++i) half[step][i] += other[i];
    }
  }
  for (int i = 0; i < 4; ++i) sum[i] = half[0][i] + half[1][i];
}

// A score that is no number, in f32: the parts of a query may have opposite signs where an infinity meets them.
template <bool kF16>
__device__ inline float plain_score(const AttentionKernel& a, const Tile& tile, int slot, int n) {
  const int at = tile.first + slot;
  const float* q = a.q + slot_row(a, at) * a.q_row + slot_head(a, tile, at) * a.q_head;
  const char* key = cell_at(a.k, cell_of(a, tile, n), tile.kv_head);
  float dot = 0;
  for (int i = 0; i < a.dim; ++i) dot = fma_f32(q[i], value_of<kF16>(reinterpret_cast<const uint16_t*>(key)[i]), dot);
  return dot * a.scale;
}

// The binary tree over sums of 32 channels, as they come: `done` is how many have.
__device__ inline void join_sums(float (&sum)[4], float (&waiting)[3][2][4], int t, int done) {
  STRATA_UNROLL
  for (int level = 0; level < 3; ++level) {
    if ((done & ((1 << level) - 1)) != 0) continue;
    const bool joins = (done & ((2 << level) - 1)) == 0;
    for (int i = 0; i < 4; ++i) {
      if (joins)
        sum[i] = waiting[level][t][i] + sum[i];
      else
        waiting[level][t][i] = sum[i];
    }
  }
}

inline constexpr float kWeightPower = 16384;  // weights as f16 parts

// Infinities and NaN of a word become 0.
template <bool kF16>
__device__ inline uint32_t finite_halves(uint32_t word) {
  const uint32_t high = kF16 ? 0x7c00u : 0x7f80u;
  if ((word & high) == high) word &= 0xffff0000u;
  if ((word >> 16 & high) == high) word &= 0xffffu;
  return word;
}

// The sums over cells begin .. end - 1 of 64 channels: tile j has channel 8 · column + j.
template <bool kF16, bool kFinite>
__device__ inline void sum_values(const AttentionKernel& a, const Tile& tile, int begin, int end, int most, int chunk,
                                  const char* operands, float (&sums)[8][4]) {
  const int column = lane() % 4, line = lane() / 4;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) sums[j][i] = 0;
  for (int first = begin; first < end && first < most; first += 32) {
    Bits16 values[8] = {};
    STRATA_UNROLL
    for (int j = 0; j < 8; ++j) {
      const int n = first + 8 * column + j;
      if (n >= most) continue;
      values[j] = load_piece(cell_at(a.v, cell_of(a, tile, n), tile.kv_head), chunk * 8 + line);
      if (kFinite)
        for (int w = 0; w < 4; ++w) values[j].word[w] = finite_halves<kF16>(values[j].word[w]);
    }
    Left left[kParts];
    STRATA_UNROLL
    for (int part = 0; part < kParts; ++part) left[part] = load_left(operands, kCellSplit, part, first / 8 + column);
    STRATA_UNROLL
    for (int j = 0; j < 8; ++j) {
      float part[4] = {};
      STRATA_UNROLL
      for (int step = 0; step < 2; ++step) {
        uint32_t b[2];
        for (int pair = 0; pair < 2; ++pair) {
          const uint32_t x = values[4 * step + 2 * pair].word[j / 2], y = values[4 * step + 2 * pair + 1].word[j / 2];
          b[pair] = j % 2 == 0 ? (x & 0xffffu) | y << 16 : x >> 16 | (y & 0xffff0000u);
        }
        STRATA_UNROLL
        for (int p = kParts; p-- > 0;) multiply_step<kF16>(part, left[p], step, b[0], b[1]);
      }
      for (int i = 0; i < 4; ++i) sums[j][i] += part[i];
    }
  }
}

__device__ inline bool all_finite(const float (&sums)[8][4]) {
  bool finite = true;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) finite = finite && (bits_of_f32(sums[j][i]) & 0x7f800000u) != 0x7f800000u;
  return finite;
}

// Channels with a value that is no number are NaN for the slots that see its cell, and for no others.
template <bool kF16>
__device__ inline void spread_bad(const AttentionKernel& a, const Tile& tile, int begin, int end, int chunk,
                                  const int* seen, float (&sums)[8][4]) {
  const uint32_t high = kF16 ? 0x7c00u : 0x7f80u;
  for (int n = begin; n < end; ++n) {
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (n >= seen[lane() / 4 + 8 * (i / 2)]) continue;
      const auto* values =
          reinterpret_cast<const uint16_t*>(cell_at(a.v, cell_of(a, tile, n), tile.kv_head)) + chunk * 64;
      STRATA_UNROLL
      for (int j = 0; j < 8; ++j)
        if ((values[8 * (2 * (lane() % 4) + i % 2) + j] & high) == high) sums[j][i] = f32_of_bits(0x7fc00000u);
    }
  }
}

}  // namespace attention_parts
}  // namespace strata
