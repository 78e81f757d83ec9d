#include "ops/gate_act/gate_act.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The activation rounds exp (within 4 u), one addition and one division: 6 u; times value 1 u; accumulating rounds the
// sum once. Below -87.3 exp(-x) may overflow: an activation below 3e-37 may be 0.
std::vector<double> bound_of(const GateActArgs& args, const std::vector<double>& y) {
  const int64_t groups = args.y.extent(1), width = args.y.extent(2);
  std::vector<double> bound(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const auto w = static_cast<int64_t>(i) % width, g = static_cast<int64_t>(i) / width % groups;
    const auto t = static_cast<int64_t>(i) / (width * groups);
    const double gate = args.gate[t].row<float>(g)[args.gate.extent(2) == 1 ? 0 : w];
    const double value = args.value.empty() ? 1 : args.value[t].row<float>(g)[w];
    const double product = value * sigmoid(gate) * (args.activation == Activation::Silu ? gate : 1);
    bound[i] = 1.01 * kU * (7 * std::fabs(product) + (args.accumulate ? std::fabs(y[i]) : 0)) +
               1e-36 * std::fabs(value) + kTiny;
  }
  return bound;
}

struct Case {
  Case(int64_t rows, int64_t groups, int64_t width, bool one_gate, uint64_t seed = 1)
      : random(seed),
        gate(random_f32({rows, groups, one_gate ? 1 : width}, random, -9, 9, {7, 2})),
        value(random_f32({rows, groups, width}, random, -3, 3, {1, 5})),
        y(random_f32({rows, groups, width}, random, -1, 1, {0, 3})) {
    args.gate = gate;
    args.value = value;
    args.y = y;
  }
  Random random;
  Owned gate, value, y;
  GateActArgs args;
};

void run(const GateActArgs& args, int threads = 1) {
  TestQueue queue(threads);
  gate_act(queue, args);
}

std::vector<double> oracle(const GateActArgs& args) {
  std::vector<double> y(static_cast<size_t>(args.y.elements()));
  gate_act_oracle(args, y.data());
  return y;
}

TEST(GateAct, MatchesTheOracle) {
  uint64_t seed = 1;
  for (int64_t rows : {1, 5})
    for (int64_t groups : {1, 3})
      for (int64_t width : {1, 17, 64})
        for (int variant = 0; variant < 16; ++variant) {
          Case problem(rows, groups, width, (variant & 1) != 0, seed++);
          problem.args.activation = (variant & 2) != 0 ? Activation::Silu : Activation::Sigmoid;
          problem.args.accumulate = (variant & 4) != 0;
          if ((variant & 8) != 0) problem.args.value = {};
          const std::vector<double> y = oracle(problem.args);
          const std::vector<double> bound = bound_of(problem.args, y);
          run(problem.args);
          ASSERT_TRUE(within(problem.y, y, bound)) << rows << " " << groups << " " << width << " variant " << variant;
          EXPECT_TRUE(problem.y.gaps_intact());
        }
}

TEST(GateAct, ExtremeGates) {
  const std::vector<float> gates{0,   -0.0f, 1e-30f, 87,    -87.4f, 88.5f,    -88.8f,
                                 -89, 100,   -100,   1e30f, -1e30f, INFINITY, NAN};
  Case problem(1, 1, static_cast<int64_t>(gates.size()), false);
  assign(problem.gate.t(), gates);
  for (Activation activation : {Activation::Silu, Activation::Sigmoid}) {
    problem.args.activation = activation;
    const std::vector<double> y = oracle(problem.args);
    run(problem.args);
    EXPECT_TRUE(within(problem.y, y, bound_of(problem.args, y)));
  }
}

TEST(GateAct, InPlaceGivesTheSameBits) {
  for (bool over_value : {false, true}) {
    Case apart(4, 2, 33, false), same(4, 2, 33, false);
    same.args.y = over_value ? same.value.t() : same.gate.t();
    run(apart.args);
    run(same.args);
    EXPECT_TRUE(same_bits(same.args.y, apart.y)) << (over_value ? "value" : "gate");
  }
}

TEST(GateAct, RowsAndThreadsGiveTheSameBits) {
  // Large enough that every loop is shared among the threads (ThreadPool::grain_of).
  for (bool one_gate : {false, true}) {
    const Case whole(11, 3, 3001, one_gate);
    run(whole.args);
    for (int threads : kThreadCounts) {
      const Case again(11, 3, 3001, one_gate);
      run(again.args, threads);
      EXPECT_TRUE(same_bits(again.y, whole.y)) << threads << " threads";
    }
    const Case single(11, 3, 3001, one_gate);
    for (int64_t t = 0; t < 11; ++t) {
      GateActArgs row = single.args;
      for (Tensor* tensor : {&row.gate, &row.value, &row.y}) *tensor = tensor->slice(t, 1);
      run(row);
    }
    EXPECT_TRUE(same_bits(single.y, whole.y));
  }
}

TEST(GateAct, NoRows) {
  const Case problem(0, 2, 8, false);
  EXPECT_NO_THROW(run(problem.args));
}

TEST(GateAct, WrongArgumentsAreNamed) {
  const Case problem(2, 3, 4, false);
  float x[64] = {};
  const auto refused = [&](const char* argument, Tensor GateActArgs::*tensor, const Tensor& wrong) {
    GateActArgs args = problem.args;
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "gate_act", argument);
  };
  EXPECT_TRUE(refused("gate is", &GateActArgs::gate, {}));
  EXPECT_TRUE(refused("gate is", &GateActArgs::gate, make_f32(x, {2, 3, 3})));
  EXPECT_TRUE(refused("gate is", &GateActArgs::gate, make_f32(x, {2, 1, 1})));
  EXPECT_TRUE(refused("value is", &GateActArgs::value, make_f32(x, {2, 3, 1})));
  EXPECT_TRUE(refused("y is", &GateActArgs::y, make_f32(x, {6, 4})));
  EXPECT_TRUE(refused("y is", &GateActArgs::y, make_tensor(x, DType::BF16, {2, 3, 4})));
}

TEST(ResidualAdd, OneRoundedSumEach) {
  Random random(3);
  for (int64_t width : {1, 13, 50000}) {
    const Owned start = random_f32({3, width}, random), y = random_f32({3, width}, random);
    std::vector<float> expected = packed(start);
    const std::vector<float> added = packed(y);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += added[i];
    for (int threads : kThreadCounts) {
      const Owned x = clone(start);
      TestQueue queue(threads);
      residual_add(queue, x, y);
      EXPECT_EQ(packed(x), expected);
      EXPECT_TRUE(x.gaps_intact());
    }
  }
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
