#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>

#include "base/error.h"

namespace strata {
namespace {

TEST(DType, NamesAndIdsLeadBackToTheType) {
  std::set<std::string_view> names;
  for (const DTypeInfo& entry : all_dtypes()) {
    EXPECT_EQ(dtype_from_id(static_cast<uint32_t>(entry.type)), entry.type) << entry.name;
    EXPECT_EQ(dtype_from_name(entry.name), entry.type);
    std::string lower(entry.name);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    EXPECT_EQ(dtype_from_name(lower), entry.type);
    EXPECT_EQ(to_string(entry.type), entry.name);
    names.insert(entry.name);
  }
  EXPECT_EQ(names.size(), all_dtypes().size);
}

TEST(DType, IdsInIncreasingOrder) {
  const DTypeInfo* previous = nullptr;
  for (const DTypeInfo& entry : all_dtypes()) {
    if (previous != nullptr) {
      EXPECT_LT(previous->type, entry.type);
    }
    previous = &entry;
  }
}

TEST(DType, UnknownAndRetiredIds) {
  for (const uint32_t id : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 1000u, 0xffffffffu}) {
    EXPECT_EQ(dtype_from_id(id), std::nullopt) << id;
    EXPECT_THROW(info(static_cast<DType>(id)), Error) << id;
  }
  for (const char* name : {"", "Q4", "Q4_KK", "F321", "Q9_9"}) EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
}

// Bits per weight follow from each format's block: a figure that several peers publish.
TEST(DType, BitsPerWeight) {
  const auto bits = [](DType type) { return 8.0 * info(type).block_bytes / info(type).block_elements; };
  EXPECT_EQ(bits(DType::F32), 32);
  EXPECT_EQ(bits(DType::BF16), 16);
  EXPECT_EQ(bits(DType::Q8_0), 8.5);
  EXPECT_EQ(bits(DType::Q4_0), 4.5);
  EXPECT_EQ(bits(DType::Q4_1), 5);
  EXPECT_EQ(bits(DType::Q5_0), 5.5);
  EXPECT_EQ(bits(DType::Q2_K), 2.625);
  EXPECT_EQ(bits(DType::Q3_K), 3.4375);
  EXPECT_EQ(bits(DType::Q4_K), 4.5);
  EXPECT_EQ(bits(DType::Q5_K), 5.5);
  EXPECT_EQ(bits(DType::Q6_K), 6.5625);
  EXPECT_EQ(bits(DType::IQ1_S), 1.5625);
  EXPECT_EQ(bits(DType::IQ2_XXS), 2.0625);
  EXPECT_EQ(bits(DType::IQ4_NL), 4.5);
  EXPECT_EQ(bits(DType::IQ4_XS), 4.25);
  EXPECT_EQ(bits(DType::TQ1_0), 1.6875);
  EXPECT_EQ(bits(DType::MXFP4), 4.25);
  EXPECT_EQ(bits(DType::NVFP4), 4.5);
}

TEST(DType, BytesOfWholeBlocks) {
  EXPECT_EQ(bytes_of(DType::F32, 0), 0u);
  EXPECT_EQ(bytes_of(DType::F32, 3), 12u);
  EXPECT_EQ(bytes_of(DType::Q8_0, 64), 68u);
  EXPECT_EQ(bytes_of(DType::Q4_K, 256), 144u);
  EXPECT_THROW(bytes_of(DType::Q8_0, 33), Error);
  EXPECT_THROW(bytes_of(DType::Q4_K, 128), Error);
  EXPECT_THROW(bytes_of(DType::F32, -1), Error);
}

}  // namespace
}  // namespace strata
