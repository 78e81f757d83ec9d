// 16-bit keys and values on matrix units, with the accuracy of f32: queries and weights are three 16-bit parts each,
// high, middle and low, whose products with keys and values are exact. A block of four waves computes one split for up
// to sixteen slots of one kv head; README.md, Arms, says how and what it costs in accuracy.
//
// Keys and values go from memory into the registers of the lane that multiplies them, 16 bytes at a time: the order of
// channels within 32 (of cells within 32, for values) is free as long as both operands have the same.
#include "ops/attention/device_cells.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = 128, kWaves = 4, kSlots = 16, kParts = 3;
constexpr int kPitch = kCellSplit + 8;  // of scores: rows of a tile fall into different banks

template <bool kF16>
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if (kF16)
    mma_f16(d, a, b);
  else
    mma_bf16(d, a, b);
}
template <bool kF16>
__device__ uint16_t bits_of(float x) {
  return kF16 ? f16_of_f32(x) : bf16_of_f32(x);
}
template <bool kF16>
__device__ float value_of(uint16_t bits) {
  return kF16 ? f32_of_f16(bits) : f32_of_bf16(bits);
}

// The left operands lie as [parts, kSlots, columns], in pieces of eight columns: where a piece is.
__device__ int piece_at(int columns, int part, int slot, int piece) {
  return ((part * kSlots + slot) * (columns / 8) + (piece ^ ((slot & 1) * 4))) * 16;
}

// x + rest as three parts; one, and not its rest, where x is no number.
template <bool kF16>
__device__ void split_value(float x, float rest, uint16_t (&parts)[kParts]) {
  const bool finite = (bits_of_f32(x) & 0x7f800000u) != 0x7f800000u;
  STRATA_UNROLL
  for (int i = 0; i < kParts; ++i) {
    parts[i] = bits_of<kF16>(x);
    x = finite ? x - value_of<kF16>(parts[i]) : 0.0f;
    if (i + 2 == kParts && finite) x += rest;
  }
}

template <bool kF16>
__device__ void store_parts(char* operands, int columns, int slot, int piece, const float (&x)[8],
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

// scale · q, exactly to twice the digits, eight threads to a slot. With f16 parts it is multiplied by a power of two
// that brings the largest channel near the end of their range; `inverse` undoes that.
template <int kDim, bool kF16>
__device__ void load_queries(const AttentionKernel& a, const Tile& tile, char* operands, float* inverse) {
  const int slot = thread() / 8;
  const int at = tile.first + slot;
  const bool there = slot < tile.count;
  const float* q = a.q + (there ? slot_row(a, at) * a.q_row + slot_head(a, tile, at) * a.q_head : 0);
  float power = 1;
  if (kF16) {
    float largest = 0;
    for (int i = thread() % 8; i < kDim; i += 8) {
      const float x = there ? q[i] * a.scale : 0.0f;
      largest = fmax_f32(x < 0 ? -x : x, largest);
    }
    for (int step = 1; step < 8; step *= 2) largest = fmax_f32(largest, shuffle_xor(largest, step));
    const int exponent = static_cast<int>(bits_of_f32(largest) >> 23) - 127;
    int shift = 14 - exponent;
    if (shift > 120) shift = 120;
    if (exponent == 128) shift = 0;
    power = f32_of_bits(static_cast<uint32_t>(shift + 127) << 23);
    if (thread() % 8 == 0) inverse[slot] = f32_of_bits(static_cast<uint32_t>(127 - shift) << 23);
  } else if (thread() % 8 == 0) {
    inverse[slot] = 1;
  }
  for (int piece = thread() % 8; piece < kDim / 8; piece += 8) {
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

// Eight channels of a cell, as they are.
__device__ Bits16 load_piece(const KvDevice& kv, const char* row, int piece) {
  if (kv.aligned != 0) return load16(row + piece * 16);
  const auto* elements = reinterpret_cast<const uint16_t*>(row) + piece * 8;
  Bits16 bits;
  for (int w = 0; w < 4; ++w) bits.word[w] = elements[2 * w] | static_cast<uint32_t>(elements[2 * w + 1]) << 16;
  return bits;
}

// The left operand of 32 columns: rows l / 4 and l / 4 + 8 of one part.
struct Left {
  Bits16 upper, lower;
};
__device__ Left load_left(const char* operands, int columns, int part, int piece) {
  const int line = lane() / 4;
  return {load16(operands + piece_at(columns, part, line, piece)),
          load16(operands + piece_at(columns, part, line + 8, piece))};
}

// sum += 16 of the columns, all of them or one half of each four.
enum class Take { All, First, Second };
template <bool kF16, Take kTake = Take::All>
__device__ void multiply_step(float (&sum)[4], const Left& left, int step, uint32_t b0, uint32_t b1) {
  const uint32_t* x = left.upper.word + 2 * step;
  const uint32_t* y = left.lower.word + 2 * step;
  if constexpr (kTake == Take::All) multiply<kF16>(sum, {x[0], y[0], x[1], y[1]}, {b0, b1});
  if constexpr (kTake == Take::First) multiply<kF16>(sum, {x[0], y[0], 0, 0}, {b0, b1});
  if constexpr (kTake == Take::Second) multiply<kF16>(sum, {0, 0, x[1], y[1]}, {b0, b1});
}

// 32 channels: the sums of 16 (of 8, for small heads) start at zero and are added in f32.
template <int kDim, bool kF16>
__device__ void multiply_pair(float (&sum)[4], const Left (&left)[kParts], const Bits16& key) {
  float half[2][4] = {};
  STRATA_UNROLL
  for (int step = 0; step < 2; ++step) {
    const uint32_t b0 = key.word[2 * step], b1 = key.word[2 * step + 1];
    multiply_step<kF16>(half[step], left[2], step, b0, b1);
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
__device__ float plain_score(const AttentionKernel& a, const Tile& tile, int slot, int n) {
  const int at = tile.first + slot;
  const float* q = a.q + slot_row(a, at) * a.q_row + slot_head(a, tile, at) * a.q_head;
  const char* key = cell_at(a.k, cell_of(a, tile, n), tile.kv_head);
  float dot = 0;
  for (int i = 0; i < a.dim; ++i) dot = fma_f32(q[i], value_of<kF16>(reinterpret_cast<const uint16_t*>(key)[i]), dot);
  return dot * a.scale;
}

// The binary tree over sums of 32 channels, as they come: `done` is how many have.
__device__ void join_sums(float (&sum)[4], float (&waiting)[3][2][4], int t, int done) {
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

// Sixteen cells from `first` on.
template <int kDim, bool kF16>
__device__ void score_cells(const AttentionKernel& a, const Tile& tile, int first, int most, const char* operands,
                            const float* inverse, float* scores) {
  constexpr int kPairs = kDim / 32, kBatch = kPairs < 4 ? kPairs : 4;  // pieces of a cell that are loaded at a time
  const int column = lane() % 4, line = lane() / 4;
  const char* from[2];
  for (int t = 0; t < 2; ++t) {
    const int n = first + 8 * t + line;
    from[t] = n < most ? cell_at(a.k, cell_of(a, tile, n), tile.kv_head) : nullptr;
  }
  float sums[2][4] = {}, waiting[3][2][4] = {};  // sums of 32, 64 and 128 channels whose neighbour is to come
  STRATA_UNROLL
  for (int batch = 0; batch < kPairs; batch += kBatch) {
    Bits16 keys[2][kBatch] = {};
    STRATA_UNROLL
    for (int i = 0; i < 2 * kBatch; ++i)
      if (from[i / kBatch] != nullptr)
        keys[i / kBatch][i % kBatch] = load_piece(a.k, from[i / kBatch], 4 * (batch + i % kBatch) + column);
    STRATA_UNROLL
    for (int p = batch; p < batch + kBatch; ++p) {
      Left left[kParts];
      STRATA_UNROLL
      for (int part = 0; part < kParts; ++part) left[part] = load_left(operands, kDim, part, 4 * p + column);
      STRATA_UNROLL
      for (int t = 0; t < 2; ++t) {
        multiply_pair<kDim, kF16>(sums[t], left, keys[t][p - batch]);
        join_sums(sums[t], waiting, t, p + 1);
      }
    }
  }
  STRATA_UNROLL
  for (int t = 0; t < 2; ++t)
    for (int i = 0; i < 4; ++i) {
      const int slot = line + 8 * (i / 2), n = first + 8 * t + 2 * column + i % 2;
      float score = sums[t][i] * inverse[slot];
      if (score != score && slot < tile.count && n < most) score = plain_score<kF16>(a, tile, slot, n);
      scores[slot * kPitch + n] = score;
    }
}

constexpr float kWeightPower = 16384;  // weights as f16 parts

template <bool kF16>
__device__ void split_weights(const float* scores, const int* seen, char* operands) {
  for (int i = thread(); i < kSlots * kCellSplit / 8; i += kThreads) {
    const int slot = i / (kCellSplit / 8), piece = i % (kCellSplit / 8);
    float x[8], rest[8] = {};
    STRATA_UNROLL
    for (int j = 0; j < 8; ++j)
      x[j] = seen[slot] > 0 ? scores[slot * kPitch + piece * 8 + j] * (kF16 ? kWeightPower : 1.0f) : 0.0f;
    store_parts<kF16>(operands, kCellSplit, slot, piece, x, rest);
  }
}

// Infinities and NaN of a word become 0.
template <bool kF16>
__device__ uint32_t finite_halves(uint32_t word) {
  const uint32_t high = kF16 ? 0x7c00u : 0x7f80u;
  if ((word & high) == high) word &= 0xffff0000u;
  if ((word >> 16 & high) == high) word &= 0xffffu;
  return word;
}

// The sums over cells begin .. end - 1 of 64 channels: tile j has channel 8 · column + j.
template <bool kF16, bool kFinite>
__device__ void sum_values(const AttentionKernel& a, const Tile& tile, int begin, int end, int most, int chunk,
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
      values[j] = load_piece(a.v, cell_at(a.v, cell_of(a, tile, n), tile.kv_head), chunk * 8 + line);
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

__device__ bool all_finite(const float (&sums)[8][4]) {
  bool finite = true;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) finite = finite && (bits_of_f32(sums[j][i]) & 0x7f800000u) != 0x7f800000u;
  return finite;
}

// Channels with a value that is no number are NaN for the slots that see its cell, and for no others.
template <bool kF16>
__device__ void spread_bad(const AttentionKernel& a, const Tile& tile, int begin, int end, int chunk, const int* seen,
                           float (&sums)[8][4]) {
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

template <int kDim, bool kF16>
__device__ void attend(const AttentionKernel& a) {
  constexpr int kChunks = kDim / 64, kShare = kCellSplit * kChunks / kWaves;  // cells of a wave's sums
  const int columns = kDim > kCellSplit ? kDim : kCellSplit;
  char* operands = shared_memory();
  auto* scores = reinterpret_cast<float*>(operands + kParts * kSlots * columns * 2);  // [kSlots, kPitch]
  float* inverse = scores + kSlots * kPitch;
  auto* seen = reinterpret_cast<int*>(inverse + kSlots);
  const Tile tile = tile_of(a);
  const int most = all_seen(a, tile, kSlots, seen);
  if (most == 0) return;
  load_queries<kDim, kF16>(a, tile, operands, inverse);
  barrier();
  for (int first = wave_index() * (kCellSplit / kWaves); first < (wave_index() + 1) * (kCellSplit / kWaves);
       first += 16)
    if (first < most) score_cells<kDim, kF16>(a, tile, first, most, operands, inverse, scores);
  barrier();
  for (int slot = wave_index(); slot < tile.count; slot += kWaves)
    if (seen[slot] > 0) weigh(a, tile, tile.first + slot, seen[slot], scores + slot * kPitch);
  barrier();
  split_weights<kF16>(scores, seen, operands);
  barrier();
  const int chunk = wave_index() % kChunks, share = wave_index() / kChunks;
  const int begin = share * kShare, end = begin + kShare;
  float sums[8][4];
  sum_values<kF16, false>(a, tile, begin, end, most, chunk, operands, sums);
  if (gpu::ballot(!all_finite(sums)) != 0) {
    sum_values<kF16, true>(a, tile, begin, end, most, chunk, operands, sums);
    spread_bad<kF16>(a, tile, begin, end, chunk, seen, sums);
  }
  const int column = lane() % 4, line = lane() / 4;
  // Later shares of the cells go through shared memory to the waves of the first.
  if (kChunks < kWaves) {
    if (share > 0)
      for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 4; ++i) scores[((wave_index() - kChunks) * 32 + j * 4 + i) * kWave + lane()] = sums[j][i];
    barrier();
    if (share > 0) return;
    for (int other = 0; other + kChunks < kWaves; other += kChunks)
      for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 4; ++i) sums[j][i] += scores[((other + chunk) * 32 + j * 4 + i) * kWave + lane()];
  }
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int slot = line + 8 * (i / 2);
    if (slot >= tile.count || seen[slot] == 0) continue;
    float* to = a.a + partial_at(a, tile, tile.first + slot) * kDim + chunk * 64 + 8 * (2 * column + i % 2);
    const float power = kF16 ? 1 / kWeightPower : 1.0f;
    STRATA_UNROLL
    for (int j = 0; j < 8; j += 4)
      store_float4(to + j,
                   {{sums[j][i] * power, sums[j + 1][i] * power, sums[j + 2][i] * power, sums[j + 3][i] * power}});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 3) attention_bf16_64(const AttentionKernel a) {
  attend<64, false>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_bf16_128(const AttentionKernel a) {
  attend<128, false>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_bf16_256(const AttentionKernel a) {
  attend<256, false>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_f16_64(const AttentionKernel a) { attend<64, true>(a); }
extern "C" __global__ void __launch_bounds__(128, 3) attention_f16_128(const AttentionKernel a) {
  attend<128, true>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_f16_256(const AttentionKernel a) {
  attend<256, true>(a);
}
