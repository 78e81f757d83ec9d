#include <algorithm>

#include "base/fmath.h"
#include "ops/qsa_score/qsa_score.h"

namespace strata {

void qsa_score_portable(Queue& queue, const QsaScoreArgs& args) {
  constexpr int64_t kTile = 32;  // blocks: their keys stay in the first-level cache for every row
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), d = args.q.extent(2);
  const int32_t* n_blocks = args.n_blocks.as<int32_t>();
  const int64_t most = rows == 0 ? 0 : *std::max_element(n_blocks, n_blocks + rows);
  const int64_t grain = (ThreadPool::grain_of(rows * heads * d) + kTile - 1) / kTile * kTile;
  queue.pool().run(most, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t tile = begin; tile < end; tile += kTile)
      for (int64_t t = 0; t < rows; ++t) {
        const int64_t last = std::min<int64_t>({tile + kTile, end, n_blocks[t]});
        const Tensor q = args.q[t];
        float* scores = args.scores.row<float>(t);
        for (int64_t b = tile; b < last; ++b) {
          const float* key = args.pooled.row<const float>(b);
          float sum = 0;
          for (int64_t h = 0; h < heads; ++h) {
            const float product = dot_f32(q.row<const float>(h), key, d);
            sum += product < 0 ? 0.0f : product;  // NaN passes
          }
          scores[b] = sum;
        }
      }
  });
}

}  // namespace strata
