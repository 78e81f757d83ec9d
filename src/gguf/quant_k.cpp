// K types: 256 elements in sub-blocks with small integer scales under one or two f16. Layouts: docs/formats.md.
// Order of evaluation: d·scale first, then times the level, then minus dmin·min.
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

void q2_k(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block + 80), dmin = load_f16(block + 82);
  for (int g = 0; g < 16; ++g) {  // group of 16: half n = g / 8, bit pair j, side of the 32 bytes
    const int shift = 2 * ((g % 8) / 2);
    const float scale = d * static_cast<float>(block[g] & 15), min = dmin * static_cast<float>(block[g] >> 4);
    const uint8_t* qs = block + 16 + 32 * (g / 8) + 16 * (g % 2);
    for (int l = 0; l < 16; ++l) out[16 * g + l] = scale * static_cast<float>((qs[l] >> shift) & 3) - min;
  }
}

// 6-bit scale of group g: low four bits in bytes 0..7, high two bits in bytes 8..11.
int q3_k_scale(const uint8_t* c, int g) {
  return nibble(c[g % 8], g >= 8) | ((c[8 + g % 4] >> (2 * (g / 4))) & 3) << 4;
}

void q3_k(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block + 108);
  for (int g = 0; g < 16; ++g) {
    const int shift = 2 * ((g % 8) / 2), bit = g / 2, side = 16 * (g % 2);
    const float scale = d * static_cast<float>(q3_k_scale(block + 96, g) - 32);
    const uint8_t* qs = block + 32 + 32 * (g / 8) + side;
    const uint8_t* high = block + side;
    for (int l = 0; l < 16; ++l) {
      const int q = ((qs[l] >> shift) & 3) + (((high[l] >> bit) & 1) << 2) - 4;
      out[16 * g + l] = scale * static_cast<float>(q);
    }
  }
}

void q4_k(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block), dmin = load_f16(block + 2);
  for (int pair = 0; pair < 4; ++pair) {
    const ScaleMin even = scale_min(block + 4, 2 * pair), odd = scale_min(block + 4, 2 * pair + 1);
    const float scale0 = d * static_cast<float>(even.scale), min0 = dmin * static_cast<float>(even.min);
    const float scale1 = d * static_cast<float>(odd.scale), min1 = dmin * static_cast<float>(odd.min);
    const uint8_t* qs = block + 16 + 32 * pair;
    float* to = out + 64 * pair;
    for (int l = 0; l < 32; ++l) to[l] = scale0 * static_cast<float>(qs[l] & 15) - min0;
    for (int l = 0; l < 32; ++l) to[32 + l] = scale1 * static_cast<float>(qs[l] >> 4) - min1;
  }
}

void q5_k(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block), dmin = load_f16(block + 2);
  const uint8_t* high = block + 16;
  for (int pair = 0; pair < 4; ++pair) {
    const ScaleMin even = scale_min(block + 4, 2 * pair), odd = scale_min(block + 4, 2 * pair + 1);
    const float scale0 = d * static_cast<float>(even.scale), min0 = dmin * static_cast<float>(even.min);
    const float scale1 = d * static_cast<float>(odd.scale), min1 = dmin * static_cast<float>(odd.min);
    const uint8_t* qs = block + 48 + 32 * pair;
    float* to = out + 64 * pair;
    for (int l = 0; l < 32; ++l) {
      const int q = (qs[l] & 15) + (((high[l] >> (2 * pair)) & 1) << 4);
      to[l] = scale0 * static_cast<float>(q) - min0;
    }
    for (int l = 0; l < 32; ++l) {
      const int q = (qs[l] >> 4) + (((high[l] >> (2 * pair + 1)) & 1) << 4);
      to[32 + l] = scale1 * static_cast<float>(q) - min1;
    }
  }
}

void q6_k(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block + 208);
  const int8_t* scales = reinterpret_cast<const int8_t*>(block + 192);
  for (int g = 0; g < 16; ++g) {
    const int n = g / 8, j = (g % 8) / 2, side = 16 * (g % 2);
    const int low_shift = 4 * (j / 2), high_shift = 2 * j;
    const float scale = d * static_cast<float>(scales[g]);
    const uint8_t* low = block + 64 * n + 32 * (j % 2) + side;
    const uint8_t* high = block + 128 + 32 * n + side;
    for (int l = 0; l < 16; ++l) {
      const int q = ((low[l] >> low_shift) & 15) + (((high[l] >> high_shift) & 3) << 4) - 32;
      out[16 * g + l] = scale * static_cast<float>(q);
    }
  }
}

}  // namespace

DecodeRow k_decoder(DType type) {
  switch (type) {
    case DType::Q2_K: return decode_blocks<q2_k, 256, 84>;
    case DType::Q3_K: return decode_blocks<q3_k, 256, 110>;
    case DType::Q4_K: return decode_blocks<q4_k, 256, 144>;
    case DType::Q5_K: return decode_blocks<q5_k, 256, 176>;
    case DType::Q6_K: return decode_blocks<q6_k, 256, 210>;
    default: return nullptr;
  }
}

}  // namespace strata::gguf
