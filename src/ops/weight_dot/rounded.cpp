#include "ops/weight_dot/rounded.h"

#include <cmath>

#include "base/half.h"

namespace strata {

bool has_integer_levels(DType type) {
  switch (type) {
    case DType::Q8_0:
    case DType::Q4_0:
    case DType::Q2_0:
    case DType::MXFP4:
    case DType::IQ4_NL:
    case DType::IQ4_XS:
    case DType::Q4_K:
    case DType::Q5_K:
    case DType::Q6_K:
    case DType::IQ2_XXS:
    case DType::IQ2_XS:
    case DType::IQ2_S:
    case DType::IQ3_XXS:
    case DType::IQ3_S: return true;
    default: return false;
  }
}

void round_to_int8(const float* x, int64_t n, int8_t* q, float* scales) {
  for (int64_t begin = 0; begin < n; begin += kRoundedBlock) {
    float largest = 0;
    bool finite = true;
    for (int64_t i = begin; i < begin + kRoundedBlock; ++i) {
      finite = finite && std::isfinite(x[i]);
      largest = std::fmax(largest, std::fabs(x[i]));
    }
    const bool empty = !finite || largest < kSmallestRounded;
    const float inverse = empty ? 0 : 127.0f / largest;
    scales[begin / kRoundedBlock] = !finite ? NAN : (empty ? 0 : largest / 127.0f);
    for (int64_t i = begin; i < begin + kRoundedBlock; ++i)
      q[i] = empty ? int8_t{0} : static_cast<int8_t>(std::nearbyint(x[i] * inverse));
  }
}

std::vector<double> rounded_to_int8(const float* x, int64_t n) {
  std::vector<int8_t> q(static_cast<size_t>(n));
  std::vector<float> scales(static_cast<size_t>(n / kRoundedBlock));
  round_to_int8(x, n, q.data(), scales.data());
  std::vector<double> values(q.size());
  for (size_t i = 0; i < q.size(); ++i)
    values[i] = static_cast<double>(q[i]) * static_cast<double>(scales[i / static_cast<size_t>(kRoundedBlock)]);
  return values;
}

void nearest_to_int8(float* x, int64_t n) {
  const std::vector<double> values = rounded_to_int8(x, n);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(values[static_cast<size_t>(i)]);
}

std::vector<double> weight_minima(DType type, const void* row, int64_t n) {
  std::vector<double> minima(static_cast<size_t>(n));
  if (type != DType::Q4_K && type != DType::Q5_K) return minima;
  const auto* block = static_cast<const uint8_t*>(row);
  for (size_t i = 0; i < minima.size(); ++i) {
    const uint8_t* b = block + i / 256 * info(type).block_bytes;
    const uint8_t* c = b + 4;
    const size_t s = i % 256 / 32;
    const int m = s < 4 ? c[s + 4] & 63 : c[s + 4] >> 4 | c[s] >> 6 << 4;
    const auto least = static_cast<uint16_t>(b[2] | b[3] << 8);
    minima[i] = static_cast<double>(f16_to_f32(least)) * m;
  }
  return minima;
}

}  // namespace strata
