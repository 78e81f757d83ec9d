// Values that several encodings compute.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strata::amdsim {

// The one that is no NaN, and +0 above -0.
template <class T>
inline T largest(T a, T b) {
  if (a == b) return std::signbit(a) ? b : a;
  return (b != b || a > b) ? a : b;
}
template <class T>
inline T least(T a, T b) {
  if (a == b) return std::signbit(a) ? a : b;
  return (b != b || a < b) ? a : b;
}
template <class T>
inline T middle(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}
inline float middle_f32(float a, float b, float c) {
  if (a != a || b != b || c != c) return least(least(a, b), c);
  return middle(a, b, c);
}

// Saturating; NaN becomes 0.
template <class To, class From>
inline To to_whole(From value) {
  if (value != value) return 0;
  if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

// Bits equal to the sign from the top on; -1 where all are.
inline uint32_t leading_signs(uint32_t x) {
  const uint32_t different = x ^ (static_cast<int32_t>(x) < 0 ? ~0u : 0u);
  return different == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(different));
}
inline uint32_t leading_zeros(uint32_t x) { return x == 0 ? ~0u : static_cast<uint32_t>(std::countl_zero(x)); }
inline uint32_t trailing_zeros(uint32_t x) { return x == 0 ? ~0u : static_cast<uint32_t>(std::countr_zero(x)); }
inline uint32_t reversed(uint32_t x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline uint32_t field(uint32_t x, uint32_t offset, uint32_t bits) {
  offset &= 31u;
  bits &= 31u;
  return x >> offset & ((1u << bits) - 1);
}
inline int32_t signed_field(int32_t x, uint32_t offset, uint32_t bits) {
  offset &= 31u;
  bits &= 31u;
  if (bits == 0) return 0;
  if (offset + bits >= 32) return x >> offset;
  return static_cast<int32_t>(static_cast<uint32_t>(x) << (32 - offset - bits)) >> (32 - bits);
}
inline int32_t low24(int32_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8; }

}  // namespace strata::amdsim
