// f16 keys on the matrix units of AMD GPUs. A wave of the hardware multiplies tiles of 16 x 16: rows are four queries
// by four heads, columns are 16 blocks. Two slices of 16 dims share a sum, which starts at zero; these sums are added
// in f32. The heads of a query lie in several lanes: tiles go through shared memory to be added in their order.
#include "ops/qsa_score/device_amd.h"
#include "ops/qsa_score/device_operands.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kPitch = kWmmaPitch, kItems = kWmmaQueries * 16 / kHardwareWave;

template <int kDims>
struct Queries {
  matrix::Operand slice[kDims / 16];

  // Zeros where there is no such row or head.
  __device__ void load(const QsaScoreKernel& a, int64_t row, int64_t head) {
    const int64_t query = row + matrix::lane() % 16 / 4, own = head + matrix::lane() % 4;
    const bool there = query < a.rows && own < a.heads;
    const float* from = a.q + (there ? query * a.q_row + own * a.q_head : 0) + matrix::operand_first();
    STRATA_UNROLL
    for (int s = 0; s < kDims / 16; ++s) {
      STRATA_UNROLL
      for (int i = 0; i < matrix::kOperands; ++i)
        slice[s][i] = there ? static_cast<_Float16>(from[16 * s + i]) : static_cast<_Float16>(0);
    }
  }
};

template <int kDims>
__device__ inline matrix::Sums multiply(const Queries<kDims>& queries, const char* key) {
  matrix::Sums total = {};
  STRATA_UNROLL
  for (int s = 0; s < kDims / 16; s += 2) {
    matrix::Sums two = {};
    STRATA_UNROLL
    for (int slice = s; slice < s + 2; ++slice) {
      const int first = 16 * slice + matrix::operand_first();
      two =
          matrix::product(queries.slice[slice], *reinterpret_cast<const matrix::StoredOperand*>(key + first * 2), two);
    }
    total += two;
  }
  return total;
}

template <int kDims>
__device__ inline void score(const QsaScoreKernel& a) {
  const int wave = matrix::wave(), lane = matrix::lane();
  float* tile = reinterpret_cast<float*>(shared_memory()) + wave * 16 * kPitch;
  const int64_t groups = (a.limit + kWmmaBlocks - 1) / kWmmaBlocks, row = block_x() / groups * kWmmaQueries;
  const int64_t begin = block_x() % groups * kWmmaBlocks + wave * kWmmaTiles * 16;
  int64_t visible = 0;
  for (int r = 0; r < kWmmaQueries; ++r)
    visible = visible < score_blocks(a, row + r) ? score_blocks(a, row + r) : visible;
  const char* const keys = a.keys;  // read here: a choice of addresses to read from would lie in scratch memory
  Queries<kDims> queries;
  if (a.heads <= 4) queries.load(a, row, 0);
  _Pragma("unroll 1") for (int t = 0; t < kWmmaTiles; ++t) {
    const int64_t first = begin + 16 * t, own = first + matrix::column();
    if (first >= visible) return;                       // of the whole wave
    const int64_t block = own < a.limit ? own : first;  // columns beyond the last block are not stored
    const char* key = keys + block * a.key_bytes;
    if (a.pages != nullptr) key = score_key(a, block);
    float scores[kItems] = {};
    _Pragma("unroll 1") for (int64_t head = 0; head < a.heads; head += 4) {
      if (a.heads > 4) queries.load(a, row, head);
      const matrix::Sums sums = multiply(queries, key);
      wave_barrier();
      STRATA_UNROLL
      for (int i = 0; i < matrix::kSums; ++i) tile[matrix::row(i) * kPitch + matrix::column()] = sums[i];
      wave_barrier();
      STRATA_UNROLL
      for (int item = 0; item < kItems; ++item) {
        const int at = lane + item * kHardwareWave, query = at / 16;
        for (int h = 0; h < 4; ++h)
          if (head + h < a.heads) scores[item] += relu_f32(tile[(4 * query + h) * kPitch + at % 16]);
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

extern "C" __global__ void __launch_bounds__(256) score_wmma_64(const QsaScoreKernel a) { score<64>(a); }
extern "C" __global__ void __launch_bounds__(256) score_wmma_128(const QsaScoreKernel a) { score<128>(a); }
