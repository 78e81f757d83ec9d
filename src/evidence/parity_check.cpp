#include "evidence/parity_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "evidence/parity_case.h"

namespace strata {

size_t element_bytes(const Tensor& tensor) { return info(tensor.dtype).block_bytes == 2 ? 2 : 4; }

uint32_t load_word(const void* element, size_t bytes) {
  uint16_t narrow = 0;
  uint32_t word = 0;
  if (bytes == 4)
    std::memcpy(&word, element, sizeof word);
  else
    std::memcpy(&narrow, element, sizeof narrow);
  return word | narrow;
}

void store_word(void* element, size_t bytes, uint32_t word) {
  const auto narrow = static_cast<uint16_t>(word);
  std::memcpy(element, bytes == 4 ? static_cast<const void*>(&word) : &narrow, bytes);
}

// The upper half of the 32-bit canary is a NaN of both 16-bit types.
uint32_t canary_of(DType dtype) { return info(dtype).block_bytes == 2 ? kCanary >> 16 : kCanary; }

double value_of(DType dtype, uint32_t word) {
  switch (dtype) {
    case DType::I32: return static_cast<int32_t>(word);
    case DType::BF16: return static_cast<double>(bf16_to_f32(static_cast<uint16_t>(word)));
    case DType::F16: return static_cast<double>(f16_to_f32(static_cast<uint16_t>(word)));
    default: return static_cast<double>(std::bit_cast<float>(word));
  }
}

namespace {

void assign_words(const Tensor& tensor, const std::vector<uint32_t>& words) {
  const size_t bytes = element_bytes(tensor);
  const auto width = static_cast<size_t>(tensor.extent(tensor.rank - 1));
  size_t done = 0;
  for_each_row(tensor, [&](void* row) {
    for (size_t i = 0; i < width; ++i) store_word(static_cast<char*>(row) + i * bytes, bytes, words[done++]);
  });
}

bool is_restored(const ParityCase& test, const Tensor& tensor) {
  return std::any_of(test.restored.begin(), test.restored.end(),
                     [&](const Tensor& other) { return other.data == tensor.data; });
}

// Largest share of its bound that one element uses; infinity when it is outside.
double share(double value, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(value) ? 0 : INFINITY;
  if (std::isinf(expected)) return value == expected ? 0 : INFINITY;
  const double error = std::fabs(value - expected);
  if (error == 0) return 0;
  return error <= bound ? error / bound : INFINITY;  // NaN is not below the bound
}

std::string describe_element(const ParityOutput& output, size_t index, const std::string& what) {
  return output.name + "[" + std::to_string(index) + "] " + what;
}

void check_output(const ParityOutput& output, CheckResult& result) {
  const std::vector<uint32_t> words = words_of(output.tensor);
  const DType dtype = output.tensor.dtype;
  const uint32_t canary = canary_of(dtype);
  if (words.size() != output.expected.size() || words.size() != output.bound.size()) {
    result.failure = output.name + ": the case gives " + std::to_string(output.expected.size()) + " values for " +
                     std::to_string(words.size()) + " elements";
    return;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const bool written = output.written.empty() || output.written[i] != 0;
    if (!written) {
      if (words[i] != canary && result.failure.empty())
        result.failure = describe_element(output, i, "was written but must not be");
      continue;
    }
    ++result.compared;
    const double used = share(value_of(dtype, words[i]), output.expected[i], output.bound[i]);
    if (std::isfinite(used)) {
      result.utilisation = std::max(result.utilisation, used);
    } else if (result.failure.empty()) {
      const std::string value =
          words[i] == canary ? "was not written" : "is " + std::to_string(value_of(dtype, words[i]));
      result.failure = describe_element(
          output, i,
          value + ", expected " + std::to_string(output.expected[i]) + " +- " + std::to_string(output.bound[i]));
    }
  }
}

}  // namespace

std::vector<uint32_t> words_of(const Tensor& tensor) {
  std::vector<uint32_t> words;
  words.reserve(static_cast<size_t>(tensor.elements()));
  const size_t bytes = element_bytes(tensor);
  const auto width = static_cast<size_t>(tensor.rank > 0 ? tensor.extent(tensor.rank - 1) : 0);
  for_each_row(tensor, [&](void* row) {
    for (size_t i = 0; i < width; ++i) words.push_back(load_word(static_cast<char*>(row) + i * bytes, bytes));
  });
  return words;
}

CaseSnapshot::CaseSnapshot(const ParityCase& test) {
  for (const ParityInput& input : test.inputs) saved_.push_back({input.tensor, words_of(input.tensor)});
  for (const Tensor& tensor : test.restored) saved_.push_back({tensor, words_of(tensor)});
}

void CaseSnapshot::restore() const {
  for (const Saved& saved : saved_) assign_words(saved.tensor, saved.words);
}

std::string CaseSnapshot::changed_input(const ParityCase& test) const {
  for (size_t i = 0; i < test.inputs.size(); ++i)
    if (!is_restored(test, saved_[i].tensor) && words_of(saved_[i].tensor) != saved_[i].words)
      return test.inputs[i].name;
  return {};
}

void clear_outputs(const ParityCase& test) {
  for (const ParityOutput& output : test.outputs)
    if (!is_restored(test, output.tensor))
      assign_words(output.tensor, std::vector<uint32_t>(static_cast<size_t>(output.tensor.elements()),
                                                        canary_of(output.tensor.dtype)));
}

CheckResult check_outputs(const ParityCase& test) {
  CheckResult result;
  for (const ParityOutput& output : test.outputs) check_output(output, result);
  if (result.failure.empty() && test.guards && !test.guards())
    result.failure = "memory outside the tensors was written";
  return result;
}

std::vector<uint32_t> output_bits(const ParityCase& test) {
  std::vector<uint32_t> bits;
  for (const ParityOutput& output : test.outputs) {
    const std::vector<uint32_t> words = words_of(output.tensor);
    bits.insert(bits.end(), words.begin(), words.end());
  }
  return bits;
}

}  // namespace strata
