// f16 and bf16: the conversions of half.h and the rows of F16 and BF16, on every 16-bit pattern.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "base/half.h"
#include "gguf/quant.h"
#include "unit/gguf/quant_oracle.h"

namespace strata::gguf {
namespace {

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> patterns(65536);
  std::iota(patterns.begin(), patterns.end(), uint16_t{0});
  return patterns;
}

TEST(QuantHalf, F16ToF32IsExactForEveryPattern) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const double expected = oracle::Block::f16_value(static_cast<int>(h));
    const float got = f16_to_f32(static_cast<uint16_t>(h));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << h;
    } else {
      ASSERT_EQ(bits(got), bits(static_cast<float>(expected))) << h;
    }
  }
}

TEST(QuantHalf, RowsEqualHalfForEveryPattern) {
  const std::vector<uint16_t> patterns = all_patterns();
  std::vector<float> f16(patterns.size()), bf16(patterns.size());
  decoder(DType::F16)(patterns.data(), f16.data(), 65536);
  decoder(DType::BF16)(patterns.data(), bf16.data(), 65536);
  for (size_t h = 0; h < patterns.size(); ++h) {
    ASSERT_EQ(bits(f16[h]), bits(f16_to_f32(patterns[h]))) << h;
    ASSERT_EQ(bits(bf16[h]), static_cast<uint32_t>(h) << 16) << h;
  }
  // Odd lengths: the vector loop's remainder.
  for (int n = 0; n < 40; ++n) {
    std::vector<float> out(static_cast<size_t>(n) + 1, 3.f);
    decoder(DType::F16)(patterns.data() + 1000, out.data(), n);
    EXPECT_EQ(out[static_cast<size_t>(n)], 3.f);
    for (int i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], f16_to_f32(static_cast<uint16_t>(1000 + i)));
  }
}

TEST(QuantHalf, EncodeOfDecodeIsTheSamePattern) {
  const std::vector<uint16_t> patterns = all_patterns();
  for (const DType type : {DType::F16, DType::BF16}) {
    std::vector<float> values(patterns.size());
    std::vector<uint16_t> again(patterns.size());
    decoder(type)(patterns.data(), values.data(), 65536);
    encoder(type)(values.data(), again.data(), 65536);
    for (size_t h = 0; h < patterns.size(); ++h) {
      if (std::isnan(values[h])) {
        const float back = type == DType::F16 ? f16_to_f32(again[h]) : bf16_to_f32(again[h]);
        ASSERT_TRUE(std::isnan(back)) << h;
        ASSERT_EQ(std::signbit(back), std::signbit(values[h])) << h;
      } else {
        ASSERT_EQ(again[h], patterns[h]) << to_string(type);
      }
    }
  }
}

#ifdef __FLT16_MANT_DIG__
uint16_t compiler_f16(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }

void check_f16(float x) {
  for (const float value : {x, -x}) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      ASSERT_EQ(f32_to_f16(value), compiler_f16(value)) << std::hexfloat << value;
    }
  }
}

TEST(QuantHalf, F32ToF16RoundsAsTheCompilerDoes) {
  for (uint16_t h = 0; h < 0x7c00; ++h) {  // each value, the middle to the next one, and the neighbours of both
    const float low = f16_to_f32(h), high = h == 0x7bff ? 65536.f : f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    for (const float x : {low, middle}) {
      check_f16(x);
      check_f16(std::nextafterf(x, HUGE_VALF));
      check_f16(std::nextafterf(x, -HUGE_VALF));
    }
  }
  std::mt19937 rng(11);
  for (int i = 0; i < 300000; ++i) check_f16(std::bit_cast<float>(static_cast<uint32_t>(rng())));
  for (const float x : {65519.99f, 65520.f, 1e30f, HUGE_VALF, 0x1p-25f, 0x1.000002p-25f, 1e-45f}) check_f16(x);
}
#endif

// The two neighbours of x in bf16, compared by distance in double; the even one on a tie.
TEST(QuantHalf, F32ToBf16RoundsToNearestEven) {
  for (uint32_t upper = 0; upper < 0x7f80; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float x = std::bit_cast<float>(upper << 16 | lower);
      // The neighbour above the largest finite bf16 counts as 2^128 here and is the pattern of infinity.
      const double below = std::bit_cast<float>(upper << 16);
      const double above = upper == 0x7f7f ? 0x1p128 : double(std::bit_cast<float>((upper + 1) << 16));
      const double down = x - below, up = above - x;
      const uint32_t expected = down < up || (down == up && upper % 2 == 0) ? upper : upper + 1;
      ASSERT_EQ(f32_to_bf16(x), expected) << std::hexfloat << x;
      ASSERT_EQ(f32_to_bf16(-x), expected | 0x8000u) << std::hexfloat << x;
    }
  }
  EXPECT_EQ(f32_to_bf16(HUGE_VALF), 0x7f80u);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace strata::gguf
