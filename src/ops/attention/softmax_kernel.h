// The kernel of attention and sparse_attention on sixteen lanes, compiled once per instruction set.
//
// A score is the dot product of 16 lanes along the channels and one tree (sum16). The sum over values runs along the
// channels, cell after cell. Tiles of queries x cells only decide which of these independent sums are in work together,
// so that a key or value in a register meets several queries: no bit of a result depends on them.
#pragma once

#include <cstdint>

#include "base/fault.h"
#include "base/simd.h"
#include "ops/attention/softmax_kernel_types.h"

namespace strata {
namespace {

// The accumulators of a tile, with what they are fed from, fill the registers.
#if defined(__AVX512F__)
constexpr int kTileQueries = 6, kTileCells = 4, kTileChannels = 4;  // channels: in units of 16
#elif defined(__AVX2__)
constexpr int kTileQueries = 2, kTileCells = 2, kTileChannels = 2;
#else
constexpr int kTileQueries = 1, kTileCells = 1, kTileChannels = 1;
#endif

// Sixteen values from channel i on, a multiple of 16. Of a block they are level · scale, as gguf/quant.h decodes it;
// the product is exact.
template <KvType type>
STRATA_SIMD F32x16 load_kv(const char* row, int64_t i) {
  if constexpr (in_blocks(type)) {
    const char* block = row + i / kKvBlock * kv_unit_bytes(type);
    uint16_t half;
    __builtin_memcpy(&half, block, sizeof half);
    const F32x16 scale = broadcast16_f16(half);
    if constexpr (type == KvType::Q8_0) return load16_i8(block + 2 + (i & 16)) * scale;
    return load16_level4(block + 2, (i & 16) != 0 ? 4 : 0) * scale;  // low halves first
  }
  if constexpr (type == KvType::F32) return load16(reinterpret_cast<const float*>(row) + i);
  if constexpr (type == KvType::F16) return load16_f16(reinterpret_cast<const uint16_t*>(row) + i);
  return load16_bf16(reinterpret_cast<const uint16_t*>(row) + i);
}

// One cell's values as f32, zeros up to width.
template <KvType type>
STRATA_SIMD void expand(const char* source, int64_t dim, float* out) {
  constexpr int64_t kBytes = kv_unit_bytes(type);
  const int64_t whole = dim / 16 * 16, rest = dim > whole && fault(Fault::SkipTail) ? 0 : dim - whole;
  for (int64_t i = 0; i < whole; i += 16) store16(out + i, load_kv<type>(source, i));
  if (rest == 0) return;
  char tail[16 * kBytes] = {};
  for (int64_t i = 0; i < rest * kBytes; ++i) tail[i] = source[whole * kBytes + i];
  store16(out + whole, load_kv<type>(tail, 0));
}

STRATA_SIMD const char* cell_at(const SoftmaxSplit& s, const KvCells& cells, int64_t n) {
  const int64_t cell = s.ids != nullptr ? s.ids[n] : s.first + n;
  if (cells.pages == nullptr) return cells.data + cell * cells.stride;
  return static_cast<const char*>(cells.pages[cell >> cells.page_shift]) + (cell & cells.page_mask) * cells.stride +
         cells.offset;
}

// The cache lines of the block that comes next. They are asked for a few at a time between multiply-adds, so that
// memory works while a block is computed and never has more requests than it can hold. Whole cells in order, all heads:
// that is the stream that memory likes best.
struct Ahead {
  static constexpr int64_t kMost = 1024, kPad = 16;
  const char* lines[kMost + kPad];
  int64_t count, done = 0;
  int64_t each;  // of one step
};

// For a block of `steps` steps. What does not fit is left to the demand of that block.
STRATA_SIMD void look_ahead(Ahead& a, const SoftmaxSplit& s, const KvCells& cells, int64_t begin, int64_t end,
                            int64_t steps) {
  const int64_t bytes = kv_bytes(cells.type, s.dim);
  a.count = a.done = 0;
  for (int64_t n = begin; n < end; ++n)
    for (int64_t x = 0; x < s.kv_heads; ++x) {
      const char* piece = cell_at(s, cells, n) + x * cells.head_stride;
      for (int64_t byte = 0; byte < bytes && a.count < Ahead::kMost; byte += 64) a.lines[a.count++] = piece + byte;
    }
  a.each = (a.count + steps - 1) / steps;
  if (a.each > Ahead::kPad) a.each = Ahead::kPad;
  for (int64_t i = 0; i < a.each; ++i) a.lines[a.count + i] = s.k.data;
}

STRATA_SIMD void step(Ahead& a) {
  if (a.done >= a.count) return;
  for (int64_t i = 0; i < a.each; ++i) __builtin_prefetch(a.lines[a.done + i]);
  a.done += a.each;
}

// Points rows[0 .. kSoftmaxBlock) at one head of cells begin .. begin + count - 1 of the split; what is left of the
// block repeats the last one. Heads whose size is no multiple of 16 are copied as f32; true when they were. Heads in
// blocks never are.
template <KvType type>
STRATA_SIMD bool fetch(const SoftmaxSplit& s, const KvCells& cells, int64_t head, int64_t begin, int64_t count,
                       const char** rows) {
  const bool copied = !in_blocks(type) && s.dim != s.width;
  for (int64_t i = 0; i < count; ++i) {
    const char* source = cell_at(s, cells, begin + i) + head * cells.head_stride;
    if constexpr (!in_blocks(type))
      if (copied) expand<type>(source, s.dim, s.rows + i * s.width);
    rows[i] = copied ? reinterpret_cast<const char*>(s.rows + i * s.width) : source;
  }
  for (int64_t i = count; i < kSoftmaxBlock; ++i) rows[i] = rows[count - 1];
  return copied;
}

// out[i] = scale · sum16(a[i])
STRATA_SIMD void store_sums(const F32x16* a, float scale, float* out) {
#if defined(__AVX512F__)
  static_assert(kTileCells == 4);
  constexpr int kLow = 0x44, kHigh = 0xee, kEven = 0x88, kOdd = 0xdd;
  const __m512 ab =
      _mm512_add_ps(_mm512_shuffle_f32x4(a[0].v, a[1].v, kLow), _mm512_shuffle_f32x4(a[0].v, a[1].v, kHigh));
  const __m512 cd =
      _mm512_add_ps(_mm512_shuffle_f32x4(a[2].v, a[3].v, kLow), _mm512_shuffle_f32x4(a[2].v, a[3].v, kHigh));
  const __m512 four = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, kEven), _mm512_shuffle_f32x4(ab, cd, kOdd));
  const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4e));
  const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
  const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m128 sums = _mm512_castps512_ps128(_mm512_permutexvar_ps(first, one));
  _mm_storeu_ps(out, _mm_mul_ps(sums, _mm_set1_ps(scale)));
#else
  for (int i = 0; i < kTileCells; ++i) out[i] = sum16(a[i]) * scale;
#endif
}

template <KvType type, int Queries>
STRATA_SIMD void score_tile(const float* q, int64_t width, const char* const* rows, float scale, float* scores,
                            Ahead& ahead) {
  F32x16 sums[Queries][kTileCells];
  for (int t = 0; t < Queries; ++t)
    for (int c = 0; c < kTileCells; ++c) sums[t][c] = zero16();
  for (int64_t i = 0; i < width; i += 16) {
    step(ahead);
    F32x16 key[kTileCells];
    for (int c = 0; c < kTileCells; ++c) key[c] = load_kv<type>(rows[c], i);
    for (int t = 0; t < Queries; ++t) {
      const F32x16 x = load16(q + t * width + i);
      for (int c = 0; c < kTileCells; ++c) sums[t][c] = fma16(x, key[c], sums[t][c]);
    }
  }
  if (fault(Fault::DropLane)) {
    float lanes[16];
    store16(lanes, sums[0][0]);
    lanes[11] = 0;
    sums[0][0] = load16(lanes);
  }
  for (int t = 0; t < Queries; ++t) store_sums(sums[t], scale, scores + t * kSplit);
  if (Queries > 1 && fault(Fault::TransposeTile))
    for (int t = 0; t < Queries && t < kTileCells; ++t)
      for (int c = 0; c < t; ++c) {
        const float keep = scores[t * kSplit + c];
        scores[t * kSplit + c] = scores[c * kSplit + t];
        scores[c * kSplit + t] = keep;
      }
}

// `queries` is 1 .. kTileQueries.
template <KvType type, int Queries = kTileQueries>
STRATA_SIMD void score_block(int64_t queries, const float* q, int64_t width, const char* const* rows, float scale,
                             float* scores, Ahead& ahead) {
  if constexpr (Queries > 1)
    if (queries < Queries) return score_block<type, Queries - 1>(queries, q, width, rows, scale, scores, ahead);
  for (int64_t c = 0; c < kSoftmaxBlock; c += kTileCells)
    score_tile<type, Queries>(q, width, rows + c, scale, scores + c, ahead);
}

// a += weights · values over `cells` cells, from channel `at` on.
template <KvType type, int Queries, int Channels>
STRATA_SIMD void value_tile(const float* weights, const char* const* rows, int64_t cells, int64_t at, float* a,
                            int64_t width, Ahead& ahead) {
  F32x16 sums[Queries][Channels];
  for (int t = 0; t < Queries; ++t)
    for (int j = 0; j < Channels; ++j) sums[t][j] = load16(a + t * width + at + j * 16);
  for (int64_t c = 0; c < cells; ++c) {
    step(ahead);
    F32x16 value[Channels];
    for (int j = 0; j < Channels; ++j) value[j] = load_kv<type>(rows[c], at + j * 16);
    for (int t = 0; t < Queries; ++t) {
      const F32x16 weight = broadcast16(weights[t * kSplit + c]);
      for (int j = 0; j < Channels; ++j) sums[t][j] = fma16(weight, value[j], sums[t][j]);
    }
  }
  for (int t = 0; t < Queries; ++t)
    for (int j = 0; j < Channels; ++j) store16(a + t * width + at + j * 16, sums[t][j]);
}

template <KvType type, int Queries = kTileQueries>
STRATA_SIMD void value_block(int64_t queries, const float* weights, const char* const* rows, int64_t cells, float* a,
                             int64_t width, Ahead& ahead) {
  if constexpr (Queries > 1)
    if (queries < Queries) return value_block<type, Queries - 1>(queries, weights, rows, cells, a, width, ahead);
  int64_t at = 0;
  for (; at + kTileChannels * 16 <= width; at += kTileChannels * 16) {
    value_tile<type, Queries, kTileChannels>(weights, rows, cells, at, a, width, ahead);
  }
  for (; at < width; at += 16) value_tile<type, Queries, 1>(weights, rows, cells, at, a, width, ahead);
}

// Scores become weights e^(s - m), zeros up to the next 16; a split without a weight has m = -infinity, l = 0.
STRATA_SIMD void weigh(float* scores, int64_t count, float* m, float* l) {
  const int64_t padded = (count + 15) / 16 * 16;
  for (int64_t i = count; i < padded; ++i) scores[i] = -__builtin_inff();
  F32x16 best = broadcast16(-__builtin_inff()), sum = zero16();
  bool nan = false;
  for (int64_t i = 0; i < padded; i += 16) {
    const F32x16 score = load16(scores + i);
    nan = nan || any_nan(score);
    best = max16(best, score);
  }
  // A NaN score must reach the result: with m = NaN every weight is one.
  *m = nan ? __builtin_nanf("") : max_of16(best);
  const bool none = *m == -__builtin_inff();
  for (int64_t i = 0; i < padded; i += 16) {
    const F32x16 score = load16(scores + i), top = broadcast16(*m);
    const F32x16 weight = none                        ? zero16()
                          : fault(Fault::OverflowExp) ? exp16(score) * exp16(zero16() - top)
                                                      : exp16(score - top);
    store16(scores + i, weight);
    sum = sum + weight;
  }
  *l = sum16(sum);
}

STRATA_SIMD int64_t within(int64_t count, int64_t begin) {
  const int64_t rest = count - begin;
  return rest < 0 ? 0 : (rest > kSoftmaxBlock ? kSoftmaxBlock : rest);
}

// Queries in tiles of equal size.
int64_t tiles_of(const SoftmaxSplit& s) { return (s.queries + kTileQueries - 1) / kTileQueries; }
int64_t tile_of(const SoftmaxSplit& s) { return (s.queries + tiles_of(s) - 1) / tiles_of(s); }

template <KvType type>
void score_head(const SoftmaxSplit& s, int64_t head, int64_t begin, const char* const* rows, Ahead& ahead) {
  const int64_t tile = tile_of(s);
  for (int64_t t = 0; t < s.queries; t += tile) {
    const int64_t at = head * s.queries + t, rest = s.queries - t;
    score_block<type>(rest < tile ? rest : tile, s.q + at * s.width, s.width, rows, s.scale,
                      s.scores + at * kSplit + begin, ahead);
  }
}

template <KvType type>
void score_cells(const SoftmaxSplit& s, int64_t cells, Ahead& ahead) {
  const char* rows[kSoftmaxBlock];
  const int64_t steps = s.kv_heads * tiles_of(s) * (kSoftmaxBlock / kTileCells) * s.width / 16;
  for (int64_t begin = 0; begin < cells; begin += kSoftmaxBlock) {
    const int64_t next = begin + kSoftmaxBlock;
    if (next < cells)
      look_ahead(ahead, s, s.k, next, next + within(cells, next), steps);
    else
      look_ahead(ahead, s, s.v, 0, within(cells, 0), steps);
    for (int64_t head = 0; head < s.kv_heads; ++head)
      if (fetch<type>(s, s.k, head, begin, within(cells, begin), rows))
        score_head<KvType::F32>(s, head, begin, rows, ahead);
      else
        score_head<type>(s, head, begin, rows, ahead);
  }
}

// A tile takes queries that see equally many cells: values behind a query's own cells must not meet it, not even with
// weight 0.
template <KvType type>
void sum_head(const SoftmaxSplit& s, int64_t head, int64_t begin, const char* const* rows, Ahead& ahead) {
  const int64_t tile = tile_of(s);
  for (int64_t t = 0, end = 0; t < s.queries; t = end) {
    const int64_t seen = within(s.counts[t], begin), at = head * s.queries + t;
    for (end = t + 1; end < s.queries && end - t < tile && within(s.counts[end], begin) == seen;) ++end;
    const int64_t used = seen % 4 != 0 && fault(Fault::SkipTail) ? seen / 4 * 4 : seen;
    value_block<type>(end - t, s.scores + at * kSplit + begin, rows, used, s.a + at * s.width, s.width, ahead);
  }
}

template <KvType type>
void sum_cells(const SoftmaxSplit& s, int64_t cells, Ahead& ahead) {
  const char* rows[kSoftmaxBlock];
  const int64_t channels = (s.width / 16 + kTileChannels - 1) / kTileChannels;
  const int64_t steps = s.kv_heads * tiles_of(s) * channels * kSoftmaxBlock;
  for (int64_t begin = 0; begin < cells; begin += kSoftmaxBlock) {
    // Behind the last values come the keys of the next split; a list does not say where.
    const int64_t next = begin + kSoftmaxBlock;
    if (next < cells)
      look_ahead(ahead, s, s.v, next, next + within(cells, next), steps);
    else
      look_ahead(ahead, s, s.k, kSplit, s.ids == nullptr ? kSplit + kSoftmaxBlock : kSplit, steps);
    for (int64_t head = 0; head < s.kv_heads; ++head)
      if (fetch<type>(s, s.v, head, begin, within(cells, begin), rows))
        sum_head<KvType::F32>(s, head, begin, rows, ahead);
      else
        sum_head<type>(s, head, begin, rows, ahead);
  }
}

using Phase = void (*)(const SoftmaxSplit&, int64_t cells, Ahead&);
constexpr Phase kScore[] = {score_cells<KvType::F32>, score_cells<KvType::F16>, score_cells<KvType::BF16>,
                            score_cells<KvType::Q8_0>, score_cells<KvType::Q4_0>};
constexpr Phase kSum[] = {sum_cells<KvType::F32>, sum_cells<KvType::F16>, sum_cells<KvType::BF16>,
                          sum_cells<KvType::Q8_0>, sum_cells<KvType::Q4_0>};

void attend_split(const SoftmaxSplit& s) {
  Ahead ahead;
  int64_t cells = 0;
  for (int64_t t = 0; t < s.queries; ++t) cells = s.counts[t] > cells ? s.counts[t] : cells;
  kScore[static_cast<int>(s.k.type)](s, cells, ahead);
  const int64_t queries = s.kv_heads * s.queries;
  for (int64_t i = 0; i < queries; ++i) weigh(s.scores + i * kSplit, s.counts[i % s.queries], s.m + i, s.l + i);
  for (int64_t i = 0; i < queries * s.width; i += 16) store16(s.a + i, zero16());
  kSum[static_cast<int>(s.v.type)](s, cells, ahead);
}

// e^x of one number, as exp16 gives it.
STRATA_SIMD F32x16 exp_all(float x) { return exp16(broadcast16(x)); }

void merge_split(SoftmaxState& state, float m, float l, const float* a, int64_t width) {
  const float none = -__builtin_inff();
  if (m == none && fault(Fault::MergeEmptySplit)) m = 0, l = 1;
  if (m == none) return;
  if (state.m == none) {  // the first one with a weight
    state.m = m;
    state.l = l;
    for (int64_t i = 0; i < width; i += 16) store16(state.a + i, load16(a + i));
    return;
  }
  float factor[16];
  if (m > state.m) {
    const F32x16 keep = exp_all(state.m - m);
    store16(factor, keep);
    state.m = m;
    state.l = state.l * factor[0] + l;
    for (int64_t i = 0; i < width; i += 16) store16(state.a + i, fma16(load16(state.a + i), keep, load16(a + i)));
    return;
  }
  const F32x16 take = exp_all(m - state.m);  // NaN when a score was
  store16(factor, take);
  state.l = state.l + l * factor[0];
  for (int64_t i = 0; i < width; i += 16) store16(state.a + i, fma16(load16(a + i), take, load16(state.a + i)));
}

void finish_row(const SoftmaxState& state, float* out, int64_t dim) {
  const bool none = state.m == -__builtin_inff();
  const F32x16 inverse = broadcast16(1.0f / state.l);
  for (int64_t i = 0; i < dim; i += 16) {
    const F32x16 value = none ? zero16() : load16(state.a + i) * inverse;
    store16_first(out + i, value, dim - i < 16 ? dim - i : 16);
  }
  if (fault(Fault::WritePastSet)) out[dim] = 0;
}

}  // namespace
}  // namespace strata
