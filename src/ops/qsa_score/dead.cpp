// The row behind the last block: the dead key's score, raised by 1e9 while the query's last block is open. Every CPU
// arm takes it from here, so it has the same bits in all of them.
#include "base/fault.h"
#include "base/fmath.h"
#include "ops/qsa_score/operands.h"

namespace strata {

void qsa_score_dead_rows(const QsaScoreArgs& args) {
  const int64_t d = args.q.extent(2);
  Operands<float> operands(args);
  for (int64_t t = 0; t < args.q.extent(0); ++t) {
    const int64_t cells = args.n_kv.as<int32_t>()[t], blocks = cells / args.ratio;
    const bool wrong_key = fault(Fault::PooledInsteadOfDead) && blocks < args.pooled.extent(0);
    load_query(args, t, operands.query.data());
    load_key(args, wrong_key ? args.pages.at(args.pooled, blocks) : args.dead.data, operands.key.data());
    float score = 0;
    for (int64_t h = 0; h < args.q.extent(1); ++h) {
      const float product = dot_f32(operands.query.data() + h * d, operands.key.data(), d);
      score += product < 0 ? 0.0f : product;  // NaN passes
    }
    args.scores.row<float>(t)[blocks] = cells % args.ratio != 0 ? score + 1e9f : score;
  }
}

}  // namespace strata
