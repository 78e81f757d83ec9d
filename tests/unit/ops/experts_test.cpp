#include "ops/experts/experts.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

// silu(32) is 32 in f32: 1 + e^-32 rounds to 1.
TEST(Experts, KnownValues) {
  TestQueue queue;
  float x[] = {1}, weight[] = {0.5f}, gate[] = {0, 64}, up[] = {0, 2}, down[] = {0, 3}, y[] = {0};
  float gate_scale[] = {0, 0.5f}, up_scale[] = {0, 2}, down_scale[] = {0, 4};
  int32_t id[] = {1};
  ExpertsArgs args;
  args.x = make_f32(x, {1, 1});
  args.ids = make_tensor(id, DType::I32, {1, 1});
  args.weights = make_f32(weight, {1, 1});
  args.gate = make_f32(gate, {2, 1, 1});
  args.up = make_f32(up, {2, 1, 1});
  args.down = make_f32(down, {2, 1, 1});
  args.y = make_f32(y, {1, 1});
  experts(queue, args);
  EXPECT_EQ(y[0], 0.5f * 3 * (64 * 2));
  args.gate_scale = make_f32(gate_scale, {2});
  args.up_scale = make_f32(up_scale, {2});
  args.down_scale = make_f32(down_scale, {2});
  experts(queue, args);
  EXPECT_EQ(y[0], 0.5f * (4 * 3) * (32 * 4));
}

TEST(Experts, WrongArgumentsAreNamed) {
  TestQueue queue;
  float x[512] = {};
  const Owned ids = owned_i32({0, 1, 2, 3, 2, 1});
  ExpertsArgs good;
  good.x = make_f32(x, {2, 8});
  good.ids = make_tensor(ids.t().data, DType::I32, {2, 3});
  good.weights = make_f32(x, {2, 3});
  good.gate = good.up = make_f32(x, {4, 6, 8});
  good.down = make_f32(x, {4, 8, 6});
  good.gate_scale = good.up_scale = good.down_scale = make_f32(x, {4});
  good.y = make_f32(x, {2, 8});
  const auto refused = [&](const char* argument, Tensor ExpertsArgs::*tensor, const Tensor& wrong) {
    ExpertsArgs args = good;
    args.*tensor = wrong;
    return argument_refused([&] { experts(queue, args); }, "experts", argument);
  };
  EXPECT_TRUE(refused("x is", &ExpertsArgs::x, make_tensor(x, DType::F16, {2, 8})));
  EXPECT_TRUE(refused("ids is", &ExpertsArgs::ids, make_f32(x, {2, 3})));
  EXPECT_TRUE(refused("weights is", &ExpertsArgs::weights, make_f32(x, {2, 2})));
  EXPECT_TRUE(refused("gate is", &ExpertsArgs::gate, make_f32(x, {4, 6, 7})));
  EXPECT_TRUE(refused("up is", &ExpertsArgs::up, make_f32(x, {4, 5, 8})));
  EXPECT_TRUE(refused("up is", &ExpertsArgs::up, {}));
  EXPECT_TRUE(refused("down is", &ExpertsArgs::down, make_f32(x, {4, 6, 8})));
  EXPECT_TRUE(refused("scale is", &ExpertsArgs::gate_scale, make_f32(x, {3})));
  EXPECT_TRUE(refused("scale is", &ExpertsArgs::up_scale, make_f32(x, {4, 1})));
  EXPECT_TRUE(refused("scale is", &ExpertsArgs::down_scale, make_tensor(x, DType::F16, {4})));
  EXPECT_TRUE(refused("y is", &ExpertsArgs::y, make_f32(x, {2, 6})));
  for (int32_t id : {-1, 4, INT32_MIN}) {
    ids.i({5}) = id;
    EXPECT_TRUE(
        argument_refused([&] { experts(queue, good); }, "experts", "expert " + std::to_string(id) + " of row 1"));
  }
}

}  // namespace
}  // namespace strata::test
