// only: cuda
// The products of attention_mma.cu behind a stream of copies. Blocks stay and walk over splits; every thread asks for
// the keys and values that it will multiply itself, several steps ahead and across splits, into pieces of shared memory
// that no other thread reads: copies under way need no barrier, and memory works on while scores become weights.
//
// A step is four pieces of sixteen bytes a thread: 16 cells x 64 channels of a wave, keys in the first half of a
// split's steps, values in the second.
#include "ops/attention/device_mma.h"

using namespace strata;
using namespace strata::gpu;
using namespace strata::attention_parts;

namespace {

constexpr int kThreads = kStreamThreads, kWaves = kThreads / kWave, kStages = kStreamStages, kPieces = 4;
constexpr int kWaveCells = kCellSplit / kWaves;

template <int kDim>
struct Sizes {
  static constexpr int kPairs = kDim / 32, kBatches = kPairs / 2;  // of 32 channels; steps of 16 cells' keys
  static constexpr int kChunks = kDim / 64, kShares = kWaves / kChunks, kShare = kCellSplit / kShares;
  static constexpr int kKeySteps = kWaveCells / 16 * kBatches, kValueSteps = kShare / 16;
  static constexpr int kSteps = kKeySteps + kValueSteps;
  static constexpr int kWeightBytes = stream_weight_bytes(kDim);
  static_assert(kSteps % kStages == 0 && kWaves == kSlots / 2);
};

// A tile of slots and a split.
struct Item {
  int x, split, kv_head;
  int row;   // of its list, where there are lists
  int most;  // cells that its slots see at most; 0: there is no such item
};

// From item `index` on the first of this block that has cells.
__device__ Item find_item(const AttentionKernel& a, int64_t index) {
  const int64_t width = a.kv_heads * a.tiles, items = width * a.splits;
  Item item{};
  for (; index < items && item.most == 0; index += blocks_x()) {
    item.split = quotient(index, width);
    item.x = static_cast<int>(index - item.split * width);
    const Tile tile = tile_at(a, item.x, item.split);
    item.kv_head = tile.kv_head;
    item.row = static_cast<int>(slot_row(a, tile.first));
    item.most = lane() < tile.count ? cells_seen(a, tile, tile.first + lane()) : 0;
    for (int step = kWave / 2; step > 0; step /= 2) {
      const int other = shuffle_xor(item.most, step);
      item.most = other > item.most ? other : item.most;
    }
  }
  return item;
}

// Cell n of a split; those of the same sixteen follow each other in memory where there are no lists.
__device__ const char* item_cell(const AttentionKernel& a, const KvDevice& kv, const Item& item, int n) {
  const int at = item.split * kCellSplit + n;
  return cell_at(kv, a.ids == nullptr ? at : a.ids[item.row * a.id_row + at], item.kv_head);
}

template <int kDim>
__device__ void fetch(const AttentionKernel& a, const Item& item, int step, char* to) {
  using S = Sizes<kDim>;
  const int column = lane() % 4, line = lane() / 4;
  if (step < S::kKeySteps) {
    const int first = wave_index() * kWaveCells + step / S::kBatches * 16 + line, batch = step % S::kBatches;
    const char* row = first < item.most ? item_cell(a, a.k, item, first) : nullptr;
    STRATA_UNROLL
    for (int t = 0; t < 2; ++t) {
      if (first + 8 * t >= item.most) continue;
      if (t > 0) row = a.ids == nullptr ? row + 8 * a.k.cell_bytes : item_cell(a, a.k, item, first + 8);
      for (int p = 0; p < 2; ++p)
        copy16_async(to + (2 * t + p) * kThreads * 16, row + 16 * (4 * (2 * batch + p) + column));
    }
  } else {
    const int chunk = wave_index() % S::kChunks, share = wave_index() / S::kChunks;
    const int at = step - S::kKeySteps, first = share * S::kShare + at / 2 * 32 + 8 * column + at % 2 * 4;
    const char* row = first < item.most ? item_cell(a, a.v, item, first) : nullptr;
    STRATA_UNROLL
    for (int j = 0; j < kPieces; ++j) {
      if (first + j >= item.most) continue;
      if (j > 0) row = a.ids == nullptr ? row + a.v.cell_bytes : item_cell(a, a.v, item, first + j);
      copy16_async(to + j * kThreads * 16, row + 16 * (chunk * 8 + line));
    }
  }
}

// What a thread has under way. Steps are numbered through: a stage is taken again kStages steps later.
template <int kDim>
struct Stream {
  const AttentionKernel& a;
  char* own;  // of this thread
  Item now, next;

  __device__ char* stage(int step) const { return own + step % kStages * kPieces * kThreads * 16; }
  // Asks for a later step and waits for this one; what it brings.
  __device__ char* advance(int step) const {
    constexpr int kSteps = Sizes<kDim>::kSteps;
    const int ahead = step + kStages - 1;
    const bool here = ahead < kSteps;
    const Item item{0, here ? now.split : next.split, here ? now.kv_head : next.kv_head, here ? now.row : next.row,
                    here ? now.most : next.most};
    if (item.most > 0) fetch<kDim>(a, item, here ? ahead : ahead - kSteps, stage(ahead));
    copy_group();
    copy_wait<kStages - 1>();
    return stage(step);
  }
};

// Scores of slots l and l + 8 take the place of their weights: four together, rows in different banks.
__device__ float* score_at(char* weights, int slot, int n) {
  constexpr int kBytes = kParts * kCellSplit * 2;
  return reinterpret_cast<float*>(weights + (slot % 8 * 2 + slot / 8) * kBytes) + ((n / 4) ^ (slot & 7)) * 4 + n % 4;
}

template <int kDim, bool kF16>
__device__ void score_cells(const Stream<kDim>& stream, const int* seen, const char* queries, const float* inverse,
                            char* weights) {
  using S = Sizes<kDim>;
  const int column = lane() % 4, line = lane() / 4;
  for (int sub = 0; sub < kWaveCells / 16; ++sub) {
    const int first = wave_index() * kWaveCells + sub * 16;
    float sums[2][4] = {}, total[2][4] = {};
    STRATA_UNROLL
    for (int batch = 0; batch < S::kBatches; ++batch) {
      const char* pieces = stream.advance(sub * S::kBatches + batch);
      if (first >= stream.now.most) continue;
      float half[2][4] = {};
      STRATA_UNROLL
      for (int p = 0; p < 2; ++p) {
        Left left[kParts];
        STRATA_UNROLL
        for (int part = 0; part < kParts; ++part)
          left[part] = load_left(queries, kDim, part, 4 * (2 * batch + p) + column);
        STRATA_UNROLL
        for (int t = 0; t < 2; ++t) {
          multiply_pair<kDim, kF16>(sums[t], left, load16(pieces + (2 * t + p) * kThreads * 16));
          for (int i = 0; i < 4; ++i) {
            if (p == 0)
              half[t][i] = sums[t][i];
            else
              total[t][i] = batch == 0 ? half[t][i] + sums[t][i] : total[t][i] + (half[t][i] + sums[t][i]);
          }
        }
      }
    }
    if (first >= stream.now.most) continue;
    STRATA_UNROLL
    for (int t = 0; t < 2; ++t)
      for (int i = 0; i < 4; ++i) {
        const int slot = line + 8 * (i / 2), n = first + 8 * t + 2 * column + i % 2;
        float score = total[t][i] * inverse[slot];
        if (score != score && n < seen[slot])
          score = plain_score<kF16>(stream.a, tile_at(stream.a, stream.now.x, stream.now.split), slot, n);
        *score_at(weights, slot, n) = score;
      }
  }
}

// The sums over the cells of a share of 64 channels: tile j has channel 8 · column + j. To repair is to do it again
// with zeros for values that are no numbers, from memory.
template <int kDim, bool kF16, bool kRepair>
__device__ void stream_values(const Stream<kDim>& stream, const char* weights, float (&sums)[8][4]) {
  using S = Sizes<kDim>;
  const int column = lane() % 4, chunk = wave_index() % S::kChunks, most = stream.now.most;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) sums[j][i] = 0;
  for (int at = 0; at < S::kValueSteps; at += 2) {
    const int first = wave_index() / S::kChunks * S::kShare + at * 16;
    STRATA_UNROLL
    for (int step = 0; step < 2; ++step) {
      const char* pieces = kRepair ? nullptr : stream.advance(S::kKeySteps + at + step);
      if (first >= most) continue;
      Bits16 values[kPieces];
      STRATA_UNROLL
      for (int j = 0; j < kPieces; ++j) {
        const int n = first + 8 * column + 4 * step + j;
        const bool there = first + 32 <= most || n < most;
        if (kRepair) {
          values[j] = {};
          if (there) values[j] = load_piece(item_cell(stream.a, stream.a.v, stream.now, n), chunk * 8 + lane() / 4);
          for (int w = 0; w < 4; ++w) values[j].word[w] = finite_halves<kF16>(values[j].word[w]);
        } else {
          values[j] = load16(pieces + j * kThreads * 16);
          if (!there) values[j] = {};
        }
      }
      Left left[kParts];
      STRATA_UNROLL
      for (int part = 0; part < kParts; ++part) left[part] = load_left(weights, kCellSplit, part, first / 8 + column);
      STRATA_UNROLL
      for (int j = 0; j < 8; ++j) {
        uint32_t b[2];
        for (int pair = 0; pair < 2; ++pair)
          b[pair] = byte_permute(values[2 * pair].word[j / 2], values[2 * pair + 1].word[j / 2],
                                 j % 2 == 0 ? 0x5410u : 0x7632u);
        float part[4];
        multiply_step_first<kF16>(part, left[2], step, b[0], b[1]);
        multiply_step<kF16>(part, left[1], step, b[0], b[1]);
        multiply_step<kF16>(part, left[0], step, b[0], b[1]);
        for (int i = 0; i < 4; ++i) sums[j][i] += part[i];
      }
    }
  }
}

// Later shares of the cells go through shared memory to the waves of the first, in ascending order. Two barriers.
template <int kDim>
__device__ void join_shares(float* shares, float (&sums)[8][4]) {
  constexpr int kChunks = Sizes<kDim>::kChunks;
  const int chunk = wave_index() % kChunks, share = wave_index() / kChunks;
  auto place = [&](int wave, int i) { return shares + ((wave - kChunks) * 32 + i) * kWave + lane(); };
  if (share > 0)
    for (int i = 0; i < 32; ++i) *place(wave_index(), i) = sums[i / 4][i % 4];
  barrier();
  if (share == 0)
    for (int wave = kChunks + chunk; wave < kWaves; wave += kChunks)
      for (int i = 0; i < 32; ++i) sums[i / 4][i % 4] += *place(wave, i);
  barrier();
}

template <int kDim, bool kF16>
__device__ void store_sums(const AttentionKernel& a, const Tile& tile, const bool (&there)[2],
                           const float (&sums)[8][4]) {
  const int column = lane() % 4, line = lane() / 4, chunk = wave_index();
  const float power = kF16 ? 1 / kWeightPower : 1.0f;
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (!there[i / 2]) continue;
    const int64_t slot = tile.first + line + 8 * (i / 2);
    float* to = a.a + partial_at(a, tile, static_cast<int>(slot)) * kDim + chunk * 64 + 8 * (2 * column + i % 2);
    STRATA_UNROLL
    for (int j = 0; j < 8; j += 4)
      store_float4(to + j,
                   {{sums[j][i] * power, sums[j + 1][i] * power, sums[j + 2][i] * power, sums[j + 3][i] * power}});
  }
}

template <int kDim, bool kF16>
__device__ void attend(const AttentionKernel& a) {
  using S = Sizes<kDim>;
  char* queries = shared_memory();
  char* weights = queries + kParts * kSlots * kDim * 2;  // scores, weights, then the sums of later shares
  char* pieces = weights + S::kWeightBytes;
  auto* inverse = reinterpret_cast<float*>(pieces + kStages * kPieces * kThreads * 16);
  auto* seen = reinterpret_cast<int*>(inverse + kSlots);
  auto* tile = reinterpret_cast<Tile*>(seen + kSlots);
  const int chunk = wave_index() % S::kChunks, share = wave_index() / S::kChunks;
  Item now = find_item(a, block_x());
  if (now.most == 0) return;
  char* own = pieces + thread() * 16;
  for (int step = 0; step < kStages - 1; ++step) {
    fetch<kDim>(a, now, step, own + step * kPieces * kThreads * 16);
    copy_group();
  }
  for (int loaded = -1; now.most > 0;) {
    const Item next = find_item(a, int64_t{now.split} * a.kv_heads * a.tiles + now.x + blocks_x());
    const Stream<kDim> stream{a, own, now, next};
    if (thread() < kSlots) {
      const Tile slots = tile_at(a, now.x, now.split);
      seen[thread()] = thread() < slots.count ? cells_seen(a, slots, slots.first + thread()) : 0;
      if (thread() == 0) *tile = slots;
    }
    if (loaded != now.x) {
      load_queries<kDim, kF16, kThreads>(a, tile_at(a, now.x, now.split), queries, inverse);
      loaded = now.x;
    }
    barrier();
    score_cells<kDim, kF16>(stream, seen, queries, inverse, weights);
    barrier();
    weigh_parts<kF16>(a, *tile, wave_index(), seen, weights,
                      [&](int slot, int n) { return load_float4(score_at(weights, slot, n)); });
    barrier();
    float sums[8][4];
    stream_values<kDim, kF16, false>(stream, weights, sums);
    if (gpu::ballot(!all_finite(sums)) != 0) {
      const int begin = share * S::kShare, end = begin + S::kShare;
      stream_values<kDim, kF16, true>(stream, weights, sums);
      spread_bad<kF16>(a, tile_at(a, now.x, now.split), begin, end, chunk, seen, sums);
    }
    const bool there[2] = {seen[lane() / 4] > 0, seen[lane() / 4 + 8] > 0};
    barrier();
    join_shares<kDim>(reinterpret_cast<float*>(weights), sums);
    if (share == 0) store_sums<kDim, kF16>(a, tile_at(a, now.x, now.split), there, sums);
    now = next;
  }
  copy_wait<0>();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2) attention_stream_bf16_128(const AttentionKernel a) {
  attend<128, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) attention_stream_bf16_256(const AttentionKernel a) {
  attend<256, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) attention_stream_f16_128(const AttentionKernel a) {
  attend<128, true>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) attention_stream_f16_256(const AttentionKernel a) {
  attend<256, true>(a);
}
