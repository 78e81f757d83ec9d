#include <algorithm>

#include "base/fault.h"
#include "base/fmath.h"
#include "ops/qsa_score/operands.h"

namespace strata {
namespace {

constexpr int64_t kTile = 32;     // blocks: their keys stay in the first-level cache for every row
constexpr int64_t kQueries = 64;  // rounded at a time

// Scores of one row, blocks begin .. end - 1, whose keys follow each other.
void score_row(const float* query, const float* keys, int64_t heads, int64_t d, int64_t begin, int64_t end,
               float* scores) {
  for (int64_t b = begin; b < end; ++b, keys += d) {
    float sum = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const float product = dot_f32(query + h * d, keys, d);
      sum += product < 0 ? 0.0f : product;  // NaN passes
    }
    scores[b] = sum;
  }
}

}  // namespace

void qsa_score_portable(Queue& queue, const QsaScoreArgs& args) {
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), d = args.q.extent(2), terms = heads * d;
  const int32_t* n_kv = args.n_kv.as<int32_t>();
  std::vector<float> queries(static_cast<size_t>(std::min(rows, kQueries) * terms));
  std::vector<float> tiles(static_cast<size_t>(queue.pool().threads() * kTile * d));
  for (int64_t first = 0; first < rows; first += kQueries) {
    const int64_t count = std::min(kQueries, rows - first);
    for (int64_t t = 0; t < count; ++t) load_query(args, first + t, queries.data() + t * terms);
    const int64_t blocks = *std::max_element(n_kv + first, n_kv + first + count) / args.ratio;
    const int64_t grain = (ThreadPool::grain_of(count * terms) + kTile - 1) / kTile * kTile;
    queue.pool().run(blocks, grain, [&](int64_t begin, int64_t end, int share) {
      float* keys = tiles.data() + share * kTile * d;
      for (int64_t tile = begin; tile < end; tile += kTile) {
        const int64_t tile_end = std::min(tile + kTile, end);
        if (fault(Fault::SkipTail) && tile_end < tile + kTile) break;
        for (int64_t b = tile; b < tile_end; ++b) load_key(args, args.pages.at(args.pooled, b), keys + (b - tile) * d);
        if (fault(Fault::DropLane))
          for (int64_t i = 5; i < kTile * d; i += 16) keys[i] = 0;
        for (int64_t t = 0; t < count; ++t)
          score_row(queries.data() + t * terms, keys, heads, d, tile,
                    std::min<int64_t>(tile_end, n_kv[first + t] / args.ratio), args.scores.row<float>(first + t));
      }
    });
  }
}

}  // namespace strata
