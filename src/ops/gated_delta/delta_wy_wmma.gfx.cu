// The chunk form in three passes on the matrix units of AMD GPUs: what rows of a chunk are to each other, for all
// chunks at once; corrections and states, chunk by chunk, sixteen columns a wave with their state in registers;
// outputs, for all chunks at once. Numbers have two f16 words. What involves the order of rows within a chunk is f32.
#include "ops/gated_delta/device_words.h"
#include "ops/gated_delta/wy_device.h"

using namespace strata;
using namespace strata::gpu;

namespace {

using Table = DeltaWyTable;
using matrix::Operand;
using matrix::Sums;

constexpr int kBlocks = kWyRows / 16;  // of sixteen rows

struct Words {
  Operand high, low;
};

__device__ inline void split(float x, _Float16& high, _Float16& low) {
  high = static_cast<_Float16>(x);
  low = static_cast<_Float16>(mul_f32(x - static_cast<float>(high), kLowUp));
}

// Sums of products of numbers in two words, but for low by low.
struct WordSums {
  Sums high = {}, cross = {};

  __device__ void add(const Words& a, const Words& b) {
    cross = matrix::product(a.high, b.low, cross);
    cross = matrix::product(a.low, b.high, cross);
    high = matrix::product(a.high, b.high, high);
  }
  __device__ float operator[](int i) const { return fma_f32(cross[i], kLowDown, high[i]); }
};

// Where a lane's part of a row of a plane begins: `bytes` from one row to the next.
__device__ inline int lane_offset(int bytes) { return matrix::column() * bytes + matrix::operand_first() * 2; }

// Rows 16 r .. of a plane pair, numbers 16 g .. of them, from where the lane begins.
__device__ inline Words load_words(const char* lane, int plane, int bytes, int r, int g) {
  const char* at = lane + 16 * r * bytes + 16 * g * 2;
  return {matrix::load<Operand>(at), matrix::load<Operand>(at + plane)};
}

// The first pass.

template <int kKeys>
__device__ inline float store_row(const float (&x)[kKeys / 32], char* plane, uint16_t* by_key) {
  float largest = 0;
  STRATA_UNROLL
  for (const float one : x) largest = fmax_f32(magnitude(one), largest);
  const Scale scale = scale_of(wave_max(largest));
  STRATA_UNROLL
  for (int i = 0; i < kKeys / 32; ++i) {
    _Float16 high, low;
    split(mul_f32(x[i], scale.up), high, low);
    auto* to = reinterpret_cast<_Float16*>(plane) + key_of(i);
    to[0] = high;
    to[kWyRows * kKeys] = low;
    if (by_key == nullptr) continue;
    by_key[key_of(i)] = __builtin_bit_cast(uint16_t, high);
    by_key[kWyRows * kKeys + key_of(i)] = __builtin_bit_cast(uint16_t, low);
  }
  return scale.down;
}

template <int kKeys>
__device__ inline void make_rows(const DeltaWyKernel& a, const WyMemory& memory, int64_t chunk, int64_t key_head,
                                 char* planes, uint16_t* keys) {
  using Planes = DeltaWyPlanes<kKeys>;
  const int hi = wy_rows(a, chunk);
  for (int row = wave_index(); row < kWyRows; row += threads() / kWave) {
    const int64_t t = (a.first_chunk + chunk) * kWyRows + row;
    const bool there = row < hi;
    float k[kKeys / 32], q[kKeys / 32];
    load_row<kKeys>(there ? a.k + t * a.k_row + key_head * a.k_head : nullptr, a.dk, k);
    load_row<kKeys>(there ? a.q + t * a.q_row + key_head * a.q_head : nullptr, a.dk, q);
    normalise<kKeys>(1.0f, k);
    normalise<kKeys>(a.query_factor, q);
    const float key_down = store_row<kKeys>(k, planes + row * kKeys * 2, keys + row * kKeys);
    const float query_down = store_row<kKeys>(q, planes + Planes::kQueries + row * kKeys * 2, nullptr);
    if (lane() != 0) continue;
    memory.down[row] = key_down;
    memory.down[kWyRows + row] = query_down;
  }
}

// Keys with the slots of a key together.
template <int kKeys>
__device__ inline void turn_keys(const uint16_t* keys, char* by_key) {
  for (int item = thread(); item < 2 * kKeys * kWyRows / 8; item += threads()) {
    const int key = item % kKeys, slot = item / kKeys % (kWyRows / 8) * 8, plane = item / kKeys / (kWyRows / 8);
    const uint16_t* from = keys + plane * kWyRows * kKeys + slot * kKeys + key;
    Bits16 piece;
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i)
      piece.word[i] = from[2 * i * kKeys] | static_cast<uint32_t>(from[(2 * i + 1) * kKeys]) << 16;
    store16(by_key + plane * kWyRows * kKeys * 2 + (key * kWyRows + slot) * 2, piece);
  }
}

template <int kKeys>
__device__ inline void factors(const DeltaWyKernel& a) {
  using Planes = DeltaWyPlanes<kKeys>;
  const int64_t key_head = block_x() % a.key_heads, chunk = block_x() / a.key_heads;
  char* planes = a.factors + block_x() * Planes::kBytes;
  auto* keys = reinterpret_cast<uint16_t*>(shared_memory());  // [high or low, row, key]
  const WyMemory memory(shared_memory() + 2 * Planes::kPlane);
  make_rows<kKeys>(a, memory, chunk, key_head, planes, keys);
  barrier();
  turn_keys<kKeys>(keys, planes + Planes::kByKey);
  const int hi = wy_rows(a, chunk);
  // k·k and q·k of pairs of blocks of rows and slots: (0, 0), (1, 0), (1, 1).
  for (int task = matrix::wave(); task < 6; task += threads() / kHardwareWave) {
    const int which = task / 3, r = task % 3 == 0 ? 0 : 1, b = task % 3 == 2 ? 1 : 0;
    if (16 * r >= hi) continue;
    const char* lane = planes + lane_offset(kKeys * 2);
    WordSums total;
    _Pragma("unroll 1") for (int g = 0; g < kKeys / 16; ++g)
        total.add(load_words(lane + which * Planes::kQueries, Planes::kPlane, kKeys * 2, r, g),
                  load_words(lane, Planes::kPlane, kKeys * 2, b, g));
    const int slot = 16 * b + matrix::column();
    STRATA_UNROLL
    for (int i = 0; i < matrix::kSums; ++i) {
      const int row = 16 * r + matrix::row(i);
      memory.products[which * kPairs + slot * kWyRows + row] =
          mul_f32(mul_f32(total[i], memory.down[which * kWyRows + row]), memory.down[slot]);
    }
  }
  make_decays(a, memory, chunk, key_head);
}

// What a wave works on behind it: sixteen columns of a value head. Lanes of columns beyond the last one go along with
// it and store nothing.
struct Place {
  int head, key_head, slice;
  int64_t column;
  bool inside;

  __device__ Place(const DeltaWyKernel& a, uint32_t item) {
    const auto slices = static_cast<uint32_t>(a.slices);
    head = static_cast<int>(item / slices);
    key_head =
        a.tiled != 0 ? head % static_cast<int>(a.key_heads) : head / static_cast<int>(a.value_heads / a.key_heads);
    slice = static_cast<int>(item % slices);
    const int64_t own = slice * kWyColumns + matrix::column();
    inside = own < a.dv;
    column = inside ? own : a.dv - 1;
  }
};

template <int kKeys>
constexpr int kWordBytes = kKeys / 16 * 2 * kWyStateWord + kWyColumns * 4;

__device__ inline int word_offset() { return matrix::operand_first() * 32 + matrix::column() * matrix::kOperands * 2; }

// The second pass.

// From or to where the first number of the lane lies; keys below `rest` count from there.
template <int kKeys>
__device__ inline void move_state(float* state, int64_t stride, int rest, bool load, Sums (&s)[kKeys / 16]) {
  stride = computed_again(stride);  // of many addresses
  STRATA_UNROLL
  for (int g = 0; g < kKeys / 16; ++g) {
    STRATA_UNROLL
    for (int i = 0; i < matrix::kSums; ++i) {
      const int key = 16 * g + matrix::kRowStep * i;
      if (load)
        s[g][i] = key < rest ? state[key * stride] : 0.0f;
      else if (key < rest)
        state[key * stride] = s[g][i];
      if (i % 4 == 3) matrix::keep_order();
    }
  }
}

// Sixteen numbers that every lane of a column has, as an operand.
__device__ inline Words words_of(const float (&x)[16], float& down) {
  float largest = 0;
  STRATA_UNROLL
  for (const float one : x) largest = fmax_f32(magnitude(one), largest);
  const Scale scale = scale_of(largest);
  down = scale.down;
  Words words;
  STRATA_UNROLL
  for (int i = 0; i < matrix::kOperands; ++i) {
    float one = x[i];
    STRATA_UNROLL
    for (int first = matrix::kOperands; first < 16; first += matrix::kOperands)
      one = matrix::operand_first() == first ? x[first + i] : one;
    _Float16 high, low;
    split(mul_f32(one, scale.up), high, low);
    words.high[i] = high;
    words.low[i] = low;
  }
  return words;
}

// Sums of the rows, times their scales, to the tile.
__device__ inline void store_tile(const WordSums (&sums)[kBlocks], const float* scale, float down, float* tile) {
  wave_barrier();
  STRATA_UNROLL
  for (int r = 0; r < kBlocks; ++r) {
    STRATA_UNROLL
    for (int i = 0; i < matrix::kSums; ++i) {
      const int row = 16 * r + matrix::row(i);
      tile[row * kWyPitch + matrix::column()] = mul_f32(scale[row], mul_f32(sums[r][i], down));
    }
  }
  wave_barrier();
}

// Sums over keys by the state, with its decay, to the tile; the state goes to memory for the third pass.
template <int kKeys>
__device__ inline void from_state(const char* keys, const float* start, char* words, float* scales,
                                  const Sums (&s)[kKeys / 16], float* tile) {
  float largest = 0;
  STRATA_UNROLL
  for (const Sums& sixteen : s) {
    STRATA_UNROLL
    for (int i = 0; i < matrix::kSums; ++i) largest = fmax_f32(magnitude(sixteen[i]), largest);
  }
  const Scale scale = scale_of(matrix::column_max(largest));
  WordSums kv[kBlocks];
  STRATA_UNROLL
  for (int g = 0; g < kKeys / 16; ++g) {
    _Float16 high[matrix::kSums], low[matrix::kSums];
    STRATA_UNROLL
    for (int i = 0; i < matrix::kSums; ++i) split(mul_f32(s[g][i], scale.up), high[i], low[i]);
    const Words state = {matrix::operand_of(high), matrix::operand_of(low)};
    char* to = words + g * 2 * kWyStateWord;
    matrix::store(to, state.high);
    matrix::store(to + kWyStateWord, state.low);
    STRATA_UNROLL
    for (int r = 0; r < kBlocks; ++r) kv[r].add(load_words(keys, DeltaWyPlanes<kKeys>::kPlane, kKeys * 2, r, g), state);
    matrix::keep_order();
  }
  *scales = scale.down;
  store_tile(kv, start, scale.down, tile);
}

// Values of the chunk's rows to a tile, 0 behind the last one.
__device__ inline void load_values(const float* v, int64_t stride, int hi, float* tile) {
  const int first = matrix::lane() / 16, step = kHardwareWave / 16;
  v += first * stride;
  for (int slot = first; slot < kWyRows; slot += step) {
    tile[slot * kWyPitch + matrix::column()] = slot < hi ? *v : 0.0f;
    v += step * stride;
  }
}

// Products of keys of the chunk to shared memory.
__device__ inline void load_products(const float* from, float* to) {
  for (int i = 4 * matrix::lane(); i < kPairs; i += 4 * kHardwareWave) store_float4(to + i, load_float4(from + i));
}

// sums of the rows of a block += products [row] of a slot, from row `first` on, by its correction.
template <int kFirst>
__device__ inline void add_slot(const float* products, float correction, float (&sum)[16]) {
  STRATA_UNROLL
  for (int four = kFirst / 4; four < 4; ++four) {
    const Float4 weight = load_float4(products + 4 * four);
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i)
      if (4 * four + i >= kFirst) sum[4 * four + i] = fma_f32(weight.v[i], correction, sum[4 * four + i]);
  }
}

// What the solution of a block has in shared memory, at the lane's column.
struct BlockMemory {
  float *tile, *values;   // [row] rows of kWyPitch
  const float* products;  // [slot, row], at the block's rows
  ConstantFloats table;
};

// Corrections of the rows s, s + 1, .. of a block, in place of their sums. Decayed to the chunk's end in x. own: rows
// of the block that the lane's column has.
template <int s>
__device__ inline void solve_row(const BlockMemory& memory, int slot, int own, float (&sum)[16], float (&x)[16]) {
  if constexpr (s < 16) {
    const float beta = memory.table[Table::kBeta + slot + s], fold = memory.table[Table::kFold + slot + s];
    const float correction = s < own ? mul_f32(beta, memory.values[s * kWyPitch] - sum[s]) : 0.0f;
    add_slot<s + 1>(memory.products + (slot + s) * kWyRows, correction, sum);
    sum[s] = correction;
    x[s] = mul_f32(correction, fold);
    if (s % 2 == 1) matrix::keep_order();
    solve_row<s + 1>(memory, slot, own, sum, x);
  }
}

// Every lane of a column does the same.
__device__ inline void solve(const BlockMemory& memory, int b, int own, float (&x)[16]) {
  float sum[16];
  STRATA_UNROLL
  for (int i = 0; i < 16; ++i) sum[i] = memory.tile[i * kWyPitch];
  _Pragma("unroll 1") for (int slot = 0; slot < 16 * b; ++slot)
      add_slot<0>(memory.products + slot * kWyRows, memory.tile[(slot - 16 * b) * kWyPitch], sum);
  solve_row<0>(memory, 16 * b, own, sum, x);
  wave_barrier();
  STRATA_UNROLL
  for (int i = 0; i < 16; ++i) memory.tile[i * kWyPitch] = sum[i];
  wave_barrier();
}

template <int kKeys>
__device__ inline void scan(const DeltaWyKernel& a) {
  const uint32_t item = static_cast<uint32_t>(block_x()) * kWyWaves + matrix::wave();
  if (item >= a.value_heads * a.slices) return;  // of the whole wave
  const Place place(a, item);
  float* products = reinterpret_cast<float*>(shared_memory()) + matrix::wave() * (kPairs + 2 * kWyRows * kWyPitch);
  float *tile = products + kPairs, *values = tile + kWyRows * kWyPitch;
  float* state = a.state + place.head * a.state_head + place.column + matrix::first_row() * a.state_key;
  const int own_keys = static_cast<int>(a.dk) - matrix::first_row();
  Sums s[kKeys / 16];
  move_state<kKeys>(state, a.state_key, own_keys, true, s);
  const char* planes = a.factors + place.key_head * DeltaWyPlanes<kKeys>::kBytes;
  const char *keys = planes + lane_offset(kKeys * 2),
             *by_key = planes + DeltaWyPlanes<kKeys>::kByKey + lane_offset(kWyRows * 2);
  char* record = wy_record(a, 0, place.head);
  char* words = record + a.states_at + place.slice * kWordBytes<kKeys>;
  auto* scales = reinterpret_cast<float*>(words + kKeys / 16 * 2 * kWyStateWord) + matrix::column();
  float* u = wy_corrections(record) + place.column;
  words += word_offset();
  const float* v = a.v + a.first_chunk * kWyRows * a.v_row + place.head * a.v_head + place.column;
  int64_t rest = computed_again(a.rows - a.first_chunk * kWyRows);
  const int64_t v_row = computed_again(a.v_row), dv = computed_again(a.dv);
  const int64_t key_step = computed_again(a.key_heads * DeltaWyPlanes<kKeys>::kBytes);
  const int64_t step = computed_again(a.value_heads * a.record_bytes);
  for (int64_t chunks = computed_again(a.chunks); chunks > 0; --chunks) {
    const int hi = rest < kWyRows ? static_cast<int>(rest) : kWyRows;
    const float* table = wy_table(record);
    load_products(wy_products(record), products);
    load_values(v, v_row, hi, values);  // their stores end before a barrier of store_tile
    from_state<kKeys>(keys, table + Table::kStartKey, words, scales, s, tile);
    const float keep = constant_floats(table)[Table::kKeep];
    STRATA_UNROLL
    for (Sums& sixteen : s) sixteen *= keep;
    _Pragma("unroll 1") for (int b = 0; b < kBlocks; ++b) {
      if (16 * b >= hi) break;
      float x[16], down;
      const int first = 16 * b * kWyPitch + matrix::column();
      solve({tile + first, values + first, products + 16 * b, constant_floats(table)}, b,
            place.inside ? hi - 16 * b : 0, x);
      const Words words = words_of(x, down);
      STRATA_UNROLL
      for (int g = 0; g < kKeys / 16; ++g) {
        WordSums product;
        product.add(load_words(by_key, DeltaWyPlanes<kKeys>::kPlane, kWyRows * 2, g, b), words);
        STRATA_UNROLL
        for (int i = 0; i < matrix::kSums; ++i) s[g][i] = fma_f32(product[i], down, s[g][i]);
        matrix::keep_order();
      }
    }
    for (int slot = matrix::lane() / 16; slot < hi; slot += kHardwareWave / 16)
      if (place.inside) u[slot * dv] = tile[slot * kWyPitch + matrix::column()];
    keys += key_step;
    by_key += key_step;
    record += step;
    words += step;
    scales += step / 4;
    u += step / 4;
    v += kWyRows * v_row;
    rest -= kWyRows;
  }
  move_state<kKeys>(state, a.state_key, place.inside ? own_keys : 0, false, s);
}

// The third pass.

template <int kKeys>
__device__ inline void outputs(const DeltaWyKernel& a) {
  constexpr int kOwn = kWyRows / (kHardwareWave / 16);  // rows of a lane
  const uint32_t item = static_cast<uint32_t>(block_x()) * kWyWaves + matrix::wave();
  const auto waves = static_cast<uint32_t>(a.value_heads * a.slices);
  const int64_t c = item / waves;
  if (c >= a.chunks) return;  // of the whole wave
  const Place place(a, item % waves);
  char* record = wy_record(a, c, place.head);
  const int64_t row0 = (a.first_chunk + c) * kWyRows;
  const int hi = wy_rows(a, c);
  float* tile = reinterpret_cast<float*>(shared_memory()) + matrix::wave() * kWyRows * kWyPitch;
  const char *words = record + a.states_at + place.slice * kWordBytes<kKeys>,
             *queries = a.factors + (c * a.key_heads + place.key_head) * DeltaWyPlanes<kKeys>::kBytes +
                        DeltaWyPlanes<kKeys>::kQueries + lane_offset(kKeys * 2);
  WordSums out[kBlocks];
  _Pragma("unroll 2") for (int g = 0; g < kKeys / 16; ++g) {
    const char* from = words + g * 2 * kWyStateWord + word_offset();
    const Words state = {matrix::load<Operand>(from), matrix::load<Operand>(from + kWyStateWord)};
    STRATA_UNROLL
    for (int r = 0; r < kBlocks; ++r)
      out[r].add(load_words(queries, DeltaWyPlanes<kKeys>::kPlane, kKeys * 2, r, g), state);
  }
  const float down = reinterpret_cast<const float*>(words + kKeys / 16 * 2 * kWyStateWord)[matrix::column()];
  store_tile(out, wy_table(record) + Table::kStartQuery, down, tile);
  const int first = matrix::lane() / 16 * kOwn;
  float sum[kOwn];
  STRATA_UNROLL
  for (int i = 0; i < kOwn; ++i) sum[i] = tile[(first + i) * kWyPitch + matrix::column()];
  const float* products = wy_products(record) + kPairs + first;
  _Pragma("unroll 1") for (int slot = 0; slot < hi; ++slot) {
    const float u = wy_corrections(record)[slot * a.dv + place.column];
    STRATA_UNROLL
    for (int four = 0; four < kOwn / 4; ++four) {
      const Float4 weight = load_float4(products + slot * kWyRows + 4 * four);
      STRATA_UNROLL
      for (int i = 0; i < 4; ++i) {
        float& one = sum[4 * four + i];
        one = first + 4 * four + i >= slot ? fma_f32(weight.v[i], u, one) : one;  // a later NaN does not reach it
      }
    }
  }
  STRATA_UNROLL
  for (int i = 0; i < kOwn; ++i)
    if (place.inside && first + i < hi)
      a.out[(row0 + first + i) * a.out_row + place.head * a.out_head + place.column] = sum[i];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) wy_wmma_factors64(const DeltaWyKernel a) { factors<64>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_factors128(const DeltaWyKernel a) { factors<128>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_factors256(const DeltaWyKernel a) { factors<256>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_scan64(const DeltaWyKernel a) { scan<64>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_scan128(const DeltaWyKernel a) { scan<128>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_scan256(const DeltaWyKernel a) { scan<256>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_outputs64(const DeltaWyKernel a) { outputs<64>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_outputs128(const DeltaWyKernel a) { outputs<128>(a); }
extern "C" __global__ void __launch_bounds__(256) wy_wmma_outputs256(const DeltaWyKernel a) { outputs<256>(a); }
