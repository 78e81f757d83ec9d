// Encoders of Q8_0 and Q4_0: one f16 scale per 32 elements, rounded before the levels are chosen.
#include <algorithm>
#include <cmath>

#include "gguf/quant_detail.h"
#include "gguf/quant_search.h"

namespace strata::gguf {
namespace {

constexpr int kBlock = 32;
constexpr float kLargestF16 = 65504.f;

// The element of largest magnitude, with its sign; the first of equals.
float extreme_of(const float* x) {
  return *std::max_element(x, x + kBlock, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

void q8_0(const float* __restrict values, uint8_t* __restrict block) {
  float x[kBlock];
  for (int i = 0; i < kBlock; ++i) x[i] = finite_or_limit(values[i], 127.f * kLargestF16);
  const uint16_t d = cover_f16(std::fabs(extreme_of(x)), 127.f);
  store_u16(block, d);
  const float scale = f16_to_f32(d);
  for (int i = 0; i < kBlock; ++i) {
    const float q = scale > 0.f ? clamp_round(x[i] / scale, -127.f, 127.f) : 0.f;
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(q));
  }
}

// The extreme takes level -8, the one without a positive partner, so that d has the opposite sign.
void q4_0(const float* __restrict values, uint8_t* __restrict block) {
  float x[kBlock];
  for (int i = 0; i < kBlock; ++i) x[i] = finite_or_limit(values[i], 8.f * kLargestF16);
  const float extreme = extreme_of(x);
  const uint16_t magnitude = cover_f16(std::fabs(extreme), 8.f);
  const uint16_t d = extreme > 0.f ? magnitude | 0x8000u : magnitude;
  store_u16(block, d);
  const float scale = f16_to_f32(d);
  uint8_t q[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    const float level = magnitude != 0 ? clamp_round(x[i] / scale, -8.f, 7.f) : 0.f;
    q[i] = static_cast<uint8_t>(level + 8.f);
  }
  for (int j = 0; j < 16; ++j) block[2 + j] = static_cast<uint8_t>(q[j] | q[j + 16] << 4);
}

}  // namespace

Encoder simple_encoder(DType type) {
  switch (type) {
    case DType::Q8_0: return unweighted_row<encode_blocks<q8_0, kBlock, 34>>();
    case DType::Q4_0: return unweighted_row<encode_blocks<q4_0, kBlock, 18>>();
    default: return {};
  }
}

}  // namespace strata::gguf
