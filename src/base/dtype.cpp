#include "base/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/error.h"

namespace strata {
namespace {

constexpr std::array<DTypeInfo, 33> kTypes{{
    {DType::F32, "F32", 1, 4, false},
    {DType::F16, "F16", 1, 2, false},
    {DType::Q4_0, "Q4_0", 32, 18, true},
    {DType::Q4_1, "Q4_1", 32, 20, true},
    {DType::Q5_0, "Q5_0", 32, 22, true},
    {DType::Q5_1, "Q5_1", 32, 24, true},
    {DType::Q8_0, "Q8_0", 32, 34, true},
    {DType::Q2_K, "Q2_K", 256, 84, true},
    {DType::Q3_K, "Q3_K", 256, 110, true},
    {DType::Q4_K, "Q4_K", 256, 144, true},
    {DType::Q5_K, "Q5_K", 256, 176, true},
    {DType::Q6_K, "Q6_K", 256, 210, true},
    {DType::IQ2_XXS, "IQ2_XXS", 256, 66, true},
    {DType::IQ2_XS, "IQ2_XS", 256, 74, true},
    {DType::IQ3_XXS, "IQ3_XXS", 256, 98, true},
    {DType::IQ1_S, "IQ1_S", 256, 50, true},
    {DType::IQ4_NL, "IQ4_NL", 32, 18, true},
    {DType::IQ3_S, "IQ3_S", 256, 110, true},
    {DType::IQ2_S, "IQ2_S", 256, 82, true},
    {DType::IQ4_XS, "IQ4_XS", 256, 136, true},
    {DType::I8, "I8", 1, 1, false},
    {DType::I16, "I16", 1, 2, false},
    {DType::I32, "I32", 1, 4, false},
    {DType::I64, "I64", 1, 8, false},
    {DType::F64, "F64", 1, 8, false},
    {DType::IQ1_M, "IQ1_M", 256, 56, true},
    {DType::BF16, "BF16", 1, 2, false},
    {DType::TQ1_0, "TQ1_0", 256, 54, true},
    {DType::TQ2_0, "TQ2_0", 256, 66, true},
    {DType::MXFP4, "MXFP4", 32, 17, true},
    {DType::NVFP4, "NVFP4", 64, 36, true},
    {DType::Q1_0, "Q1_0", 128, 18, true},
    {DType::Q2_0, "Q2_0", 64, 18, true},
}};

}  // namespace

DTypeList all_dtypes() { return {kTypes.data(), kTypes.size()}; }

const DTypeInfo& info(DType type) {
  for (const DTypeInfo& entry : kTypes)
    if (entry.type == type) return entry;
  throw Error(ErrorKind::Argument, "unknown dtype id " + std::to_string(static_cast<uint32_t>(type)));
}

std::optional<DType> dtype_from_id(uint32_t file_id) {
  for (const DTypeInfo& entry : kTypes)
    if (static_cast<uint32_t>(entry.type) == file_id) return entry.type;
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  auto same = [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == std::toupper(static_cast<unsigned char>(b));
  };
  for (const DTypeInfo& entry : kTypes)
    if (std::equal(name.begin(), name.end(), entry.name.begin(), entry.name.end(), same)) return entry.type;
  return std::nullopt;
}

size_t bytes_of(DType type, int64_t elements) {
  const DTypeInfo& t = info(type);
  if (elements < 0 || elements % t.block_elements != 0)
    throw Error(ErrorKind::Argument, std::to_string(elements) + " elements are not whole blocks of " +
                                         std::string(t.name) + " (" + std::to_string(t.block_elements) + ")");
  return static_cast<size_t>(elements / t.block_elements) * t.block_bytes;
}

}  // namespace strata
