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
__device__ inline float value_of(uint16_t bits) {
  return kF16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

// The left operands lie as matrix instructions take them: [slots l and l + 8, parts, steps of four of eight columns,
// pieces of eight columns] of 16 bytes, {l, l + 8} of the first two columns and of the others. Where those of a step
// are.
__device__ inline int step_at(int columns, int part, int line, int step, int piece) {
  return (((line * kParts + part) * 2 + step) * (columns / 8) + (piece ^ ((line & 1) * 4))) * 16;
}

// Eight columns of a slot in parts, two columns a word.
struct Parts {
  Bits16 part[kParts];
};
template <bool kF16>
__device__ inline uint32_t pair_of(float a, float b) {
  return kF16 ? f16x2_of_f32(a, b) : bf16x2_of_f32(a, b);
}
// x + rest as three parts; one, and not its rest, where x is no number. No rest: kRest false.
template <bool kF16, bool kRest>
__device__ inline Parts parts_of(const float (&x)[8], const float (&rest)[8]) {
  Parts parts;
  STRATA_UNROLL
  for (int w = 0; w < 4; ++w) {
    float left[2] = {x[2 * w], x[2 * w + 1]};
    bool finite[2];
    for (int i = 0; i < 2; ++i) finite[i] = (bits_of_f32(left[i]) & 0x7f800000u) != 0x7f800000u;
    STRATA_UNROLL
    for (int p = 0; p < kParts; ++p) {
      const uint32_t pair = pair_of<kF16>(left[0], left[1]);
      parts.part[p].word[w] = pair;
      if (p + 1 == kParts) break;
      for (int i = 0; i < 2; ++i) {
        const float taken = kF16     ? f32_of_f16(static_cast<uint16_t>(pair >> 16 * i))
                            : i == 0 ? f32_of_bits(pair << 16)
                                     : f32_of_bits(pair & 0xffff0000u);
        left[i] = finite[i] ? left[i] - taken : 0.0f;
        if (kRest && p + 2 == kParts && finite[i]) left[i] += rest[2 * w + i];
      }
    }
  }
  return parts;
}

// Of slots `line` and `line` + 8.
__device__ inline void store_parts(char* operands, int columns, int line, int piece, const Parts (&slots)[2]) {
  STRATA_UNROLL
  for (int p = 0; p < kParts; ++p) STRATA_UNROLL
  for (int step = 0; step < 2; ++step) {
    const uint32_t *upper = slots[0].part[p].word + 2 * step, *lower = slots[1].part[p].word + 2 * step;
    store16(operands + step_at(columns, p, line, step, piece), {{upper[0], lower[0], upper[1], lower[1]}});
  }
}

// A power of two that brings the largest of `x`, over kEach lanes, near the end of what f16 parts hold; and back.
template <int kEach>
__device__ inline void f16_power(float largest, float& power, float& inverse) {
  for (int step = 1; step < kEach; step *= 2) largest = fmax_f32(largest, shuffle_xor(largest, step));
  const int exponent = static_cast<int>(bits_of_f32(largest) >> 23) - 127;
  int shift = 14 - exponent;
  if (shift > 120) shift = 120;
  if (exponent == 128) shift = 0;
  power = f32_of_bits(static_cast<uint32_t>(shift + 127) << 23);
  inverse = f32_of_bits(static_cast<uint32_t>(127 - shift) << 23);
}

// scale · q, exactly to twice the digits: every thread has pieces of two slots. f16 parts are multiplied by a power of
// two; `inverse` undoes that.
template <int kDim, bool kF16, int kThreads>
__device__ inline void load_queries(const AttentionKernel& a, const Tile& tile, char* operands, float* inverse) {
  constexpr int kEach = kThreads / 8;  // threads of two slots
  const int line = thread() / kEach, own = thread() % kEach;
  const float* q[2];
  float power[2] = {1, 1}, back[2] = {1, 1};
  STRATA_UNROLL
  for (int side = 0; side < 2; ++side) {
    const int slot = line + 8 * side, at = tile.first + slot;
    const bool there = slot < tile.count;
    q[side] = there ? a.q + slot_row(a, at) * a.q_row + slot_head(a, tile, at) * a.q_head : nullptr;
    if (kF16) {
      float largest = 0;
      for (int i = own; i < kDim && there; i += kEach) {
        const float x = q[side][i] * a.scale;
        largest = fmax_f32(x < 0 ? -x : x, largest);
      }
      f16_power<kEach>(largest, power[side], back[side]);
    }
    if (own == 0) inverse[slot] = back[side];
  }
  for (int piece = own; piece < kDim / 8; piece += kEach) {
    Parts slots[2] = {};
    STRATA_UNROLL
    for (int side = 0; side < 2; ++side) {
      if (q[side] == nullptr) continue;
      float x[8], rest[8];
      STRATA_UNROLL
      for (int i = 0; i < 8; ++i) {
        const float value = q[side][piece * 8 + i], product = value * a.scale;
        x[i] = product * power[side];
        rest[i] = fma_f32(value, a.scale, -product) * power[side];
      }
      slots[side] = parts_of<kF16, true>(x, rest);
    }
    store_parts(operands, kDim, line, piece, slots);
  }
}

// Eight channels of a cell, as they are: rows lie at multiples of 16 bytes.
__device__ inline Bits16 load_piece(const char* row, int piece) { return load16_once(row + piece * 16); }

// The left operand of 32 columns of one part, in two steps.
struct Left {
  Bits16 step[2];
};
__device__ inline Left load_left(const char* operands, int columns, int part, int piece) {
  const char* from = operands + step_at(columns, part, lane() / 4, 0, piece);
  return {{load16(from), load16(from + columns / 8 * 16)}};
}

// sum += 16 of the columns, all of them or one half of each four.
enum class Take { All, First, Second };
template <bool kF16>
__device__ inline void multiply_step_first(float (&sum)[4], const Left& left, int step, uint32_t b0, uint32_t b1) {
  multiply_first<kF16>(sum, left.step[step].word, {b0, b1});
}

template <bool kF16, Take kTake = Take::All>
__device__ inline void multiply_step(float (&sum)[4], const Left& left, int step, uint32_t b0, uint32_t b1) {
  const auto& x = left.step[step].word;
  if constexpr (kTake == Take::All) multiply<kF16>(sum, x, {b0, b1});
  if constexpr (kTake == Take::First) multiply<kF16>(sum, {x[0], x[1], 0, 0}, {b0, b1});
  if constexpr (kTake == Take::Second) multiply<kF16>(sum, {0, 0, x[2], x[3]}, {b0, b1});
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

// By a wave: a slot's scores x become its weights, eight cells a lane; m and l of the split.
template <bool kF16>
__device__ inline void weigh_slot(const AttentionKernel& a, const Tile& tile, int slot, int seen, float (&x)[8]) {
  float largest = minus_infinity();
  bool bad = false;
  for (int i = 0; i < 8; ++i) {
    if (8 * lane() + i >= seen) x[i] = minus_infinity();
    bad = bad || x[i] != x[i];
    largest = fmax_f32(x[i], largest);
  }
  largest = wave_max(largest);
  const bool none = largest == minus_infinity();
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    const bool weighs = 8 * lane() + i < seen && (!none || x[i] != x[i]);
    const float weight = weighs ? exp_f32(x[i] - largest) : 0.0f;
    sum += weight;
    x[i] = weight * (kF16 ? kWeightPower : 1.0f);
  }
  sum = wave_sum(sum);
  if (gpu::ballot(bad) != 0) largest = f32_of_bits(0x7fc00000u);
  if (lane() != 0) return;
  const int64_t at = partial_at(a, tile, tile.first + slot);
  a.m[at] = largest;
  a.l[at] = sum;
}

// By a wave: the weights of slots `line` and `line` + 8 as operands. read(slot, n): scores n .. n + 3 of a slot, which
// may lie where the weights go.
template <bool kF16, class Read>
__device__ inline void weigh_parts(const AttentionKernel& a, const Tile& tile, int line, const int* seen,
                                   char* operands, Read read) {
  float x[2][8];
  STRATA_UNROLL
  for (int side = 0; side < 2; ++side)
    for (int half = 0; half < 2 && seen[line + 8 * side] > 0; ++half) {
      const Float4 four = read(line + 8 * side, 8 * lane() + 4 * half);
      for (int i = 0; i < 4; ++i) x[side][4 * half + i] = four.v[i];
    }
  Parts slots[2] = {};
  STRATA_UNROLL
  for (int side = 0; side < 2; ++side)
    if (seen[line + 8 * side] > 0) weigh_slot<kF16>(a, tile, line + 8 * side, seen[line + 8 * side], x[side]);
  STRATA_UNROLL
  for (int side = 0; side < 2; ++side)
    if (seen[line + 8 * side] > 0) slots[side] = parts_of<kF16, false>(x[side], x[side]);
  wave_barrier();  // every lane has its scores
  store_parts(operands, kCellSplit, line, lane(), slots);
}

// Infinities and NaN of a word become 0.
template <bool kF16>
__device__ inline uint32_t finite_halves(uint32_t word) {
  const uint32_t high = kF16 ? 0x7c00u : 0x7f80u;
  if ((word & high) == high) word &= 0xffff0000u;
  if ((word >> 16 & high) == high) word &= 0xffffu;
  return word;
}

// Sixteen bytes of 8 cells from cell n of a split on; zeros from cell `most` on.
__device__ inline void load_eight(const AttentionKernel& a, const Tile& tile, int n, int most, bool whole, int piece,
                                  Bits16 (&values)[8]) {
  if (a.runs != 0) {
    const char* row = cell_at(a.v, tile.begin + n, tile.kv_head) + piece * 16;
    STRATA_UNROLL
    for (int j = 0; j < 8; ++j, row += a.v.cell_bytes) {
      if (!whole) values[j] = {};
      if (whole || n + j < most) values[j] = load16_once(row);
    }
    return;
  }
  STRATA_UNROLL
  for (int j = 0; j < 8; ++j) {
    values[j] = {};
    if (n + j < most) values[j] = load_piece(cell_at(a.v, cell_of(a, tile, n + j), tile.kv_head), piece);
  }
}

// The sums over cells begin .. end - 1 of 64 channels: tile j has channel 8 · column + j.
template <bool kF16, bool kFinite>
__device__ inline void sum_values(const AttentionKernel& a, const Tile& tile, int begin, int end, int most, int chunk,
                                  const char* operands, float (&sums)[8][4]) {
  const int column = lane() % 4, line = lane() / 4;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) sums[j][i] = 0;
  for (int first = begin; first < end && first < most; first += 32) {
    Bits16 values[8];
    load_eight(a, tile, first + 8 * column, most, first + 32 <= most, chunk * 8 + line, values);
    if (kFinite) {
      STRATA_UNROLL
      for (int j = 0; j < 8; ++j)
        for (int w = 0; w < 4; ++w) values[j].word[w] = finite_halves<kF16>(values[j].word[w]);
    }
    Left left[kParts];
    STRATA_UNROLL
    for (int part = 0; part < kParts; ++part) left[part] = load_left(operands, kCellSplit, part, first / 8 + column);
    STRATA_UNROLL
    for (int j = 0; j < 8; ++j) {
      float part[4];
      STRATA_UNROLL
      for (int step = 0; step < 2; ++step) {
        uint32_t b[2];
        for (int pair = 0; pair < 2; ++pair)
          b[pair] = byte_permute(values[4 * step + 2 * pair].word[j / 2], values[4 * step + 2 * pair + 1].word[j / 2],
                                 j % 2 == 0 ? 0x5410u : 0x7632u);
        STRATA_UNROLL
        for (int p = kParts; p-- > 0;) {
          if (step == 0 && p == kParts - 1)
            multiply_step_first<kF16>(part, left[p], step, b[0], b[1]);
          else
            multiply_step<kF16>(part, left[p], step, b[0], b[1]);
        }
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
