#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "gguf/iq_grids.h"
#include "gguf/quant.h"
#include "unit/gguf/quant_oracle.h"

namespace strata::gguf {
namespace {

std::vector<DType> quantised_types() {
  std::vector<DType> types;
  for (const DTypeInfo& entry : all_dtypes())
    if (entry.quantised) types.push_back(entry.type);
  return types;
}

std::vector<uint8_t> random_bytes(size_t count, std::mt19937& rng) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  return bytes;
}

void make_scales_finite(DType type, uint8_t* block) {
  for (int o : oracle::f16_fields(type))
    if (type == DType::IQ1_M || (block[o + 1] & 0x7c) == 0x7c) block[o + 1] &= 0xbf;
}

float to_f32(double exact) {
  if (std::abs(exact) >= 0x1.ffffffp127) return exact > 0 ? HUGE_VALF : -HUGE_VALF;
  return static_cast<float>(exact);
}

bool same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

class QuantDecode : public testing::TestWithParam<DType> {};

// Bound: none is needed, the bits must be equal. An f16 has 11 significant bits; the integer factors of every format
// add at most 13 (Q6_K: 7 of the scale, 5 of the level; IQ4_XS: 5 and 7; Q5_K: 6 and 5), so that every product is exact
// in f32 and in double. Only the sum of Q4_1, Q5_1, Q2_K, Q4_K and Q5_K rounds, once; in double it spans at most 16 +
// 11 + 24 = 51 bits and is exact. MXFP4 overflows to infinity where the exact value does.
TEST_P(QuantDecode, EqualsTheTableOnRandomBlocks) {
  const DType type = GetParam();
  const DTypeInfo& t = info(type);
  std::mt19937 rng(static_cast<uint32_t>(type) + 1);
  const int blocks = 60;
  for (const bool finite : {false, true}) {
    std::vector<uint8_t> bytes = random_bytes(size_t{t.block_bytes} * blocks, rng);
    if (finite)
      for (int b = 0; b < blocks; ++b) make_scales_finite(type, bytes.data() + b * t.block_bytes);
    std::vector<float> out(size_t{t.block_elements} * blocks);
    decoder(type)(bytes.data(), out.data(), static_cast<int64_t>(out.size()));
    for (size_t e = 0; e < out.size(); ++e) {
      const size_t b = e / t.block_elements;
      const int i = static_cast<int>(e % t.block_elements);
      const float expected = to_f32(oracle::value(type, bytes.data() + b * t.block_bytes, i));
      ASSERT_TRUE(same(out[e], expected))
          << t.name << " block " << b << " element " << i << ": " << out[e] << ", table says " << expected;
      if (finite && type != DType::MXFP4) {
        ASSERT_TRUE(std::isfinite(out[e])) << t.name;
      }
    }
  }
}

// Every byte of the block takes every value.
TEST_P(QuantDecode, EqualsTheTableForEveryByteValue) {
  const DType type = GetParam();
  const DTypeInfo& t = info(type);
  std::vector<uint8_t> bytes(t.block_bytes);
  std::vector<float> out(t.block_elements);
  const DecodeRow decode = decoder(type);
  for (int step = 0; step < 256; ++step) {
    for (size_t o = 0; o < bytes.size(); ++o) bytes[o] = static_cast<uint8_t>(step + 37 * static_cast<int>(o));
    decode(bytes.data(), out.data(), t.block_elements);
    for (int i = 0; i < static_cast<int>(t.block_elements); ++i) {
      const float expected = to_f32(oracle::value(type, bytes.data(), i));
      ASSERT_TRUE(same(out[i], expected)) << t.name << " step " << step << " element " << i;
    }
  }
}

TEST_P(QuantDecode, NeedsNoAlignmentAndWritesNothingElse) {
  const DType type = GetParam();
  const DTypeInfo& t = info(type);
  std::mt19937 rng(5);
  const std::vector<uint8_t> bytes = random_bytes(1 + 3 * size_t{t.block_bytes}, rng);
  const size_t elements = 3 * size_t{t.block_elements};
  std::vector<float> aligned(elements), shifted(elements + 2, -7.5f);
  std::vector<uint8_t> copy(bytes.begin() + 1, bytes.end());
  decoder(type)(copy.data(), aligned.data(), static_cast<int64_t>(elements));
  decoder(type)(bytes.data() + 1, shifted.data() + 1, static_cast<int64_t>(elements));
  EXPECT_EQ(shifted.front(), -7.5f);
  EXPECT_EQ(shifted.back(), -7.5f);
  for (size_t e = 0; e < elements; ++e) ASSERT_TRUE(same(aligned[e], shifted[e + 1])) << e;
  decoder(type)(bytes.data(), shifted.data() + 1, 0);
  for (size_t e = 0; e < elements; ++e) ASSERT_TRUE(same(aligned[e], shifted[e + 1])) << e;
}

INSTANTIATE_TEST_SUITE_P(Types, QuantDecode, testing::ValuesIn(quantised_types()),
                         [](const auto& p) { return std::string(to_string(p.param)); });

TEST(QuantDecodePlain, EveryTypeHasADecoder) {
  EXPECT_EQ(quantised_types().size(), 25u);
  for (const DTypeInfo& entry : all_dtypes()) EXPECT_NE(decoder(entry.type), nullptr) << entry.name;
  EXPECT_THROW(decoder(static_cast<DType>(4)), Error);
  EXPECT_THROW(decoder(static_cast<DType>(9)), Error);
}

template <typename T>
void check_plain(DType type, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(1 + values.size() * sizeof(T));  // one byte off: rows need no alignment
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  std::vector<float> out(values.size());
  decoder(type)(bytes.data() + 1, out.data(), static_cast<int64_t>(out.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      EXPECT_TRUE(same(out[i], std::isfinite(values[i]) ? to_f32(values[i]) : static_cast<float>(values[i])));
    } else {
      EXPECT_EQ(out[i], static_cast<float>(values[i]));
    }
  }
}

TEST(QuantDecodePlain, ConvertsToNearest) {
  check_plain<int8_t>(DType::I8, {-128, -1, 0, 1, 127});
  check_plain<int16_t>(DType::I16, {-32768, -1, 0, 32767});
  check_plain<int32_t>(DType::I32, {INT32_MIN, -16777217, 16777217, 16777219, INT32_MAX});
  check_plain<int64_t>(DType::I64, {INT64_MIN, -1, 0, (int64_t{1} << 53) + 1, INT64_MAX});
  check_plain<double>(DType::F64, {0.1, -0.0, 1e-46, 1e-320, 1e300, -1e300, 3.5e38, HUGE_VAL, std::nan("")});
  check_plain<float>(DType::F32, {0.1f, -0.f, 1e-45f, -HUGE_VALF, std::nanf("")});
}

template <size_t kRows, size_t kColumns>
void check_grid(const Grid<kRows, kColumns>& table, const std::string& name) {
  const std::vector<oracle::Row>& rows = oracle::grid(name);
  ASSERT_EQ(rows.size(), kRows) << name;
  for (size_t r = 0; r < kRows; ++r) {
    ASSERT_EQ(rows[r].size(), kColumns) << name << " row " << r;
    for (size_t j = 0; j < kColumns; ++j) ASSERT_EQ(table[r][j], rows[r][j]) << name << " row " << r << " entry " << j;
  }
}

TEST(QuantDecodeGrids, GeneratedTablesEqualTheDataFile) {
  check_grid(kIq2xxsGrid, "iq2xxs");
  check_grid(kIq2xsGrid, "iq2xs");
  check_grid(kIq2sGrid, "iq2s");
  check_grid(kIq3xxsGrid, "iq3xxs");
  check_grid(kIq3sGrid, "iq3s");
  check_grid(kIq1sGrid, "iq1s");
}

}  // namespace
}  // namespace strata::gguf
