// only: cuda
// What chunks need that does not depend on the state: normalised keys and queries in the words of matrix units, their
// products, decays. A block for each chunk and key head.
#include "ops/gated_delta/chunk_device.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr float kClears = -87.33654f;  // e^g counts as 0 below, as in exp_f32

template <int kKeys>
struct FactorsMemory {
  using Layout = DeltaChunkLayout<kKeys>;
  char* planes;
  float* diagonal;  // [2, 4, slot, row]
  float* key_down;  // [64]: 2^-e
  float* query_down;
  double* prefix;  // [value heads, 64]: sum of g since the chunk's start or the last row that cleared the state
  int* cleared;    // [value heads, 64]: slot of that row, -1: none
  __device__ FactorsMemory(int repeat) {
    planes = shared_memory();
    diagonal = reinterpret_cast<float*>(planes + 4 * Layout::kPlane);
    key_down = diagonal + 2 * 4 * 256;
    query_down = key_down + 64;
    prefix = reinterpret_cast<double*>(query_down + 64);
    cleared = reinterpret_cast<int*>(prefix + repeat * 64);
  }
};

// A row of dk numbers in two f16 words each; lane l holds elements 2 l and 2 l + 1 of every 64.
template <int kKeys>
__device__ inline float store_row(char* planes, int row, const float (&x)[kKeys / 32]) {
  float largest = 0;
  STRATA_UNROLL
  for (const float one : x) largest = fmax_f32(magnitude(one), largest);
  const Scale scale = scale_of(wave_max(largest));
  STRATA_UNROLL
  for (int c = 0; c < kKeys / 64; ++c) {
    uint32_t high, low;
    split_f16(mul_f32(x[2 * c], scale.up), mul_f32(x[2 * c + 1], scale.up), high, low);
    char* at = piece<kKeys>(planes, row, 8 * c + lane() / 4) + lane() % 4 * 4;
    *reinterpret_cast<uint32_t*>(at) = high;
    *reinterpret_cast<uint32_t*>(at + DeltaChunkLayout<kKeys>::kPlane) = low;
  }
  return scale.down;
}

// A few rows at a time, so that their loads go together.
template <int kKeys>
__device__ inline void make_rows(const DeltaFactorsKernel& a, const FactorsMemory<kKeys>& memory, int64_t chunk,
                                 int64_t key_head) {
  constexpr int kTogether = kKeys <= 128 ? 4 : 2;
  const int waves = threads() / kWave;
  for (int first = wave_index(); first < 64; first += kTogether * waves) {
    float keys[kTogether][kKeys / 32], queries[kTogether][kKeys / 32];
    STRATA_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int slot = first + i * waves;
      const int64_t t = 64 * chunk - a.at.slot + slot;
      const bool fresh = t >= 0 && t < a.at.rows;
      const float* key = t < 0 ? a.ring_k + key_head * a.ring_k_head + slot * a.ring_k_slot
                               : (fresh ? a.k + t * a.k_row + key_head * a.k_head : nullptr);
      load_row<kKeys>(key, a.at.dk, keys[i]);
      load_row<kKeys>(fresh ? a.q + t * a.q_row + key_head * a.q_head : nullptr, a.at.dk, queries[i]);
    }
    STRATA_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int slot = first + i * waves;
      const int64_t t = 64 * chunk - a.at.slot + slot;
      if (t >= 0 && t < a.at.rows) {
        normalise<kKeys>(1.0f, keys[i]);
        normalise<kKeys>(a.query_factor, queries[i]);
        STRATA_UNROLL
        for (int c = 0; c < kKeys / 32; ++c)
          if (t + 64 >= a.at.rows && key_of(c) < a.at.dk)
            a.last_keys[(key_head * 64 + slot) * a.at.dk + key_of(c)] = keys[i][c];
      }
      const int row = slot / 16 * 16 + delta_row(slot % 16);
      const float key_down = store_row<kKeys>(memory.planes, row, keys[i]);
      const float query_down = store_row<kKeys>(memory.planes + DeltaChunkLayout<kKeys>::kQueries, row, queries[i]);
      if (lane() == 0) {
        memory.key_down[slot] = key_down;
        memory.query_down[slot] = query_down;
      }
    }
  }
}

// x [16 rows of block r] · k [16 slots of block b].
template <int kKeys>
__device__ inline void block_product(const FactorsMemory<kKeys>& memory, bool queries, int r, int b,
                                     float (&sum)[2][4]) {
  using Layout = DeltaChunkLayout<kKeys>;
  const char* rows = memory.planes + (queries ? Layout::kQueries : 0);
  const int matrix = lane() / 8, line = lane() % 8;
  STRATA_UNROLL
  for (float(&half)[4] : sum) STRATA_UNROLL
  for (float& one : half) one = 0;
  STRATA_ONCE
  for (int g = 0; g < kKeys / 16; ++g) {
    uint32_t high[4], low[4];
    const char* at = piece<kKeys>(rows, 16 * r + line + matrix % 2 * 8, 2 * g + matrix / 2);
    load_matrices(high, at);
    load_matrices(low, at + Layout::kPlane);
    STRATA_UNROLL
    for (int n = 0; n < 2; ++n) {
      uint32_t keys[4];
      load_matrices(keys, piece<kKeys>(static_cast<const char*>(memory.planes) + matrix / 2 * Layout::kPlane,
                                       16 * b + 8 * n + line, 2 * g + matrix % 2));
      float part[4];
      product_f16(part, high, low, keys);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) sum[n][i] = add_f32(sum[n][i], part[i]);
    }
  }
}

// Products of a pair of blocks: rows of two tiles of eight, a lane's numbers where matrix units want them.
__device__ inline void store_products(const float (&x)[2][4], char* to) {
  STRATA_UNROLL
  for (int n = 0; n < 2; ++n) {
    uint32_t words[3][2];
    STRATA_UNROLL
    for (int half = 0; half < 2; ++half)
      split_bf16(x[half][2 * n], x[half][2 * n + 1], words[0][half], words[1][half], words[2][half]);
    char* tile = to + n * (32 * 24);
    store16(tile + lane() * 16, {{words[0][0], words[0][1], words[1][0], words[1][1]}});
    auto* low = reinterpret_cast<uint32_t*>(tile + 512 + lane() * 8);
    low[0] = words[2][0];
    low[1] = words[2][1];
  }
}

template <int kKeys>
__device__ inline void make_products(const FactorsMemory<kKeys>& memory, const NewSlots& fresh, char* factors) {
  using Layout = DeltaChunkLayout<kKeys>;
  const int waves = threads() / kWave;
  for (int task = wave_index(); task < 20; task += waves) {
    const bool queries = task >= 10;
    const int pair = task % 10, r = pair < 1 ? 0 : (pair < 3 ? 1 : (pair < 6 ? 2 : 3)), b = pair - r * (r + 1) / 2;
    if (16 * r >= fresh.end || 16 * r + 16 <= fresh.begin) continue;
    float sum[2][4];
    block_product<kKeys>(memory, queries, r, b, sum);
    const float* down = queries ? memory.query_down : memory.key_down;
    float* diagonal = memory.diagonal + ((queries ? 4 : 0) + r) * 256;
    STRATA_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int row = delta_slot(lane() / 4 + i % 4 / 2 * 8), slot = delta_slot(i / 4 * 8 + lane() % 4 * 2 + i % 2);
      float& value = sum[i / 4][i % 4];
      value = mul_f32(mul_f32(value, down[16 * r + row]), memory.key_down[16 * b + slot]);
      if (b == r) diagonal[slot * 16 + row] = value;
    }
    if (b < r)
      store_products(sum, factors + Layout::kProducts + (queries ? Layout::kProductBytes : 0) +
                              (r * (r - 1) / 2 + b) * Layout::kPair);
  }
}

// Log decays, to be summed.
template <int kKeys>
__device__ inline void load_gates(const DeltaFactorsKernel& a, const FactorsMemory<kKeys>& memory, int64_t chunk,
                                  int64_t key_head, int repeat) {
  for (int item = thread(); item < repeat * 64; item += threads()) {
    const int64_t head = value_head(a.at, key_head, item / 64), slot = item % 64, t = 64 * chunk - a.at.slot + slot;
    const float g = t < 0 ? a.ring_g[head * a.ring_g_head + slot] : (t < a.at.rows ? a.g[t * a.g_row + head] : 0.0f);
    memory.prefix[item] = static_cast<double>(g);
  }
}

template <int kKeys>
__device__ inline void make_prefix(const FactorsMemory<kKeys>& memory, int repeat) {
  if (lane() != 0) return;
  for (int index = wave_index(); index < repeat; index += threads() / kWave) {
    double* prefix = memory.prefix + index * 64;
    double sum = 0;
    int cleared = -1;
    for (int first = 0; first < 64; first += 8) {
      double g[8];
      STRATA_UNROLL
      for (int i = 0; i < 8; ++i) g[i] = prefix[first + i];
      STRATA_UNROLL
      for (int i = 0; i < 8; ++i) {
        const bool clears = g[i] < static_cast<double>(kClears);
        if (clears) cleared = first + i;
        sum = clears ? 0.0 : sum + g[i];
        prefix[first + i] = sum;
        memory.cleared[index * 64 + first + i] = cleared;
      }
    }
  }
}

// A difference goes into the exponential as two f32 words.
__device__ inline float exp_of(double difference) {
  const float high = static_cast<float>(difference), low = static_cast<float>(difference - static_cast<double>(high));
  const float e = exp_f32(high);
  return fma_f32(e, low, e);
}
__device__ inline float decay_between(const double* prefix, const int* cleared, int to, int from) {
  return from < cleared[to] ? 0.0f : exp_of(prefix[to] - prefix[from]);
}

template <int kKeys>
__device__ inline void make_decays(const DeltaFactorsKernel& a, const FactorsMemory<kKeys>& memory, int64_t chunk,
                                   int64_t key_head, int repeat, const NewSlots& fresh, char* factors) {
  using Layout = DeltaChunkLayout<kKeys>;
  using Table = DeltaChunkTable;
  for (int item = thread(); item < repeat * 64; item += threads()) {
    const int index = item / 64, slot = item % 64, block_end = slot | 15, last = fresh.end - 1;
    const double* prefix = memory.prefix + index * 64;
    const int* cleared = memory.cleared + index * 64;
    float* starts = reinterpret_cast<float*>(factors + Layout::kHeads + index * Layout::kHead);
    float* table = starts + Layout::kTable / 4;
    const float start = cleared[slot] >= 0 ? 0.0f : exp_of(prefix[slot]);
    starts[Table::kStartKey + slot] = mul_f32(start, memory.key_down[slot]);
    starts[Table::kStartQuery + slot] = mul_f32(start, memory.query_down[slot]);
    table[Table::kBlockEnd + slot] = decay_between(prefix, cleared, block_end, slot);
    for (int b = 0; b < 3; ++b)
      table[Table::kFromBlock + b * 64 + slot] =
          slot > 16 * b + 15 ? decay_between(prefix, cleared, slot, 16 * b + 15) : 0.0f;
    table[Table::kFold + slot] = slot <= last ? decay_between(prefix, cleared, last, slot) : 0.0f;
    const int64_t t = 64 * chunk - a.at.slot + slot;
    table[Table::kBeta + slot] =
        t >= 0 && t < a.at.rows ? a.beta[t * a.beta_row + value_head(a.at, key_head, index)] : 0.0f;
    table[Table::kKeyScale + slot] = memory.key_down[slot];
    table[Table::kKeep + slot] = slot > 0 || cleared[last] >= 0 ? 0.0f : exp_of(prefix[last]);
  }
  for (int item = thread(); item < repeat * 1024; item += threads()) {
    const int index = item / 1024, block = item / 256 % 4, slot = item / 16 % 16, row = item % 16;
    if (16 * block >= fresh.end || 16 * block + 16 <= fresh.begin) continue;
    float* diagonal = reinterpret_cast<float*>(factors + Layout::kHeads + index * Layout::kHead + Layout::kStarts);
    const int at = item % 1024;
    float kk = 0, qk = 0;
    if (slot <= row) {
      const float decay =
          decay_between(memory.prefix + index * 64, memory.cleared + index * 64, 16 * block + row, 16 * block + slot);
      kk = mul_f32(decay, memory.diagonal[at]);
      qk = mul_f32(decay, memory.diagonal[1024 + at]);
    }
    diagonal[at] = kk;
    diagonal[(Layout::kReads - Layout::kStarts) / 4 + at] = qk;
  }
}

// Whole rows of 16-byte pieces.
template <int kKeys>
__device__ inline void copy_plane(const char* from, char* to, int begin, int end) {
  for (int at = begin * kKeys * 2 + thread() * 16; at < end * kKeys * 2; at += threads() * 16)
    store16(to + at, load16(from + at));
}

template <int kKeys>
__device__ inline void make_factors(const DeltaFactorsKernel& a) {
  using Layout = DeltaChunkLayout<kKeys>;
  const int64_t key_head = block_x() % a.at.key_heads, chunk = a.at.first_chunk + block_x() / a.at.key_heads;
  const int repeat = static_cast<int>(a.at.value_heads / a.at.key_heads);
  const int64_t bytes = Layout::kHeads + static_cast<int64_t>(repeat) * Layout::kHead;
  char* factors = a.factors + block_x() * bytes;
  const NewSlots fresh = new_slots(a.at, chunk);
  const FactorsMemory<kKeys> memory(repeat);
  load_gates<kKeys>(a, memory, chunk, key_head, repeat);
  barrier();
  make_prefix<kKeys>(memory, repeat);
  make_rows<kKeys>(a, memory, chunk, key_head);
  barrier();
  make_products<kKeys>(memory, fresh, factors);
  barrier();
  make_decays<kKeys>(a, memory, chunk, key_head, repeat, fresh, factors);
  const int begin = fresh.begin / 16 * 16, end = (fresh.end + 15) / 16 * 16;
  STRATA_UNROLL
  for (int plane = 0; plane < 4; ++plane) {
    const bool all = fresh.fold && plane < 2;  // a fold reads every key
    copy_plane<kKeys>(memory.planes + plane * Layout::kPlane, factors + plane * Layout::kPlane, all ? 0 : begin,
                      all ? 64 : end);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2) delta_factors64(const DeltaFactorsKernel a) {
  make_factors<64>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) delta_factors128(const DeltaFactorsKernel a) {
  make_factors<128>(a);
}
extern "C" __global__ void __launch_bounds__(256) delta_factors256(const DeltaFactorsKernel a) { make_factors<256>(a); }
