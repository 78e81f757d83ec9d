#include "ops/route/route.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

struct Case {
  Case(int64_t rows, int64_t experts, int64_t k)
      : logits(random_f32({rows, experts}, random)), ids(DType::I32, {rows, k}), weights(DType::F32, {rows, k}) {
    args.logits = logits;
    args.ids = ids;
    args.weights = weights;
  }
  Random random{1};
  Owned logits, ids, weights;
  RouteArgs args;
};

void run(const RouteArgs& args) {
  TestQueue queue;
  route(queue, args);
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

TEST(Route, NaNIsChosenLastAndShowsInItsRow) {
  const Case problem(2, 4, 3);
  assign(problem.logits.t(), std::vector<float>{NAN, 1, 3, 2, 1, 2, 3, 4});
  run(problem.args);
  EXPECT_EQ(packed<int32_t>(problem.ids), (std::vector<int32_t>{2, 3, 1, 3, 2, 1}));
  for (int64_t slot = 0; slot < 3; ++slot) {
    EXPECT_TRUE(std::isnan(problem.weights.f({0, slot})));
    EXPECT_FALSE(std::isnan(problem.weights.f({1, slot})));
  }
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
