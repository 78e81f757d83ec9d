// Sequences as bytes: what a session file holds. Readers bound every count before they use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>

#include "base/error.h"

namespace strata {

class ArchiveWriter {
 public:
  using Sink = std::function<void(const void*, size_t)>;
  explicit ArchiveWriter(Sink sink) : sink_(std::move(sink)) {}

  void bytes(const void* data, size_t count) { sink_(data, count); }
  template <class T>
  void value(T x) {
    static_assert(std::is_arithmetic_v<T>);
    sink_(&x, sizeof x);
  }

 private:
  Sink sink_;
};

class ArchiveReader {
 public:
  ArchiveReader(std::span<const std::byte> data, std::string where) : data_(data), where_(std::move(where)) {}

  const void* bytes(size_t count) {
    if (count > data_.size() - at_) fail("ends early");
    const void* start = data_.data() + at_;
    at_ += count;
    return start;
  }
  template <class T>
  T value() {
    static_assert(std::is_arithmetic_v<T>);
    T x;
    __builtin_memcpy(&x, bytes(sizeof x), sizeof x);
    return x;
  }
  // A value that must be this one.
  template <class T>
  void expect(T wanted, const char* what) {
    const T found = value<T>();
    if (found != wanted) fail(std::string(what) + " is " + std::to_string(found) + ", not " + std::to_string(wanted));
  }
  // A value from low to high, both included.
  int64_t ranged(int64_t low, int64_t high, const char* what) {
    const auto found = value<int64_t>();
    if (found < low || found > high)
      fail(std::string(what) + " " + std::to_string(found) + " is outside " + std::to_string(low) + ".." +
           std::to_string(high));
    return found;
  }
  bool done() const { return at_ == data_.size(); }
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(ErrorKind::Format, message + " (byte " + std::to_string(at_) + ")", where_);
  }

 private:
  std::span<const std::byte> data_;
  size_t at_ = 0;
  std::string where_;
};

}  // namespace strata
