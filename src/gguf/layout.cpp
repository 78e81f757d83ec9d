#include "gguf/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"

namespace strata::gguf {

std::optional<ValueType> value_type_from_id(uint32_t id) {
  if (id > static_cast<uint32_t>(ValueType::F64)) return std::nullopt;  // the ids 0..12 are all in use
  return static_cast<ValueType>(id);
}

ValueKind kind_of(ValueType type) {
  switch (type) {
    case ValueType::U8:
    case ValueType::U16:
    case ValueType::U32:
    case ValueType::U64:
    case ValueType::Bool: return ValueKind::Unsigned;
    case ValueType::I8:
    case ValueType::I16:
    case ValueType::I32:
    case ValueType::I64: return ValueKind::Signed;
    case ValueType::F32:
    case ValueType::F64: return ValueKind::Real;
    case ValueType::String: return ValueKind::String;
    case ValueType::Array: break;
  }
  return ValueKind::Array;
}

bool align_up(uint64_t value, uint64_t alignment, uint64_t& out) {
  if (!checked_add(value, alignment - 1, out)) return false;
  out &= ~(alignment - 1);
  return true;
}

std::string alignment_problem(uint64_t alignment) {
  if (std::has_single_bit(alignment) && alignment >= kMinAlignment && alignment <= kMaxAlignment) return {};
  return fmt::format("alignment {}, expected a power of two from {} to {}", alignment, kMinAlignment, kMaxAlignment);
}

std::string name_problem(std::string_view name, size_t max_bytes) {
  if (name.empty()) return "empty name";
  if (name.size() > max_bytes) return fmt::format("name of {} bytes, expected at most {}", name.size(), max_bytes);
  const bool control = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  return control ? "name with control characters" : "";
}

std::string shape_problem(DType type, std::span<const uint64_t> ne, uint64_t& bytes) {
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  const DTypeInfo& t = info(type);
  if (ne.empty() || ne.size() > kMaxDims) return fmt::format("{} dims, expected 1 to {}", ne.size(), kMaxDims);
  uint64_t elements = 1;
  for (size_t i = 0; i < ne.size(); ++i) {
    if (ne[i] == 0) return fmt::format("dim {} is zero, expected at least 1", i);
    if (!checked_mul(elements, ne[i], elements) || elements > kLargest)
      return fmt::format("too many elements: the product of the dims [{}] is not below 2^63", fmt::join(ne, ", "));
  }
  if (ne[0] % t.block_elements != 0)
    return fmt::format("dim 0 is {}, expected a multiple of the {} elements of a {} block", ne[0], t.block_elements,
                       t.name);
  if (!checked_mul(elements / t.block_elements, t.block_bytes, bytes) || bytes > kLargest)
    return fmt::format("too large: the bytes of dims [{}] as {} are not below 2^63", fmt::join(ne, ", "), t.name);
  return {};
}

}  // namespace strata::gguf
