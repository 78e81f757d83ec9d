#include "evidence/parity_controls.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "evidence/parity_case.h"

namespace strata {
namespace {

std::vector<uint32_t*> element_pointers(const Tensor& tensor) {
  std::vector<uint32_t*> pointers;
  const int64_t width = tensor.extent(tensor.rank - 1);
  for_each_row(tensor, [&](void* row) {
    for (int64_t i = 0; i < width; ++i) pointers.push_back(static_cast<uint32_t*>(row) + i);
  });
  return pointers;
}

// The f32 value at least `distance` above, never equal to the old one.
uint32_t moved_f32(uint32_t word, double distance) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  float moved = static_cast<float>(static_cast<double>(value) + distance);
  while (static_cast<double>(moved) - static_cast<double>(value) < distance || moved == value)
    moved = std::nextafter(moved, INFINITY);
  std::memcpy(&word, &moved, sizeof word);
  return word;
}

std::vector<float*> rows_of_tensor(const Tensor& tensor) {
  std::vector<float*> rows;
  for_each_row(tensor, [&](void* row) { rows.push_back(static_cast<float*>(row)); });
  return rows;
}

bool drop_lane(const Tensor& tensor) {
  const int64_t width = tensor.extent(tensor.rank - 1), lane = std::min<int64_t>(5, width - 1);
  bool changed = false;
  for (float* row : rows_of_tensor(tensor))
    for (int64_t i = lane; i < width; i += 16) {
      changed = changed || row[i] != 0;
      row[i] = 0;
    }
  return changed;
}

bool swap_rows(const Tensor& tensor) {
  const std::vector<float*> rows = rows_of_tensor(tensor);
  const int64_t width = tensor.extent(tensor.rank - 1);
  if (rows.size() < 2 || std::equal(rows[0], rows[0] + width, rows[1])) return false;
  std::swap_ranges(rows[0], rows[0] + width, rows[1]);
  return true;
}

bool repeat_slice(const Tensor& tensor) {
  const int64_t width = tensor.extent(tensor.rank - 1), slice = std::min<int64_t>(16, width / 2);
  if (slice < 1) return false;
  bool changed = false;
  for (float* row : rows_of_tensor(tensor)) {
    changed = changed || !std::equal(row, row + slice, row + slice);
    std::copy(row, row + slice, row + slice);
  }
  return changed;
}

}  // namespace

std::optional<Perturbation> perturb(ParityCase& test, size_t index, Random& random) {
  const ParityOutput& output = test.outputs[index];
  const std::vector<uint32_t*> elements = element_pointers(output.tensor);
  std::vector<size_t> candidates;
  for (size_t i = 0; i < elements.size(); ++i)
    if ((output.written.empty() || output.written[i] != 0) && std::isfinite(output.expected[i]) &&
        std::isfinite(output.bound[i]))
      candidates.push_back(i);
  if (candidates.empty()) return std::nullopt;
  const size_t chosen = candidates[static_cast<size_t>(random.below(static_cast<int64_t>(candidates.size())))];
  uint32_t* element = elements[chosen];
  const uint32_t old = *element;
  *element = output.tensor.dtype == DType::I32 ? old + 1 : moved_f32(old, 2.5 * output.bound[chosen]);
  return Perturbation{[element, old] { *element = old; }};
}

std::vector<Mutant> mutants_of(ParityCase& test) {
  std::vector<Mutant> mutants;
  for (const ParityInput& input : test.inputs) {
    if (input.tensor.dtype != DType::F32 || input.tensor.elements() == 0) continue;
    const Tensor tensor = input.tensor;
    mutants.push_back({input.name + ": a lane dropped", [tensor] { return drop_lane(tensor); }});
    if (tensor.rank > 1) mutants.push_back({input.name + ": two rows swapped", [tensor] { return swap_rows(tensor); }});
    mutants.push_back({input.name + ": a slice repeated", [tensor] { return repeat_slice(tensor); }});
  }
  return mutants;
}

}  // namespace strata
