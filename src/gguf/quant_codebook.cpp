// Four-bit indices into a table of 16 levels: IQ4_NL, IQ4_XS, MXFP4, NVFP4. Layouts: docs/formats.md.
// The scale of a group is formed first in f32, then multiplied by the level.
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

// kPairs bytes hold 2·kPairs elements: low nibbles first, then high nibbles.
template <int kPairs>
void decode_levels(const uint8_t* __restrict qs, const float (&levels)[16], float scale, float* __restrict out) {
  for (int j = 0; j < kPairs; ++j) {
    out[j] = levels[qs[j] & 15] * scale;
    out[kPairs + j] = levels[qs[j] >> 4] * scale;
  }
}

void iq4_nl(const uint8_t* __restrict block, float* __restrict out) {
  decode_levels<16>(block + 2, kIq4Levels, load_f16(block), out);
}

void iq4_xs(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  const int high = load_u16(block + 2);
  for (int ib = 0; ib < 8; ++ib) {
    const int scale = nibble(block[4 + ib / 2], ib % 2 != 0) | ((high >> (2 * ib)) & 3) << 4;
    decode_levels<16>(block + 8 + 16 * ib, kIq4Levels, d * static_cast<float>(scale - 32), out + 32 * ib);
  }
}

// 2^(e - 128); the two smallest are subnormal in f32.
float e8m0_half(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

void mxfp4(const uint8_t* __restrict block, float* __restrict out) {
  decode_levels<16>(block + 1, kE2m1Levels, e8m0_half(block[0]), out);
}

// Unsigned E4M3 (bit 7 is not read): 0x7F is its NaN and counts as zero here.
float ue4m3(uint8_t x) {
  const uint32_t exponent = (x >> 3) & 15u, mantissa = x & 7u;
  if (exponent == 15u && mantissa == 7u) return 0.f;
  if (exponent == 0u) return static_cast<float>(mantissa) * 0x1p-9f;
  return std::bit_cast<float>((exponent + 120u) << 23 | mantissa << 20);
}

void nvfp4(const uint8_t* __restrict block, float* __restrict out) {
  for (int s = 0; s < 4; ++s) decode_levels<8>(block + 4 + 8 * s, kE2m1Levels, 0.5f * ue4m3(block[s]), out + 16 * s);
}

}  // namespace

DecodeRow codebook_decoder(DType type) {
  switch (type) {
    case DType::IQ4_NL: return decode_blocks<iq4_nl, 32, 18>;
    case DType::IQ4_XS: return decode_blocks<iq4_xs, 256, 136>;
    case DType::MXFP4: return decode_blocks<mxfp4, 32, 17>;
    case DType::NVFP4: return decode_blocks<nvfp4, 64, 36>;
    default: return nullptr;
  }
}

}  // namespace strata::gguf
