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

// Levels of IQ4_NL and IQ4_XS; of MXFP4 and NVFP4: E2M1 doubled, so that every level is an integer (the scales carry
// the missing half).
inline constexpr float kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
inline constexpr float kE2m1Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, -0.f, -1, -2, -3, -4, -6, -8, -12};

inline const float* part_of(const float* importance, int first) {
  return importance == nullptr ? nullptr : importance + first;
}

// A row is a run of blocks; kBlock decodes or encodes one.
template <void (*kBlock)(const uint8_t* __restrict, float* __restrict), int kElements, int kBytes>
void decode_blocks(const void* blocks, float* out, int64_t elements) {
  const uint8_t* block = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < elements; i += kElements, block += kBytes) kBlock(block, out + i);
}

// Both forms of an encoder.
struct Encoder {
  EncodeRow row = nullptr;
  EncodeWeightedRow weighted = nullptr;
  bool uses_weights = false;
  explicit operator bool() const { return row != nullptr; }
};

template <EncodeRow kRow>
constexpr Encoder unweighted_row() {
  return {kRow, [](const float* values, const float*, void* blocks, int64_t n) { kRow(values, blocks, n); }, false};
}

template <void (*kBlock)(const float* __restrict, uint8_t* __restrict), int kElements, int kBytes>
void encode_blocks(const float* values, void* blocks, int64_t elements) {
  uint8_t* block = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < elements; i += kElements, block += kBytes) kBlock(values + i, block);
}

// kBlock takes values, importance (may be null) and the block to write.
using EncodeBlock = void (*)(const float* __restrict, const float* __restrict, uint8_t* __restrict);

template <EncodeBlock kBlock, int kElements, int kBytes>
void encode_weighted_blocks(const float* values, const float* weights, void* blocks, int64_t elements) {
  uint8_t* block = static_cast<uint8_t*>(blocks);
  for (int64_t i = 0; i < elements; i += kElements, block += kBytes)
    kBlock(values + i, weights == nullptr ? nullptr : weights + i, block);
}

template <EncodeBlock kBlock, int kElements, int kBytes>
constexpr Encoder weighted_blocks() {
  return {[](const float* values, void* blocks, int64_t n) {
            encode_weighted_blocks<kBlock, kElements, kBytes>(values, nullptr, blocks, n);
          },
          encode_weighted_blocks<kBlock, kElements, kBytes>, true};
}

// One pair of look-ups per family; nullptr for a type of another family.
DecodeRow plain_decoder(DType type);
DecodeRow simple_decoder(DType type);
DecodeRow codebook_decoder(DType type);
DecodeRow k_decoder(DType type);
DecodeRow lattice_decoder(DType type);
DecodeRow ternary_decoder(DType type);

Encoder plain_encoder(DType type);
Encoder simple_encoder(DType type);
Encoder codebook_encoder(DType type);
Encoder k_encoder(DType type);
Encoder lattice_encoder(DType type);

}  // namespace strata::gguf
