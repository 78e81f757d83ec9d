#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "ops/store_rows/store_rows.h"

namespace strata {
namespace {

// The nearest value with so many bits behind the leading one, exponents from `least` up, ties to even.
double nearest(double x, int bits, int least, double overflow) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), least);
  const double quantum = std::ldexp(1.0, exponent - bits);
  const double rounded = std::nearbyint(x / quantum) * quantum;
  return std::fabs(rounded) >= overflow ? std::copysign(std::numeric_limits<double>::infinity(), x) : rounded;
}

double as_f16(double x) { return nearest(x, 10, -14, 65536.0); }
double as_bf16(double x) { return nearest(x, 7, -126, 0x1p128); }

double block_scale(double largest, float levels) {
  constexpr double kLargest = 65504;
  const auto quotient = static_cast<double>(static_cast<float>(largest) / levels);
  double scale = std::min(as_f16(quotient), kLargest);
  if (largest > (static_cast<double>(levels) + 0.5) * scale && scale < kLargest)
    scale += std::ldexp(1.0, (scale == 0 ? -14 : std::max(std::ilogb(scale), -14)) - 10);
  return scale;
}

void quantised(const float* x, bool four_bits, uint8_t* out) {
  const float levels = four_bits ? 8 : 127;
  double values[32], extreme = 0;
  for (int i = 0; i < 32; ++i) {
    const double limit = static_cast<double>(levels) * 65504;
    values[i] = std::isnan(x[i]) ? 0 : std::clamp(static_cast<double>(x[i]), -limit, limit);
    if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
  }
  double scale = block_scale(std::fabs(extreme), levels);
  if (four_bits && extreme > 0) scale = -scale;
  const uint16_t bits = f32_to_f16(static_cast<float>(scale));  // exact
  std::memcpy(out, &bits, 2);
  int level[32];
  for (int i = 0; i < 32; ++i) {
    const auto ratio =
        scale == 0 ? 0.0 : static_cast<double>(static_cast<float>(values[i]) / static_cast<float>(scale));
    level[i] = static_cast<int>(std::nearbyint(std::clamp(ratio, four_bits ? -8.0 : -127.0, four_bits ? 7.0 : 127.0)));
  }
  if (!four_bits)
    for (int i = 0; i < 32; ++i) out[2 + i] = static_cast<uint8_t>(level[i]);
  else
    for (int i = 0; i < 16; ++i) out[2 + i] = static_cast<uint8_t>(level[i] + 8 + 16 * (level[i + 16] + 8));
}

}  // namespace

void store_rows_oracle(const float* row, int64_t width, DType type, uint8_t* out) {
  for (int64_t i = 0; i < width; ++i) {
    if (type == DType::F16) {
      const uint16_t bits = f32_to_f16(static_cast<float>(as_f16(static_cast<double>(row[i]))));  // exact
      std::memcpy(out + 2 * i, &bits, 2);
    } else if (type == DType::BF16) {
      const uint16_t bits = f32_to_bf16(static_cast<float>(as_bf16(static_cast<double>(row[i]))));  // exact
      std::memcpy(out + 2 * i, &bits, 2);
    } else if (type == DType::Q8_0 || type == DType::Q4_0) {
      if (i % 32 == 0) quantised(row + i, type == DType::Q4_0, out + i / 32 * (type == DType::Q4_0 ? 18 : 34));
    } else {
      std::memcpy(out + 4 * i, row + i, 4);
    }
  }
}

}  // namespace strata
