// Shared by the files of the block formats; not for use outside src/gguf/quant*.cpp.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "gguf/quant.h"

namespace strata::gguf {

static_assert(std::endian::native == std::endian::little, "blocks are little-endian and are read in place");

// Blocks have no alignment: 34 bytes, 17 bytes.
inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline void store_u16(uint8_t* p, uint16_t value) { std::memcpy(p, &value, sizeof value); }

inline float load_f16(const uint8_t* p) { return f16_to_f32(load_u16(p)); }

// Low or high four bits of a byte.
inline int nibble(uint8_t byte, bool high) { return high ? byte >> 4 : byte & 15; }

// The 6-bit (scale, minimum) pair of sub-block s (0..7) in the 12 scale bytes of Q4_K and Q5_K.
struct ScaleMin {
  int scale, min;
};

inline ScaleMin scale_min(const uint8_t* c, int s) {
  if (s < 4) return {c[s] & 63, c[s + 4] & 63};
  return {(c[s + 4] & 15) | (c[s - 4] >> 6) << 4, (c[s + 4] >> 4) | (c[s] >> 6) << 4};
}

// A row is a run of blocks; kBlock decodes or encodes one.
template <void (*kBlock)(const uint8_t* __restrict, float* __restrict), int kElements, int kBytes>
void decode_blocks(const void* blocks, float* out, int64_t elements) {
  const uint8_t* block = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < elements; i += kElements, block += kBytes) kBlock(block, out + i);
}

template <void (*kBlock)(const float* __restrict, uint8_t* __restrict), int kElements, int kBytes>
void encode_blocks(const float* values, void* blocks, int64_t elements) {
  uint8_t* block = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < elements; i += kElements, block += kBytes) kBlock(values + i, block);
}

// One pair of look-ups per family; nullptr for a type of another family.
DecodeRow plain_decoder(DType type);
DecodeRow simple_decoder(DType type);
DecodeRow codebook_decoder(DType type);
DecodeRow k_decoder(DType type);
DecodeRow lattice_decoder(DType type);
DecodeRow ternary_decoder(DType type);

EncodeRow plain_encoder(DType type);
EncodeRow simple_encoder(DType type);
EncodeRow k_encoder(DType type);

}  // namespace strata::gguf
