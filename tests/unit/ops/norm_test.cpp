#include "ops/norm/norm.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

std::vector<double> oracle(const NormArgs& args) {
  std::vector<double> out(static_cast<size_t>(args.x.elements()));
  norm_oracle(args, out.data());
  return out;
}

// The sum of squares has positive terms, so its relative error is gamma(dot_roundings); division by the width and eps
// add one rounding each. The root halves that. Root, reciprocal and the two products add one each: all is relative.
std::vector<double> bound(const NormArgs& args) {
  std::vector<double> bounds = oracle(args);
  const double roundings = (dot_roundings(args.x.extent(2)) + 2) / 2 + 4;
  for (double& value : bounds) value = gamma(roundings) * std::fabs(value) + 2 * kTiny;
  return bounds;
}

TEST(Norm, StaysInItsBound) {
  Random random(1);
  TestQueue queue(2);
  for (int64_t rows : {1, 2, 7, 33})
    for (int64_t groups : {1, 3})
      for (int64_t width : {1, 15, 16, 17, 320})
        for (bool per_group : {false, true})
          for (float eps : {1e-6f, 1e-5f, 0.5f}) {
            const Owned x = random_f32({rows, groups, width}, random, -3, 3, {7, 2});
            const Owned weight =
                per_group ? random_f32({groups, width}, random, 0, 2, {1}) : random_f32({width}, random);
            const Owned y(DType::F32, {rows, groups, width}, {1, 4});
            const NormArgs args{.x = x, .weight = weight, .eps = eps, .y = y};
            norm(queue, args);
            ASSERT_TRUE(within(y, oracle(args), bound(args))) << rows << " " << groups << " " << width;
            ASSERT_TRUE(y.gaps_intact());
          }
}

TEST(Norm, InPlaceGivesTheSameBits) {
  Random random(2);
  TestQueue queue;
  const Owned x = random_f32({7, 3, 40}, random, -1, 1, {4, 9}), weight = random_f32({40}, random);
  const Owned y(DType::F32, {7, 3, 40});
  norm(queue, {.x = x, .weight = weight, .y = y});
  norm(queue, {.x = x, .weight = weight, .y = x});
  EXPECT_TRUE(same_bits(x, y));
  EXPECT_TRUE(x.gaps_intact());
}

TEST(Norm, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(3);
  const Owned x = random_f32({33, 2, 129}, random, -1, 1, {3}), weight = random_f32({2, 129}, random);
  const Owned y(DType::F32, {33, 2, 129});
  TestQueue one(1);
  norm(one, {.x = x, .weight = weight, .y = y});
  for (int threads : kThreadCounts) {
    TestQueue queue(threads);
    const Owned batch(DType::F32, {33, 2, 129});
    norm(queue, {.x = x, .weight = weight, .y = batch});
    ASSERT_TRUE(same_bits(batch, y));
    for (int64_t t = 0; t < 33; ++t) {
      const Owned row(DType::F32, {1, 2, 129});
      norm(queue, {.x = x.t().slice(t, 1), .weight = weight, .y = row});
      ASSERT_TRUE(same_bits(row, y.t().slice(t, 1))) << "row " << t;
    }
  }
}

TEST(Norm, PowersOfTwoAndZerosAreExact) {
  Random random(4);
  TestQueue queue;
  const Owned x(DType::F32, {17, 1, 16}), weight = random_f32({16}, random), y(DType::F32, {17, 1, 16});
  for (int64_t t = 0; t < 17; ++t)
    for (int64_t i = 0; i < 16; ++i) x.f({t, 0, i}) = t == i ? -2.0f : 0.0f;  // mean of squares 1/4, root 1/2
  norm(queue, {.x = x, .weight = weight, .eps = 0x1p-100f, .y = y});
  for (int64_t t = 0; t < 17; ++t)
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(y.f({t, 0, i}), t == i ? -4 * weight.f({i}) : 0.0f);
}

TEST(Norm, NanStaysInItsGroup) {
  Random random(5);
  TestQueue queue;
  const Owned x = random_f32({2, 3, 20}, random), weight = random_f32({20}, random), y(DType::F32, {2, 3, 20});
  x.f({1, 0, 19}) = NAN;
  norm(queue, {.x = x, .weight = weight, .y = y});
  for (int64_t t = 0; t < 2; ++t)
    for (int64_t g = 0; g < 3; ++g)
      for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(std::isnan(y.f({t, g, i})), t == 1 && g == 0);
}

TEST(Norm, WrongArgumentsAreNamed) {
  Random random(6);
  TestQueue queue;
  const Owned x = random_f32({2, 3, 8}, random), weight = random_f32({8}, random), y(DType::F32, {2, 3, 8});
  const Owned flat(DType::F32, {2, 8}), narrow(DType::F32, {7}), two(DType::F32, {2, 8}), ints(DType::I32, {2, 3, 8}),
      other(DType::F32, {2, 3, 7}), cube(DType::F32, {1, 3, 8});
  auto refused = [&](const char* argument, const NormArgs& args) {
    return argument_refused([&] { norm(queue, args); }, "norm", argument);
  };
  EXPECT_TRUE(refused("x", {.x = flat, .weight = weight, .y = y}));
  EXPECT_TRUE(refused("x", {.x = ints, .weight = weight, .y = y}));
  EXPECT_TRUE(refused("weight", {.x = x, .weight = narrow, .y = y}));
  EXPECT_TRUE(refused("weight", {.x = x, .weight = two, .y = y}));
  EXPECT_TRUE(refused("weight", {.x = x, .weight = cube, .y = y}));
  EXPECT_TRUE(refused("weight", {.x = x, .weight = {}, .y = y}));
  EXPECT_TRUE(refused("y", {.x = x, .weight = weight, .y = other}));
  EXPECT_TRUE(refused("y", {.x = x, .weight = weight, .y = ints}));
  EXPECT_TRUE(all_canary(y));
}

}  // namespace
}  // namespace strata::test
