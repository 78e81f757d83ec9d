// Uniform levels under one scale per block: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q1_0, Q2_0. Layouts: docs/formats.md.
// Integer level first, converted exactly to f32, then one product with d, then (Q4_1, Q5_1) one sum.
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

void q4_0(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  const uint8_t* qs = block + 2;
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>((qs[j] & 15) - 8) * d;
  for (int j = 0; j < 16; ++j) out[16 + j] = static_cast<float>((qs[j] >> 4) - 8) * d;
}

void q4_1(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block), m = load_f16(block + 2);
  const uint8_t* qs = block + 4;
  for (int j = 0; j < 16; ++j) out[j] = static_cast<float>(qs[j] & 15) * d + m;
  for (int j = 0; j < 16; ++j) out[16 + j] = static_cast<float>(qs[j] >> 4) * d + m;
}

void q5_0(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  const uint32_t fifth = load_u32(block + 2);
  const uint8_t* qs = block + 6;
  for (int j = 0; j < 16; ++j) {
    const int low = (qs[j] & 15) | static_cast<int>((fifth >> j) & 1u) << 4;
    const int high = (qs[j] >> 4) | static_cast<int>((fifth >> (j + 16)) & 1u) << 4;
    out[j] = static_cast<float>(low - 16) * d;
    out[16 + j] = static_cast<float>(high - 16) * d;
  }
}

void q5_1(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block), m = load_f16(block + 2);
  const uint32_t fifth = load_u32(block + 4);
  const uint8_t* qs = block + 8;
  for (int j = 0; j < 16; ++j) {
    const int low = (qs[j] & 15) | static_cast<int>((fifth >> j) & 1u) << 4;
    const int high = (qs[j] >> 4) | static_cast<int>((fifth >> (j + 16)) & 1u) << 4;
    out[j] = static_cast<float>(low) * d + m;
    out[16 + j] = static_cast<float>(high) * d + m;
  }
}

void q8_0(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  const int8_t* qs = reinterpret_cast<const int8_t*>(block + 2);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(qs[j]) * d;
}

void q1_0(const uint8_t* __restrict block, float* __restrict out) {
  const uint32_t negative = std::bit_cast<uint32_t>(-load_f16(block));
  for (int byte = 0; byte < 16; ++byte)
    for (int bit = 0; bit < 8; ++bit) {  // the sign flips by arithmetic: random bits make branches miss half the time
      const uint32_t flip = static_cast<uint32_t>((block[2 + byte] >> bit) & 1) << 31;
      out[8 * byte + bit] = std::bit_cast<float>(negative ^ flip);
    }
}

void q2_0(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int byte = 0; byte < 16; ++byte)
    for (int k = 0; k < 4; ++k) out[4 * byte + k] = static_cast<float>(((block[2 + byte] >> (2 * k)) & 3) - 1) * d;
}

}  // namespace

DecodeRow simple_decoder(DType type) {
  switch (type) {
    case DType::Q4_0: return decode_blocks<q4_0, 32, 18>;
    case DType::Q4_1: return decode_blocks<q4_1, 32, 20>;
    case DType::Q5_0: return decode_blocks<q5_0, 32, 22>;
    case DType::Q5_1: return decode_blocks<q5_1, 32, 24>;
    case DType::Q8_0: return decode_blocks<q8_0, 32, 34>;
    case DType::Q1_0: return decode_blocks<q1_0, 128, 18>;
    case DType::Q2_0: return decode_blocks<q2_0, 64, 18>;
    default: return nullptr;
  }
}

}  // namespace strata::gguf
