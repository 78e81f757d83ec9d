// The value of element i of a block, straight from the layout tables in docs/formats.md: one element at a time, in
// double, with the grids read from the data file. Shares no code with the decoders.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace strata::gguf::oracle {

using Row = std::vector<int>;

inline std::map<std::string, std::vector<Row>> read_grids() {
  std::ifstream file(STRATA_SOURCE_DIR "/data/iq_grids.txt");
  if (!file) throw std::runtime_error("cannot open data/iq_grids.txt");
  std::map<std::string, std::vector<Row>> grids;
  std::vector<Row>* rows = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first[0] == '#') continue;
    if (first == "grid") {
      words >> first;
      rows = &grids[first];
      continue;
    }
    Row row{std::stoi(first)};
    for (int value; words >> value;) row.push_back(value);
    rows->push_back(row);
  }
  return grids;
}

inline const std::vector<Row>& grid(const std::string& name) {
  static const std::map<std::string, std::vector<Row>> grids = read_grids();
  return grids.at(name);
}

struct Block {
  const uint8_t* bytes;

  int u8(int o) const { return bytes[o]; }
  int i8(int o) const { return bytes[o] < 128 ? bytes[o] : bytes[o] - 256; }
  int u16(int o) const { return u8(o) + 256 * u8(o + 1); }
  int64_t u32(int o) const { return u16(o) + 65536ll * u16(o + 2); }
  int nib(int o, bool high) const { return high ? u8(o) / 16 : u8(o) % 16; }
  double f16(int o) const { return f16_value(u16(o)); }

  static double f16_value(int h) {
    const int exponent = (h >> 10) & 31, mantissa = h & 1023;
    const double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31)
      return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
  }
};

inline constexpr int kK4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr int kK2[8] = {0, 1, 2, 3, 4, 6, 8, 12};

inline double e2m1_doubled(int code) { return code < 8 ? double(kK2[code]) : -double(kK2[code - 8]); }

inline double ue4m3(int x) {
  if (x == 0 || x == 0x7f || x == 0xff) return 0;  // bit 7 is not part of the value
  const int e = (x >> 3) & 15, m = x & 7;
  return e == 0 ? m * std::ldexp(1, -9) : (1 + m / 8.0) * std::ldexp(1, e - 7);
}

inline int trit(int x, int k) {
  int power = 1;
  while (k-- > 0) power *= 3;
  return (((x * power) % 256) * 3) >> 8;
}

inline int sign7(int x, int j) {
  int bits = x;
  if (std::popcount(static_cast<unsigned>(x)) % 2 != 0) bits |= 128;
  return (bits >> j) & 1 ? -1 : 1;
}

struct Pair {
  int sc, m;
};

inline Pair six_bit_pair(const uint8_t* c, int s) {
  if (s < 4) return {c[s] & 63, c[s + 4] & 63};
  return {(c[s + 4] & 15) | (c[s - 4] >> 6) << 4, (c[s + 4] >> 4) | (c[s] >> 6) << 4};
}

inline double small_block_value(DType type, const Block& b, int i) {
  const bool upper = i >= 16;
  switch (type) {
    case DType::Q4_0: return (b.nib(2 + i % 16, upper) - 8) * b.f16(0);
    case DType::Q4_1: return b.nib(4 + i % 16, upper) * b.f16(0) + b.f16(2);
    case DType::Q5_0: return (b.nib(6 + i % 16, upper) + 16 * ((b.u32(2) >> i) & 1) - 16) * b.f16(0);
    case DType::Q5_1: return (b.nib(8 + i % 16, upper) + 16 * ((b.u32(4) >> i) & 1)) * b.f16(0) + b.f16(2);
    case DType::Q8_0: return b.i8(2 + i) * b.f16(0);
    case DType::IQ4_NL: return kK4[b.nib(2 + i % 16, upper)] * b.f16(0);
    case DType::MXFP4: return std::ldexp(1, b.u8(0) - 128) * e2m1_doubled(b.nib(1 + i % 16, upper));
    case DType::NVFP4: {
      const int s = i / 16, j = i % 16;
      return 0.5 * ue4m3(b.u8(s)) * e2m1_doubled(b.nib(4 + 8 * s + j % 8, j >= 8));
    }
    case DType::Q1_0: return (b.u8(2 + i / 8) >> (i % 8)) & 1 ? b.f16(0) : -b.f16(0);
    case DType::Q2_0: return (((b.u8(2 + i / 4) >> (2 * (i % 4))) & 3) - 1) * b.f16(0);
    default: throw std::runtime_error("not a type of small blocks");
  }
}

inline double k_value(DType type, const Block& b, int i) {
  const int n = i / 128, j = (i % 128) / 32, l = i % 32, s = i / 32, g = i / 16;
  switch (type) {
    case DType::Q2_K: {
      const int q = (b.u8(16 + 32 * n + l) >> (2 * j)) & 3, sc = b.u8(g);
      return b.f16(80) * (sc & 15) * q - b.f16(82) * (sc >> 4);
    }
    case DType::Q3_K: {
      const int q = ((b.u8(32 + 32 * n + l) >> (2 * j)) & 3) - ((b.u8(l) >> (4 * n + j)) & 1 ? 0 : 4);
      const uint8_t* c = b.bytes + 96;
      const int low = g < 8 ? c[g] & 15 : c[g - 8] >> 4, high = (c[8 + g % 4] >> (2 * (g / 4))) & 3;
      return b.f16(108) * (low + 16 * high - 32) * q;
    }
    case DType::Q4_K: {
      const Pair p = six_bit_pair(b.bytes + 4, s);
      return b.f16(0) * p.sc * b.nib(16 + 32 * (s / 2) + l, s % 2 != 0) - b.f16(2) * p.m;
    }
    case DType::Q5_K: {
      const Pair p = six_bit_pair(b.bytes + 4, s);
      const int q = b.nib(48 + 32 * (s / 2) + l, s % 2 != 0) + 16 * ((b.u8(16 + l) >> s) & 1);
      return b.f16(0) * p.sc * q - b.f16(2) * p.m;
    }
    case DType::Q6_K: {
      const int q = b.nib(64 * n + 32 * (j % 2) + l, j >= 2) + 16 * ((b.u8(128 + 32 * n + l) >> (2 * j)) & 3);
      return b.f16(208) * b.i8(192 + g) * (q - 32);
    }
    default: throw std::runtime_error("not a K type");
  }
}

inline double ternary_value(DType type, const Block& b, int i) {
  if (type == DType::TQ2_0) return (((b.u8(32 * (i / 128) + i % 32) >> (2 * ((i % 128) / 32))) & 3) - 1) * b.f16(64);
  int t;
  if (i < 160) {
    t = trit(b.u8(i % 32), i / 32);
  } else if (i < 240) {
    t = trit(b.u8(32 + (i - 160) % 16), (i - 160) / 16);
  } else {
    t = trit(b.u8(48 + (i - 240) % 4), (i - 240) / 4);
  }
  return (t - 1) * b.f16(52);
}

inline double lattice_value(DType type, const Block& b, int i) {
  const int g = i / 8, ib = i / 32, k = (i % 32) / 8;
  auto half = [&](int o) { return b.nib(o, i % 32 >= 16); };
  switch (type) {
    case DType::IQ2_XXS: {
      const int o = 2 + 8 * ib;
      const int64_t w = b.u32(o + 4);
      return b.f16(0) * (0.5 + double(w >> 28)) / 4 * grid("iq2xxs")[b.u8(o + k)][i % 8] *
             sign7((w >> (7 * k)) & 127, i % 8);
    }
    case DType::IQ2_XS: {
      const int e = b.u16(2 + 2 * g);
      return b.f16(0) * (0.5 + half(66 + ib)) / 4 * grid("iq2xs")[e & 511][i % 8] * sign7(e >> 9, i % 8);
    }
    case DType::IQ2_S: {
      const int index = b.u8(2 + g) + 256 * ((b.u8(66 + ib) >> (2 * (g % 4))) & 3);
      return b.f16(0) * (0.5 + half(74 + ib)) / 4 * grid("iq2s")[index][i % 8] *
             ((b.u8(34 + g) >> (i % 8)) & 1 ? -1 : 1);
    }
    case DType::IQ3_XXS: {
      const int64_t w = b.u32(66 + 4 * ib);
      return b.f16(0) * (0.5 + double(w >> 28)) / 2 * grid("iq3xxs")[b.u8(2 + i / 4)][i % 4] *
             sign7((w >> (7 * k)) & 127, i % 8);
    }
    case DType::IQ3_S: {
      const int h = i / 4, index = b.u8(2 + h) + 256 * ((b.u8(66 + ib) >> (h % 8)) & 1);
      return b.f16(0) * (1 + 2 * b.nib(106 + ib / 2, ib % 2 != 0)) * grid("iq3s")[index][i % 4] *
             ((b.u8(74 + g) >> (i % 8)) & 1 ? -1 : 1);
    }
    case DType::IQ1_S: {
      const int q = b.u16(34 + 2 * ib), index = b.u8(2 + g) + 256 * ((q >> (3 * (g % 4))) & 7);
      return b.f16(0) * (2 * ((q >> 12) & 7) + 1) * (grid("iq1s")[index][i % 8] + (q >> 15 ? -0.125 : 0.125));
    }
    case DType::IQ1_M: {
      int h = 0;
      for (int c = 0; c < 4; ++c) h |= (b.u16(48 + 2 * c) >> 12) << (4 * c);
      const int s = (b.u16(48 + 2 * (ib / 2)) >> (6 * (ib % 2) + 3 * ((i % 32) / 16))) & 7;
      const int x = b.nib(32 + g / 2, g % 2 != 0), index = b.u8(g) + 256 * (x & 7);
      return Block::f16_value(h) * (2 * s + 1) * (grid("iq1s")[index][i % 8] + (x & 8 ? -0.125 : 0.125));
    }
    case DType::IQ4_XS: {
      const int ls = b.nib(4 + ib / 2, ib % 2 != 0) + 16 * ((b.u16(2) >> (2 * ib)) & 3);
      return b.f16(0) * (ls - 32) * kK4[b.nib(8 + 16 * ib + i % 16, i % 32 >= 16)];
    }
    default: throw std::runtime_error("not a lattice type");
  }
}

inline double value(DType type, const uint8_t* bytes, int i) {
  const Block b{bytes};
  switch (type) {
    case DType::TQ1_0:
    case DType::TQ2_0: return ternary_value(type, b, i);
    case DType::Q2_K:
    case DType::Q3_K:
    case DType::Q4_K:
    case DType::Q5_K:
    case DType::Q6_K: return k_value(type, b, i);
    default: return info(type).block_elements == 256 ? lattice_value(type, b, i) : small_block_value(type, b, i);
  }
}

// Byte offsets of the f16 scales that make the values of a block (none: the scale is not an f16).
inline std::vector<int> f16_fields(DType type) {
  switch (type) {
    case DType::Q4_1:
    case DType::Q5_1:
    case DType::Q4_K:
    case DType::Q5_K: return {0, 2};
    case DType::Q2_K: return {80, 82};
    case DType::Q3_K: return {108};
    case DType::Q6_K: return {208};
    case DType::TQ1_0: return {52};
    case DType::TQ2_0: return {64};
    case DType::IQ1_M: return {54};  // holds the exponent's upper bits; clearing bit 14 makes the scale finite
    case DType::MXFP4:
    case DType::NVFP4: return {};
    default: return {0};
  }
}

}  // namespace strata::gguf::oracle
