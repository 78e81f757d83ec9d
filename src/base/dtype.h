// Element types of tensors. The numeric values are the type ids of GGUF files (gguf.md, section 6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strata {

enum class DType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
  Q2_0 = 42,
};

struct DTypeInfo {
  DType type;
  std::string_view name;    // as users write it: "Q4_K"
  uint32_t block_elements;  // elements of one block, 1 for plain types
  uint32_t block_bytes;
  bool quantised;
};

// Every type that a file may hold, by increasing id.
struct DTypeList {
  const DTypeInfo* data;
  size_t size;
  const DTypeInfo* begin() const { return data; }
  const DTypeInfo* end() const { return data + size; }
};
DTypeList all_dtypes();

const DTypeInfo& info(DType type);
std::optional<DType> dtype_from_id(uint32_t file_id);         // empty for unknown and retired ids
std::optional<DType> dtype_from_name(std::string_view name);  // case-insensitive
inline std::string_view to_string(DType type) { return info(type).name; }

// Bytes of `elements` contiguous elements; elements must be a multiple of the block (Error otherwise).
size_t bytes_of(DType type, int64_t elements);

}  // namespace strata
