// only: cuda
// The chunk form: states through their chunks, row by row what README.md says. A block takes 16 columns of the value
// heads of one key head, at most three, four waves a head. Wave p of a head has 16 rows of a chunk and a quarter of the
// state, which lies in registers, transposed: columns by keys. Matrix units see it in two f16 words.
#include "ops/gated_delta/chunk_device.h"

using namespace strata;
using namespace strata::gpu;

namespace {

using Table = DeltaChunkTable;

constexpr int kColumns = 16, kPitch = 20;  // columns of a block; floats of a row of them in shared memory

template <int kKeys>
struct Part {
  using Layout = DeltaChunkLayout<kKeys>;
  static constexpr int kGroups = kKeys / 16, kOwn = kGroups / 4;  // sixteens of keys: all, and of a wave
  static constexpr int kKeyBuffers = kKeys <= 128 ? 2 : 1;
  static constexpr int kHeadBytes =
      Layout::kHead + kGroups * (1024 + 64) + 64 * kPitch * 4 + 4 * kColumns * kPitch * 4 + 4 * (1024 + 64);

  int p;                    // which wave of its head
  char *keys, *queries;     // planes
  char* products;           // of the key head
  float *diagonal, *table;  // of the head
  char* state_words;        // [group, high or low, lane] 16 bytes
  float* state_down;        // [group, column]
  float* u;                 // [slot, column]
  float* tile;              // of the wave: [row, column]
  char* fold_words;         // [block, high or low, lane] 16 bytes
  float* fold_down;         // [block, column]

  __device__ Part(int heads) {
    const int head = wave_index() / 4;
    p = wave_index() % 4;
    char* at = shared_memory();
    keys = at;
    queries = keys + kKeyBuffers * Layout::kQueries;
    products = queries + Layout::kQueries;
    char* factors = products + Layout::kProductBytes;
    diagonal = reinterpret_cast<float*>(factors + head * Layout::kHead);
    table = diagonal + Layout::kTable / 4;
    at = factors + heads * Layout::kHead + head * (kHeadBytes - Layout::kHead);
    state_words = at;
    fold_words = state_words + kGroups * 1024;
    state_down = reinterpret_cast<float*>(fold_words + 4 * 1024);
    fold_down = state_down + kGroups * kColumns;
    u = fold_down + 4 * kColumns;
    tile = u + 64 * kPitch + p * kColumns * kPitch;
  }
};

// What a block works on.
struct Place {
  int64_t key_head, head, column;  // the column of lane l % 16
  int64_t first;                   // row of the call at slot 0 of the chunk
  int heads;                       // of the block
  int64_t first_index;             // of its value heads among those of the key head
  bool active, inside;             // the head, the column exist
};

__device__ inline Place place_of(const DeltaChunksKernel& a) {
  Place place;
  const int64_t repeat = a.at.value_heads / a.at.key_heads, item = block_x() / a.slices;
  place.heads = threads() / (4 * kWave);
  place.key_head = item / a.groups;
  place.first_index = item % a.groups * place.heads;
  const int64_t index = place.first_index + wave_index() / 4;
  place.active = index < repeat;
  place.head = value_head(a.at, place.key_head, place.active ? index : 0);
  place.column = block_x() % a.slices * kColumns + lane() % kColumns;
  place.inside = place.active && place.column < a.at.dv;
  place.first = 0;
  return place;
}

// visit(element, its key, its column): the wave's part of the state.
template <int kOwn, class Visit>
__device__ inline void for_state(float (&s)[kOwn][2][4], int p, Visit visit) {
  STRATA_UNROLL
  for (int g = 0; g < kOwn; ++g) STRATA_UNROLL
  for (int n = 0; n < 2; ++n) STRATA_UNROLL
  for (int i = 0; i < 4; ++i)
    visit(s[g][n][i], 16 * (p * kOwn + g) + 8 * n + 2 * (lane() % 4) + i % 2, lane() / 4 + i / 2 * 8);
}

template <int kOwn>
__device__ inline void move_state(const DeltaChunksKernel& a, const Place& place, int p, bool load,
                                  float (&s)[kOwn][2][4]) {
  float* state = a.state + place.head * a.state_head;
  const int64_t first = place.column - lane() % kColumns;
  for_state(s, p, [&](float& x, int key, int column) {
    const bool real = place.active && key < a.at.dk && first + column < a.at.dv;
    if (load)
      x = real ? state[key * a.state_key + first + column] : 0.0f;
    else if (real)
      state[key * a.state_key + first + column] = x;
  });
}

// The largest of x over the lanes of a column.
__device__ inline float column_max(float x) {
  x = fmax_f32(shuffle_xor(x, 1), x);
  return fmax_f32(shuffle_xor(x, 2), x);
}

// Sixteen numbers of each column, pairs (row l/4 + 8 i % 2, half i / 2) as operand words, to shared memory.
__device__ inline void store_words(const float (&x)[4][2], char* words, float* down) {
  uint32_t high[4], low[4];
  STRATA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float largest = fmax_f32(fmax_f32(magnitude(x[r][0]), fmax_f32(magnitude(x[r][1]), 0.0f)),
                                   fmax_f32(magnitude(x[r + 2][0]), fmax_f32(magnitude(x[r + 2][1]), 0.0f)));
    const Scale scale = scale_of(column_max(largest));
    if (lane() % 4 == 0) down[lane() / 4 + 8 * r] = scale.down;
    STRATA_UNROLL
    for (int n = r; n < 4; n += 2) split_f16(mul_f32(x[n][0], scale.up), mul_f32(x[n][1], scale.up), high[n], low[n]);
  }
  store16(words + lane() * 16, {{high[0], high[1], high[2], high[3]}});
  store16(words + 512 + lane() * 16, {{low[0], low[1], low[2], low[3]}});
}
__device__ inline void load_words(const char* words, uint32_t (&high)[4], uint32_t (&low)[4]) {
  const Bits16 a = load16(words + lane() * 16), b = load16(words + 512 + lane() * 16);
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    high[i] = a.word[i];
    low[i] = b.word[i];
  }
}

template <int kKeys>
__device__ inline void store_state_words(const Part<kKeys>& part, const float (&s)[Part<kKeys>::kOwn][2][4]) {
  STRATA_UNROLL
  for (int g = 0; g < Part<kKeys>::kOwn; ++g) {
    const float x[4][2] = {
        {s[g][0][0], s[g][0][1]}, {s[g][0][2], s[g][0][3]}, {s[g][1][0], s[g][1][1]}, {s[g][1][2], s[g][1][3]}};
    const int group = part.p * Part<kKeys>::kOwn + g;
    store_words(x, part.state_words + group * 1024, part.state_down + group * kColumns);
  }
}

// Copies that come while the block goes on.
__device__ inline void copy_bytes(char* to, const char* from, int begin, int end) {
  for (int at = begin + thread() * 16; at < end; at += threads() * 16) copy16_async(to + at, from + at);
}
template <int kKeys>
__device__ inline void copy_rows(char* to, const char* from, const NewSlots& fresh, bool all) {
  const int row = kKeys * 2, begin = all ? 0 : fresh.begin / 8 * 8, end = all ? 64 : (fresh.end + 7) / 8 * 8;
  STRATA_UNROLL
  for (int plane = 0; plane < 2; ++plane)
    copy_bytes(to + plane * 64 * row, from + plane * 64 * row, begin * row, end * row);
}

template <int kKeys>
struct Feed {
  using Layout = DeltaChunkLayout<kKeys>;
  const DeltaChunksKernel& a;
  const Place& place;
  const Part<kKeys>& part;

  __device__ const char* factors(int64_t chunk) const {
    const int64_t repeat = a.at.value_heads / a.at.key_heads;
    return a.factors +
           ((chunk - a.at.first_chunk) * a.at.key_heads + place.key_head) * (Layout::kHeads + repeat * Layout::kHead);
  }
  __device__ bool ends(int64_t chunk) const { return chunk >= a.at.first_chunk + a.at.chunks; }
  __device__ char* keys(int64_t chunk) const {
    return part.keys + (chunk - a.at.first_chunk) % Part<kKeys>::kKeyBuffers * Layout::kQueries;
  }

  __device__ void keys_of(int64_t chunk) const {
    if (ends(chunk)) return;
    const NewSlots fresh = new_slots(a.at, chunk);
    copy_rows<kKeys>(keys(chunk), factors(chunk), fresh, fresh.fold);
  }
  __device__ void queries_of(int64_t chunk) const {
    if (!ends(chunk)) copy_rows<kKeys>(part.queries, factors(chunk) + Layout::kQueries, new_slots(a.at, chunk), false);
  }
  // Products of row blocks that have new rows, tables.
  __device__ void tables_of(int64_t chunk) const {
    if (ends(chunk)) return;
    const NewSlots fresh = new_slots(a.at, chunk);
    const char* from = factors(chunk);
    char* to = part.products;
    const int first = fresh.begin / 16, last = (fresh.end - 1) / 16;
    copy_bytes(to, from + Layout::kProducts, first * (first - 1) / 2 * Layout::kPair,
               last * (last + 1) / 2 * Layout::kPair);
    const int64_t repeat = a.at.value_heads / a.at.key_heads;
    for (int head = 0; head < place.heads && place.first_index + head < repeat; ++head) {
      char* own = to + Layout::kProductBytes + head * Layout::kHead;
      const char* source = from + Layout::kHeads + (place.first_index + head) * Layout::kHead;
      for (int half = 0; half < 2; ++half)
        copy_bytes(own + half * 4096, source + half * 4096, first * 1024, (last + 1) * 1024);
      copy_bytes(own, source, Layout::kTable, Layout::kHead);
    }
  }
};

// Rows of the wave: sums over keys by the state, times its decay.
template <int kKeys>
__device__ inline void from_state(const Part<kKeys>& part, const char* keys, const bool (&needed)[2], float (&kv)[2][4],
                                  float (&out)[2][4]) {
  const int matrix = lane() / 8, line = lane() % 8, plane = matrix / 2 * DeltaChunkLayout<kKeys>::kPlane;
  STRATA_UNROLL
  for (int n = 0; n < 2; ++n) STRATA_UNROLL
  for (int i = 0; i < 4; ++i) kv[n][i] = out[n][i] = 0;
  for (int g = 0; g < kKeys / 16; ++g) {
    uint32_t high[4], low[4], row[4];
    load_words(part.state_words + g * 1024, high, low);
    const float down[2] = {part.state_down[g * kColumns + lane() / 4], part.state_down[g * kColumns + lane() / 4 + 8]};
    STRATA_UNROLL
    for (int n = 0; n < 2; ++n) {
      if (!needed[n]) continue;
      float product[4];
      load_matrices(row, piece<kKeys>(keys + plane, 16 * part.p + 8 * n + line, 2 * g + matrix % 2));
      product_f16(product, high, low, row);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) kv[n][i] = fma_f32(product[i], down[i / 2], kv[n][i]);
      load_matrices(row, piece<kKeys>(static_cast<const char*>(part.queries) + plane, 16 * part.p + 8 * n + line,
                                      2 * g + matrix % 2));
      product_f16(product, high, low, row);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) out[n][i] = fma_f32(product[i], down[i / 2], out[n][i]);
    }
  }
}

__device__ inline int row_of(int p, int n, int i) { return 16 * p + 8 * n + 2 * (lane() % 4) + i % 2; }

__device__ inline void decay_rows(const float* start, int p, float (&x)[2][4]) {
  STRATA_UNROLL
  for (int n = 0; n < 2; ++n) STRATA_UNROLL
  for (int i = 0; i < 4; ++i) x[n][i] = mul_f32(x[n][i], start[row_of(p, n, i)]);
}

// Terms of the 16 slots of block b, all below the rows of the wave.
template <int kKeys>
__device__ inline void from_block(const Part<kKeys>& part, int b, const bool (&needed)[2], float (&kv)[2][4],
                                  float (&out)[2][4]) {
  uint32_t weights[3][4];
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int column = lane() / 4 + i % 2 * 8, slot = 16 * b + i / 2 * 8 + lane() % 4 * 2;
    const float* decay = part.table + Table::kBlockEnd + slot;
    split_bf16(mul_f32(part.u[slot * kPitch + column], decay[0]),
               mul_f32(part.u[(slot + 1) * kPitch + column], decay[1]), weights[0][i], weights[1][i], weights[2][i]);
  }
  using Layout = DeltaChunkLayout<kKeys>;
  const char* products = part.products + (part.p * (part.p - 1) / 2 + b) * Layout::kPair;
  const float* decay = part.table + Table::kFromBlock + b * 64;
  STRATA_UNROLL
  for (int which = 0; which < 2; ++which) STRATA_UNROLL
  for (int n = 0; n < 2; ++n) {
    if (!needed[n]) continue;
    const char* tile = products + (2 * which + n) * Layout::kProduct;
    const Bits16 four = load16(tile + lane() * 16);
    const auto* low = reinterpret_cast<const uint32_t*>(tile + 512 + lane() * 8);
    const uint32_t words[3][2] = {{four.word[0], four.word[1]}, {four.word[2], four.word[3]}, {low[0], low[1]}};
    float product[4];
    product_bf16(product, weights, words);
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      float& sum = which == 0 ? kv[n][i] : out[n][i];
      sum = fma_f32(product[i], decay[row_of(part.p, n, i)], sum);
    }
  }
}

__device__ inline void store_tile(float* tile, const float (&x)[2][4]) {
  wave_barrier();
  STRATA_UNROLL
  for (int n = 0; n < 2; ++n) STRATA_UNROLL
  for (int i = 0; i < 4; ++i) tile[(8 * n + 2 * (lane() % 4) + i % 2) * kPitch + lane() / 4 + i / 2 * 8] = x[n][i];
  wave_barrier();
}

// Corrections of the rows of the wave, one after another, where their values stood. Every lane has a column, the two
// halves of the wave the same.
template <int kKeys>
__device__ inline void solve(const Part<kKeys>& part, const NewSlots& fresh, const float (&kv)[2][4],
                             const float (&v)[8]) {
  const int column = lane() % kColumns, first = 16 * part.p;
  STRATA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int slot = first + lane() / kColumns * 8 + i;
    if (slot >= fresh.begin) part.u[slot * kPitch + column] = v[i];
  }
  store_tile(part.tile, kv);
  float sum[16], value[16];
  STRATA_UNROLL
  for (int i = 0; i < 16; ++i) {
    sum[i] = part.tile[i * kPitch + column];
    value[i] = part.u[(first + i) * kPitch + column];
  }
  wave_barrier();
  const float *products = part.diagonal + part.p * 256, *beta = part.table + Table::kBeta + first;
  STRATA_UNROLL
  for (int s = 0; s < 16; ++s) {
    const int slot = first + s;
    float* kept = part.u + slot * kPitch + column;
    float correction = value[s];
    if (slot >= fresh.begin) correction = slot < fresh.end ? mul_f32(beta[s], correction - sum[s]) : 0.0f;
    if (slot >= fresh.begin && lane() < kColumns) *kept = correction;
    if (s % 4 == 3) wave_barrier();  // so that the products to come do not all wait in registers
    STRATA_UNROLL
    for (int four = (s + 1) / 4; four < 4; ++four) {
      const Float4 decayed = load_float4(products + s * 16 + 4 * four);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i)
        if (4 * four + i > s) sum[4 * four + i] = fma_f32(decayed.v[i], correction, sum[4 * four + i]);
    }
  }
  wave_barrier();
}

// Corrections that a later call reads.
__device__ inline void keep_corrections(const DeltaChunksKernel& a, const Place& place, const float* u,
                                        const NewSlots& fresh, int p) {
  if (a.ring_u == nullptr || !place.inside || place.first + 16 * p + 16 + 64 <= a.at.rows) return;
  float* ring = a.ring_u + place.head * a.ring_u_head + place.column;
  STRATA_ONCE
  for (int slot = 16 * p + lane() / kColumns; slot < 16 * p + 16; slot += 2)
    if (slot >= fresh.begin && slot < fresh.end && place.first + slot + 64 >= a.at.rows)
      ring[slot * a.ring_u_slot] = u[slot * kPitch + lane() % kColumns];
}

// Terms of the slots of the wave's own block; the rows are done.
template <int kKeys>
__device__ inline void finish(const DeltaChunksKernel& a, const Place& place, const Part<kKeys>& part,
                              const NewSlots& fresh, const float (&out)[2][4]) {
  const int half = lane() / kColumns * 8, column = lane() % kColumns, first = 16 * part.p;
  store_tile(part.tile, out);
  float sum[8];
  STRATA_UNROLL
  for (int i = 0; i < 8; ++i) sum[i] = part.tile[(half + i) * kPitch + column];
  const float *products = part.diagonal + 1024 + part.p * 256 + half, *u = part.u + first * kPitch + column;
  const auto add = [&](int slot, int from) {
    STRATA_UNROLL
    for (int four = from / 4; four < 2; ++four) {
      const Float4 decayed = load_float4(products + slot * 16 + 4 * four);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i)
        if (4 * four + i >= from) sum[4 * four + i] = fma_f32(decayed.v[i], u[slot * kPitch], sum[4 * four + i]);
    }
  };
  STRATA_ONCE
  for (int slot = 0; slot < half; slot += 4) {  // the second eight rows see the first
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) add(slot + i, 0);
  }
  STRATA_UNROLL
  for (int i = 0; i < 8; ++i) add(half + i, i);
  float* to = a.out + (place.first + first + half) * a.out_row + place.head * a.out_head + place.column;
  STRATA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int slot = first + half + i;
    if (place.inside && slot >= fresh.begin && slot < fresh.end) *to = sum[i];
    to += a.out_row;
  }
}

// Corrections of the wave's block, decayed to the chunk's end, as operand words. Those of keys that are close to
// nothing may be large: the largest of a column is taken with the scale of the keys.
template <int kKeys>
__device__ inline void store_fold_words(const Part<kKeys>& part, const NewSlots& fresh) {
  float x[4][2];
  STRATA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int pair = i / 2, column = lane() / 4 + pair % 2 * 8,
              slot = 16 * part.p + pair / 2 * 8 + lane() % 4 * 2 + i % 2;
    const float u = slot < fresh.end ? part.u[slot * kPitch + column] : 0.0f;
    x[pair][i % 2] = mul_f32(mul_f32(u, part.table[Table::kFold + slot]), part.table[Table::kKeyScale + slot]);
  }
  store_words(x, part.fold_words + part.p * 1024, part.fold_down + part.p * kColumns);
}

template <int kKeys>
__device__ inline void fold(const Part<kKeys>& part, const char* keys, float keep,
                            float (&s)[Part<kKeys>::kOwn][2][4]) {
  const int matrix = lane() / 8, line = lane() % 8, plane = matrix / 2 * DeltaChunkLayout<kKeys>::kPlane;
  for_state(s, part.p, [&](float& x, int, int) { x = mul_f32(keep, x); });
  STRATA_UNROLL
  for (int b = 0; b < 4; ++b) {
    uint32_t high[4], low[4], words[4];
    load_words(part.fold_words + b * 1024, high, low);
    const float down[2] = {part.fold_down[b * kColumns + lane() / 4], part.fold_down[b * kColumns + lane() / 4 + 8]};
    STRATA_UNROLL
    for (int own = 0; own < 2 * Part<kKeys>::kOwn; ++own) {
      load_matrices_transposed(
          words, piece<kKeys>(keys + plane, 16 * b + matrix % 2 * 8 + line, 2 * part.p * Part<kKeys>::kOwn + own));
      float product[4];
      product_f16(product, high, low, words);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) s[own / 2][own % 2][i] = fma_f32(product[i], down[i / 2], s[own / 2][own % 2][i]);
    }
  }
}

// What a later call reads: keys and log decays of the last rows, by slot.
__device__ inline void keep_rows(const DeltaChunksKernel& a, const Place& place) {
  if (a.ring_k == nullptr || block_x() % a.slices != 0) return;
  const int64_t first = a.at.rows < 64 ? 0 : a.at.rows - 64;
  for (int64_t t = first + thread() % (4 * kWave); t < a.at.rows; t += 4 * kWave)
    if (place.active) a.ring_g[place.head * a.ring_g_head + (a.at.slot + t) % 64] = a.g[t * a.g_row + place.head];
  if (place.first_index != 0) return;
  for (int64_t item = thread(); item < (a.at.rows - first) * a.at.dk; item += threads()) {
    const int64_t slot = (a.at.slot + first + item / a.at.dk) % 64, i = item % a.at.dk;
    a.ring_k[place.key_head * a.ring_k_head + slot * a.ring_k_slot + i] =
        a.last_keys[(place.key_head * 64 + slot) * a.at.dk + i];
  }
}

// Corrections and outputs of a chunk's new rows.
template <int kKeys>
__device__ inline void rows_of_chunk(const DeltaChunksKernel& a, const Place& place, const Part<kKeys>& part,
                                     const NewSlots& fresh, const bool (&needed)[2], float (&kv)[2][4],
                                     float (&out)[2][4], const float (&v)[8]) {
  const bool own_rows = place.active && (needed[0] || needed[1]);
  if (own_rows) {
    decay_rows(part.table + Table::kStartKey, part.p, kv);
    decay_rows(part.table + Table::kStartQuery, part.p, out);
  }
  STRATA_ONCE
  for (int b = 0; b < 4; ++b) {
    if (b == part.p && own_rows) solve<kKeys>(part, fresh, kv, v);
    if (b < 3) barrier();
    if (b < part.p && own_rows) from_block<kKeys>(part, b, needed, kv, out);
    if (b != part.p) continue;
    if (own_rows) {
      finish<kKeys>(a, place, part, fresh, out);
      keep_corrections(a, place, part.u, fresh, part.p);
    }
    if (place.active && fresh.fold) store_fold_words<kKeys>(part, fresh);
  }
}

template <int kKeys>
__device__ inline void chunks(const DeltaChunksKernel& a) {
  using Own = Part<kKeys>;
  Place place = place_of(a);
  const Own part(place.heads);
  const Feed<kKeys> feed{a, place, part};
  const int64_t first_chunk = a.at.first_chunk, end = first_chunk + a.at.chunks;
  feed.keys_of(first_chunk);
  feed.queries_of(first_chunk);
  copy_group();
  feed.tables_of(first_chunk);
  copy_group();
  float s[Own::kOwn][2][4];
  move_state(a, place, part.p, true, s);
  store_state_words<kKeys>(part, s);
  if (first_chunk == 0 && place.active)
    for (int item = thread() % (4 * kWave); item < a.at.slot * kColumns; item += 4 * kWave) {
      const int64_t slot = item / kColumns, column = block_x() % a.slices * kColumns + item % kColumns;
      part.u[slot * kPitch + item % kColumns] =
          column < a.at.dv ? a.ring_u[place.head * a.ring_u_head + slot * a.ring_u_slot + column] : 0.0f;
    }
  bool folded = false;
  for (int64_t chunk = first_chunk; chunk < end; ++chunk) {
    const NewSlots fresh = new_slots(a.at, chunk);
    place.first = 64 * chunk - a.at.slot;
    const int row = 16 * part.p;
    const bool needed[2] = {row < fresh.end && row + 8 > fresh.begin, row + 8 < fresh.end && row + 16 > fresh.begin};
    float v[8], kv[2][4], out[2][4];
    const float* value =
        a.v + (place.first + row + lane() / kColumns * 8) * a.v_row + place.head * a.v_head + place.column;
    STRATA_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int slot = row + lane() / kColumns * 8 + i;
      v[i] = place.inside && slot >= fresh.begin && slot < fresh.end ? *value : 0.0f;
      value += a.v_row;
    }
    const char* keys = feed.keys(chunk);
    if (Own::kKeyBuffers == 2)
      copy_wait<1>();
    else
      copy_wait<0>();
    barrier();
    if (place.active) from_state<kKeys>(part, keys, needed, kv, out);
    copy_wait<0>();
    barrier();
    if (Own::kKeyBuffers == 2) feed.keys_of(chunk + 1);
    feed.queries_of(chunk + 1);
    copy_group();
    const float keep = part.table[Table::kKeep];
    rows_of_chunk<kKeys>(a, place, part, fresh, needed, kv, out, v);
    barrier();
    if (fresh.fold && place.active) {
      fold<kKeys>(part, keys, keep, s);
      store_state_words<kKeys>(part, s);
      folded = true;
    }
    if (Own::kKeyBuffers == 1) {
      barrier();
      feed.keys_of(chunk + 1);
    }
    feed.tables_of(chunk + 1);
    copy_group();
  }
  if (folded) move_state(a, place, part.p, false, s);
  if (64 * end - a.at.slot >= a.at.rows) keep_rows(a, place);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(384) delta_chunks64(const DeltaChunksKernel a) { chunks<64>(a); }
extern "C" __global__ void __launch_bounds__(384) delta_chunks128(const DeltaChunksKernel a) { chunks<128>(a); }
extern "C" __global__ void __launch_bounds__(384) delta_chunks256(const DeltaChunksKernel a) { chunks<256>(a); }
