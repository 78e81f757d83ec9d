#include "ops/qsa_score/qsa_score.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

struct Problem {
  Problem(int64_t heads, int64_t dim, const std::vector<int32_t>& blocks, Random& random, float range = 1)
      : counts(blocks),
        most(*std::max_element(blocks.begin(), blocks.end())),
        q(random_f32({rows(), heads, dim}, random, -range, range, {4, 3})),
        pooled(DType::F32, {most + 2, dim}),  // the last keys stay NaN
        n_blocks(owned_i32(blocks)),
        scores(DType::F32, {rows(), most + 3}, {2}) {
    if (most > 0) fill(pooled.t().slice(0, most), random, -range, range);
  }
  int64_t rows() const { return static_cast<int64_t>(counts.size()); }
  QsaScoreArgs args() const { return {.q = q, .pooled = pooled, .n_blocks = n_blocks, .scores = scores}; }

  std::vector<int32_t> counts;
  int64_t most;
  Owned q, pooled, n_blocks, scores;
};

// Written scores against the oracle, all others still canaries. A head's dot product is off by gamma(dot_roundings) of
// its magnitudes; relu does not enlarge that; the sum over heads rounds heads - 1 times.
void expect_scores(const Problem& problem) {
  const QsaScoreArgs args = problem.args();
  const int64_t heads = args.q.extent(1), dim = args.q.extent(2), width = args.scores.extent(1);
  std::vector<double> expected(static_cast<size_t>(problem.rows() * width));
  qsa_score_oracle(args, expected.data());
  for (int64_t t = 0; t < problem.rows(); ++t) {
    const int32_t blocks = problem.counts[static_cast<size_t>(t)];
    for (int64_t b = 0; b < blocks; ++b) {
      double magnitude = 0;
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < dim; ++i)
          magnitude += std::fabs(double{problem.q.f({t, h, i})} * double{problem.pooled.f({b, i})});
      const double limit = gamma(dot_roundings(dim) + static_cast<double>(heads - 1)) * magnitude +
                           static_cast<double>(heads * dim) * kTiny;
      ASSERT_LE(std::fabs(double{problem.scores.f({t, b})} - expected[static_cast<size_t>(t * width + b)]), limit)
          << "row " << t << ", block " << b;
    }
    for (int64_t b = blocks; b < width; ++b) {
      ASSERT_EQ(std::bit_cast<uint32_t>(problem.scores.f({t, b})), kCanary) << "row " << t << ", block " << b;
    }
  }
  ASSERT_TRUE(problem.scores.gaps_intact());
}

std::vector<int32_t> mixed_blocks(size_t rows) {
  const std::vector<int32_t> blocks{33, 0, 1, 31, 32, 70, 64, 5};
  std::vector<int32_t> result;
  for (size_t t = 0; t < rows; ++t) result.push_back(blocks[t % blocks.size()]);
  return result;
}

TEST(QsaScore, StaysInItsBound) {
  Random random(1);
  TestQueue queue(2);
  for (int64_t heads : {1, 4, 5})
    for (int64_t dim : {1, 15, 16, 17, 128, 320})
      for (size_t rows : {1, 2, 7, 33})
        for (float range : {1.0f, 300.0f}) {
          const Problem problem(heads, dim, mixed_blocks(rows), random, range);
          qsa_score(queue, problem.args());
          expect_scores(problem);
        }
}

TEST(QsaScore, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(2);
  const Problem problem(4, 40, mixed_blocks(33), random);
  TestQueue one(1);
  qsa_score(one, problem.args());
  for (int threads : kThreadCounts) {
    TestQueue queue(threads);
    QsaScoreArgs args = problem.args();
    const Owned batch(DType::F32, {33, problem.most + 3});
    args.scores = batch;
    qsa_score(queue, args);
    ASSERT_TRUE(same_bits(batch, problem.scores)) << threads << " threads";
    for (int64_t t = 0; t < 33; ++t) {
      const Owned row(DType::F32, {1, problem.most + 3});
      args.q = problem.q.t().slice(t, 1);
      args.n_blocks = problem.n_blocks.t().slice(t, 1);
      args.scores = row;
      qsa_score(queue, args);
      ASSERT_TRUE(same_bits(row, problem.scores.t().slice(t, 1))) << "row " << t << ", " << threads << " threads";
    }
  }
}

TEST(QsaScore, OneHotQueriesReadSingleKeysExactly) {
  Random random(3);
  TestQueue queue(3);
  const Problem problem(4, 20, std::vector<int32_t>(20, 70), random);
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < 20; ++i) problem.q.f({t, h, i}) = i == t && h == t % 4 ? 1.0f : 0.0f;
  qsa_score(queue, problem.args());
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t b = 0; b < 70; ++b)
      ASSERT_EQ(problem.scores.f({t, b}), std::max(problem.pooled.f({b, t}), 0.0f)) << t << " " << b;
}

// Relu acts on each head, not on the sum; a score without a positive head is +0, never -0.
TEST(QsaScore, NegativeHeadsCountAsPlusZero) {
  TestQueue queue;
  Random random(4);
  const Problem problem(2, 1, {3}, random);
  assign<float>(problem.q, {1, -3});
  assign<float>(problem.pooled.t().slice(0, 3), {2, -0.0f, -5});
  qsa_score(queue, problem.args());
  EXPECT_EQ(problem.scores.f({0, 0}), 2.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(problem.scores.f({0, 1})), 0u);
  EXPECT_EQ(problem.scores.f({0, 2}), 15.0f);
}

TEST(QsaScore, NonFiniteProducts) {
  TestQueue queue;
  Random random(5);
  const Problem problem(2, 2, {4}, random);
  assign<float>(problem.q, {1, 0, 1, 1});
  assign<float>(problem.pooled.t().slice(0, 4), {NAN, 1, -INFINITY, 1, INFINITY, 1, 1, INFINITY});
  qsa_score(queue, problem.args());
  EXPECT_TRUE(std::isnan(problem.scores.f({0, 0})));
  EXPECT_EQ(problem.scores.f({0, 1}), 0.0f);  // relu(-inf) = 0 in both heads
  EXPECT_EQ(problem.scores.f({0, 2}), INFINITY);
  EXPECT_TRUE(std::isnan(problem.scores.f({0, 3})));  // 0 · inf in the first head
  std::vector<double> expected(static_cast<size_t>(problem.scores.t().extent(1)));
  qsa_score_oracle(problem.args(), expected.data());
  EXPECT_TRUE(std::isnan(expected[0]) && expected[1] == 0 && std::isinf(expected[2]) && std::isnan(expected[3]));
}

TEST(QsaScore, WrongArgumentsAreNamed) {
  Random random(6);
  TestQueue queue;
  const Problem problem(4, 8, {3, 2}, random);
  auto refused = [&](const char* argument, auto change) {
    QsaScoreArgs args = problem.args();
    change(args);
    return argument_refused([&] { qsa_score(queue, args); }, "qsa_score", argument);
  };
  const Owned flat(DType::F32, {2, 8}), narrow(DType::F32, {5, 7}), floats(DType::F32, {2}), ints(DType::I32, {2, 6}),
      tall(DType::F32, {3, 6}), short_scores(DType::F32, {2, 2}), negative = owned_i32({3, -1}),
                                                                  too_many = owned_i32({6, 2}), one = owned_i32({3});
  EXPECT_TRUE(refused("q", [&](QsaScoreArgs& args) { args.q = flat; }));
  EXPECT_TRUE(refused("pooled", [&](QsaScoreArgs& args) { args.pooled = narrow; }));
  EXPECT_TRUE(refused("n_blocks", [&](QsaScoreArgs& args) { args.n_blocks = floats; }));
  EXPECT_TRUE(refused("n_blocks", [&](QsaScoreArgs& args) { args.n_blocks = one; }));
  EXPECT_TRUE(refused("n_blocks", [&](QsaScoreArgs& args) { args.n_blocks = negative; }));
  EXPECT_TRUE(refused("n_blocks", [&](QsaScoreArgs& args) { args.n_blocks = too_many; }));
  EXPECT_TRUE(refused("n_blocks", [&](QsaScoreArgs& args) { args.scores = short_scores; }));
  EXPECT_TRUE(refused("scores", [&](QsaScoreArgs& args) { args.scores = ints; }));
  EXPECT_TRUE(refused("scores", [&](QsaScoreArgs& args) { args.scores = tall; }));
  EXPECT_TRUE(all_canary(problem.scores));
}

}  // namespace
}  // namespace strata::test
