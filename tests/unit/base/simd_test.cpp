#include "unit/base/simd_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/cpu_features.h"
#include "base/fmath.h"
#include "base/half.h"
#include "base/random.h"

namespace strata {
namespace {

std::vector<const SimdForm*> forms() {
  std::vector<const SimdForm*> list{&kSimdPortable};
  if (cpu_features().avx2) list.push_back(&kSimdAvx2);
  if (cpu_features().avx512) list.push_back(&kSimdAvx512);
  return list;
}

uint32_t bits(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  return word;
}

TEST(Simd, ExpIsWithinTwoUlpAndHasTheSpecialValues) {
  std::vector<float> x;
  for (float value = -87.3f; value < 88.7f; value += 0.00071f) x.push_back(value);
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> special{-inf, -1e30f, -87.34f, 88.73f, 1e30f, inf, std::nanf(""), 0.0f, -0.0f};
  x.insert(x.end(), special.begin(), special.end());
  for (const SimdForm* form : forms()) {
    std::vector<float> y(x.size());
    form->exp(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i + special.size() < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
      ASSERT_LE(std::fabs(static_cast<double>(y[i]) - exact), 2 * ulp) << form->name << " at " << x[i];
    }
    const float* s = y.data() + x.size() - special.size();
    EXPECT_EQ(s[0], 0) << form->name;
    EXPECT_EQ(s[1], 0) << form->name;
    EXPECT_EQ(s[2], 0) << form->name;
    EXPECT_EQ(s[3], inf) << form->name;
    EXPECT_EQ(s[4], inf) << form->name;
    EXPECT_EQ(s[5], inf) << form->name;
    EXPECT_TRUE(std::isnan(s[6])) << form->name;
    EXPECT_EQ(s[7], 1) << form->name;
    EXPECT_EQ(s[8], 1) << form->name;
  }
}

TEST(Simd, FusedFormsGiveTheSameBits) {
  if (!cpu_features().avx512) GTEST_SKIP() << cpu_features().refusal(CpuIsa::Avx512);
  Random random(3);
  std::vector<float> x(4096), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = random.uniform(-90, 90);
    y[i] = random.uniform(-1, 1);
  }
  std::vector<float> a(x.size()), b(x.size());
  kSimdAvx2.exp(x.data(), a.data(), 4096);
  kSimdAvx512.exp(x.data(), b.data(), 4096);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(bits(a[i]), bits(b[i])) << x[i];
  for (int64_t n : {0, 1, 15, 16, 17, 255, 4096})
    EXPECT_EQ(bits(kSimdAvx2.dot(x.data(), y.data(), n)), bits(kSimdAvx512.dot(x.data(), y.data(), n)));
}

// Without fused operations the plain form is dot_f32 itself.
TEST(Simd, ThePlainFormIsThePortableDotProduct) {
  Random random(5);
  std::vector<float> x(300), y(300);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = random.uniform(-1, 1);
    y[i] = random.uniform(-1, 1);
  }
  for (int64_t n : {0, 1, 16, 31, 300})
    EXPECT_EQ(bits(kSimdPortable.dot(x.data(), y.data(), n)), bits(dot_f32(x.data(), y.data(), n)));
}

// Each lane has its own value, so an exchanged lane shows; sums of small integers are exact.
TEST(Simd, LanesStandInTheirPlace) {
  for (const SimdForm* form : forms())
    for (int64_t n = 0; n <= 16; ++n) {
      float x[17], y[17], ones[16];
      for (int i = 0; i < 17; ++i) {
        x[i] = static_cast<float>(i + 1);
        y[i] = -7;
      }
      for (float& one : ones) one = 1;
      form->copy_first(x, y, n);
      for (int i = 0; i < 17; ++i) EXPECT_EQ(y[i], i < n ? x[i] : -7.0f) << form->name << " " << n;
      EXPECT_EQ(form->dot(x, ones, n), static_cast<float>(n * (n + 1) / 2)) << form->name;
    }
}

TEST(Simd, SixteenBitFormatsAsInHalf) {
  for (const SimdForm* form : forms())
    for (uint32_t first = 0; first < 65536; first += 16) {
      uint16_t x[16];
      float y[16];
      for (uint32_t i = 0; i < 16; ++i) x[i] = static_cast<uint16_t>(first + i);
      form->bf16(x, y);
      for (int i = 0; i < 16; ++i) ASSERT_EQ(bits(y[i]), bits(bf16_to_f32(x[i]))) << form->name;
      form->f16(x, y);
      for (int i = 0; i < 16; ++i) {
        const float expected = f16_to_f32(x[i]);
        // The processor sets the quiet bit of a NaN.
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(y[i])) << form->name;
        else
          ASSERT_EQ(bits(y[i]), bits(expected)) << form->name << " " << x[i];
      }
    }
}

TEST(Simd, LevelsOfBlocksAndTheirScale) {
  for (const SimdForm* form : forms()) {
    float y[16];
    for (const uint16_t half : {0x3c00, 0x8000, 0x0001, 0xfbff, 0x7c00}) {
      form->all_f16(half, y);
      for (const float lane : y) ASSERT_EQ(bits(lane), bits(f16_to_f32(half))) << form->name;
    }
    for (int first = 0; first < 256; first += 16) {
      uint8_t x[16];
      for (int i = 0; i < 16; ++i) x[i] = static_cast<uint8_t>(first + i);
      form->i8(x, y);
      for (int i = 0; i < 16; ++i) ASSERT_EQ(y[i], static_cast<float>(static_cast<int8_t>(x[i]))) << form->name;
      for (const int shift : {0, 4}) {
        form->level4(x, shift, y);
        for (int i = 0; i < 16; ++i) {
          ASSERT_EQ(y[i], static_cast<float>((x[i] >> shift & 15) - 8)) << form->name;
          ASSERT_FALSE(y[i] == 0 && std::signbit(y[i])) << form->name;
        }
      }
    }
  }
}

TEST(Simd, ReluKeepsNan) {
  float x[16] = {-1, 0, 1, -INFINITY, INFINITY, NAN, -1e-40f, 1e-40f, 5, -5, NAN, 2, 3, 4, 5, 6}, y[16];
  for (const SimdForm* form : forms()) {
    form->relu(x, y, 16);
    for (int i = 0; i < 16; ++i) {
      if (std::isnan(x[i]))
        EXPECT_TRUE(std::isnan(y[i])) << form->name;
      else
        EXPECT_EQ(y[i], x[i] < 0 ? 0.0f : x[i]) << form->name;
    }
  }
}

TEST(Simd, MaximumAndNan) {
  for (const SimdForm* form : forms())
    for (int place = 0; place < 16; ++place) {
      float x[16];
      for (int i = 0; i < 16; ++i) x[i] = -INFINITY;
      EXPECT_EQ(form->max(x), -INFINITY) << form->name;
      x[place] = -3;
      EXPECT_EQ(form->max(x), -3) << form->name << " " << place;
      EXPECT_FALSE(form->any_nan(x)) << form->name;
      x[place] = NAN;
      EXPECT_TRUE(form->any_nan(x)) << form->name << " " << place;
    }
}

}  // namespace
}  // namespace strata
