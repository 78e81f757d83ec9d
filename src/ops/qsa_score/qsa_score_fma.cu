// Any heads, dims and type of keys. A thread has two blocks and four rows by four heads in registers; 32 dims of the
// keys of 256 blocks lie in shared memory, transposed, with the queries beside them.
#include "ops/qsa_score/device_operands.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = 128, kTile = 2 * kThreads, kPitch = kTile + 1, kDims = 32, kRows = 4, kHeads = 4;

// 32 dims of the tile's keys and of four heads of the rows; zeros where there are none.
__device__ void stage(const QsaScoreKernel& a, int64_t first, int64_t row, int64_t head, int64_t dim, float* keys,
                      float* queries) {
  for (int b = wave_index(); b < kTile; b += kThreads / kWave)
    for (int i = lane(); i < kDims; i += kWave)
      keys[i * kPitch + b] =
          first + b < a.limit && dim + i < a.d ? score_key_element(a.form, score_key(a, first + b), dim + i) : 0.0f;
  for (int i = thread(); i < kDims * kRows * kHeads; i += kThreads) {
    const int64_t r = row + i % (kRows * kHeads) / kHeads, h = head + i % kHeads, at = dim + i / (kRows * kHeads);
    const bool there = r < a.rows && h < a.heads && at < a.d;
    queries[i] = there ? score_operand(a.form, a.q[r * a.q_row + h * a.q_head + at]) : 0.0f;
  }
}

}  // namespace

extern "C" __global__ void qsa_score_fma(const QsaScoreKernel a) {
  auto* keys = reinterpret_cast<float*>(shared_memory());  // [kDims, kPitch]
  float* queries = keys + kDims * kPitch;                  // [kDims, kRows, kHeads]
  const int64_t tiles = (a.limit + kTile - 1) / kTile, first = block_x() % tiles * kTile;
  const int64_t row = block_x() / tiles * kRows;
  int64_t visible = 0;
  for (int r = 0; r < kRows; ++r) visible = visible < score_blocks(a, row + r) ? score_blocks(a, row + r) : visible;
  if (visible <= first) return;
  float score[2][kRows] = {};
  for (int64_t head = 0; head < a.heads; head += kHeads) {
    float sum[2][kRows * kHeads] = {};
    for (int64_t dim = 0; dim < a.d; dim += kDims) {
      barrier();
      stage(a, first, row, head, dim, keys, queries);
      barrier();
      for (int i = 0; i < kDims; ++i) {
        const float x = keys[i * kPitch + thread()], y = keys[i * kPitch + thread() + kThreads];
        for (int j = 0; j < kRows * kHeads; ++j) {
          const float q = queries[i * kRows * kHeads + j];
          sum[0][j] = fma_f32(q, x, sum[0][j]);
          sum[1][j] = fma_f32(q, y, sum[1][j]);
        }
      }
    }
    for (int b = 0; b < 2; ++b)
      for (int j = 0; j < kRows * kHeads; ++j)
        if (head + j % kHeads < a.heads) score[b][j / kHeads] += sum[b][j] < 0 ? 0.0f : sum[b][j];  // NaN passes
  }
  for (int r = 0; r < kRows; ++r) {
    const int64_t blocks = score_blocks(a, row + r);
    for (int b = 0; b < 2; ++b) {
      const int64_t block = first + thread() + b * kThreads;
      if (block < blocks) a.scores[(row + r) * a.score_row + block] = score[b][r];
    }
  }
}

// The row behind the last block, a wave for each query: of all arms.
extern "C" __global__ void qsa_score_spare(const QsaScoreKernel a) {
  const int64_t row = block_x();
  const float* q = a.q + row * a.q_row;
  float score = 0;
  for (int64_t h = 0; h < a.heads; ++h) {
    float sum = 0;
    for (int64_t i = lane(); i < a.d; i += kWave)
      sum = fma_f32(score_operand(a.form, q[h * a.q_head + i]), score_key_element(a.form, a.dead, i), sum);
    sum = wave_sum(sum);
    score += sum < 0 ? 0.0f : sum;
  }
  const int64_t blocks = score_blocks(a, row);
  if (lane() == 0) a.scores[row * a.score_row + blocks] = a.n_kv[row] % a.ratio != 0 ? score + 1e9f : score;
}
