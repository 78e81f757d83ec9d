#include "ops/experts/experts.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

struct Case {
  Case(int64_t rows, int64_t hidden, int64_t inner, int64_t count, int64_t k, DType gate_type, DType up_type,
       DType down_type, bool scaled, uint64_t seed = 1)
      : random(seed),
        x(random_f32({rows, hidden}, random, -1, 1, {3})),
        ids(DType::I32, {rows, k}, {2}),
        weights(random_f32({rows, k}, random, 0, 1, {1})),
        gate(random_weight(gate_type, {count, inner, hidden}, random)),
        up(random_weight(up_type, {count, inner, hidden}, random)),
        down(random_weight(down_type, {count, hidden, inner}, random)),
        scales(random_f32({3, count}, random, 0.25f, 2)),
        y(DType::F32, {rows, hidden}, {4}) {
    for (int64_t t = 0; t < rows; ++t) {
      std::vector<int32_t> order(static_cast<size_t>(count));
      for (size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int32_t>(e);
      for (int64_t slot = 0; slot < k; ++slot) {  // k distinct experts
        std::swap(order[static_cast<size_t>(slot)], order[static_cast<size_t>(slot + random.below(count - slot))]);
        ids.i({t, slot}) = order[static_cast<size_t>(slot)];
      }
    }
    args.x = x;
    args.ids = ids;
    args.weights = weights;
    args.gate = gate;
    args.up = up;
    args.down = down;
    if (scaled) {
      args.gate_scale = scales.t()[0];
      args.up_scale = scales.t()[1];
      args.down_scale = scales.t()[2];
    }
    args.y = y;
  }
  Random random;
  Owned x, ids, weights, gate, up, down, scales, y;
  ExpertsArgs args;
};

void run(const ExpertsArgs& args, int threads = 1) {
  TestQueue queue(threads);
  experts(queue, args);
}

struct Product {
  double value, error;
};

// scale · sum w_i x_i, where x_i already errs by e_i: n/16 additions a lane, 4 in the tree, 1 product; then the scale.
Product product(const float* w, const std::vector<Product>& x, double scale) {
  double sum = 0, sum_abs = 0, carried = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wi = w[i];
    sum += wi * x[i].value;
    sum_abs += std::fabs(wi * x[i].value);
    carried += std::fabs(wi) * x[i].error;
  }
  const double roundings = std::ceil(static_cast<double>(x.size()) / 16) + 5;
  return {scale * sum, std::fabs(scale) * (roundings * kU * sum_abs + carried + kU * std::fabs(sum)) + kTiny};
}

// Carries the error of each dot product through silu (slope <= 1.1, 6 u of its own), the product with up, the down
// projection and the weighted sum over the k slots. 1.01 covers products of errors, 1e-36 the flush of exp.
void bound_of(const ExpertsArgs& args, std::vector<double>& bound) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1), inner = args.gate.extent(1);
  const std::vector<float> gate = decoded(args.gate), up = decoded(args.up), down = decoded(args.down);
  const auto scale = [](const Tensor& tensor, int64_t e) {
    return tensor.empty() ? 1.0 : static_cast<double>(tensor.f32()[e]);
  };
  for (int64_t t = 0; t < rows; ++t) {
    std::vector<Product> x, act(static_cast<size_t>(inner));
    for (int64_t i = 0; i < hidden; ++i) x.push_back({args.x.row<float>(t)[i], 0});
    std::vector<double> error(static_cast<size_t>(hidden)), sum(error.size());
    for (int64_t slot = 0; slot < k; ++slot) {
      const int64_t e = args.ids.row<int32_t>(t)[slot];
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t row = (e * inner + i) * hidden;
        const Product g = product(gate.data() + row, x, scale(args.gate_scale, e));
        const Product u = product(up.data() + row, x, scale(args.up_scale, e));
        const double silu = g.value / (1 + std::exp(-g.value)), value = silu * u.value;
        act[static_cast<size_t>(i)] = {value, 1.1 * g.error * std::fabs(u.value) + std::fabs(silu) * u.error +
                                                  7 * kU * std::fabs(value) + 1e-36 * std::fabs(u.value)};
      }
      const double weight = args.weights.row<float>(t)[slot];
      for (size_t i = 0; i < error.size(); ++i) {
        const Product d =
            product(down.data() + (e * hidden + static_cast<int64_t>(i)) * inner, act, scale(args.down_scale, e));
        error[i] += std::fabs(weight) * d.error;
        sum[i] += std::fabs(weight * d.value);
      }
    }
    for (size_t i = 0; i < error.size(); ++i)
      bound.push_back(1.01 * (error[i] + static_cast<double>(k + 1) * kU * sum[i]) + kTiny);
  }
}

void check_case(const Case& problem) {
  std::vector<double> y(static_cast<size_t>(problem.args.y.elements())), bound;
  experts_oracle(problem.args, y.data());
  bound_of(problem.args, bound);
  run(problem.args);
  EXPECT_TRUE(within(problem.y, y, bound));
  EXPECT_TRUE(problem.y.gaps_intact());
}

TEST(Experts, MatchesTheOracle) {
  uint64_t seed = 1;
  for (int64_t rows : {1, 2, 13})
    for (auto [hidden, inner] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {17, 5}, {64, 24}, {100, 130}})
      for (auto [count, k] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {8, 3}, {5, 5}})
        for (bool scaled : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << rows << " rows, " << hidden << "/" << inner << ", " << k << " of " << count);
          check_case(Case(rows, hidden, inner, count, k, DType::F32, DType::F32, DType::F32, scaled, seed++));
        }
}

TEST(Experts, QuantisedWeights) {
  uint64_t seed = 100;
  for (DType type : {DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0, DType::Q5_1, DType::MXFP4, DType::IQ4_NL}) {
    SCOPED_TRACE(std::string(to_string(type)));
    check_case(Case(5, 64, 32, 6, 2, type, type, type, true, seed++));
  }
  for (DType type : {DType::Q4_K, DType::Q6_K, DType::IQ4_XS, DType::Q2_K}) {
    SCOPED_TRACE(std::string(to_string(type)));
    check_case(Case(3, 256, 256, 4, 2, type, type, type, false, seed++));
  }
  check_case(Case(4, 256, 64, 4, 3, DType::Q4_K, DType::Q6_K, DType::Q8_0, true, seed++));  // each its own
}

TEST(Experts, ATokenAloneGivesTheBitsOfTheBatch) {
  // Large enough that every loop is shared among the threads (ThreadPool::grain_of).
  for (DType type : {DType::F32, DType::Q8_0}) {
    const Case whole(21, 2560, 32, 8, 3, type, type, type, true, 7);
    run(whole.args, 2);
    for (int threads : kThreadCounts) {
      const Case again(21, 2560, 32, 8, 3, type, type, type, true, 7);
      run(again.args, threads);
      EXPECT_TRUE(same_bits(again.y, whole.y)) << threads << " threads";
    }
    const Case single(21, 2560, 32, 8, 3, type, type, type, true, 7);
    for (int64_t t = 0; t < 21; ++t) {
      ExpertsArgs row = single.args;
      for (Tensor* tensor : {&row.x, &row.ids, &row.weights, &row.y}) *tensor = tensor->slice(t, 1);
      run(row);
    }
    EXPECT_TRUE(same_bits(single.y, whole.y));
  }
}

TEST(Experts, ExpertsThatNobodyChoseAreNotRead) {
  const Case problem(4, 32, 16, 6, 2, DType::F32, DType::F32, DType::F32, true);
  for (int64_t t = 0; t < 4; ++t) {
    problem.ids.i({t, 0}) = 4;
    problem.ids.i({t, 1}) = 1;
  }
  std::vector<double> y(4 * 32), bound;
  experts_oracle(problem.args, y.data());
  bound_of(problem.args, bound);
  for (int64_t e : {0, 2, 3, 5}) {
    for (const Tensor& weight : {problem.args.gate, problem.args.up, problem.args.down})
      assign(weight[e], std::vector<float>(16 * 32, NAN));
    for (int64_t i = 0; i < 3; ++i) problem.scales.f({i, e}) = NAN;
  }
  run(problem.args);
  EXPECT_TRUE(within(problem.y, y, bound));
}

TEST(Experts, NaNStaysInItsRow) {
  const Case clean(5, 24, 16, 4, 2, DType::F32, DType::F32, DType::F32, false);
  const Case dirty(5, 24, 16, 4, 2, DType::F32, DType::F32, DType::F32, false);
  dirty.x.f({3, 7}) = NAN;
  run(clean.args);
  run(dirty.args);
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t i = 0; i < 24; ++i)
      if (t == 3)
        EXPECT_TRUE(std::isnan(dirty.y.f({t, i})));
      else
        EXPECT_EQ(dirty.y.f({t, i}), clean.y.f({t, i}));
}

TEST(Experts, NoRows) {
  const Case problem(0, 8, 8, 4, 2, DType::F32, DType::F32, DType::F32, false);
  EXPECT_NO_THROW(run(problem.args));
}

TEST(Experts, WrongArgumentsAreNamed) {
  const Case problem(2, 8, 6, 4, 3, DType::F32, DType::F32, DType::F32, true);
  float x[512] = {};
  const auto refused = [&](const char* argument, Tensor ExpertsArgs::*tensor, const Tensor& wrong) {
    ExpertsArgs args = problem.args;
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "experts", argument);
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
    const int32_t right = problem.ids.i({1, 2});
    problem.ids.i({1, 2}) = id;
    EXPECT_TRUE(argument_refused([&] { run(problem.args); }, "experts", "expert " + std::to_string(id) + " of row 1"));
    problem.ids.i({1, 2}) = right;
  }
}

}  // namespace
}  // namespace strata::test
