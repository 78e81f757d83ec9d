// f16 and bf16 keys on the matrix units of AMD GPUs. A wave of the hardware multiplies tiles of 16 x 16: rows are four
// queries by four heads, columns are 16 blocks. Two slices of 16 dims share a sum, which starts at zero; these sums are
// added in f32. The heads of a query lie in several lanes: tiles go through shared memory to be added in their order.
#include "ops/qsa_score/device_amd.h"
#include "ops/qsa_score/device_operands.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kPitch = kWmmaPitch, kItems = kWmmaQueries * 16 / kHardwareWave;

// Of rows that no query or head has: loud, so that a sum with them shows.
constexpr float kSlack = 60000.0f;

template <class Operand, int kDims>
struct Queries {
  Operand slice[kDims / 16];

  __device__ void load(const QsaScoreKernel& a, int64_t group, int64_t head) {
    const int64_t tile = group * ((a.heads + kWmmaHeads - 1) / kWmmaHeads) + head / kWmmaHeads;
    const char* row = a.operands + (tile * 16 + matrix::lane() % 16) * (kDims * 2) + matrix::operand_first() * 2;
    STRATA_UNROLL
    for (int s = 0; s < kDims / 16; ++s) slice[s] = matrix::load<Operand>(row + s * 32);
  }
};

template <class Operand, int kDims>
__device__ inline matrix::Sums multiply(const Queries<Operand, kDims>& queries, const char* key) {
  matrix::Sums total = {};
  STRATA_UNROLL
  for (int s = 0; s < kDims / 16; s += 2) {
    matrix::Sums two = {};
    STRATA_UNROLL
    for (int slice = s; slice < s + 2; ++slice) {
      const char* part = key + (16 * slice + matrix::operand_first()) * 2;
      two = matrix::product(queries.slice[slice], matrix::load<Operand>(part), two);
    }
    total += two;
  }
  return total;
}

template <class Operand, int kDims>
__device__ inline void score(const QsaScoreKernel& a) {
  const int wave = matrix::wave(), lane = matrix::lane();
  float* tile = reinterpret_cast<float*>(shared_memory()) + wave * 16 * kPitch;
  const int64_t parts = (a.limit + kWmmaBlocks - 1) / kWmmaBlocks, group = block_x() / parts;
  const int64_t begin = block_x() % parts * kWmmaBlocks + wave * kWmmaTiles * 16, row = group * kWmmaQueries;
  int64_t visible = 0;
  for (int r = 0; r < kWmmaQueries; ++r)
    visible = visible < score_blocks(a, row + r) ? score_blocks(a, row + r) : visible;
  const char* const keys = a.keys;  // read here: a choice of addresses to read from would lie in scratch memory
  Queries<Operand, kDims> queries;
  if (a.heads <= kWmmaHeads) queries.load(a, group, 0);
  _Pragma("unroll 1") for (int t = 0; t < kWmmaTiles; ++t) {
    const int64_t first = begin + 16 * t, own = first + matrix::column();
    if (first >= visible) return;                       // of the whole wave
    const int64_t block = own < visible ? own : first;  // columns beyond the last block are not stored
    const char* key = keys + block * a.key_bytes;
    if (a.pages != nullptr) key = score_key(a, block);
    float scores[kItems] = {};
    _Pragma("unroll 1") for (int64_t head = 0; head < a.heads; head += kWmmaHeads) {
      if (a.heads > kWmmaHeads) queries.load(a, group, head);
      const matrix::Sums sums = multiply(queries, key);
      wave_barrier();
      STRATA_UNROLL
      for (int i = 0; i < matrix::kSums; ++i) tile[matrix::row(i) * kPitch + matrix::column()] = sums[i];
      wave_barrier();
      STRATA_UNROLL
      for (int item = 0; item < kItems; ++item) {
        const int at = lane + item * kHardwareWave, query = at / 16;
        for (int h = 0; h < kWmmaHeads; ++h)
          if (head + h < a.heads) scores[item] += relu_f32(tile[(kWmmaHeads * query + h) * kPitch + at % 16]);
      }
    }
    STRATA_UNROLL
    for (int item = 0; item < kItems; ++item) {
      const int at = lane + item * kHardwareWave;
      const int64_t query = row + at / 16, to = first + at % 16;
      if (to < score_blocks(a, query)) a.scores[query * a.score_row + to] = scores[item];
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) score_wmma_operands(const QsaScoreKernel a) {
  const int64_t quads = (a.heads + kWmmaHeads - 1) / kWmmaHeads, item = block_x() * threads() + thread();
  const int64_t row = item / a.d % 16, tile = item / a.d / 16;
  const int64_t query = tile / quads * kWmmaQueries + row / kWmmaHeads;
  const int64_t head = tile % quads * kWmmaHeads + row % kWmmaHeads;
  if (tile >= a.groups * quads) return;
  const bool there = query < a.rows && head < a.heads;
  const float x = there ? a.q[query * a.q_row + head * a.q_head + item % a.d] : kSlack;
  reinterpret_cast<uint16_t*>(a.operands)[item] = score_operand_bits(a.form, x);
}

extern "C" __global__ void __launch_bounds__(256) score_wmma_f16_64(const QsaScoreKernel a) {
  score<matrix::Operand, 64>(a);
}
extern "C" __global__ void __launch_bounds__(256) score_wmma_f16_128(const QsaScoreKernel a) {
  score<matrix::Operand, 128>(a);
}
extern "C" __global__ void __launch_bounds__(256) score_wmma_bf16_64(const QsaScoreKernel a) {
  score<matrix::BrainOperand, 64>(a);
}
extern "C" __global__ void __launch_bounds__(256) score_wmma_bf16_128(const QsaScoreKernel a) {
  score<matrix::BrainOperand, 128>(a);
}
