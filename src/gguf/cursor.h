// Bounded reading of bytes from outside. All pointer arithmetic on them happens here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace strata::gguf {

// The first take that does not fit fails, and every later one with it: several reads may be checked at once.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // Start of the next n bytes; null when they are not there.
  const std::byte* take(uint64_t n) {
    ok_ = ok_ && n <= remaining();
    if (!ok_) return nullptr;
    const std::byte* start = bytes_.data() + position_;
    position_ += n;
    return start;
  }

  // The next value, in little-endian order; 0 when it is not there.
  template <typename T>
  T read() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (const std::byte* start = take(sizeof value)) std::memcpy(&value, start, sizeof value);
    return value;
  }

  // A view into the bytes; empty when they are not there.
  std::string_view text(uint64_t n) {
    const std::byte* start = take(n);
    return start == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(start), n);
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
  bool ok_ = true;
};

}  // namespace strata::gguf
