#include "ops/weight_dot/grid.h"

#include <array>

#include "gguf/iq_grids.h"

namespace strata {
namespace {

unsigned code_of(DType type, int magnitude) {
  if (type == DType::IQ3_S) return static_cast<unsigned>(magnitude);
  if (type == DType::IQ3_XXS) return static_cast<unsigned>(magnitude / 8);  // 4, 12, ..., 52, 62
  return magnitude < 16 ? 0 : (magnitude < 32 ? 1 : 2);                     // 8, 25, 43
}

template <size_t rows, size_t columns>
std::array<uint16_t, rows> packed(DType type, const gguf::Grid<rows, columns>& grid) {
  constexpr size_t kBits = 16 / columns;
  std::array<uint16_t, rows> words{};
  for (size_t row = 0; row < rows; ++row)
    for (size_t j = 0; j < columns; ++j)
      words[row] =
          static_cast<uint16_t>(words[row] | code_of(type, grid[row][j]) << kBits * (j % 2 * (columns / 2) + j / 2));
  return words;
}

template <size_t rows, size_t columns>
std::array<uint8_t, 2 * rows> planes(DType type, const gguf::Grid<rows, columns>& grid) {
  constexpr size_t kEach = columns / 2, kBits = 8 / kEach;
  std::array<uint8_t, 2 * rows> bytes{};
  for (size_t row = 0; row < rows; ++row)
    for (size_t j = 0; j < columns; ++j) {
      const unsigned code = type == DType::IQ3_S ? code_of(type, grid[row][j]) / 2 : code_of(type, grid[row][j]);
      uint8_t& byte = bytes[j / kEach * rows + row];
      byte = static_cast<uint8_t>(byte | (columns == 4 ? code + 8 : code) << kBits * (j % kEach));
    }
  return bytes;
}

// Make::of<type, grid>() of each type; null: it has no lattice.
template <class Make>
const void* table_of(DType type) {
  switch (type) {
    case DType::IQ2_XXS: return Make::template of<DType::IQ2_XXS, gguf::kIq2xxsGrid>();
    case DType::IQ2_XS: return Make::template of<DType::IQ2_XS, gguf::kIq2xsGrid>();
    case DType::IQ2_S: return Make::template of<DType::IQ2_S, gguf::kIq2sGrid>();
    case DType::IQ3_XXS: return Make::template of<DType::IQ3_XXS, gguf::kIq3xxsGrid>();
    case DType::IQ3_S: return Make::template of<DType::IQ3_S, gguf::kIq3sGrid>();
    default: return nullptr;
  }
}

struct Rows {
  template <DType, const auto& grid>
  static const void* of() {
    return grid.data();
  }
};
struct Words {
  template <DType type, const auto& grid>
  static const void* of() {
    alignas(64) static const auto words = packed(type, grid);
    return words.data();
  }
};
struct Planes {
  template <DType type, const auto& grid>
  static const void* of() {
    alignas(64) static const auto bytes = planes(type, grid);
    return bytes.data();
  }
};

}  // namespace

const void* lattice_grid(DType type) { return table_of<Rows>(type); }
const void* packed_lattice_grid(DType type) { return table_of<Words>(type); }
const void* lattice_planes(DType type) { return table_of<Planes>(type); }

}  // namespace strata
