#include "gguf/quant_random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "gguf/quant_detail.h"

namespace strata::gguf {
namespace {

constexpr uint64_t kStride = 64;  // words reserved for a block: more than any needs
constexpr size_t kLargestBlock = 256;
constexpr float kF16One = 1.f;

float uniform_of(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }  // [0, 1)

// Magnitude in the upper half of 2^bits, with a random sign: no sub-block is much smaller than another.
int signed_scale(uint8_t random, int half) {
  const int magnitude = half + (random >> 1) % half;
  return (random & 1u) != 0 ? magnitude : -magnitude;
}

// Scales equal minima: with dmin = d·levels/2 every sub-block is centred on 0.
void centred_pairs(const uint8_t* random, uint8_t* c) {
  uint8_t s[8];
  for (int i = 0; i < 8; ++i) s[i] = static_cast<uint8_t>(32 + random[i] % 32);
  for (int i = 0; i < 4; ++i) {
    c[i] = c[i + 4] = static_cast<uint8_t>(s[i] | (s[i + 4] >> 4) << 6);
    c[i + 8] = static_cast<uint8_t>((s[i + 4] & 15) | (s[i + 4] & 15) << 4);
  }
}

void q3_k_scales(const uint8_t* random, uint8_t* c) {
  std::fill(c, c + 12, uint8_t{0});
  for (int g = 0; g < 16; ++g) {
    const int scale = 32 + signed_scale(random[g], 16);
    c[g % 8] |= static_cast<uint8_t>((scale & 15) << (g < 8 ? 0 : 4));
    c[8 + g % 4] |= static_cast<uint8_t>((scale >> 4) << (2 * (g / 4)));
  }
}

void iq4_xs_scales(const uint8_t* random, uint8_t* block) {
  unsigned high = 0;
  std::fill(block + 4, block + 8, uint8_t{0});
  for (int g = 0; g < 8; ++g) {
    const auto scale = static_cast<unsigned>(32 + signed_scale(random[g], 16));
    block[4 + g / 2] |= static_cast<uint8_t>((scale & 15u) << (4 * (g % 2)));
    high |= (scale >> 4) << (2 * g);
  }
  store_u16(block + 2, static_cast<uint16_t>(high));
}

// Overwrites the scale fields of a block of random bits. `random` has 16 bytes that no other field depends on.
void set_scales(DType type, const uint8_t* random, uint16_t d, uint16_t dmin, uint8_t* block) {
  const uint16_t either = (random[15] & 1u) != 0 ? d | 0x8000u : d;
  switch (type) {
    case DType::Q8_0:  // -128 is no level of the format
      for (int i = 0; i < 32; ++i)
        if (block[2 + i] == 0x80) block[2 + i] = 0;
      store_u16(block, either);
      break;
    case DType::Q4_0:
    case DType::IQ4_NL: store_u16(block, either); break;
    case DType::Q4_K:
    case DType::Q5_K:
      centred_pairs(random, block + 4);
      store_u16(block, d);
      store_u16(block + 2, dmin);
      break;
    case DType::Q6_K:
      for (int g = 0; g < 16; ++g) block[192 + g] = static_cast<uint8_t>(signed_scale(random[g], 64));
      store_u16(block + 208, d);
      break;
    case DType::Q3_K:
      q3_k_scales(random, block + 96);
      store_u16(block + 108, d);
      break;
    case DType::IQ4_XS:
      iq4_xs_scales(random, block);
      store_u16(block, d);
      break;
    case DType::IQ3_S:
      for (int i = 0; i < 4; ++i) block[106 + i] |= 0x88u;
      store_u16(block, d);
      break;
    default: break;
  }
}

double affine_centre(DType type) { return type == DType::Q4_K ? 7.5 : type == DType::Q5_K ? 15.5 : 0; }

void random_bytes(uint64_t counter, uint8_t* out, size_t bytes) {
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    const uint64_t word = splitmix64(counter++);
    std::memcpy(out + at, &word, 8);
  }
  const uint64_t word = splitmix64(counter);
  std::memcpy(out + at, &word, bytes - at);
}

// Root mean square of values under d = 1, over blocks enough for about 1 %.
double unit_spread(DType type) {
  const DTypeInfo& t = info(type);
  std::array<uint8_t, kLargestBlock> block;
  std::array<float, 256> values;
  double power = 0;
  constexpr uint64_t kBlocks = 256;
  const uint16_t one = f32_to_f16(kF16One), dmin = f32_to_f16(static_cast<float>(affine_centre(type)));
  for (uint64_t b = 0; b < kBlocks; ++b) {
    uint8_t random[16];
    random_bytes(b * kStride, block.data(), t.block_bytes);
    random_bytes(b * kStride + kStride - 2, random, sizeof random);
    set_scales(type, random, one, dmin, block.data());
    decoder(type)(block.data(), values.data(), t.block_elements);
    for (uint32_t i = 0; i < t.block_elements; ++i) power += static_cast<double>(values[i]) * values[i];
  }
  return std::sqrt(power / static_cast<double>(kBlocks * t.block_elements));
}

}  // namespace

RandomBlocks::RandomBlocks(DType type, double sigma, uint64_t key)
    : type_(type), sigma_(static_cast<float>(sigma)), key_(key), bytes_(info(type).block_bytes) {
  encoder(type);  // refuses types without one
  if (!info(type).quantised) return;
  if (type == DType::MXFP4) {
    // rms of the levels 0, 1, 2, 3, 4, 6, 8, 12. The mean square lies between those of two exponents.
    const double wanted = sigma / std::sqrt(274.0 / 8);
    const int exponent = static_cast<int>(std::floor(std::log2(wanted)));
    const double ratio = wanted / std::exp2(exponent);
    exponent_ = static_cast<uint8_t>(std::clamp(exponent + 128, 2, 251));
    up_ = static_cast<float>((ratio * ratio - 1) / 3);
    return;
  }
  const double d = sigma / unit_spread(type);
  scale_ = f32_to_f16(static_cast<float>(d));
  min_ = f32_to_f16(static_cast<float>(affine_centre(type) * d));
}

void RandomBlocks::draw_block(uint64_t index, uint8_t* block) const {
  const uint64_t counter = key_ + index * kStride;
  random_bytes(counter, block, bytes_);
  uint8_t random[16];
  random_bytes(counter + kStride - 2, random, sizeof random);
  if (type_ == DType::MXFP4) {
    uint64_t word;
    std::memcpy(&word, random, 8);
    block[0] = uniform_of(word) < up_ ? exponent_ + 1 : exponent_;
  } else {
    set_scales(type_, random, scale_, min_, block);
  }
}

void RandomBlocks::draw(uint64_t first, uint64_t count, void* out) const {
  auto* bytes = static_cast<uint8_t*>(out);
  if (info(type_).quantised) {
    for (uint64_t i = 0; i < count; ++i) draw_block(first + i, bytes + i * bytes_);
    return;
  }
  const float width = sigma_ * 3.4641016f, half = width / 2;  // √12: a uniform density of this standard deviation
  for (uint64_t i = 0; i < count; ++i) {
    const float value = uniform_of(splitmix64(key_ + first + i)) * width - half;
    if (type_ == DType::F32)
      std::memcpy(bytes + 4 * i, &value, 4);
    else
      store_u16(bytes + 2 * i, type_ == DType::F16 ? f32_to_f16(value) : f32_to_bf16(value));
  }
}

}  // namespace strata::gguf
