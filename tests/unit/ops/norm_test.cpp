#include "ops/norm/norm.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

TEST(Norm, KnownValues) {
  TestQueue queue;
  const Owned x(DType::F32, {1, 1, 4}), weight(DType::F32, {4}), y(DType::F32, {1, 1, 4});
  assign<float>(x, {-2, 0, 0, 0});  // mean of squares 1, root 1 and with eps 3 root 2
  assign<float>(weight, {3, 5, 7, 9});
  norm(queue, {.x = x, .weight = weight, .eps = 0x1p-100f, .y = y});
  EXPECT_EQ(packed(y), (std::vector<float>{-6, 0, 0, 0}));
  norm(queue, {.x = x, .weight = weight, .eps = 3, .y = y});
  EXPECT_EQ(packed(y), (std::vector<float>{-3, 0, 0, 0}));
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
