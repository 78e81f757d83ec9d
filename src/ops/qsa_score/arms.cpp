#include <algorithm>

#include "evidence/arm.h"
#include "ops/qsa_score/qsa_score.h"

namespace strata {

void qsa_score_portable(Queue& queue, const QsaScoreArgs& args);  // cpu.cpp

namespace {
constexpr Arm<QsaScoreArgs> kArms[] = {{"portable", always_runs<QsaScoreArgs>, qsa_score_portable}};
}

void qsa_score(Queue& queue, const QsaScoreArgs& args) {
  check_tensor("qsa_score", "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.q.extent(0), d = args.q.extent(2);
  check_tensor("qsa_score", "pooled", args.pooled, DType::F32, {-1, d});
  check_tensor("qsa_score", "n_blocks", args.n_blocks, DType::I32, {rows});
  check_tensor("qsa_score", "scores", args.scores, DType::F32, {rows, -1});
  const int64_t limit = std::min(args.pooled.extent(0), args.scores.extent(1));
  for (int64_t t = 0; t < rows; ++t)
    if (const int32_t n = args.n_blocks.as<int32_t>()[t]; n < 0 || n > limit)
      argument_error("qsa_score", "n_blocks " + std::to_string(n) + " of row " + std::to_string(t) + " is outside 0.." +
                                      std::to_string(limit));
  choose_arm<QsaScoreArgs>(queue, "qsa_score", kArms, args).run(queue, args);
}

}  // namespace strata
