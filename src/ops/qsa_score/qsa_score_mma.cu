// only: cuda
// bf16 and f16 keys on matrix units. A wave keeps the keys of 32 blocks (16 of 256 dims) in registers as the left
// operand and meets all query rows, eight at a time: a tile of products holds one head of eight rows, so that a thread
// has the heads of its (block, row) pairs and adds them up itself.
//
// The order of dims within 32 is free as long as both operands have the same: a lane takes eight neighbouring ones, 16
// bytes, where the instruction means two pairs. The sums of 32 dims are added in f32 with rounding.
#include "ops/qsa_score/device_operands.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = kScoreWaves * kWave;

template <bool kF16>
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if (kF16)
    mma_f16(d, a, b);
  else
    mma_bf16(d, a, b);
}

template <bool kF16>
__device__ void multiply_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if (kF16)
    mma_f16_first(d, a, b);
  else
    mma_bf16_first(d, a, b);
}

// Where piece i of eight dims of a group's row lies: rows two by two in different halves of 128 bytes.
__device__ int piece_at(int d, int head, int row, int piece) {
  return ((head * kScoreRows + row) * (d / 8) + (piece ^ ((row & 1) * 4))) * 16;
}

// The operands of one group, pieces `from`, from + step, ...; zeros for rows that do not exist.
__device__ void make_group(const QsaScoreKernel& a, int64_t group, char* to, int64_t from, int64_t step) {
  const int d = static_cast<int>(a.d), pieces = d / 8;
  for (int64_t at = from; at < a.heads * kScoreRows * pieces; at += step) {
    const int i = static_cast<int>(at);
    const int piece = i % pieces, head = i / pieces / kScoreRows, row = i / pieces % kScoreRows;
    Bits16 bits{};
    if (group * kScoreRows + row < a.rows) {
      const float* q = a.q + (group * kScoreRows + row) * a.q_row + head * a.q_head + piece * 8;
      for (int w = 0; w < 4; ++w)
        bits.word[w] = score_operand_bits(a.form, q[2 * w]) |
                       static_cast<uint32_t>(score_operand_bits(a.form, q[2 * w + 1])) << 16;
    }
    store16(to + piece_at(d, head, row, piece), bits);
  }
}

// Eight dims of a block's key; zeros behind the last one.
__device__ Bits16 load_piece(const QsaScoreKernel& a, const char* keys, int64_t block, int piece) {
  Bits16 bits{};
  if (block >= a.limit) return bits;
  if (a.aligned != 0) return load16(keys + piece * 16);
  const auto* elements = reinterpret_cast<const uint16_t*>(keys + piece * 16);
  for (int w = 0; w < 4; ++w) bits.word[w] = elements[2 * w] | static_cast<uint32_t>(elements[2 * w + 1]) << 16;
  return bits;
}

// Blocks that any of the rows of a part sees. All threads come; one barrier.
__device__ int most_visible(const QsaScoreKernel& a, int64_t begin, int64_t end, int* waves) {
  int visible = 0;
  for (int64_t row = begin + thread(); row < end; row += kThreads) {
    const auto one = static_cast<int>(score_blocks(a, row));
    visible = one > visible ? one : visible;
  }
  for (int step = kWave / 2; step > 0; step /= 2) {
    const int other = shuffle_xor(visible, step);
    visible = other > visible ? other : visible;
  }
  if (lane() == 0) waves[wave_index()] = visible;
  barrier();
  for (int i = 0; i < kScoreWaves; ++i) visible = waves[i] > visible ? waves[i] : visible;
  return visible;
}

template <int kPairs, int kTiles>
struct Keys {
  uint32_t word[kTiles][kPairs][2][4];  // rows l / 4 and l / 4 + 8 of each tile of 16
};

// Rows 8 · group .. of blocks first ..: `seen` has how many blocks each of the rows sees, `to` the place of the
// thread's first score.
template <int kPairs, int kTiles, bool kF16>
__device__ void score_group(const QsaScoreKernel& a, const Keys<kPairs, kTiles>& keys, const char* group,
                            const int* seen, int first, float* to) {
  const int column = lane() % 4, line = lane() / 4, heads = static_cast<int>(a.heads);
  float score[kTiles][4] = {};
  for (int h = 0; h < heads; ++h) {
    float dot[kTiles][4] = {};
    STRATA_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const Bits16 q = load16(group + piece_at(kPairs * 32, h, line, 4 * p + column));
      float part[kTiles][4];
      STRATA_UNROLL
      for (int m = 0; m < kTiles; ++m) {
        const auto& key = keys.word[m][p];
        multiply_first<kF16>(part[m], {key[0][0], key[1][0], key[0][1], key[1][1]}, {q.word[0], q.word[1]});
      }
      STRATA_UNROLL
      for (int m = 0; m < kTiles; ++m) {
        const auto& key = keys.word[m][p];
        multiply<kF16>(part[m], {key[0][2], key[1][2], key[0][3], key[1][3]}, {q.word[2], q.word[3]});
      }
      for (int m = 0; m < kTiles; ++m)
        for (int i = 0; i < 4; ++i) dot[m][i] = p == 0 ? part[m][i] : dot[m][i] + part[m][i];
    }
    for (int m = 0; m < kTiles; ++m)
      for (int i = 0; i < 4; ++i) score[m][i] += relu_f32(dot[m][i]);
  }
  const int left[2] = {seen[2 * column] - first - line, seen[2 * column + 1] - first - line};
  STRATA_UNROLL
  for (int m = 0; m < kTiles; ++m)
    for (int i = 0; i < 4; ++i) {
      const int block = 16 * m + 8 * (i / 2);
      if (block < left[i % 2]) to[i % 2 * a.score_row + block] = score[m][i];
    }
}

template <int kPairs, int kTiles, bool kF16>
__device__ void score_blocks_of(const QsaScoreKernel& a) {
  char* stages = shared_memory();
  const int64_t bytes = a.heads * kScoreRows * kPairs * 64;
  auto* seen = reinterpret_cast<int*>(stages + (a.operands == nullptr ? 1 : kScoreStages) * bytes);
  int* waves = seen + kScoreStages * kScoreRows;  // seen: [kScoreStages, kScoreRows]
  const int64_t tile = block_x() * kScoreWaves * 16 * kTiles, first = tile + wave_index() * 16 * kTiles;
  const int64_t begin = block_y() * a.groups_each;
  const int64_t end = begin + a.groups_each < a.groups ? begin + a.groups_each : a.groups;
  auto fetch = [&](int64_t group, int stage) {
    if (group < end) {
      if (thread() < kScoreRows)
        seen[stage * kScoreRows + thread()] = static_cast<int>(score_blocks(a, group * kScoreRows + thread()));
      if (a.operands != nullptr)
        for (int i = thread(); i < static_cast<int>(bytes / 16); i += kThreads)
          copy16_async(stages + stage * bytes + i * 16, a.operands + group * bytes + i * 16);
    }
    copy_group();
  };
  // Keys and n_kv do not wait for the kernel of operands: what wrote them had ended when that one began.
  const int visible = most_visible(a, begin * kScoreRows, end * kScoreRows, waves);
  if (visible <= tile) return begin_early();
  Keys<kPairs, kTiles> keys;
  STRATA_UNROLL
  for (int i = 0; i < 2 * kTiles; ++i) {
    const int64_t block = first + 8 * i + lane() / 4;
    const char* key = score_key(a, block < a.limit ? block : 0);
    STRATA_UNROLL
    for (int p = 0; p < kPairs; ++p) {
      const Bits16 bits = load_piece(a, key, block, 4 * p + lane() % 4);
      for (int w = 0; w < 4; ++w) keys.word[i / 2][p][i % 2][w] = bits.word[w];
    }
  }
  begin_early();
  fetch(begin, 0);
  fetch(begin + 1, 1);
  if (a.operands == nullptr) make_group(a, 0, stages, thread(), kThreads);
  float* to = a.scores + (begin * kScoreRows + 2 * (lane() % 4)) * a.score_row + first + lane() / 4;
  for (int64_t group = begin, stage = 0; group < end; ++group) {
    copy_wait<1>();
    barrier();
    fetch(group + 2, static_cast<int>(stage == 0 ? 2 : stage - 1));
    if (first < visible)
      score_group<kPairs, kTiles, kF16>(a, keys, stages + stage * bytes, seen + stage * kScoreRows,
                                        static_cast<int>(first), to);
    to += kScoreRows * a.score_row;
    stage = stage == kScoreStages - 1 ? 0 : stage + 1;
  }
}

}  // namespace

// Threads of the grid's x make the pieces of group y.
extern "C" __global__ void qsa_score_operands(const QsaScoreKernel a) {
  const int64_t group = block_y(), bytes = a.heads * kScoreRows * a.d * 2;
  make_group(a, group, a.operands + group * bytes, block_x() * threads() + thread(), blocks_x() * threads());
}
extern "C" __global__ void __launch_bounds__(256, 2) qsa_score_bf16_64(const QsaScoreKernel a) {
  score_blocks_of<2, 2, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) qsa_score_bf16_128(const QsaScoreKernel a) {
  score_blocks_of<4, 2, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) qsa_score_bf16_256(const QsaScoreKernel a) {
  score_blocks_of<8, 1, false>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) qsa_score_f16_64(const QsaScoreKernel a) {
  score_blocks_of<2, 2, true>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) qsa_score_f16_128(const QsaScoreKernel a) {
  score_blocks_of<4, 2, true>(a);
}
extern "C" __global__ void __launch_bounds__(256, 2) qsa_score_f16_256(const QsaScoreKernel a) {
  score_blocks_of<8, 1, true>(a);
}
