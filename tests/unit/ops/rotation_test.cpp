#include "ops/attention/rotation.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

TEST(Rotation, MixesTheLargestPowerOfTwo) {
  const std::vector<std::pair<int64_t, int64_t>> blocks{{1, 1},   {33, 1},    {48, 16},   {64, 64},  {80, 16},
                                                        {96, 32}, {128, 128}, {256, 256}, {320, 64}, {512, 256}};
  for (const auto& [dim, n] : blocks) EXPECT_EQ(rotation_block(dim), n) << dim;
}

TEST(Rotation, StaysWithinTheBoundOfTheOracle) {
  Random random(1);
  for (const int64_t dim : {1, 2, 48, 64, 96, 128, 256, 512})
    for (const float size : {1e-30f, 1.0f, 1e30f}) {
      const Owned x = random_f32({3, 2, dim}, random, -size, size, {4, 3});
      const auto count = static_cast<size_t>(x.t().elements());
      std::vector<double> expected(count), bound(count);
      const std::vector<float> before = packed(x);
      for (size_t i = 0; i < count; i += static_cast<size_t>(dim)) {
        rotation_oracle(before.data() + i, dim, expected.data() + i);
        rotation_bound(before.data() + i, dim, bound.data() + i);
      }
      TestQueue queue(2);
      rotate_heads(queue, x);
      EXPECT_TRUE(within(x, expected, bound)) << dim << " of size " << size;
      EXPECT_TRUE(x.gaps_intact()) << dim;
    }
}

// A kernel, here run on the CPU, gives the same bits.
TEST(Rotation, OnAnAcceleratorHasTheSameBits) {
  Random random(5);
  Log log(LogLevel::Error);
  Queue device(open_accelerator("emu"), log);
  for (const int64_t dim : {1, 2, 48, 96, 128, 512}) {
    const Owned x = random_f32({3, 2, dim}, random, -1, 1, {4, 3}), y(DType::F32, {3, 2, dim}, {4, 3});
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t i = 0; i < dim; ++i) y.f({t, h, i}) = x.f({t, h, i});
    TestQueue queue(2);
    rotate_heads(queue, x);
    rotate_heads(device, y);
    device.stream().wait();
    EXPECT_EQ(packed(x), packed(y)) << dim;
    EXPECT_TRUE(y.gaps_intact()) << dim;
  }
}

// One channel at a time: signs and places of the definition, with nothing to round for an even power of two.
TEST(Rotation, OneHotIsARowOfSigns) {
  TestQueue queue;
  for (int64_t j = 0; j < 64; ++j) {
    const Owned x(DType::F32, {1, 1, 128});
    for (int64_t i = 0; i < 128; ++i) x.f({0, 0, i}) = i == j ? 8.0f : 0.0f;
    Tensor half = x;
    half.extents[2] = 64;
    rotate_heads(queue, half);
    for (int64_t i = 0; i < 64; ++i)
      ASSERT_EQ(x.f({0, 0, i}), __builtin_popcountll(static_cast<uint64_t>(i & j)) % 2 == 0 ? 1.0f : -1.0f) << i;
    for (int64_t i = 64; i < 128; ++i) ASSERT_EQ(x.f({0, 0, i}), 0.0f);
  }
}

// Twice is the identity and dot products stay, within the bound of two transforms.
TEST(Rotation, IsItsOwnInverseAndKeepsDotProducts) {
  Random random(2);
  for (const int64_t dim : {64, 96, 256}) {
    const Owned x = random_f32({2, 1, dim}, random);
    const std::vector<float> before = packed(x);
    TestQueue queue;
    rotate_heads(queue, x);
    const std::vector<float> once = packed(x);
    rotate_heads(queue, x);
    const std::vector<float> twice = packed(x);
    const auto n = static_cast<double>(rotation_block(dim));
    // |x| <= 1, so a transform is off by at most e = gamma(log2 n + 2) sqrt(n); the second adds its own to sqrt(n)
    // times the first's.
    const double e = gamma(std::log2(n) + 2) * std::sqrt(n), tolerance = e * (1 + std::sqrt(n));
    for (size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(twice[i], before[i], tolerance) << dim;
    auto dot = [&](const std::vector<float>& v) {
      double sum = 0;
      for (int64_t i = 0; i < dim; ++i)
        sum += static_cast<double>(v[static_cast<size_t>(i)]) * static_cast<double>(v[static_cast<size_t>(dim + i)]);
      return sum;
    };
    // Rotated values are at most sqrt(n): each product is off by at most 2 sqrt(n) e, to first order.
    EXPECT_NEAR(dot(once), dot(before), 2.01 * static_cast<double>(dim) * std::sqrt(n) * e) << dim;
  }
}

TEST(Rotation, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(3);
  const Owned x = random_f32({300, 2, 96}, random);
  const std::vector<float> before = packed(x);
  TestQueue queue;
  rotate_heads(queue, x);
  const std::vector<float> together = packed(x);
  for (const int threads : kThreadCounts) {
    assign(x.t(), before);
    TestQueue other(threads);
    for (int64_t t = 0; t < 300; t += 7) rotate_heads(other, x.t().slice(t, std::min<int64_t>(7, 300 - t)));
    EXPECT_EQ(packed(x), together) << threads;
  }
}

}  // namespace
}  // namespace strata::test
