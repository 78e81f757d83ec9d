#include "base/half.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strata {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a half by its definition: sign, exponent, fraction.
double defined_value(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int fraction = h & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryF16ValueIsExactAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const float value = f16_to_f32(h);
    const double expected = defined_value(h);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      const uint16_t back = f32_to_f16(value);
      ASSERT_TRUE(std::isnan(f16_to_f32(back))) << bits;
      ASSERT_EQ(back & 0x8000, h & 0x8000) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
      ASSERT_EQ(std::signbit(value), (h & 0x8000) != 0) << bits;
      ASSERT_EQ(f32_to_f16(value), h) << bits;
    }
  }
}

// Between neighbours: below the middle rounds down, above it up, on it to the even one.
TEST(Half, F16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    // The step beyond the largest finite half ends at 65536, where infinity stands.
    const double upper = high == 0x7c00 ? 65536.0 : defined_value(high);
    const auto middle = static_cast<float>((defined_value(low) + upper) / 2);  // exact: one bit more than a half
    const uint16_t even = (low & 1) == 0 ? low : high;
    ASSERT_EQ(f32_to_f16(middle), even) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInfinity)), high) << bits;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << bits;
  }
}

TEST(Half, F16OverflowAndUnderflow) {
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xfc00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // the middle between 0 and the smallest half: even
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
}

TEST(Half, EveryBf16ValueIsExactAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const float value = bf16_to_f32(h);
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (std::isnan(value))
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << bits;
    else
      ASSERT_EQ(f32_to_bf16(value), h) << bits;
  }
}

TEST(Half, Bf16RoundsToNearestEven) {
  EXPECT_TRUE(rc::check("between two neighbours", [] {
    const auto low = static_cast<uint16_t>(*rc::gen::inRange<uint32_t>(0, 0x7f80));
    const uint32_t middle = (static_cast<uint32_t>(low) << 16) | 0x8000u;
    const auto high = static_cast<uint16_t>(low + 1);
    RC_ASSERT(f32_to_bf16(std::bit_cast<float>(middle)) == ((low & 1) == 0 ? low : high));
    RC_ASSERT(f32_to_bf16(std::bit_cast<float>(middle - 1)) == low);
    RC_ASSERT(f32_to_bf16(std::bit_cast<float>(middle + 1)) == high);
    RC_ASSERT(f32_to_bf16(std::bit_cast<float>(middle | 0x80000000u)) == (((low & 1) == 0 ? low : high) | 0x8000));
  }));
}

TEST(Half, NanWithLowPayloadStaysNan) {
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(nan)))) << bits;
    EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(nan)))) << bits;
  }
}

}  // namespace
}  // namespace strata
