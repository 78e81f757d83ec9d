// Helpers of the operator tests: tensors of a test's own between canaries (evidence/parity_case.h), comparison of bits
// and against bounds, refusals.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/tensor.h"
#include "device/device.h"
#include "evidence/parity_case.h"
#include "evidence/parity_check.h"
#include "gguf/quant.h"
#include "ops/rounding.h"
#include "ops/weights_case.h"

namespace strata::test {

inline constexpr double kU = kUnitRoundoff;
inline const std::vector<int> kThreadCounts{1, 2, 3};

// A queue with its own silent log.
struct TestQueue {
  explicit TestQueue(int threads = 1) : queue(threads, log) {}
  operator Queue&() { return queue; }
  Log log{LogLevel::Error};
  Queue queue;
};

// A tensor that owns its memory, canaries all over.
class Owned {
 public:
  Owned(DType dtype, const std::vector<int64_t>& extents, const std::vector<int64_t>& pads = {})
      : tensor_(memory_.tensor(dtype, extents, pads)) {}

  const Tensor& t() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }
  float& f(std::initializer_list<int64_t> index) const { return *static_cast<float*>(at(index)); }
  int32_t& i(std::initializer_list<int64_t> index) const { return *static_cast<int32_t*>(at(index)); }
  bool gaps_intact() const { return memory_.guards_intact(); }

 private:
  void* at(std::initializer_list<int64_t> index) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) offset += index.begin()[axis] * tensor_.strides[axis];
    return static_cast<char*>(tensor_.data) + offset;
  }

  CaseMemory memory_;
  Tensor tensor_;
};

// The elements of a plain 4-byte tensor in row-major order, strides resolved.
template <class T = float>
std::vector<T> packed(const Tensor& tensor) {
  static_assert(sizeof(T) == 4);
  std::vector<T> values;
  const auto width = static_cast<size_t>(tensor.extent(tensor.rank - 1));
  for_each_row(tensor, [&](void* row) {
    values.resize(values.size() + width);
    std::memcpy(values.data() + values.size() - width, row, width * sizeof(T));
  });
  return values;
}

// Writes values of a row-major list into a plain 4-byte tensor, strides resolved.
template <class T>
void assign(const Tensor& tensor, const std::vector<T>& values) {
  static_assert(sizeof(T) == 4);
  const auto width = static_cast<size_t>(tensor.extent(tensor.rank - 1));
  size_t done = 0;
  for_each_row(tensor, [&](void* row) {
    std::memcpy(row, values.data() + done, width * sizeof(T));
    done += width;
  });
}

inline void fill(const Tensor& tensor, Random& random, float low = -1, float high = 1) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  for (float& value : values) value = random.uniform(low, high);
  assign(tensor, values);
}

inline Owned random_f32(const std::vector<int64_t>& extents, Random& random, float low = -1, float high = 1,
                        const std::vector<int64_t>& pads = {}) {
  Owned owned(DType::F32, extents, pads);
  fill(owned, random, low, high);
  return owned;
}

inline Owned owned_i32(const std::vector<int32_t>& values) {
  Owned owned(DType::I32, {static_cast<int64_t>(values.size())});
  assign(owned.t(), values);
  return owned;
}

// The same shape, strides and elements in memory of its own.
inline Owned clone(const Tensor& tensor) {
  std::vector<int64_t> extents(tensor.extents.begin(), tensor.extents.begin() + tensor.rank);
  Owned copy(tensor.dtype, extents);
  assign(copy.t(), packed<uint32_t>(tensor));
  return copy;
}

inline Owned random_weight(DType dtype, const std::vector<int64_t>& extents, Random& random) {
  Owned weight(dtype, extents);
  fill_weights(weight, random);
  return weight;
}

// Rows of any dtype as the f32 values they decode to, row-major.
inline std::vector<float> decoded(const Tensor& weight) {
  std::vector<float> values(static_cast<size_t>(weight.elements()));
  const int64_t width = weight.extent(weight.rank - 1);
  size_t done = 0;
  for_each_row(weight, [&](void* row) {
    gguf::decoder(weight.dtype)(row, values.data() + done, width);
    done += static_cast<size_t>(width);
  });
  return values;
}

// Same elements bit for bit (4-byte types), whatever the strides.
inline testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  const auto x = packed<uint32_t>(a), y = packed<uint32_t>(b);
  if (x.size() != y.size()) return testing::AssertionFailure() << describe(a) << " against " << describe(b);
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i])
      return testing::AssertionFailure() << "element " << i << ": bits " << std::hex << x[i] << " and " << y[i];
  return testing::AssertionSuccess();
}

inline bool all_canary(const Tensor& tensor) {
  for (uint32_t bits : packed<uint32_t>(tensor))
    if (bits != kCanary) return false;
  return true;
}

// As parity compares: |y - expected| <= bound for every element, NaN where and only where NaN is expected.
inline testing::AssertionResult within(const Tensor& y, const std::vector<double>& expected,
                                       const std::vector<double>& bound) {
  ParityCase test;
  test.outputs.push_back({"y", y, expected, bound, {}});
  const std::string failure = check_outputs(test).failure;
  return failure.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << failure;
}

// call() throws Error{Argument} that names the operator and the argument.
inline testing::AssertionResult argument_refused(const std::function<void()>& call, const std::string& op,
                                                 const std::string& argument) {
  try {
    call();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Argument) return testing::AssertionFailure() << "kind " << to_string(error.kind());
    const std::string text = error.where() + ": " + error.what();
    if (text.find(op) != std::string::npos && error.message().find(argument) != std::string::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << "message does not name " << op << " and " << argument << ": " << text;
  }
  return testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace strata::test
