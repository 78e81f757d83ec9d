#include "ops/route/route.h"

#include <algorithm>
#include <set>

#include "support/ops_test.h"

namespace strata::test {
namespace {

struct Case {
  Case(int64_t rows, int64_t experts, int64_t k, float size = 6, uint64_t seed = 1)
      : random(seed),
        logits(random_f32({rows, experts}, random, -size, size, {3})),
        ids(DType::I32, {rows, k}, {2}),
        weights(DType::F32, {rows, k}, {1}) {
    args.logits = logits;
    args.ids = ids;
    args.weights = weights;
  }
  Random random;
  Owned logits, ids, weights;
  RouteArgs args;
};

void run(const RouteArgs& args, int threads = 1) {
  TestQueue queue(threads);
  route(queue, args);
}

// Relative error of a weight: e^(x - best) has u |x - best| from the subtraction and 4 u from exp; the sum over all
// experts the same, averaged over its terms, and one u a term; then division, sum of the k chosen, division, factor.
// Probabilities below 2^-126 may be 0, divided by a sum that is at least 1 / experts.
std::vector<double> bound_of(const RouteArgs& args, const std::vector<int32_t>& ids,
                             const std::vector<double>& weights) {
  const auto experts = static_cast<double>(args.logits.extent(1)), scale = std::fabs(static_cast<double>(args.scale));
  const auto k = static_cast<size_t>(args.ids.extent(1));
  std::vector<double> bound(weights.size());
  for (size_t first = 0; first < weights.size(); first += k) {
    const float* logits = args.logits.row<float>(static_cast<int64_t>(first / k));
    const auto below_best = [&](int64_t e) {
      return static_cast<double>(logits[ids[first]]) - static_cast<double>(logits[e]);
    };
    double total = 0, spread = 0;
    for (int64_t e = 0; e < args.logits.extent(1); ++e) {
      total += std::exp(-below_best(e));
      spread += std::exp(-below_best(e)) * below_best(e);
    }
    const double of_total = spread / total + 4 + experts;
    const double of_chosen = below_best(ids[first + k - 1]) + 4 + of_total + 1 + static_cast<double>(k);
    for (size_t i = first; i < first + k; ++i) {
      const double of_p = below_best(ids[i]) + 4 + of_total + 1;
      const double relative = (args.normalise ? of_p + of_chosen + 1 : of_p) + 1;
      bound[i] = 1.01 * kU * relative * std::fabs(weights[i]) + 1.2e-38 * experts * scale + kTiny;
    }
  }
  return bound;
}

void check_case(const Case& problem) {
  std::vector<int32_t> ids(static_cast<size_t>(problem.args.ids.elements()));
  std::vector<double> weights(ids.size());
  route_oracle(problem.args, ids.data(), weights.data());
  run(problem.args);
  EXPECT_EQ(packed<int32_t>(problem.ids), ids);
  EXPECT_TRUE(within(problem.weights, weights, bound_of(problem.args, ids, weights)));
  EXPECT_TRUE(problem.ids.gaps_intact() && problem.weights.gaps_intact());
}

TEST(Route, MatchesTheOracle) {
  uint64_t seed = 1;
  for (int64_t rows : {1, 17})
    for (auto [experts, k] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {6, 2}, {8, 3}, {8, 8}, {127, 10}, {512, 10}})
      for (float size : {0.01f, 6.0f, 200.0f})
        for (int variant = 0; variant < 4; ++variant) {
          Case problem(rows, experts, k, size, seed++);
          problem.args.normalise = (variant & 1) != 0;
          problem.args.scale = (variant & 2) != 0 ? 2.5f : 1.0f;
          SCOPED_TRACE(testing::Message() << experts << " experts, " << k << " chosen, logits up to " << size);
          check_case(problem);
        }
}

TEST(Route, TiesGoToTheLowestIndex) {
  const Case problem(3, 8, 3);
  assign(problem.logits.t(), std::vector<float>{1,  2,     2, 1,  2, 2,  0,  2,  //
                                                0,  0,     0, 0,  0, 0,  0,  0,  //
                                                -1, -0.0f, 0, -3, 5, -1, -1, 5});
  run(problem.args);
  EXPECT_EQ(packed<int32_t>(problem.ids), (std::vector<int32_t>{1, 2, 4, 0, 1, 2, 4, 7, 1}));
  EXPECT_EQ(problem.weights.f({1, 0}), problem.weights.f({1, 2}));
}

TEST(Route, KnownWeights) {
  // Probabilities 1/2, 1/4, 1/8, 1/8. Each passes a logarithm and an exp: a few u.
  Case problem(1, 4, 2);
  for (int64_t e = 0; e < 4; ++e)
    problem.logits.f({0, e}) = std::log(std::vector<float>{1, 4, 1, 2}[static_cast<size_t>(e)]);
  run(problem.args);
  EXPECT_EQ(packed<int32_t>(problem.ids), (std::vector<int32_t>{1, 3}));
  EXPECT_NEAR(problem.weights.f({0, 0}), 2.0 / 3, 1e-6);
  EXPECT_NEAR(problem.weights.f({0, 1}), 1.0 / 3, 1e-6);
  problem.args.normalise = false;
  problem.args.scale = 3;
  run(problem.args);
  EXPECT_NEAR(problem.weights.f({0, 0}), 1.5, 1e-6);
  EXPECT_NEAR(problem.weights.f({0, 1}), 0.75, 1e-6);
}

TEST(Route, ATinySumIsClamped) {
  // 20000 equal experts: the chosen one has probability 5e-5 and is divided by 6.1e-5, not by itself.
  const Case problem(1, 20000, 1);
  assign(problem.logits.t(), std::vector<float>(20000, 1.0f));
  run(problem.args);
  EXPECT_NEAR(problem.weights.f({0, 0}), 5e-5 / 6.1e-5, 1e-3);
}

TEST(Route, NonFiniteLogitsGiveValidIds) {
  for (float odd : {NAN, -NAN, INFINITY, -INFINITY})
    for (int64_t count : {1, 4, 6}) {
      const Case problem(1, 6, 4);
      for (int64_t e = 0; e < count; ++e) problem.logits.f({0, e}) = odd;
      std::vector<int32_t> expected(4);
      std::vector<double> weights(4);
      route_oracle(problem.args, expected.data(), weights.data());
      run(problem.args);
      const std::vector<int32_t> ids = packed<int32_t>(problem.ids);
      EXPECT_EQ(ids, expected) << count << " of " << odd;
      EXPECT_EQ(std::set<int32_t>(ids.begin(), ids.end()).size(), 4u);
      for (int64_t slot = 0; slot < 4; ++slot)
        EXPECT_EQ(std::isnan(problem.weights.f({0, slot})), std::isnan(weights[static_cast<size_t>(slot)]));
    }
  // NaN is chosen last, and one NaN makes every weight of its row NaN.
  const Case problem(2, 4, 3);
  assign(problem.logits.t(), std::vector<float>{NAN, 1, 3, 2, 1, 2, 3, 4});
  run(problem.args);
  EXPECT_EQ(packed<int32_t>(problem.ids), (std::vector<int32_t>{2, 3, 1, 3, 2, 1}));
  for (int64_t slot = 0; slot < 3; ++slot) {
    EXPECT_TRUE(std::isnan(problem.weights.f({0, slot})));
    EXPECT_FALSE(std::isnan(problem.weights.f({1, slot})));
  }
}

TEST(Route, RowsAndThreadsGiveTheSameBits) {
  // Large enough that every loop is shared among the threads (ThreadPool::grain_of).
  const Case whole(29, 515, 5);
  run(whole.args);
  for (int threads : kThreadCounts) {
    const Case again(29, 515, 5);
    run(again.args, threads);
    EXPECT_TRUE(same_bits(again.ids, whole.ids) && same_bits(again.weights, whole.weights)) << threads << " threads";
  }
  const Case single(29, 515, 5);
  for (int64_t t = 0; t < 29; ++t) {
    RouteArgs row = single.args;
    for (Tensor* tensor : {&row.logits, &row.ids, &row.weights}) *tensor = tensor->slice(t, 1);
    run(row);
  }
  EXPECT_TRUE(same_bits(single.ids, whole.ids) && same_bits(single.weights, whole.weights));
}

TEST(Route, NoRows) {
  const Case problem(0, 8, 2);
  EXPECT_NO_THROW(run(problem.args));
}

TEST(Route, WrongArgumentsAreNamed) {
  const Case problem(2, 8, 3);
  float x[64] = {};
  const auto refused = [&](const char* argument, Tensor RouteArgs::*tensor, const Tensor& wrong) {
    RouteArgs args = problem.args;
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "route", argument);
  };
  EXPECT_TRUE(refused("logits is", &RouteArgs::logits, {}));
  EXPECT_TRUE(refused("logits is", &RouteArgs::logits, make_f32(x, {16})));
  EXPECT_TRUE(refused("ids is", &RouteArgs::ids, make_f32(x, {2, 3})));
  EXPECT_TRUE(refused("ids is", &RouteArgs::ids, make_tensor(x, DType::I32, {1, 3})));
  EXPECT_TRUE(refused("weights is", &RouteArgs::weights, make_f32(x, {2, 2})));
  RouteArgs args = problem.args;
  args.ids = make_tensor(x, DType::I32, {2, 9});
  args.weights = make_f32(x, {2, 9});
  EXPECT_TRUE(argument_refused([&] { run(args); }, "route", "9 of 8 experts"));
  args.ids = make_tensor(x, DType::I32, {2, 0});
  args.weights = make_f32(x, {2, 0});
  EXPECT_TRUE(argument_refused([&] { run(args); }, "route", "0 of 8 experts"));
}

}  // namespace
}  // namespace strata::test
