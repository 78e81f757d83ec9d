// Activations rounded to int8: the values of known blocks, the distance that the README promises, and what is not
// finite.
#include "ops/weight_dot/rounded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/cpu_features.h"
#include "base/random.h"
#include "ops/weight_dot/int8_types.h"

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

// What the kernels of each instruction set leave of a row: the bytes where their products meet them, scales, and where
// sums begin.
void expect_rounded(const Int8Kernel& kernel, DType type, const std::vector<float>& x) {
  const auto in = static_cast<int64_t>(x.size()), pieces = (in + kPiece - 1) / kPiece;
  const Int8Traits traits = kernel.traits(type);
  std::vector<float> padded(static_cast<size_t>(pieces * kPiece)), scales(padded.size() / 32);
  std::vector<int8_t> q(padded.size());
  std::ranges::copy(x, padded.begin());
  round_to_int8(padded.data(), pieces * kPiece, q.data(), scales.data());
  std::vector<Int8Piece> rounded(static_cast<size_t>(pieces));
  kernel.round(x.data(), in, traits, rounded.data());
  const bool in_order = &kernel == &kInt8Avx2;
  for (int64_t i = 0; i < pieces * kPiece; ++i) {
    const int at = static_cast<int>(i % kPiece), block = at / 32, word = at % 32 / 4;
    const int place =
        in_order ? at
                 : (traits.transposed ? 64 * (at % 4) + at / 16 * 4 + at % 16 / 4 : word_place(block, word) + at % 4);
    ASSERT_EQ(rounded[static_cast<size_t>(i / kPiece)].q[place], q[static_cast<size_t>(i)]) << to_string(type) << i;
  }
  for (int64_t b = 0; b < pieces * 8; ++b) {
    const Int8Piece& piece = rounded[static_cast<size_t>(b / 8)];
    const float scale = scales[static_cast<size_t>(b)];
    const int block = static_cast<int>(b % 8);
    EXPECT_EQ(std::bit_cast<uint32_t>(piece.scale[block]), std::bit_cast<uint32_t>(scale)) << to_string(type) << b;
    int sums[2] = {};
    for (size_t i = 0; i < 32; ++i) sums[i / 16] += q[static_cast<size_t>(b) * 32 + i];
    for (int half = 0; half < 2; ++half)
      EXPECT_EQ(piece.start[half_slot(2 * block + half, traits.transposed)], -traits.offset * sums[half]);
    if (!traits.minima)
      EXPECT_EQ(piece.block_start[block], -traits.offset * (sums[0] + sums[1]));
    else if (std::isfinite(scale))
      EXPECT_EQ(piece.sum[block], scale * static_cast<float>(sums[0] + sums[1]));
    else
      EXPECT_TRUE(std::isnan(piece.sum[block]));
  }
}

TEST(Rounded, KernelsLeaveWhatTheirProductsRead) {
  Random random(6);
  const CpuFeatures cpu = cpu_features();
  for (const auto& [kernel, isa] : {std::pair{&kInt8Avx2, CpuIsa::Avx2},
                                    {&kInt8Avx512Vnni, CpuIsa::Avx512Vnni},
                                    {&kInt8Avx512Vbmi, CpuIsa::Avx512Vbmi}})
    for (const DType type : {DType::Q8_0, DType::Q4_K, DType::Q6_K, DType::Q2_0, DType::IQ3_S, DType::IQ2_XS})
      for (const size_t in : {32, 256, 288, 1024, 1248}) {
        if (!cpu.has(isa)) continue;
        std::vector<float> x(in);
        for (float& value : x) value = random.uniform(-1, 1);
        if (in >= 256) {  // a block whose largest is far from the others', one of zeros, one that is tiny, and not
                          // finite ones
          x[33] = 1e30f;
          std::fill_n(x.begin() + 64, 32, 0.0f);
          std::fill_n(x.begin() + 96, 32, 0x1p-102f);
          x[130] = std::numeric_limits<float>::infinity();
          x[191] = std::numeric_limits<float>::quiet_NaN();
          x[192] = -0.0f;
        }
        expect_rounded(*kernel, type, x);
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
