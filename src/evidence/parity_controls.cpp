#include "evidence/parity_controls.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/half.h"
#include "evidence/parity_case.h"
#include "evidence/parity_check.h"

namespace strata {
namespace {

std::vector<char*> rows_of_tensor(const Tensor& tensor) {
  std::vector<char*> rows;
  for_each_row(tensor, [&](void* row) { rows.push_back(static_cast<char*>(row)); });
  return rows;
}

std::vector<char*> elements_of(const Tensor& tensor) {
  std::vector<char*> elements;
  const auto width = static_cast<size_t>(tensor.extent(tensor.rank - 1));
  for (char* row : rows_of_tensor(tensor))
    for (size_t i = 0; i < width; ++i) elements.push_back(row + i * element_bytes(tensor));
  return elements;
}

uint32_t nearest_word(DType dtype, float value) {
  if (dtype == DType::BF16) return f32_to_bf16(value);
  return dtype == DType::F16 ? f32_to_f16(value) : std::bit_cast<uint32_t>(value);
}

// The next larger number: words of floating-point types are ordered by magnitude, with the sign in the top bit.
uint32_t next_word(const Tensor& tensor, uint32_t word) {
  const uint32_t sign = element_bytes(tensor) == 2 ? 0x8000u : 0x80000000u;
  if ((word & ~sign) == 0) return 1;
  return (word & sign) != 0 ? word - 1 : word + 1;
}

// The value at least `distance` above, never equal to the old one.
uint32_t moved(const Tensor& tensor, uint32_t word, double distance) {
  if (tensor.dtype == DType::I32) return word + 1;
  const double value = value_of(tensor.dtype, word);
  uint32_t next = nearest_word(tensor.dtype, static_cast<float>(value + distance));
  while (value_of(tensor.dtype, next) - value < distance || value_of(tensor.dtype, next) == value)
    next = next_word(tensor, next);
  return next;
}

bool drop_lane(const Tensor& tensor) {
  const int64_t width = tensor.extent(tensor.rank - 1), lane = std::min<int64_t>(5, width - 1);
  const size_t bytes = element_bytes(tensor);
  bool changed = false;
  for (char* row : rows_of_tensor(tensor))
    for (int64_t i = lane; i < width; i += 16) {
      char* element = row + static_cast<size_t>(i) * bytes;
      changed = changed || value_of(tensor.dtype, load_word(element, bytes)) != 0;
      store_word(element, bytes, 0);
    }
  return changed;
}

bool swap_rows(const Tensor& tensor) {
  const std::vector<char*> rows = rows_of_tensor(tensor);
  const size_t size = static_cast<size_t>(tensor.extent(tensor.rank - 1)) * element_bytes(tensor);
  if (rows.size() < 2 || std::equal(rows[0], rows[0] + size, rows[1])) return false;
  std::swap_ranges(rows[0], rows[0] + size, rows[1]);
  return true;
}

bool repeat_slice(const Tensor& tensor) {
  const int64_t width = tensor.extent(tensor.rank - 1), slice = std::min<int64_t>(16, width / 2);
  if (slice < 1) return false;
  const size_t size = static_cast<size_t>(slice) * element_bytes(tensor);
  bool changed = false;
  for (char* row : rows_of_tensor(tensor)) {
    changed = changed || !std::equal(row, row + size, row + size);
    std::copy(row, row + size, row + size);
  }
  return changed;
}

bool is_float(DType dtype) { return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16; }

}  // namespace

std::optional<Perturbation> perturb(ParityCase& test, size_t index, Random& random) {
  const ParityOutput& output = test.outputs[index];
  const std::vector<char*> elements = elements_of(output.tensor);
  const size_t bytes = element_bytes(output.tensor);
  std::vector<size_t> candidates;
  for (size_t i = 0; i < elements.size(); ++i)
    if ((output.written.empty() || output.written[i] != 0) && std::isfinite(output.expected[i]) &&
        std::isfinite(output.bound[i]))
      candidates.push_back(i);
  if (candidates.empty()) return std::nullopt;
  const size_t chosen = candidates[static_cast<size_t>(random.below(static_cast<int64_t>(candidates.size())))];
  char* element = elements[chosen];
  const uint32_t old = load_word(element, bytes);
  store_word(element, bytes, moved(output.tensor, old, 2.5 * output.bound[chosen]));
  return Perturbation{[element, bytes, old] { store_word(element, bytes, old); }};
}

std::vector<Mutant> mutants_of(ParityCase& test) {
  std::vector<Mutant> mutants;
  for (const ParityInput& input : test.inputs) {
    if (!is_float(input.tensor.dtype) || input.tensor.elements() == 0) continue;
    const Tensor tensor = input.tensor;
    mutants.push_back({input.name + ": a lane dropped", [tensor] { return drop_lane(tensor); }});
    if (tensor.rank > 1) mutants.push_back({input.name + ": two rows swapped", [tensor] { return swap_rows(tensor); }});
    mutants.push_back({input.name + ": a slice repeated", [tensor] { return repeat_slice(tensor); }});
  }
  return mutants;
}

}  // namespace strata
