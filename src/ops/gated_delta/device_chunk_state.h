// The state of 16 columns on matrix units, in two f16 words: products with rows of keys or queries, with corrections,
// and the fold. Columns are rows of the units' first operand, so that what a wave has computed is an operand of what
// comes next, in the registers where it lies: lane l has columns l / 4 and l / 4 + 8, and of 16 slots 4 (l % 4) to 4 (l
// % 4) + 3.
#pragma once

#include <cmath>

#include "ops/gated_delta/chunk_device.h"

namespace strata {
namespace {

using namespace strata::gpu;

using Table = DeltaChunkTable;

constexpr int kBlock = 16, kBlocks = 4;  // slots solved one after another; of a chunk

using Rows = float[2][4];  // of a block: [which of the lane's columns, slot 4 (l % 4) + i]

// The memory of a block and of the columns of a wave.
template <int kKeys>
struct Part {
  using Layout = DeltaChunkLayout<kKeys>;
  static constexpr int kKeyBuffers = Layout::kKeyBuffers;

  char *keys, *queries;                 // planes
  char *key_products, *query_products;  // of blocks r > b
  char* heads;                          // what each head has, kOfHead apart: first its factors
  // Of the wave's head:
  const float *key_diagonal, *key_table, *query_diagonal, *query_table;
  const float* starts;                        // of two chunks
  char* state_words;                          // [16 keys, high or low, lane] 16 bytes
  float* state_down;                          // [column]
  float *u, *values, *key_sums, *query_sums;  // [block, lane, Rows]

  __device__ explicit Part(int head) {
    keys = shared_memory();
    queries = keys + kKeyBuffers * Layout::kQueries;
    key_products = queries + Layout::kQueries;
    query_products = key_products + Layout::kProductBytes;
    heads = query_products + Layout::kProductBytes;
    char* own = heads + head * Layout::kOfHead;
    key_diagonal = reinterpret_cast<const float*>(own);
    key_table = key_diagonal + Layout::kDiagonal / 4;
    query_table = reinterpret_cast<const float*>(own + Layout::kCorrecting) - (Layout::kReading - Layout::kTable) / 4;
    query_diagonal = query_table + (Layout::kReads - Layout::kTable) / 4;
    starts = query_diagonal + Layout::kDiagonal / 4;
    state_words = own + Layout::kCorrecting + Layout::kReadingBytes + 2 * Layout::kStarts;
    state_down = reinterpret_cast<float*>(state_words + kDeltaColumns * kKeys * 4);
    u = state_down + kDeltaColumns;
    values = u + Layout::kRows / 4;
    key_sums = values + Layout::kRows / 4;
    query_sums = key_sums + Layout::kRows / 4;
  }
};

template <class Float>
__device__ inline Float* rows_at(Float* rows, int b, int lane) {
  return rows + (b * kWave + lane) * 8;
}
__device__ inline void load_rows(const float* from, Rows& rows) {
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) {
    const Float4 four = load_float4(from + 4 * c);
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) rows[c][i] = four.v[i];
  }
}
__device__ inline void store_rows(float* to, const Rows& rows) {
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) store_float4(to + 4 * c, {{rows[c][0], rows[c][1], rows[c][2], rows[c][3]}});
}

// Which of two zeros or whether NaN does not matter to a scale.
__device__ inline float larger(float a, float b) { return fmaxf(fabsf(a), fabsf(b)); }
// The largest of the four lanes that share a column.
__device__ inline float column_max(float x) {
  x = larger(shuffle_xor(x, 1), x);
  return larger(shuffle_xor(x, 2), x);
}

// Four numbers of each column, scaled, as an operand of matrix units.
__device__ inline void operand_f16(const Rows& x, const float (&up)[2], uint32_t (&high)[4], uint32_t (&low)[4]) {
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i)
    split_f16(mul_f32(x[i % 2][i / 2 * 2], up[i % 2]), mul_f32(x[i % 2][i / 2 * 2 + 1], up[i % 2]), high[i], low[i]);
}

// The state as operand words, by the power of two of each column's largest.
template <int kKeys>
__device__ inline void store_state_words(const Part<kKeys>& part, const float (&s)[kKeys / 8][4]) {
  float up[2];
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) {
    float largest = 0;
    STRATA_UNROLL
    for (int n = 0; n < kKeys / 8; ++n) largest = larger(larger(s[n][2 * c], s[n][2 * c + 1]), largest);
    const Scale scale = scale_of(column_max(largest));
    up[c] = scale.up;
    if (lane() % 4 == 0) part.state_down[lane() / 4 + 8 * c] = scale.down;
  }
  STRATA_UNROLL
  for (int g = 0; g < kKeys / 16; ++g) {
    Rows x;
    STRATA_UNROLL
    for (int c = 0; c < 2; ++c) STRATA_UNROLL
    for (int i = 0; i < 4; ++i) x[c][i] = s[2 * g + i / 2][2 * c + i % 2];
    Bits16 high, low;
    operand_f16(x, up, high.word, low.word);
    store16(part.state_words + (2 * g * kWave + lane()) * 16, high);
    store16(part.state_words + ((2 * g + 1) * kWave + lane()) * 16, low);
  }
}

// Blocks of rows that have new ones.
__device__ inline bool needed(const NewSlots& fresh, int b) {
  return kBlock * b < fresh.end && kBlock * b + kBlock > fresh.begin;
}

__device__ inline void copy_words(uint32_t (&to)[4], const Bits16& from) {
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) to[i] = from.word[i];
}

// Sums over keys by the state, times its decay, of every block of rows that is needed; others may get any. Two sums of
// sixteen keys meet in matrix units, the rest in f32.
template <int kKeys>
__device__ inline void from_state(const Part<kKeys>& part, const char* plane, const float* start, const NewSlots& fresh,
                                  float* sums) {
  constexpr int kHalfBytes = kBlock / 2 * kKeys * 2;
  const float down[2] = {part.state_down[lane() / 4], part.state_down[lane() / 4 + 8]};
  // Lane 8 m + r gives row r of matrix m: keys 8 (m % 2) and on, high or low words.
  const char* rows[4];
  STRATA_UNROLL
  for (int g = 0; g < 4; ++g)
    rows[g] = piece<kKeys>(plane + lane() / 16 * DeltaChunkLayout<kKeys>::kPlane, lane() % 8, 2 * g + lane() / 8 % 2);
  STRATA_ONCE
  for (int pair = 0; pair < kBlocks; pair += 2) {  // four tiles of rows: two blocks
    if (!needed(fresh, pair) && !needed(fresh, pair + 1)) continue;
    float cross[4][4] = {}, sum[4][4] = {};
    STRATA_ONCE
    for (int four = 0; four < kKeys / 64; ++four) {
      float both[4][4];
      STRATA_UNROLL
      for (int g = 0; g < 4; ++g) {
        uint32_t high[4], low[4], keys[4][4];
        const char* words = part.state_words + ((8 * four + 2 * g) * kWave + lane()) * 16;
        copy_words(high, load16(words));
        copy_words(low, load16(words + kWave * 16));
        STRATA_UNROLL
        for (int i = 0; i < 4; ++i) load_matrices(keys[i], rows[g] + (2 * pair + i) * kHalfBytes + four * 128);
        STRATA_UNROLL
        for (int i = 0; i < 4; ++i) {
          const uint32_t keys_low[2] = {keys[i][2], keys[i][3]};
          mma_f16(cross[i], high, keys_low);
        }
        STRATA_UNROLL
        for (int i = 0; i < 4; ++i) {
          const uint32_t keys_high[2] = {keys[i][0], keys[i][1]};
          if (g % 2 == 0)
            mma_f16_first(both[i], high, keys_high);
          else
            mma_f16(both[i], high, keys_high);
        }
        STRATA_UNROLL
        for (int i = 0; i < 4; ++i) {
          const uint32_t keys_high[2] = {keys[i][0], keys[i][1]};
          mma_f16(cross[i], low, keys_high);
        }
        if (g % 2 == 0) continue;
        STRATA_UNROLL
        for (int i = 0; i < 4; ++i) STRATA_UNROLL
        for (int j = 0; j < 4; ++j) sum[i][j] = add_f32(sum[i][j], both[i][j]);
      }
    }
    STRATA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Float4 decay = load_float4(start + kBlock * (pair + i) + lane() % 4 * 4);
      Rows block;
      STRATA_UNROLL
      for (int c = 0; c < 2; ++c) STRATA_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int half = 2 * i + j / 2, at = 2 * c + j % 2;
        block[c][j] = mul_f32(mul_f32(fma_f32(cross[half][at], kLowDown, sum[half][at]), down[c]), decay.v[j]);
      }
      store_rows(rows_at(sums, pair + i, lane()), block);
    }
  }
}

// Corrections of the 16 slots of block b, decayed to its end, as an operand of three words.
__device__ inline void block_words(const float* table, int b, const Rows& u, uint32_t (&words)[3][4]) {
  const Float4 end = load_float4(table + Table::kBlockEnd + kBlock * b + lane() % 4 * 4);
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int c = i % 2, slot = i / 2 * 2;
    split_bf16(mul_f32(u[c][slot], end.v[slot]), mul_f32(u[c][slot + 1], end.v[slot + 1]), words[0][i], words[1][i],
               words[2][i]);
  }
}

// Their terms in the rows of the kBehind blocks behind it. Of blocks without new rows the products have no meaning and
// are not used.
template <int kBehind>
__device__ inline void from_block(const char* products, const float* table, int b, const NewSlots& fresh,
                                  const uint32_t (&corrections)[3][4], float* sums) {
  constexpr int kProduct = DeltaChunkLayout<64>::kProduct;
  float product[kBehind][2][4];
  STRATA_UNROLL
  for (int behind = 0; behind < kBehind; ++behind) STRATA_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int r = b + 1 + behind;
    const char* tile = products + ((r * (r - 1) / 2 + b) * 2 + half) * kProduct;
    const Bits16 four = load16(tile + lane() * 16);
    const auto* low = reinterpret_cast<const uint32_t*>(tile + 512 + lane() * 8);
    const uint32_t words[3][2] = {{four.word[0], four.word[1]}, {four.word[2], four.word[3]}, {low[0], low[1]}};
    product_bf16(product[behind][half], corrections, words);
  }
  STRATA_UNROLL
  for (int behind = 0; behind < kBehind; ++behind) {
    const int r = b + 1 + behind;
    if (!needed(fresh, r)) continue;
    const Float4 decay = load_float4(table + Table::kFromBlock + b * 64 + kBlock * r + lane() % 4 * 4);
    Rows sum;
    load_rows(rows_at(sums, r, lane()), sum);
    STRATA_UNROLL
    for (int c = 0; c < 2; ++c) STRATA_UNROLL
    for (int i = 0; i < 4; ++i) sum[c][i] = fma_f32(product[behind][i / 2][2 * c + i % 2], decay.v[i], sum[c][i]);
    store_rows(rows_at(sums, r, lane()), sum);
  }
}
// Terms of block b, with corrections u, in all blocks behind it that are needed.
__device__ inline void from_corrections(const char* products, const float* table, int b, const NewSlots& fresh,
                                        const Rows& u, float* sums) {
  if (b + 1 == kBlocks || fresh.end <= kBlock * (b + 1)) return;
  uint32_t words[3][4];
  block_words(table, b, u, words);
  if (b == 0)
    from_block<3>(products, table, b, fresh, words, sums);
  else if (b == 1)
    from_block<2>(products, table, b, fresh, words, sums);
  else
    from_block<1>(products, table, b, fresh, words, sums);
}

// Corrections of a block, decayed to the chunk's end, as operand words.
struct FoldWords {
  uint32_t high[4], low[4];
  float down[2];  // of the lane's columns
};
// Corrections of keys that are close to nothing may be large: the largest of a column is taken with the scale of the
// keys.
__device__ inline FoldWords fold_words(const float* table, int b, const Rows& u) {
  const int first = kBlock * b + lane() % 4 * 4;
  const Float4 decay = load_float4(table + Table::kFold + first), keys = load_float4(table + Table::kKeyScale + first);
  FoldWords words;
  Rows x;
  float up[2];
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) {
    float largest = 0;
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      x[c][i] = mul_f32(mul_f32(u[c][i], decay.v[i]), keys.v[i]);
      largest = larger(x[c][i], largest);
    }
    const Scale scale = scale_of(column_max(largest));
    up[c] = scale.up;
    words.down[c] = scale.down;
  }
  operand_f16(x, up, words.high, words.low);
  return words;
}

// Block b into the state, which has decayed to the chunk's end.
template <int kKeys>
__device__ inline void fold(const char* plane, int b, const FoldWords& words, float (&s)[kKeys / 8][4]) {
  constexpr int kTogether = kKeys <= 128 ? 4 : 2;
  // Lane 8 m + r gives row r of matrix m: rows 8 (m % 2) and on of the block, high or low words.
  const char* rows = plane + lane() / 16 * DeltaChunkLayout<kKeys>::kPlane +
                     (kBlock * b + lane() / 8 % 2 * 8 + lane() % 8) * (kKeys * 2);
  const int turn = lane() % 8;
  STRATA_UNROLL
  for (int first = 0; first < kKeys / 8; first += kTogether) {
    uint32_t keys[kTogether][4];
    float product[kTogether][4], cross[kTogether][4];
    STRATA_UNROLL
    for (int n = 0; n < kTogether; ++n)
      load_matrices_transposed(keys[n], rows + (((first + n) % 8 ^ turn) << 4) + (first + n) / 8 * 128);
    STRATA_UNROLL
    for (int n = 0; n < kTogether; ++n) {
      const uint32_t keys_low[2] = {keys[n][2], keys[n][3]};
      mma_f16_first(cross[n], words.high, keys_low);
    }
    STRATA_UNROLL
    for (int n = 0; n < kTogether; ++n) {
      const uint32_t keys_high[2] = {keys[n][0], keys[n][1]};
      mma_f16_first(product[n], words.high, keys_high);
    }
    STRATA_UNROLL
    for (int n = 0; n < kTogether; ++n) {
      const uint32_t keys_high[2] = {keys[n][0], keys[n][1]};
      mma_f16(cross[n], words.low, keys_high);
    }
    STRATA_UNROLL
    for (int n = 0; n < kTogether; ++n) STRATA_UNROLL
    for (int j = 0; j < 4; ++j) {
      float& x = s[first + n][j];
      x = fma_f32(fma_f32(cross[n][j], kLowDown, product[n][j]), words.down[j / 2], x);
    }
  }
}

}  // namespace
}  // namespace strata
