// Helpers of the operator tests: owned tensors with canaries, random fill, comparison of bits and against bounds.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/half.h"
#include "base/random.h"
#include "base/tensor.h"
#include "device/device.h"
#include "gguf/quant.h"

namespace strata::test {

inline constexpr double kU = 0x1p-24;            // unit roundoff of f32
inline constexpr double kTiny = 0x1p-149;        // one f32 result below the normal range is off by less than this
inline constexpr uint32_t kCanary = 0x7fdeadc5;  // as f32 a NaN: written over it shows, read it poisons the result
inline const std::vector<int> kThreadCounts{1, 2, 3};

// Relative error of k roundings in a row.
inline double gamma(double k) { return k * kU / (1 - k * kU); }
// Longest way of a term through the 16-lane dot product of n terms (base/fmath.h): the product, the additions of its
// lane (the first one, to 0, is exact), four of the tree.
inline double dot_roundings(int64_t n) { return static_cast<double>(n / 16 + 5); }

// A queue with its own silent log.
struct TestQueue {
  explicit TestQueue(int threads = 1) : queue(threads, log) {}
  operator Queue&() { return queue; }
  Log log{LogLevel::Error};
  Queue queue;
};

// A tensor that owns its memory. All of it starts as canaries, before, between and behind the elements as well.
// pads[axis] is the number of canary elements (blocks) between the end of one index of that axis and the next.
class Owned {
 public:
  Owned(DType dtype, const std::vector<int64_t>& extents, const std::vector<int64_t>& pads = {}) {
    const auto rank = extents.size();
    const int64_t block = info(dtype).block_bytes;
    tensor_.dtype = dtype;
    tensor_.rank = static_cast<int>(rank);
    row_bytes_ = static_cast<int64_t>(bytes_of(dtype, extents[rank - 1]));
    int64_t bytes = row_bytes_;
    for (size_t axis = rank; axis-- > 0;) {
      tensor_.extents[axis] = extents[axis];
      tensor_.strides[axis] = axis + 1 == rank ? block : bytes + (axis < pads.size() ? pads[axis] * block : 0);
      if (axis + 1 < rank) bytes = tensor_.strides[axis] * extents[axis];
    }
    buffer_ = Buffer(static_cast<size_t>(kGuard + bytes + kGuard + 3) / 4 * 4);
    for (size_t i = 0; i < buffer_.bytes(); i += 4) std::memcpy(bytes_at(i), &kCanary, 4);
    tensor_.data = bytes_at(kGuard);
  }

  const Tensor& t() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }
  float& f(std::initializer_list<int64_t> index) const { return *static_cast<float*>(at(index)); }
  int32_t& i(std::initializer_list<int64_t> index) const { return *static_cast<int32_t*>(at(index)); }

  // Bytes outside the elements are still canaries.
  bool gaps_intact() const {
    std::vector<char> inside(buffer_.bytes(), 0);
    for_each_row(tensor_, [&](void* row) {
      std::memset(inside.data() + (static_cast<char*>(row) - static_cast<char*>(buffer_.data())), 1,
                  static_cast<size_t>(row_bytes_));
    });
    for (size_t i = 0; i < buffer_.bytes(); ++i)
      if (!inside[i] && *bytes_at(i) != reinterpret_cast<const char*>(&kCanary)[i % 4]) return false;
    return true;
  }

  // Calls visit(start of row) for every row along the last axis, in order.
  static void for_each_row(const Tensor& tensor, const std::function<void(void*)>& visit) {
    if (tensor.elements() == 0) return;
    if (tensor.rank == 1) return visit(tensor.data);
    for (int64_t i = 0; i < tensor.extent(0); ++i) for_each_row(tensor[i], visit);
  }

 private:
  static constexpr int64_t kGuard = 64;  // bytes
  char* bytes_at(size_t i) const { return static_cast<char*>(buffer_.data()) + i; }
  void* at(std::initializer_list<int64_t> index) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) offset += index.begin()[axis] * tensor_.strides[axis];
    return static_cast<char*>(tensor_.data) + offset;
  }

  Buffer buffer_;
  Tensor tensor_;
  int64_t row_bytes_ = 0;
};

// The elements of a plain 4-byte tensor in row-major order, strides resolved.
template <class T = float>
std::vector<T> packed(const Tensor& tensor) {
  static_assert(sizeof(T) == 4);
  std::vector<T> values;
  const auto width = static_cast<size_t>(tensor.extent(tensor.rank - 1));
  Owned::for_each_row(tensor, [&](void* row) {
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
  Owned::for_each_row(tensor, [&](void* row) {
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

// One block of random bytes that decodes to finite values of ordinary size.
inline void random_block(DType dtype, void* block, Random& random) {
  const DTypeInfo& type = info(dtype);
  auto* bytes = static_cast<uint8_t*>(block);
  std::vector<float> decoded(type.block_elements);
  for (int tries = 0; tries < 100000; ++tries) {
    for (uint32_t i = 0; i < type.block_bytes; ++i) bytes[i] = static_cast<uint8_t>(random.next());
    gguf::decoder(dtype)(bytes, decoded.data(), type.block_elements);
    double largest = 0;
    bool finite = true;
    for (float value : decoded) {
      finite = finite && std::isfinite(value);
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
    }
    if (finite && largest > 0.01 && largest < 100) return;
  }
  FAIL() << "no ordinary block of " << type.name;
}

// Weights [out, in] of any dtype: encoded where there is an encoder, else random blocks; integers are small.
inline Owned random_weight(DType dtype, const std::vector<int64_t>& extents, Random& random) {
  Owned weight(dtype, extents);
  const DTypeInfo& type = info(dtype);
  const int64_t width = extents.back();
  std::vector<float> values(static_cast<size_t>(width));
  Owned::for_each_row(weight, [&](void* row) {
    if (gguf::has_encoder(dtype)) {
      for (float& value : values) value = random.uniform(-1, 1);
      return gguf::encoder(dtype)(values.data(), row, width);
    }
    for (int64_t i = 0; i < width / type.block_elements; ++i) {
      auto* block = static_cast<char*>(row) + i * type.block_bytes;
      const int64_t small = random.below(256) - 128;  // little-endian: the low bytes are the narrower integer
      const double real = random.uniform(-1, 1);
      if (dtype == DType::F64)
        std::memcpy(block, &real, sizeof real);
      else if (type.block_elements == 1)
        std::memcpy(block, &small, type.block_bytes);
      else
        random_block(dtype, block, random);
    }
  });
  return weight;
}

// Rows of any dtype as the f32 values they decode to, row-major.
inline std::vector<float> decoded(const Tensor& weight) {
  std::vector<float> values(static_cast<size_t>(weight.elements()));
  const int64_t width = weight.extent(weight.rank - 1);
  size_t done = 0;
  Owned::for_each_row(weight, [&](void* row) {
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

// |y - expected| <= bound for every element; NaN where and only where NaN is expected, infinities equal.
inline testing::AssertionResult within(const Tensor& y, const std::vector<double>& expected,
                                       const std::vector<double>& bound) {
  const std::vector<float> values = packed(y);
  if (values.size() != expected.size() || values.size() != bound.size())
    return testing::AssertionFailure() << values.size() << " values, " << expected.size() << " expected, "
                                       << bound.size() << " bounds";
  size_t failed = 0, first = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const bool good = std::isfinite(expected[i]) ? std::fabs(value - expected[i]) <= bound[i]
                                                 : (std::isnan(expected[i]) ? std::isnan(value) : value == expected[i]);
    if (!good && failed++ == 0) first = i;
  }
  if (failed == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << failed << " of " << values.size() << " outside their bound, first element "
                                     << first << ": " << values[first] << ", expected " << expected[first] << " +- "
                                     << bound[first];
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
