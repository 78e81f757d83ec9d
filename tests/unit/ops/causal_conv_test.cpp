#include "ops/causal_conv/causal_conv.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

struct Case {
  Case(int64_t rows, int64_t channels, int64_t width, int dilation)
      : x(random_f32({rows, channels}, random)),
        history(random_f32({(width - 1) * dilation, channels}, random)),
        kernel(random_f32({channels, width}, random)),
        y(DType::F32, {rows, channels}),
        args{x, history, kernel, dilation, y} {}
  Random random{1};
  Owned x, history, kernel, y;
  CausalConvArgs args;
};

void run(const CausalConvArgs& args) {
  TestQueue queue;
  causal_conv(queue, args);
}

TEST(CausalConv, TapZeroIsTheOldest) {
  // An impulse in the oldest row of the history meets tap 0 in row 0 and no other row.
  const Case problem(5, 1, 4, 3);
  for (int64_t i = 0; i < 9; ++i) problem.history.f({i, 0}) = i == 0 ? 1.0f : 0.0f;
  for (int64_t t = 0; t < 5; ++t) problem.x.f({t, 0}) = 0;
  for (int64_t j = 0; j < 4; ++j) problem.kernel.f({0, j}) = static_cast<float>(j + 1);
  run(problem.args);
  EXPECT_NEAR(problem.y.f({0, 0}), 0.7310585786300049, 1e-6);  // silu(1)
  for (int64_t t = 1; t < 5; ++t) EXPECT_EQ(problem.y.f({t, 0}), 0) << t;
}

TEST(CausalConv, NaNReachesOnlyTheRowsThatReadIt) {
  const Case problem(12, 3, 4, 2);
  problem.x.f({4, 1}) = NAN;
  run(problem.args);
  for (int64_t t = 0; t < 12; ++t)
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_EQ(std::isnan(problem.y.f({t, c})), c == 1 && t >= 4 && t <= 10 && t % 2 == 0) << t << " " << c;
}

TEST(CausalConv, WrongArgumentsAreNamed) {
  const Case problem(2, 6, 4, 3);
  float x[128] = {};
  const auto refused = [&](const char* argument, const std::function<void(CausalConvArgs&)>& change) {
    CausalConvArgs args = problem.args;
    change(args);
    return argument_refused([&] { run(args); }, "causal_conv", argument);
  };
  EXPECT_TRUE(refused("x is", [&](auto& args) { args.x = make_f32(x, {12}); }));
  EXPECT_TRUE(refused("x is", [&](auto& args) { args.x.dtype = DType::F16; }));
  EXPECT_TRUE(refused("history is", [&](auto& args) { args.history = make_f32(x, {3, 6}); }));
  EXPECT_TRUE(refused("history is", [&](auto& args) { args.dilation = 2; }));
  EXPECT_TRUE(refused("kernel is", [&](auto& args) { args.kernel = make_f32(x, {4, 6}); }));
  EXPECT_TRUE(refused("dilation", [&](auto& args) { args.dilation = 0; }));
  EXPECT_TRUE(refused("taps", [&](auto& args) { args.kernel = make_f32(x, {6, 0}); }));
  EXPECT_TRUE(refused("y is", [&](auto& args) { args.y = make_f32(x, {2, 5}); }));
  EXPECT_TRUE(refused("y must not be x", [&](auto& args) { args.y = args.x; }));
}

}  // namespace
}  // namespace strata::test
