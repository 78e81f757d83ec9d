// Lattice types: groups of 4 or 8 weights are rows of a grid, with signs or an offset. Layouts: docs/formats.md.
// The scale of a group is formed first in f32 (d times an exact factor), then multiplied by the grid entry.
#include "gguf/iq_grids.h"
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

// Seven stored signs; the eighth makes the count of minus signs even.
inline unsigned even_signs(uint32_t seven) {
  uint32_t parity = seven ^ (seven >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return seven | (parity & 1u) << 7;
}

// Bit j of signs: element j is negative. The sign bit is set by arithmetic: random signs make branches miss half the
// time.
template <size_t kColumns>
inline void put_signed(const std::array<int8_t, kColumns>& row, unsigned signs, float scale, float* __restrict out) {
  for (size_t j = 0; j < kColumns; ++j) {
    const float magnitude = scale * static_cast<float>(row[j]);
    out[j] = std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) ^ ((signs >> j) & 1u) << 31);
  }
}

inline void put_offset(const std::array<int8_t, 8>& row, float offset, float scale, float* __restrict out) {
  for (size_t j = 0; j < 8; ++j) out[j] = scale * (static_cast<float>(row[j]) + offset);
}

void iq2_xxs(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int ib = 0; ib < 8; ++ib) {
    const uint8_t* indices = block + 2 + 8 * ib;
    const uint32_t word = load_u32(indices + 4);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int k = 0; k < 4; ++k)
      put_signed(kIq2xxsGrid[indices[k]], even_signs((word >> (7 * k)) & 127u), scale, out + 32 * ib + 8 * k);
  }
}

void iq2_xs(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int g = 0; g < 32; ++g) {
    const unsigned entry = load_u16(block + 2 + 2 * g);
    const float scale = d * (0.5f + static_cast<float>(nibble(block[66 + g / 4], g % 4 >= 2))) * 0.25f;
    put_signed(kIq2xsGrid[entry & 511u], even_signs(entry >> 9), scale, out + 8 * g);
  }
}

void iq2_s(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int g = 0; g < 32; ++g) {
    const unsigned high = (block[66 + g / 4] >> (2 * (g % 4))) & 3u;
    const float scale = d * (0.5f + static_cast<float>(nibble(block[74 + g / 4], g % 4 >= 2))) * 0.25f;
    put_signed(kIq2sGrid[block[2 + g] | high << 8], block[34 + g], scale, out + 8 * g);
  }
}

void iq3_xxs(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int g = 0; g < 32; ++g) {
    const uint32_t word = load_u32(block + 66 + 4 * (g / 4));
    const unsigned signs = even_signs((word >> (7 * (g % 4))) & 127u);
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    put_signed(kIq3xxsGrid[block[2 + 2 * g]], signs, scale, out + 8 * g);
    put_signed(kIq3xxsGrid[block[3 + 2 * g]], signs >> 4, scale, out + 8 * g + 4);
  }
}

void iq3_s(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int g = 0; g < 32; ++g) {
    const int ib = g / 4;
    const unsigned high = block[66 + ib] >> (2 * (g % 4));  // ninth index bits of the two rows of this group
    const unsigned signs = block[74 + g];
    const float scale = d * static_cast<float>(1 + 2 * nibble(block[106 + ib / 2], ib % 2 != 0));
    put_signed(kIq3sGrid[block[2 + 2 * g] | (high & 1u) << 8], signs, scale, out + 8 * g);
    put_signed(kIq3sGrid[block[3 + 2 * g] | (high & 2u) << 7], signs >> 4, scale, out + 8 * g + 4);
  }
}

void iq1_s(const uint8_t* __restrict block, float* __restrict out) {
  const float d = load_f16(block);
  for (int ib = 0; ib < 8; ++ib) {
    const unsigned word = load_u16(block + 34 + 2 * ib);
    const float scale = d * static_cast<float>(2u * ((word >> 12) & 7u) + 1u);
    const float offset = (word & 0x8000u) != 0 ? -0.125f : 0.125f;
    for (int k = 0; k < 4; ++k) {
      const unsigned index = block[2 + 4 * ib + k] | ((word >> (3 * k)) & 7u) << 8;
      put_offset(kIq1sGrid[index], offset, scale, out + 32 * ib + 8 * k);
    }
  }
}

void iq1_m(const uint8_t* __restrict block, float* __restrict out) {
  unsigned packed[4], bits = 0;  // the top nibbles of the four scale words make the f16
  for (int k = 0; k < 4; ++k) {
    packed[k] = load_u16(block + 48 + 2 * k);
    bits |= (packed[k] >> 12) << (4 * k);
  }
  const float d = f16_to_f32(static_cast<uint16_t>(bits));
  for (int g = 0; g < 32; ++g) {
    const int pair = g / 2;  // groups of 16 elements share a 3-bit scale, four to a word
    const unsigned step = (packed[pair / 4] >> (3 * (pair % 4))) & 7u;
    const unsigned extra = static_cast<unsigned>(nibble(block[32 + pair], g % 2 != 0));
    const float offset = (extra & 8u) != 0 ? -0.125f : 0.125f;
    put_offset(kIq1sGrid[block[g] | (extra & 7u) << 8], offset, d * static_cast<float>(2u * step + 1u), out + 8 * g);
  }
}

}  // namespace

DecodeRow lattice_decoder(DType type) {
  switch (type) {
    case DType::IQ2_XXS: return decode_blocks<iq2_xxs, 256, 66>;
    case DType::IQ2_XS: return decode_blocks<iq2_xs, 256, 74>;
    case DType::IQ2_S: return decode_blocks<iq2_s, 256, 82>;
    case DType::IQ3_XXS: return decode_blocks<iq3_xxs, 256, 98>;
    case DType::IQ3_S: return decode_blocks<iq3_s, 256, 110>;
    case DType::IQ1_S: return decode_blocks<iq1_s, 256, 50>;
    case DType::IQ1_M: return decode_blocks<iq1_m, 256, 56>;
    default: return nullptr;
  }
}

}  // namespace strata::gguf
