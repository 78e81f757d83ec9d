#include "ops/matmul/matmul.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

std::vector<double> oracle(const MatmulArgs& args) {
  std::vector<double> out(static_cast<size_t>(args.x.extent(0) * args.weight.extent(0)));
  matmul_oracle(args, out.data());
  return out;
}

std::vector<double> bound(const MatmulArgs& args) {
  std::vector<double> bounds(static_cast<size_t>(args.x.extent(0) * args.weight.extent(0)));
  matmul_bound(args, bounds.data());
  return bounds;
}

struct Problem {
  Problem(DType dtype, int64_t rows, int64_t in, int64_t out, Random& random)
      : x(random_f32({rows, in}, random, -1, 1, {3})),
        weight(random_weight(dtype, {out, in}, random)),
        bias(random_f32({out}, random)),
        y(DType::F32, {rows, out}, {5}) {}
  MatmulArgs args(bool with_bias) const {
    MatmulArgs result{.x = x, .weight = weight, .bias = {}, .scale = 1, .y = y};
    if (with_bias) {
      result.bias = bias;
      result.scale = 0.37f;
    }
    return result;
  }
  Owned x, weight, bias, y;
};

TEST(Matmul, EveryDtypeStaysInItsBound) {
  Random random(1);
  TestQueue queue(2);
  for (const DTypeInfo& type : all_dtypes()) {
    SCOPED_TRACE(type.name);
    const int64_t block = type.block_elements;
    const std::vector<int64_t> widths =
        block == 1 ? std::vector<int64_t>{1, 15, 16, 17, 320} : std::vector<int64_t>{block, 3 * block};
    for (int64_t in : widths)
      for (int64_t rows : {1, 2, 7, 33})
        for (int64_t out : {1, 9}) {
          const Problem problem(type.type, rows, in, out, random);
          const MatmulArgs args = problem.args(out == 9);
          matmul(queue, args);
          ASSERT_TRUE(within(args.y, oracle(args), bound(args))) << rows << " rows, in " << in;
          ASSERT_TRUE(problem.y.gaps_intact());
        }
  }
}

TEST(Matmul, OneHotRowsReadSingleWeightsExactly) {
  Random random(2);
  TestQueue queue;
  for (DType dtype : {DType::F32, DType::BF16, DType::Q8_0, DType::Q4_K, DType::IQ4_NL}) {
    SCOPED_TRACE(to_string(dtype));
    const int64_t in = 256, out = 11;
    const Problem problem(dtype, in, in, out, random);
    const MatmulArgs args = problem.args(false);
    for (int64_t t = 0; t < in; ++t)
      for (int64_t i = 0; i < in; ++i) problem.x.f({t, i}) = t == i ? 1.0f : 0.0f;
    matmul(queue, args);
    const std::vector<float> w = decoded(problem.weight);
    for (int64_t t = 0; t < in; ++t)
      for (int64_t o = 0; o < out; ++o) ASSERT_EQ(problem.y.f({t, o}), w[static_cast<size_t>(o * in + t)]);
  }
}

TEST(Matmul, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(3);
  for (DType dtype : {DType::F32, DType::F16, DType::Q6_K}) {
    SCOPED_TRACE(to_string(dtype));
    const Problem problem(dtype, 33, 512, 37, random);
    MatmulArgs args = problem.args(true);
    TestQueue one(1);
    matmul(one, args);
    for (int threads : kThreadCounts) {
      TestQueue queue(threads);
      Owned y(DType::F32, {33, 37});
      args.y = y;
      matmul(queue, args);
      ASSERT_TRUE(same_bits(y, problem.y)) << threads << " threads";
      for (int64_t t = 0; t < 33; ++t) {
        MatmulArgs single = args;
        single.x = problem.x.t().slice(t, 1);
        Owned row(DType::F32, {1, 37});
        single.y = row;
        matmul(queue, single);
        ASSERT_TRUE(same_bits(row, problem.y.t().slice(t, 1))) << "row " << t << ", " << threads << " threads";
      }
    }
  }
}

TEST(Matmul, NanTouchesItsOwnRowAndColumnOnly) {
  Random random(4);
  TestQueue queue;
  const Problem problem(DType::F32, 7, 40, 9, random);
  const MatmulArgs args = problem.args(true);
  problem.x.f({3, 39}) = NAN;
  problem.weight.f({5, 17}) = NAN;
  matmul(queue, args);
  for (int64_t t = 0; t < 7; ++t)
    for (int64_t o = 0; o < 9; ++o) EXPECT_EQ(std::isnan(problem.y.f({t, o})), t == 3 || o == 5);
}

TEST(Matmul, NoRowsWriteNothing) {
  Random random(5);
  TestQueue queue;
  const Problem problem(DType::F32, 0, 16, 4, random);
  matmul(queue, problem.args(true));
  EXPECT_TRUE(problem.y.gaps_intact());
}

TEST(Matmul, WrongArgumentsAreNamed) {
  Random random(6);
  TestQueue queue;
  const Problem problem(DType::F32, 2, 16, 4, random);
  const MatmulArgs good = problem.args(true);
  auto refused = [&](const char* argument, auto change) {
    MatmulArgs args = good;
    change(args);
    return argument_refused([&] { matmul(queue, args); }, "matmul", argument);
  };
  Owned ints(DType::I32, {2, 16}), short_bias(DType::F32, {3}), narrow(DType::F32, {4, 15}), flat(DType::F32, {16}),
      tall(DType::F32, {3, 4}), wide(DType::F32, {2, 5});
  EXPECT_TRUE(refused("x", [&](MatmulArgs& args) { args.x = ints; }));
  EXPECT_TRUE(refused("x", [&](MatmulArgs& args) { args.x = flat; }));
  EXPECT_TRUE(refused("x", [&](MatmulArgs& args) { args.x = {}; }));
  EXPECT_TRUE(refused("weight", [&](MatmulArgs& args) { args.weight = narrow; }));
  EXPECT_TRUE(refused("weight", [&](MatmulArgs& args) { args.weight = flat; }));
  EXPECT_TRUE(refused("bias", [&](MatmulArgs& args) { args.bias = short_bias; }));
  EXPECT_TRUE(refused("y", [&](MatmulArgs& args) { args.y = tall; }));
  EXPECT_TRUE(refused("y", [&](MatmulArgs& args) { args.y = wide; }));
  EXPECT_TRUE(all_canary(problem.y));
}

TEST(Matmul, AnErrorOfTwiceTheBoundIsSeen) {
  Random random(7);
  TestQueue queue;
  const Problem problem(DType::F32, 7, 320, 9, random);
  const MatmulArgs args = problem.args(true);
  matmul(queue, args);
  const std::vector<double> limits = bound(args);
  problem.y.f({4, 6}) += static_cast<float>(2.5 * limits[4 * 9 + 6]);
  EXPECT_FALSE(within(args.y, oracle(args), limits));
  problem.y.f({4, 6}) = NAN;
  EXPECT_FALSE(within(args.y, oracle(args), limits));
}

}  // namespace
}  // namespace strata::test
