// Activations rounded to int8: the values of known blocks, the distance that the README promises, and what is not
// finite.
#include "ops/weight_dot/rounded.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace strata {
namespace {

struct Block {
  std::array<float, 32> x{};
  std::array<int8_t, 32> q{};
  float scale = -1;
  void round() { round_to_int8(x.data(), 32, q.data(), &scale); }
};

TEST(Rounded, TiesGoToEvenAndTheLargestIs127) {
  Block block;
  block.x = {127, -127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.49f, -126.51f};
  block.round();
  EXPECT_EQ(block.scale, 1);
  const std::array<int8_t, 10> wanted{127, -127, 0, 2, 2, 0, -2, 126, -127, 0};
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(block.q[i], wanted[i]) << i;
}

TEST(Rounded, AnElementStaysWithinHalfAStepWhateverTheMagnitude) {
  Random random(5);
  for (int exponent = -99; exponent <= 127; exponent += 2) {
    Block block;
    for (float& x : block.x) x = random.uniform(-1, 1) * std::ldexp(1.0f, exponent);
    block.x[static_cast<size_t>(random.below(32))] = std::ldexp(1.0f, exponent);
    block.round();
    const std::vector<double> values = rounded_to_int8(block.x.data(), 32);
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(values[i], static_cast<double>(block.q[i]) * static_cast<double>(block.scale));
      EXPECT_LE(std::fabs(values[i] - static_cast<double>(block.x[i])),
                kRoundingSteps * static_cast<double>(block.scale));
    }
  }
}

TEST(Rounded, TinyBlocksAreZerosAndOthersThanFiniteOnesAreNaN) {
  Block tiny;
  tiny.x[3] = 0x1p-101f;
  tiny.round();
  EXPECT_EQ(tiny.scale, 0);
  EXPECT_EQ(tiny.q[3], 0);
  tiny.x[3] = kSmallestRounded;
  tiny.round();
  EXPECT_EQ(tiny.q[3], 127);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    Block block;
    block.x[0] = 1;
    block.x[31] = bad;
    block.round();
    EXPECT_TRUE(std::isnan(block.scale));
    EXPECT_EQ(block.q[0], 0);
  }
}

// Which weights round what they multiply: those with levels, in rows of whole blocks, and only when asked to.
TEST(Rounded, IsForWeightsWithLevels) {
  EXPECT_TRUE(is_rounded(Activations::Int8, DType::Q4_K, 256));
  EXPECT_FALSE(is_rounded(Activations::F32, DType::Q4_K, 256));
  EXPECT_FALSE(is_rounded(Activations::Int8, DType::F16, 256));
  EXPECT_FALSE(is_rounded(Activations::Int8, DType::Q5_1, 256));
}

}  // namespace
}  // namespace strata
