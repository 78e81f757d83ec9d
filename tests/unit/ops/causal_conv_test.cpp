#include "ops/causal_conv/causal_conv.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

// The sum of w products in any order errs w u sum |k x|; silu has slope <= 1.1 and rounds exp (4 u), addition,
// division: 6 u |y|. Below -87.3 silu may be 0 where it should be above -3e-37. 1.01 covers products of errors.
std::vector<double> bound_of(const CausalConvArgs& args, const std::vector<double>& y) {
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), width = args.kernel.extent(1);
  const int64_t past = args.history.extent(0);
  std::vector<double> bound(y.size());
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < width; ++j) {
        const int64_t row = t - (width - 1 - j) * args.dilation;
        const float x = row < 0 ? args.history.row<float>(past + row)[c] : args.x.row<float>(row)[c];
        sum += std::fabs(static_cast<double>(args.kernel.row<float>(c)[j]) * static_cast<double>(x));
      }
      const auto i = static_cast<size_t>(t * channels + c);
      bound[i] = 1.01 * kU * (1.1 * static_cast<double>(width) * sum + 6 * std::fabs(y[i])) + 1e-36;
    }
  return bound;
}

struct Case {
  Case(int64_t rows, int64_t channels, int64_t width, int dilation, float size = 2, uint64_t seed = 1)
      : random(seed),
        x(random_f32({rows, channels}, random, -size, size, {3})),
        history(random_f32({(width - 1) * dilation, channels}, random, -size, size, {2})),
        kernel(random_f32({channels, width}, random)),
        y(DType::F32, {rows, channels}, {4}),
        args{x, history, kernel, dilation, y} {}
  Random random;
  Owned x, history, kernel, y;
  CausalConvArgs args;
};

void run(const CausalConvArgs& args, int threads = 1) {
  TestQueue queue(threads);
  causal_conv(queue, args);
}

TEST(CausalConv, MatchesTheOracle) {
  uint64_t seed = 1;
  for (int64_t rows : {1, 2, 3, 9, 70})
    for (int64_t channels : {1, 63, 64, 130})
      for (int64_t width : {2, 4, 7})
        for (int dilation : {1, 3})
          for (float size : {2.0f, 300.0f}) {
            const Case problem(rows, channels, width, dilation, size, seed++);
            const Owned history = clone(problem.history);
            std::vector<double> y(static_cast<size_t>(rows * channels));
            causal_conv_oracle(problem.args, y.data());
            run(problem.args);
            ASSERT_TRUE(within(problem.y, y, bound_of(problem.args, y)))
                << rows << " rows, " << channels << " channels, " << width << " taps, dilation " << dilation;
            EXPECT_TRUE(problem.y.gaps_intact());
            EXPECT_TRUE(same_bits(problem.history, history));
          }
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

TEST(CausalConv, SplitCallsWithPushedHistoryGiveTheSameBits) {
  for (int dilation : {1, 3})
    for (const std::vector<int64_t>& counts :
         std::vector<std::vector<int64_t>>{{1, 22}, {22, 1}, {5, 0, 7, 11}, std::vector<int64_t>(23, 1)}) {
      const Case whole(23, 20, 4, dilation), parts(23, 20, 4, dilation);
      run(whole.args);
      int64_t first = 0;
      for (int64_t count : counts) {
        CausalConvArgs args = parts.args;
        args.x = args.x.slice(first, count);
        args.y = args.y.slice(first, count);
        run(args);
        push_history(args.x, args.history);
        first += count;
      }
      EXPECT_TRUE(same_bits(parts.y, whole.y)) << counts.size() << " calls, dilation " << dilation;
      EXPECT_TRUE(parts.history.gaps_intact());
      push_history(whole.x, whole.history);
      EXPECT_TRUE(same_bits(parts.history, whole.history)) << counts.size() << " calls, dilation " << dilation;
    }
}

TEST(CausalConv, HistoryHoldsTheLastInputsOldestFirst) {
  for (int64_t rows : {0, 1, 2, 3, 8}) {
    const Case problem(rows, 5, 4, 1);
    std::vector<float> all = packed(problem.history), x = packed(problem.x);
    all.insert(all.end(), x.begin(), x.end());
    push_history(problem.x, problem.history);
    EXPECT_EQ(packed(problem.history), std::vector<float>(all.end() - 15, all.end())) << rows << " rows";
    EXPECT_TRUE(problem.history.gaps_intact());
  }
}

TEST(CausalConv, RowsAndThreadsGiveTheSameBits) {
  // Large enough that every loop is shared among the threads (ThreadPool::grain_of).
  const Case whole(40, 400, 4, 1);
  run(whole.args);
  for (int threads : kThreadCounts) {
    const Case again(40, 400, 4, 1);
    run(again.args, threads);
    EXPECT_TRUE(same_bits(again.y, whole.y)) << threads << " threads";
  }
  // Row 30 alone: its history is rows 27 to 29.
  const Owned alone(DType::F32, {1, 400});
  run({whole.x.t().slice(30, 1), whole.x.t().slice(27, 3), whole.kernel, 1, alone}, 2);
  EXPECT_TRUE(same_bits(alone, whole.y.t().slice(30, 1)));
}

TEST(CausalConv, NaNReachesOnlyTheRowsThatReadIt) {
  const Case problem(12, 3, 4, 2);
  problem.x.f({4, 1}) = NAN;
  run(problem.args);
  for (int64_t t = 0; t < 12; ++t)
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_EQ(std::isnan(problem.y.f({t, c})), c == 1 && t >= 4 && t <= 10 && t % 2 == 0) << t << " " << c;
}

TEST(CausalConv, NoRows) {
  const Case problem(0, 4, 4, 1);
  EXPECT_NO_THROW(run(problem.args));
  EXPECT_TRUE(problem.y.gaps_intact());
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
