// Blocks drawn at random: their moments, and independence of the order of drawing.
#include "gguf/quant_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "gguf/quant.h"

namespace strata::gguf {
namespace {

std::vector<uint8_t> draw(DType type, double sigma, uint64_t key, int64_t elements) {
  std::vector<uint8_t> bytes(bytes_of(type, elements));
  RandomBlocks(type, sigma, key).draw(0, static_cast<uint64_t>(elements) / info(type).block_elements, bytes.data());
  return bytes;
}

// 2^18 values. The mean of independent ones has a standard deviation of sigma / 512; where a random sign or scale is
// shared by a block of 32 it is √32 times that at most, 1.1 %: 5 % is over four of them. The spread is calibrated with
// 256 blocks and one f16 (or, for MXFP4, a mix of two exponents): 4 %.
TEST(QuantRandom, MomentsAreAsAsked) {
  constexpr int64_t kCount = 1 << 18;
  std::vector<float> values(kCount);
  for (const DTypeInfo& entry : all_dtypes()) {
    if (!has_encoder(entry.type)) continue;
    for (const double sigma : {1.0, 0.011}) {
      const std::vector<uint8_t> bytes = draw(entry.type, sigma, 99, kCount);
      decoder(entry.type)(bytes.data(), values.data(), kCount);
      double sum = 0, power = 0, most = 0;
      for (const float value : values) {
        ASSERT_TRUE(std::isfinite(value));
        sum += value;
        power += double(value) * value;
        most = std::max(most, std::abs(double(value)));
      }
      EXPECT_NEAR(sum / kCount / sigma, 0, 0.05) << entry.name << " " << sigma;
      EXPECT_NEAR(std::sqrt(power / kCount) / sigma, 1, 0.04) << entry.name << " " << sigma;
      EXPECT_LT(most / sigma, 5) << entry.name;  // no outliers: 127·31 over the rms of IQ4_XS is the worst, 3.3
      EXPECT_GT(most / sigma, 1.5) << entry.name;
    }
  }
}

// Q8_0 has no level -128.
TEST(QuantRandom, OnlyLevelsOfTheFormat) {
  const std::vector<uint8_t> bytes = draw(DType::Q8_0, 1, 5, 1 << 16);
  for (size_t i = 0; i < bytes.size(); ++i) ASSERT_TRUE(i % 34 < 2 || bytes[i] != 0x80) << i;
}

TEST(QuantRandom, PiecesAreTheWhole) {
  for (const DTypeInfo& entry : all_dtypes()) {
    if (!has_encoder(entry.type)) continue;
    constexpr uint64_t kBlocks = 40;
    const std::vector<uint8_t> whole = draw(entry.type, 0.3, 7, kBlocks * entry.block_elements);
    const RandomBlocks source(entry.type, 0.3, 7);
    std::vector<uint8_t> pieces(whole.size());
    for (uint64_t first : {33, 0, 20}) {  // out of order
      const uint64_t count = first == 0 ? 20 : first == 20 ? 13 : 7;
      source.draw(first, count, pieces.data() + first * entry.block_bytes);
    }
    EXPECT_EQ(pieces, whole) << entry.name;
    EXPECT_NE(draw(entry.type, 0.3, 8, kBlocks * entry.block_elements), whole) << entry.name;
  }
}

TEST(QuantRandom, RefusesTypesWithoutEncoder) { EXPECT_THROW(RandomBlocks(DType::IQ1_S, 1, 1), Error); }

}  // namespace
}  // namespace strata::gguf
