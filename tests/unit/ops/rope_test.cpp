#include "ops/rope/rope.h"

#include <limits>

#include "support/ops_test.h"

namespace strata::test {
namespace {

RopeParams yarn(int dims, double base, double context, double factor) {
  RopeParams params;
  params.rotary_dims = dims;
  params.base = base;
  params.scaling = RopeScaling::Yarn;
  params.factor = factor;
  params.original_context = context;
  return params;
}

// One rounding to f32 of a float64 value; the second term is room for the last bits of pow and log.
void expect_frequencies(const RopeParams& params) {
  const RopeFrequencies rope(params);
  std::vector<double> expected(static_cast<size_t>(params.rotary_dims) / 2);
  const double magnitude = rope_frequencies_oracle(params, expected.data());
  ASSERT_EQ(rope.rotary_dims(), params.rotary_dims);
  ASSERT_EQ(rope.pairs, params.pairs);
  for (size_t j = 0; j < expected.size(); ++j)
    EXPECT_LE(std::fabs(double{rope.frequency[j]} - expected[j]), (kUnitRoundoff + 1e-13) * expected[j])
        << "pair " << j;
  EXPECT_LE(std::fabs(double{rope.magnitude} - magnitude), (kUnitRoundoff + 1e-13) * magnitude);
}

TEST(RopeFrequencies, FollowTheFormulas) {
  for (int dims : {2, 6, 64, 128}) {
    RopeParams plain;
    plain.rotary_dims = dims;
    for (double base : {10000.0, 5e5, 1e7}) {
      plain.base = base;
      plain.scaling = RopeScaling::None;
      expect_frequencies(plain);
      plain.scaling = RopeScaling::Linear;
      plain.factor = 4;
      expect_frequencies(plain);
      for (double factor : {1.0, 2.0, 3.7, 40.0})
        for (double context : {64.0, 32768.0, 262144.0}) expect_frequencies(yarn(dims, base, context, factor));
    }
  }
}

TEST(RopeFrequencies, PairFactorsDivideBeforeTheScaling) {
  for (RopeScaling scaling : {RopeScaling::None, RopeScaling::Linear, RopeScaling::Yarn}) {
    RopeParams params = yarn(16, 5e5, 8192, 2);
    params.scaling = scaling;
    params.pair_factors = {1, 1, 1.5f, 2, 3, 5, 8, 8};
    expect_frequencies(params);
    RopeParams without = params;
    without.pair_factors.clear();
    const RopeFrequencies with(params), plain(without);
    for (size_t j : {0, 1, 3, 6, 7})  // powers of two divide exactly
      EXPECT_EQ(with.frequency[j], plain.frequency[j] / params.pair_factors[j]);
  }
}

TEST(RopeFrequencies, LinearDividesTheAngleAndLeavesTheMagnitude) {
  RopeParams params;
  params.rotary_dims = 8;
  const RopeFrequencies plain(params);
  params.scaling = RopeScaling::Linear;
  params.factor = 4;
  const RopeFrequencies linear(params);
  for (size_t j = 0; j < 4; ++j) EXPECT_EQ(linear.frequency[j], plain.frequency[j] / 4);
  EXPECT_EQ(linear.magnitude, 1.0f);
  EXPECT_EQ(plain.magnitude, 1.0f);
  EXPECT_EQ(plain.frequency[0], 1.0f);
}

// The formulas of YaRN in long double, written with exponentials where the code has powers.
struct LongDoubleTable {
  std::vector<long double> frequency;
  long double magnitude = 1;

  LongDoubleTable(const RopeParams& p) {
    const long double pi = 3.14159265358979323846264338327950288L, dims = p.rotary_dims,
                      ln_base = std::log(static_cast<long double>(p.base));
    // The pair whose wavelength fits `turns` times into the original context: 2 pi base^(2j/R) = C / turns.
    auto pair = [&](long double turns) {
      return dims * (std::log(static_cast<long double>(p.original_context)) - std::log(2 * pi * turns)) / (2 * ln_base);
    };
    const bool yarn = p.scaling == RopeScaling::Yarn;
    const long double low = yarn ? std::fmax(0.0L, std::floor(pair(p.beta_fast))) : 0;
    const long double high = yarn ? std::fmin(dims - 1, std::ceil(pair(p.beta_slow))) : 0;
    for (int j = 0; j < p.rotary_dims / 2; ++j) {
      const long double plain = std::exp(-2 * ln_base * j / dims);
      const long double way = (j - low) / std::fmax(0.001L, high - low);
      const long double slowed = yarn ? p.ext * std::fmin(1.0L, std::fmax(0.0L, way)) + (1 - p.ext) : 0;
      frequency.push_back(plain * (1 - slowed) + plain / p.factor * slowed);
    }
    if (yarn && p.ext != 0 && p.factor > 1) magnitude = 1 + std::log(static_cast<long double>(p.factor)) / 10;
  }
};

// 262,144 positions to 512K and 1M: frequencies, and the angles of the last positions. The f32 angle carries the
// roundings of frequency and product, its cosine and sine theirs.
TEST(RopeFrequencies, LongContextsAgainstLongDouble) {
  RopeParams plain;
  plain.rotary_dims = 64, plain.base = 1e7;
  RopeParams half = yarn(64, 1e7, 262144, 2);
  half.ext = 0.5;
  for (const RopeParams& params :
       {plain, yarn(64, 1e7, 262144, 2), yarn(64, 1e7, 262144, 4), yarn(128, 1e6, 32768, 4), half}) {
    const RopeFrequencies rope(params);
    const LongDoubleTable table(params);
    const size_t half_dims = rope.frequency.size();
    std::vector<float> cosine(half_dims), sine(half_dims);
    const long double m = table.magnitude;
    EXPECT_LE(std::fabs(rope.magnitude - m), kUnitRoundoff * m);
    for (size_t j = 0; j < half_dims; ++j)
      // One rounding; the second term is room for the float64 arithmetic before it.
      EXPECT_LE(std::fabs(rope.frequency[j] - table.frequency[j]), (kUnitRoundoff + 1e-13) * table.frequency[j]) << j;
    for (int64_t position : {262143, 262144, 524287, 1048575, 16777215}) {
      rope.angles(position, cosine.data(), sine.data());
      for (size_t j = 0; j < half_dims; ++j) {
        const long double angle = table.frequency[j] * position;
        const double off = gamma(2) * static_cast<double>(angle);  // of the angle
        // A cosine moves by no more than its angle; then three roundings: to f32, of m, of the product.
        const double bound = (off + gamma(3)) * static_cast<double>(m) + 1e-13;
        EXPECT_LE(std::fabs(cosine[j] - m * std::cos(angle)), bound) << position << " " << j;
        EXPECT_LE(std::fabs(sine[j] - m * std::sin(angle)), bound) << position << " " << j;
      }
      if (params.scaling == RopeScaling::None && position == 1048575) {
        EXPECT_LE(cosine[0] - std::cos(1048575.0), 2 * kUnitRoundoff);  // pair 0 has the exact angle
        EXPECT_NEAR(gamma(2) * static_cast<double>(table.frequency[1]) * 1048575, 0.0755, 1e-3);  // as README.md says
      }
    }
  }
}

// Published models: pairs up to `low` keep their frequency, pairs from `high` on are slowed by the factor.
TEST(RopeFrequencies, YarnOfPublishedModels) {
  struct Row {
    int dims;
    double base, context;
    size_t low, high;
  };
  for (const Row& row : {Row{64, 1e7, 262144, 14, 22}, Row{128, 1e6, 32768, 23, 40}})
    for (const auto& [factor, magnitude] : {std::pair{2.0f, 1.0693}, std::pair{4.0f, 1.1386}}) {
      RopeParams params = yarn(row.dims, row.base, row.context, factor);
      expect_frequencies(params);
      const RopeFrequencies scaled(params);
      params.scaling = RopeScaling::None;
      const RopeFrequencies plain(params);
      EXPECT_NEAR(scaled.magnitude, magnitude, 5e-5);  // the table has four decimals
      for (size_t j = 0; j < scaled.frequency.size(); ++j) {
        const float kept = plain.frequency[j], slowed = plain.frequency[j] / factor;
        EXPECT_EQ(scaled.frequency[j] == kept, j <= row.low) << "pair " << j;
        EXPECT_EQ(scaled.frequency[j] == slowed, j >= row.high) << "pair " << j;
        EXPECT_TRUE(scaled.frequency[j] <= kept && scaled.frequency[j] >= slowed) << "pair " << j;
      }
    }
}

TEST(RopeFrequencies, YarnSwitches) {
  RopeParams params = yarn(64, 1e7, 262144, 2);
  params.attention_factor = 1.25;
  EXPECT_EQ(RopeFrequencies(params).magnitude, 1.25f);
  params.attention_factor = 0;
  params.ext = 0;  // plain interpolation
  const RopeFrequencies interpolated(params);
  EXPECT_EQ(interpolated.magnitude, 1.0f);
  params.scaling = RopeScaling::Linear;
  EXPECT_EQ(interpolated.frequency, RopeFrequencies(params).frequency);
  params = yarn(64, 1e7, 262144, 2);
  params.ext = 0.5;
  params.beta_fast = 20;
  params.beta_slow = 2;
  expect_frequencies(params);
  EXPECT_EQ(RopeFrequencies(yarn(64, 1e7, 262144, 1)).magnitude, 1.0f);
}

TEST(RopeFrequencies, ImpossibleValuesAreRefused) {
  auto refused = [](const char* word, auto change) {
    RopeParams params = yarn(8, 1e4, 4096, 2);
    change(params);
    return argument_refused([&] { RopeFrequencies rope(params); }, "rope", word);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(refused("rotary dims", [](RopeParams& params) { params.rotary_dims = 0; }));
  EXPECT_TRUE(refused("rotary dims", [](RopeParams& params) { params.rotary_dims = 7; }));
  EXPECT_TRUE(refused("rotary dims", [](RopeParams& params) { params.rotary_dims = -8; }));
  EXPECT_TRUE(refused("base", [](RopeParams& params) { params.base = 0; }));
  EXPECT_TRUE(refused("base", [&](RopeParams& params) { params.base = nan; }));
  EXPECT_TRUE(refused("factor", [](RopeParams& params) { params.factor = 0; }));
  EXPECT_TRUE(refused("factor", [&](RopeParams& params) { params.factor = inf; }));
  EXPECT_TRUE(refused("context", [](RopeParams& params) { params.original_context = 0; }));
  EXPECT_TRUE(refused("context", [&](RopeParams& params) { params.original_context = nan; }));
  EXPECT_TRUE(refused("pair", [](RopeParams& params) { params.pair_factors = {1, 1, 1}; }));
}

// The angle is the f32 product by definition. Cosine and sine are rounded once, the product with m once more.
TEST(RopeFrequencies, AnglesOfPositions) {
  for (const RopeParams& params : {yarn(64, 1e7, 262144, 2), yarn(128, 1e6, 32768, 4)}) {
    const RopeFrequencies rope(params);
    const size_t half = rope.frequency.size();
    std::vector<float> cosine(half), sine(half);
    for (int64_t position : {0, 1, 63, 4097, 262143, 524287, 1048575}) {
      rope.angles(position, cosine.data(), sine.data());
      for (size_t j = 0; j < half; ++j) {
        const float angle = static_cast<float>(position) * rope.frequency[j];
        const double m = rope.magnitude, c = m * std::cos(double{angle}), s = m * std::sin(double{angle});
        EXPECT_LE(std::fabs(cosine[j] - c), gamma(2) * std::fabs(c) + 1e-15) << position << " " << j;
        EXPECT_LE(std::fabs(sine[j] - s), gamma(2) * std::fabs(s) + 1e-15) << position << " " << j;
      }
    }
    rope.angles(0, cosine.data(), sine.data());
    for (size_t j = 0; j < half; ++j) EXPECT_TRUE(cosine[j] == rope.magnitude && sine[j] == 0.0f);
  }
}

TEST(Rope, AQuarterTurnShowsTheLayoutOfPairs) {
  TestQueue queue;
  const Owned cosine(DType::F32, {1, 3}), sine(DType::F32, {1, 3});
  assign<float>(cosine, {0, 0, 0});
  assign<float>(sine, {1, 1, 1});
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7};
  const Owned split(DType::F32, {1, 1, 7}), adjacent(DType::F32, {1, 1, 7});
  assign(split.t(), values);
  assign(adjacent.t(), values);
  rope(queue, {.x = split, .cos = cosine, .sin = sine, .pairs = RopePairs::HalfSplit});
  rope(queue, {.x = adjacent, .cos = cosine, .sin = sine, .pairs = RopePairs::Adjacent});
  EXPECT_EQ(packed(split), (std::vector<float>{-4, -5, -6, 1, 2, 3, 7}));
  EXPECT_EQ(packed(adjacent), (std::vector<float>{-2, 1, -4, 3, -6, 5, 7}));
}

TEST(Rope, WrongArgumentsAreNamed) {
  Random random(4);
  TestQueue queue;
  const Owned x = random_f32({2, 3, 8}, random), cosine = random_f32({2, 4}, random), sine = random_f32({2, 4}, random);
  const Owned before = clone(x);
  const Owned flat(DType::F32, {2, 8}), ints(DType::I32, {2, 3, 8}), wide(DType::F32, {2, 5}), tall(DType::F32, {3, 4});
  auto refused = [&](const char* argument, const RopeArgs& args) {
    return argument_refused([&] { rope(queue, args); }, "rope", argument);
  };
  EXPECT_TRUE(refused("x", {.x = flat, .cos = cosine, .sin = sine}));
  EXPECT_TRUE(refused("x", {.x = ints, .cos = cosine, .sin = sine}));
  EXPECT_TRUE(refused("cos", {.x = x, .cos = tall, .sin = sine}));
  EXPECT_TRUE(refused("sin", {.x = x, .cos = cosine, .sin = wide}));
  EXPECT_TRUE(refused("sin", {.x = x, .cos = cosine, .sin = {}}));
  EXPECT_TRUE(refused("10 rotary dims", {.x = x, .cos = wide, .sin = wide}));
  EXPECT_TRUE(same_bits(x, before));
}

}  // namespace
}  // namespace strata::test
