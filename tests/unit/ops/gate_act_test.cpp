#include "ops/gate_act/gate_act.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

TEST(GateAct, KnownValues) {
  TestQueue queue;
  const Owned gate(DType::F32, {1, 1, 5}), y(DType::F32, {1, 1, 5});
  assign<float>(gate, {0, 64, -64, INFINITY, -INFINITY});
  gate_act(queue, {.gate = gate, .value = {}, .activation = Activation::Sigmoid, .y = y});
  EXPECT_NEAR(y.f({0, 0, 2}), std::exp(-64.0), 1e-33);
  y.f({0, 0, 2}) = 0;
  EXPECT_EQ(packed(y), (std::vector<float>{0.5f, 1, 0, 1, 0}));
  gate_act(queue, {.gate = gate, .value = {}, .activation = Activation::Silu, .y = y});
  EXPECT_EQ(y.f({0, 0, 0}), 0);
  EXPECT_EQ(y.f({0, 0, 1}), 64);
  EXPECT_EQ(y.f({0, 0, 3}), INFINITY);
  EXPECT_TRUE(std::isnan(y.f({0, 0, 4})));  // inf · 0 of the formula
}

TEST(GateAct, WrongArgumentsAreNamed) {
  TestQueue queue;
  float x[64] = {};
  const auto refused = [&](const char* argument, Tensor GateActArgs::*tensor, const Tensor& wrong) {
    GateActArgs args{.gate = make_f32(x, {2, 3, 4}), .value = make_f32(x, {2, 3, 4}), .y = make_f32(x, {2, 3, 4})};
    args.*tensor = wrong;
    return argument_refused([&] { gate_act(queue, args); }, "gate_act", argument);
  };
  EXPECT_TRUE(refused("gate is", &GateActArgs::gate, {}));
  EXPECT_TRUE(refused("gate is", &GateActArgs::gate, make_f32(x, {2, 3, 3})));
  EXPECT_TRUE(refused("gate is", &GateActArgs::gate, make_f32(x, {2, 1, 1})));
  EXPECT_TRUE(refused("value is", &GateActArgs::value, make_f32(x, {2, 3, 1})));
  EXPECT_TRUE(refused("y is", &GateActArgs::y, make_f32(x, {6, 4})));
  EXPECT_TRUE(refused("y is", &GateActArgs::y, make_tensor(x, DType::BF16, {2, 3, 4})));
}

TEST(ResidualAdd, WrongArgumentsAreNamed) {
  float x[64] = {};
  const Owned padded(DType::F32, {2, 3}, {1});
  const auto refused = [](const Tensor& a, const Tensor& b) {
    TestQueue queue;
    return argument_refused([&] { residual_add(queue, a, b); }, "residual_add", "x is");
  };
  EXPECT_TRUE(refused(make_f32(x, {2, 3}), make_f32(x, {3, 2})));
  EXPECT_TRUE(refused(make_f32(x, {6}), make_f32(x, {2, 3})));
  EXPECT_TRUE(refused(make_f32(x, {2, 3}), padded));
  EXPECT_TRUE(refused(padded, make_f32(x, {2, 3})));
  EXPECT_TRUE(refused(make_f32(x, {2, 3}), make_tensor(x, DType::I32, {2, 3})));
}

}  // namespace
}  // namespace strata::test
