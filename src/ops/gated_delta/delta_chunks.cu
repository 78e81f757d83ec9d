// only: cuda
// The chunk form: states through their chunks, row by row what README.md says. A block takes 16 columns of the value
// heads of one key head, at most three. The columns of a head have two waves. One corrects: it multiplies keys,
// computes the corrections and has the state in its registers. The other reads: it multiplies queries and makes the
// outputs of a chunk while the first is at the next one.
#include "ops/gated_delta/device_chunk_state.h"

using namespace strata;
using namespace strata::gpu;

namespace {

// The waves: 0 to 2 correct, each on a scheduler; those that read and those that copy share what is left of the four.
constexpr int kCopying = 2 * kWave;  // threads of waves 4 and 6
__device__ inline int reading_wave(int own) { return own == 0 ? 3 : (own == 1 ? 7 : 5); }

// What a wave works on.
struct Place {
  int key_head, head, column;  // the columns of lane l: + l / 4 and + l / 4 + 8
  int first_index;             // of the block's value heads among those of the key head
  int heads, own;              // of the block; which of them
  bool corrects, reads;        // what the wave does
  int copies;                  // or which of the threads that copy; -1: none
};

__device__ inline Place place_of(const DeltaChunksKernel& a) {
  Place place;
  const int repeat = static_cast<int>(a.at.value_heads / a.at.key_heads), groups = static_cast<int>(a.groups);
  const int in_groups = (repeat + groups - 1) / groups, wave = wave_index();
  const int item = static_cast<int>(block_x() / a.slices);
  place.key_head = item / groups;
  place.first_index = item % groups * in_groups;
  place.heads = repeat - place.first_index < in_groups ? repeat - place.first_index : in_groups;
  place.column = static_cast<int>(block_x() % a.slices) * kDeltaColumns;
  place.corrects = wave < kDeltaHeads;
  place.reads = false;
  place.own = wave;
  STRATA_UNROLL
  for (int own = 0; own < kDeltaHeads; ++own)
    if (wave == reading_wave(own)) place.reads = true, place.own = own;
  place.copies = wave == 4 ? lane() : (wave == 6 ? kWave + lane() : -1);
  if (place.own >= place.heads) place.corrects = place.reads = false;
  if (!place.corrects && !place.reads) place.own = 0;
  place.head = static_cast<int>(value_head(a.at, place.key_head, place.first_index + place.own));
  return place;
}

__device__ inline int64_t column_of(const Place& place, int c) { return place.column + lane() / 4 + 8 * c; }

template <int kTiles>
__device__ inline void load_state(const DeltaChunksKernel& a, const Place& place, float (&s)[kTiles][4]) {
  STRATA_UNROLL
  for (int n = 0; n < kTiles; ++n) STRATA_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int64_t key = 8 * n + lane() % 4 * 2 + j % 2, column = column_of(place, j / 2);
    s[n][j] =
        key < a.at.dk && column < a.at.dv ? a.state[place.head * a.state_head + key * a.state_key + column] : 0.0f;
  }
}
template <int kTiles>
__device__ inline void store_state(const DeltaChunksKernel& a, const Place& place, const float (&s)[kTiles][4]) {
  STRATA_UNROLL
  for (int n = 0; n < kTiles; ++n) STRATA_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int64_t key = 8 * n + lane() % 4 * 2 + j % 2, column = column_of(place, j / 2);
    if (key < a.at.dk && column < a.at.dv) a.state[place.head * a.state_head + key * a.state_key + column] = s[n][j];
  }
}

// What chunks need, from what the kernel of factors left: copies that come while the block goes on.
template <int kKeys>
struct Feed {
  using Layout = DeltaChunkLayout<kKeys>;
  const DeltaChunksKernel& a;
  const Place& place;
  const Part<kKeys>& part;

  __device__ void copy_bytes(char* to, const char* from, int begin, int end) const {
    for (int at = begin + place.copies * 16; at < end; at += kCopying * 16) copy16_async(to + at, from + at);
  }
  // Two planes; of blocks that have new rows, or all.
  __device__ void copy_rows(char* to, const char* from, const NewSlots& fresh, bool all) const {
    constexpr int kRow = kKeys * 2;
    const int begin = all ? 0 : fresh.begin / kBlock * kBlock,
              end = all ? 64 : (fresh.end + kBlock - 1) / kBlock * kBlock;
    STRATA_UNROLL
    for (int plane = 0; plane < 2; ++plane)
      copy_bytes(to + plane * 64 * kRow, from + plane * 64 * kRow, begin * kRow, end * kRow);
  }
  // Products of row blocks that have new rows.
  __device__ void copy_products(char* to, const char* from, const NewSlots& fresh) const {
    const int first = fresh.begin / kBlock, last = (fresh.end - 1) / kBlock;
    copy_bytes(to, from, first * (first - 1) / 2 * Layout::kPair, last * (last + 1) / 2 * Layout::kPair);
  }
  __device__ const char* factors(int64_t chunk) const {
    const int64_t repeat = a.at.value_heads / a.at.key_heads;
    return a.factors +
           ((chunk - a.at.first_chunk) * a.at.key_heads + place.key_head) * (Layout::kHeads + repeat * Layout::kHead);
  }
  __device__ bool ends(int64_t chunk) const { return chunk >= a.at.first_chunk + a.at.chunks; }
  __device__ int buffer(int64_t chunk) const {
    return static_cast<int>((chunk - a.at.first_chunk) % Part<kKeys>::kKeyBuffers);
  }
  __device__ char* keys(int64_t chunk) const { return part.keys + buffer(chunk) * Layout::kQueries; }
  __device__ const float* starts(int64_t chunk) const { return part.starts + buffer(chunk) * (Layout::kStarts / 4); }

  // Keys, and decays to their rows.
  __device__ void copy_keys(int64_t chunk) const {
    if (ends(chunk)) return;
    const NewSlots fresh = new_slots(a.at, chunk);
    copy_rows(keys(chunk), factors(chunk), fresh, fresh.fold);
    copy_heads(chunk, Layout::kCorrecting + Layout::kReadingBytes + buffer(chunk) * Layout::kStarts, 0, 0,
               Layout::kStarts);
  }
  __device__ void copy_queries(int64_t chunk) const {
    if (!ends(chunk)) copy_rows(part.queries, factors(chunk) + Layout::kQueries, new_slots(a.at, chunk), false);
  }
  // What the waves that correct need; those that read.
  __device__ void copy_correcting(int64_t chunk) const {
    if (ends(chunk)) return;
    const NewSlots fresh = new_slots(a.at, chunk);
    copy_products(part.key_products, factors(chunk) + Layout::kProducts, fresh);
    copy_diagonals(chunk, 0, Layout::kStarts, fresh);
    copy_heads(chunk, Layout::kDiagonal, Layout::kTable, 0, Layout::kReads - Layout::kTable);
  }
  __device__ void copy_reading(int64_t chunk) const {
    const NewSlots fresh = new_slots(a.at, chunk);
    copy_products(part.query_products, factors(chunk) + Layout::kProducts + Layout::kProductBytes, fresh);
    copy_heads(chunk, Layout::kCorrecting, Layout::kReading, 0, Layout::kReads - Layout::kReading);
    copy_diagonals(chunk, Layout::kCorrecting + Layout::kReads - Layout::kReading, Layout::kReads, fresh);
  }
  __device__ void copy_diagonals(int64_t chunk, int to, int from, const NewSlots& fresh) const {
    copy_heads(chunk, to, from, fresh.begin / kBlock * 1024, ((fresh.end - 1) / kBlock + 1) * 1024);
  }
  // A part of what every head has.
  __device__ void copy_heads(int64_t chunk, int to, int from, int begin, int end) const {
    const char* source = factors(chunk) + Layout::kHeads + place.first_index * Layout::kHead + from;
    STRATA_ONCE
    for (int own = 0; own < place.heads; ++own)
      copy_bytes(part.heads + own * Layout::kOfHead + to, source + own * Layout::kHead, begin, end);
  }
};

// Corrections of the rows of block b from what the state and the blocks before give. kWhole: all rows are new. Each
// quarter of the lanes solves its rows as if it were their turn, that whose turn it is gives its corrections to all.
template <int kKeys, bool kWhole>
__device__ inline void solve(const Part<kKeys>& part, int b, const NewSlots& fresh, Rows& u) {
  const int quarter = lane() % 4, first = kBlock * b + 4 * quarter;
  const Float4 beta = load_float4(part.key_table + Table::kBeta + first);
  const float* products = part.key_diagonal + b * 256 + 4 * quarter;
  Rows sum, value;
  load_rows(rows_at(part.key_sums, b, lane()), sum);
  load_rows(rows_at(part.values, b, lane()), value);
  STRATA_UNROLL
  for (int from = 0; from < kBlock; from += 4) {
    Float4 decayed[4];
    Rows tried, solved;
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) decayed[i] = load_float4(products + (from + i) * 16);
    STRATA_UNROLL
    for (int c = 0; c < 2; ++c) {
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) tried[c][i] = sum[c][i];
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& x = solved[c][i];
        x = mul_f32(beta.v[i], value[c][i] - tried[c][i]);
        if (!kWhole && first + i < fresh.begin) x = value[c][i];
        if (!kWhole && first + i >= fresh.end) x = 0;
        STRATA_UNROLL
        for (int later = i + 1; later < 4; ++later) tried[c][later] = fma_f32(decayed[i].v[later], x, tried[c][later]);
        if (4 * quarter == from) u[c][i] = x;
      }
    }
    if (from + 4 == kBlock) break;
    STRATA_UNROLL
    for (int c = 0; c < 2; ++c) STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float x = shuffle(solved[c][i], lane() / 4 * 4 + from / 4);
      STRATA_UNROLL
      for (int row = 0; row < 4; ++row) sum[c][row] = fma_f32(decayed[i].v[row], x, sum[c][row]);
    }
  }
}

// Values of a chunk's new rows, and the corrections of those before the call: [2 block + which column].
template <int kTiles>
__device__ inline void load_values(const DeltaChunksKernel& a, const Place& place, int64_t chunk,
                                   float (&v)[kTiles][4]) {
  const NewSlots fresh = new_slots(a.at, chunk);
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) {
    const int64_t column = column_of(place, c), first = lane() % 4 * 4;
    const bool inside = column < a.at.dv;
    const float* value = a.v + (64 * chunk - a.at.slot + first) * a.v_row + place.head * a.v_head + column;
    STRATA_UNROLL
    for (int b = 0; b < kBlocks; ++b) STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int slot = kBlock * b + static_cast<int>(first) + i;
      float& x = v[2 * b + c][i];
      x = inside && slot >= fresh.begin && slot < fresh.end ? *value : 0.0f;
      value += i < 3 ? a.v_row : (kBlock - 3) * a.v_row;
    }
    if (fresh.begin == 0) continue;
    const float* ring = a.ring_u + place.head * a.ring_u_head + column;
    STRATA_UNROLL
    for (int b = 0; b < kBlocks; ++b) STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int slot = kBlock * b + static_cast<int>(first) + i;
      if (inside && slot < fresh.begin) v[2 * b + c][i] = ring[slot * a.ring_u_slot];
    }
  }
}
template <int kTiles>
__device__ inline void store_values(float* values, const float (&v)[kTiles][4]) {
  STRATA_UNROLL
  for (int i = 0; i < 2 * kBlocks; ++i)
    store_float4(rows_at(values, i / 2, lane()) + i % 2 * 4, {{v[i][0], v[i][1], v[i][2], v[i][3]}});
}

// Corrections that a later call reads.
__device__ inline void keep_corrections(const DeltaChunksKernel& a, const Place& place, int64_t first_row, int b,
                                        const NewSlots& fresh, const Rows& u) {
  if (a.ring_u == nullptr || first_row + kBlock * b + kBlock + 64 <= a.at.rows) return;
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int slot = kBlock * b + lane() % 4 * 4 + i;
    if (column_of(place, c) < a.at.dv && slot >= fresh.begin && slot < fresh.end && first_row + slot + 64 >= a.at.rows)
      a.ring_u[place.head * a.ring_u_head + slot * a.ring_u_slot + column_of(place, c)] = u[c][i];
  }
}

// Terms of the slots of the rows' own block b; the rows are done.
template <int kKeys>
__device__ inline void finish(const DeltaChunksKernel& a, const Place& place, const Part<kKeys>& part,
                              int64_t first_row, int b, const NewSlots& fresh) {
  const int quarter = lane() % 4;
  const float* products = part.query_diagonal + b * 256 + 4 * quarter;
  Rows sum;
  load_rows(rows_at(part.query_sums, b, lane()), sum);
  STRATA_UNROLL
  for (int from = 0; from < kBlock; from += 4) {
    const bool reached = 4 * quarter >= from, passed = 4 * quarter > from;
    Rows u;
    load_rows(rows_at(part.u, b, lane() / 4 * 4 + from / 4), u);
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Float4 decayed = load_float4(products + (from + i) * 16);
      STRATA_UNROLL
      for (int c = 0; c < 2; ++c) STRATA_UNROLL
      for (int row = 0; row < 4; ++row)
        if (row >= i ? reached : passed) sum[c][row] = fma_f32(decayed.v[row], u[c][i], sum[c][row]);
    }
  }
  STRATA_UNROLL
  for (int c = 0; c < 2; ++c) {
    float* to =
        a.out + (first_row + kBlock * b + 4 * quarter) * a.out_row + place.head * a.out_head + column_of(place, c);
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int slot = kBlock * b + 4 * quarter + i;
      if (column_of(place, c) < a.at.dv && slot >= fresh.begin && slot < fresh.end) *to = sum[c][i];
      to += a.out_row;
    }
  }
}

// What a later call reads: keys and log decays of the last rows, by slot.
__device__ inline void keep_rows(const DeltaChunksKernel& a, const Place& place) {
  if (a.ring_k == nullptr || block_x() % a.slices != 0) return;
  const int64_t first = a.at.rows < 64 ? 0 : a.at.rows - 64;
  for (int own = wave_index(); own < place.heads; own += kDeltaWaves) {
    const int64_t head = value_head(a.at, place.key_head, place.first_index + own);
    for (int64_t t = first + lane(); t < a.at.rows; t += kWave)
      a.ring_g[head * a.ring_g_head + (a.at.slot + t) % 64] = a.g[t * a.g_row + head];
  }
  if (place.first_index != 0) return;
  for (int64_t item = thread(); item < (a.at.rows - first) * a.at.dk; item += threads()) {
    const int64_t slot = (a.at.slot + first + item / a.at.dk) % 64, i = item % a.at.dk;
    a.ring_k[place.key_head * a.ring_k_head + slot * a.ring_k_slot + i] =
        a.last_keys[(place.key_head * 64 + slot) * a.at.dk + i];
  }
}

__device__ inline bool whole(const NewSlots& fresh) { return fresh.begin == 0 && fresh.end == 64; }

// The wave that corrects: a chunk from its products with keys to what folds the last block.
template <int kKeys>
__device__ inline FoldWords correct(const Part<kKeys>& part, const char* keys, const NewSlots& fresh,
                                    float (&s)[kKeys / 8][4]) {
  FoldWords words;
  const float keep = part.key_table[Table::kKeep];
  if (fresh.fold) STRATA_UNROLL
  for (auto& tile : s) STRATA_UNROLL
  for (float& x : tile) x = mul_f32(keep, x);
  STRATA_ONCE
  for (int b = 0; b < kBlocks; ++b) {
    Rows u;
    if (whole(fresh))
      solve<kKeys, true>(part, b, fresh, u);
    else if (needed(fresh, b))
      solve<kKeys, false>(part, b, fresh, u);
    else
      load_rows(rows_at(part.values, b, lane()), u);
    store_rows(rows_at(part.u, b, lane()), u);
    from_corrections(part.key_products, part.key_table, b, fresh, u, part.key_sums);
    if (!fresh.fold) continue;
    words = fold_words(part.key_table, b, u);
    if (b + 1 < kBlocks) fold<kKeys>(keys, b, words, s);
  }
  return words;
}

// The wave that reads: outputs of a chunk from its products with queries.
template <int kKeys>
__device__ inline void read(const DeltaChunksKernel& a, const Place& place, const Part<kKeys>& part, int64_t chunk) {
  const NewSlots fresh = new_slots(a.at, chunk);
  const int64_t first_row = 64 * chunk - a.at.slot;
  STRATA_ONCE
  for (int b = 0; b < kBlocks; ++b) {
    if (kBlock * b >= fresh.end) continue;
    Rows u;
    load_rows(rows_at(part.u, b, lane()), u);
    from_corrections(part.query_products, part.query_table, b, fresh, u, part.query_sums);
    if (!needed(fresh, b)) continue;
    finish<kKeys>(a, place, part, first_row, b, fresh);
    keep_corrections(a, place, first_row, b, fresh, u);
  }
}

// Two barriers a chunk. Between them the state's words and the queries are read and corrections made; from the second
// to the first of the next chunk the corrections are read, and the state is whole again.
template <int kKeys>
__device__ inline void run(const DeltaChunksKernel& a) {
  const Place place = place_of(a);
  const Part<kKeys> part(place.own);
  const Feed<kKeys> feed{a, place, part};
  const int64_t first = a.at.first_chunk, end = first + a.at.chunks;
  const bool copies = place.copies >= 0;
  if (copies) {
    feed.copy_keys(first);
    feed.copy_correcting(first);
    feed.copy_queries(first);
    copy_group();
  }
  float own[kKeys / 8][4];  // the state in the wave that corrects; values of the next chunk in that which reads
  if (place.corrects) {
    load_state(a, place, own);
    store_state_words<kKeys>(part, own);
  }
  if (place.reads) {
    load_values(a, place, first, own);
    store_values(part.values, own);
  }
  copy_wait<0>();
  barrier();
  bool folded = false;
  STRATA_ONCE
  for (int64_t chunk = first; chunk < end; ++chunk) {
    const NewSlots fresh = new_slots(a.at, chunk);
    if (place.corrects)
      from_state<kKeys>(part, feed.keys(chunk), feed.starts(chunk) + Table::kStartKey, fresh, part.key_sums);
    if (place.reads && chunk > first) read<kKeys>(a, place, part, chunk - 1);
    copy_wait<0>();
    barrier();
    if (copies) {
      feed.copy_reading(chunk);
      if (Part<kKeys>::kKeyBuffers == 2) feed.copy_keys(chunk + 1);
      copy_group();
    }
    FoldWords words;
    if (place.corrects) words = correct<kKeys>(part, feed.keys(chunk), fresh, own);
    if (place.reads) {
      if (!feed.ends(chunk + 1)) load_values(a, place, chunk + 1, own);
      from_state<kKeys>(part, part.queries, feed.starts(chunk) + Table::kStartQuery, fresh, part.query_sums);
    }
    copy_wait<0>();
    barrier();
    if (copies) {
      feed.copy_queries(chunk + 1);
      feed.copy_correcting(chunk + 1);
      copy_group();
    }
    if (place.corrects && fresh.fold) {
      fold<kKeys>(feed.keys(chunk), kBlocks - 1, words, own);
      store_state_words<kKeys>(part, own);
      wave_barrier();
      folded = true;
    }
    if (place.reads && !feed.ends(chunk + 1)) store_values(part.values, own);
    if (Part<kKeys>::kKeyBuffers == 2) continue;
    barrier();
    if (copies) feed.copy_keys(chunk + 1);
    copy_group();
    copy_wait<0>();
    barrier();
  }
  if (place.reads) read<kKeys>(a, place, part, end - 1);
  if (folded) store_state(a, place, own);
  if (64 * end - a.at.slot >= a.at.rows) keep_rows(a, place);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) delta_chunks64(const DeltaChunksKernel a) { run<64>(a); }
extern "C" __global__ void __launch_bounds__(256) delta_chunks128(const DeltaChunksKernel a) { run<128>(a); }
extern "C" __global__ void __launch_bounds__(256) delta_chunks256(const DeltaChunksKernel a) { run<256>(a); }
