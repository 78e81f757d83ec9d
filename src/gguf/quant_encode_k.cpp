// Encoders of Q3_K, Q4_K, Q5_K and Q6_K. Two stages: a free fit of each sub-block, which sets the f16 scales of the
// block; then, with those rounded, integer scales near the free ones, chosen by the error that they leave, and the
// levels under them.
#include <algorithm>
#include <cmath>

#include "gguf/quant_detail.h"
#include "gguf/quant_search.h"

namespace strata::gguf {
namespace {

constexpr int kBlock = 256;
constexpr float kLargestF16 = 65504.f;
// Integer scales up to this far from the free fit are tried. With 64 levels for 16 elements the error jumps with every
// small change of the scale, and a wide window costs little next to the fit. Pairs of scale and min gain under 1 % from
// 2 with 16 levels, but 3 % with 32.
constexpr int kNearSymmetric = 8;
constexpr int near_affine(int levels) { return levels > 15 ? 3 : 1; }

// x ≈ d·scale[s]·q - dmin·min[s], 8 sub-blocks of 32, q = 0..levels.
struct AffineBlock {
  static constexpr int kSubs = 8, kSize = 32, kTop = 63;
  uint16_t d = 0, dmin = 0;
  int scale[kSubs] = {}, min[kSubs] = {};
  uint8_t q[kBlock] = {};
};

void choose_pair(AffineBlock& block, int s, const float* x, const float* weights, int levels, const AffineFit& fit) {
  const float unit = f16_to_f32(block.d), min_unit = f16_to_f32(block.dmin);
  const Window scales(fit.scale, unit, near_affine(levels), 0, AffineBlock::kTop);
  const Window mins(fit.min, min_unit, near_affine(levels), 0, AffineBlock::kTop);
  float best = INFINITY;
  for (int scale = scales.first; scale <= scales.last; ++scale)
    for (int min = mins.first; min <= mins.last; ++min) {
      const float error = affine_sums(x, weights, AffineBlock::kSize, levels, unit * static_cast<float>(scale),
                                      min_unit * static_cast<float>(min))
                              .error;
      if (!(error < best)) continue;
      best = error;
      block.scale[s] = scale;
      block.min[s] = min;
    }
  affine_levels(x, AffineBlock::kSize, levels, unit * static_cast<float>(block.scale[s]),
                min_unit * static_cast<float>(block.min[s]), block.q + AffineBlock::kSize * s);
}

AffineBlock encode_affine(const float* x, const float* importance, int levels) {
  constexpr int kSubs = AffineBlock::kSubs, kSize = AffineBlock::kSize;
  AffineBlock block;
  float weights[kBlock], most_scale = 0.f, most_min = 0.f;
  AffineFit fits[kSubs];
  for (int s = 0; s < kSubs; ++s) {
    error_weights(x + kSize * s, part_of(importance, kSize * s), kSize, weights + kSize * s);
    fits[s] = fit_affine(x + kSize * s, weights + kSize * s, kSize, levels);
    most_scale = std::max(most_scale, fits[s].scale);
    most_min = std::max(most_min, fits[s].min);
  }
  block.d = cover_f16(most_scale, AffineBlock::kTop);
  block.dmin = cover_f16(most_min, AffineBlock::kTop);
  for (int s = 0; s < kSubs; ++s) choose_pair(block, s, x + kSize * s, weights + kSize * s, levels, fits[s]);
  return block;
}

// The inverse of scale_min: eight pairs of 6 bits in 12 bytes.
void store_scale_min(const AffineBlock& b, uint8_t* c) {
  for (int s = 0; s < 4; ++s) {
    c[s] = static_cast<uint8_t>(b.scale[s] | (b.scale[s + 4] >> 4) << 6);
    c[s + 4] = static_cast<uint8_t>(b.min[s] | (b.min[s + 4] >> 4) << 6);
    c[s + 8] = static_cast<uint8_t>((b.scale[s + 4] & 15) | (b.min[s + 4] & 15) << 4);
  }
}

AffineBlock encode_pairs(const float* values, const float* importance, int levels, uint8_t* block) {
  float x[kBlock];
  // Down to -dmin·63, up to d·63·levels.
  for (int i = 0; i < kBlock; ++i)
    x[i] = std::max(finite_or_limit(values[i], kLargestF16 * 63.f * static_cast<float>(levels)), -kLargestF16 * 63.f);
  const AffineBlock fit = encode_affine(x, importance, levels);
  store_u16(block, fit.d);
  store_u16(block + 2, fit.dmin);
  store_scale_min(fit, block + 4);
  return fit;
}

void q4_k(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  const AffineBlock fit = encode_pairs(values, importance, 15, block);
  for (int pair = 0; pair < 4; ++pair)
    for (int l = 0; l < 32; ++l)
      block[16 + 32 * pair + l] = static_cast<uint8_t>(fit.q[64 * pair + l] | fit.q[64 * pair + 32 + l] << 4);
}

void q5_k(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  const AffineBlock fit = encode_pairs(values, importance, 31, block);
  std::fill(block + 16, block + 48, uint8_t{0});
  for (int pair = 0; pair < 4; ++pair)
    for (int l = 0; l < 32; ++l) {
      const int even = fit.q[64 * pair + l], odd = fit.q[64 * pair + 32 + l];
      block[48 + 32 * pair + l] = static_cast<uint8_t>((even & 15) | (odd & 15) << 4);
      block[16 + l] |= static_cast<uint8_t>((even >> 4) << (2 * pair) | (odd >> 4) << (2 * pair + 1));
    }
}

// x ≈ d·scale[s]·q, 16 sub-blocks of 16, q = low..high, scale = -top..top-1.
struct SymmetricBlock {
  static constexpr int kSubs = 16, kSize = 16;
  uint16_t d = 0;
  int scale[kSubs] = {};
  int8_t q[kBlock] = {};
};

struct SymmetricRange {
  int low, high, top;
};

void choose_scale(SymmetricBlock& block, int s, const float* x, const float* weights, SymmetricRange range,
                  const SymmetricFit& fit) {
  const float unit = f16_to_f32(block.d);
  const Window scales(fit.scale, unit, kNearSymmetric, -range.top, range.top - 1);
  float best = INFINITY;
  for (int scale = scales.first; scale <= scales.last; ++scale) {
    const float error =
        symmetric_sums(x, weights, SymmetricBlock::kSize, range.low, range.high, unit * static_cast<float>(scale))
            .error;
    if (!(error < best)) continue;
    best = error;
    block.scale[s] = scale;
  }
  symmetric_levels(x, SymmetricBlock::kSize, range.low, range.high, unit * static_cast<float>(block.scale[s]),
                   block.q + SymmetricBlock::kSize * s);
}

SymmetricBlock encode_symmetric(const float* x, const float* importance, SymmetricRange range) {
  constexpr int kSubs = SymmetricBlock::kSubs, kSize = SymmetricBlock::kSize;
  SymmetricBlock block;
  float weights[kBlock], extreme = 0.f;
  SymmetricFit fits[kSubs];
  for (int s = 0; s < kSubs; ++s) {
    error_weights(x + kSize * s, part_of(importance, kSize * s), kSize, weights + kSize * s);
    fits[s] = fit_symmetric(x + kSize * s, weights + kSize * s, kSize, range.low, range.high);
    if (std::fabs(fits[s].scale) > std::fabs(extreme)) extreme = fits[s].scale;
  }
  // The extreme scale takes -top, the integer without a positive partner, so that d has the opposite sign.
  const uint16_t magnitude = cover_f16(std::fabs(extreme), static_cast<float>(range.top));
  block.d = extreme > 0.f ? magnitude | 0x8000u : magnitude;
  for (int s = 0; s < kSubs; ++s) choose_scale(block, s, x + kSize * s, weights + kSize * s, range, fits[s]);
  return block;
}

void q6_k(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  float x[kBlock];
  for (int i = 0; i < kBlock; ++i) x[i] = finite_or_limit(values[i], kLargestF16 * 128.f * 32.f);
  const SymmetricBlock fit = encode_symmetric(x, importance, {.low = -32, .high = 31, .top = 128});
  std::fill(block, block + 192, uint8_t{0});
  for (int i = 0; i < kBlock; ++i) {
    const int n = i / 128, j = (i % 128) / 32, l = i % 32, level = fit.q[i] + 32;
    block[64 * n + 32 * (j % 2) + l] |= static_cast<uint8_t>((level & 15) << (4 * (j / 2)));
    block[128 + 32 * n + l] |= static_cast<uint8_t>((level >> 4) << (2 * j));
  }
  for (int s = 0; s < SymmetricBlock::kSubs; ++s) block[192 + s] = static_cast<uint8_t>(fit.scale[s]);
  store_u16(block + 208, fit.d);
}

// 6-bit scales, offset by 32: low four bits in bytes 0..7, high two bits in bytes 8..11.
void store_scales(const SymmetricBlock& fit, uint8_t* c) {
  std::fill(c, c + 12, uint8_t{0});
  for (int g = 0; g < SymmetricBlock::kSubs; ++g) {
    const int scale = fit.scale[g] + 32;
    c[g % 8] |= static_cast<uint8_t>((scale & 15) << (g < 8 ? 0 : 4));
    c[8 + g % 4] |= static_cast<uint8_t>((scale >> 4) << (2 * (g / 4)));
  }
}

void q3_k(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  float x[kBlock];
  for (int i = 0; i < kBlock; ++i) x[i] = finite_or_limit(values[i], kLargestF16 * 32.f * 4.f);
  const SymmetricBlock fit = encode_symmetric(x, importance, {.low = -4, .high = 3, .top = 32});
  std::fill(block, block + 96, uint8_t{0});
  for (int i = 0; i < kBlock; ++i) {
    const int n = i / 128, j = (i % 128) / 32, l = i % 32, level = fit.q[i] + 4;
    block[32 + 32 * n + l] |= static_cast<uint8_t>((level & 3) << (2 * j));
    block[l] |= static_cast<uint8_t>((level >> 2) << (4 * n + j));
  }
  store_scales(fit, block + 96);
  store_u16(block + 108, fit.d);
}

}  // namespace

Encoder k_encoder(DType type) {
  switch (type) {
    case DType::Q3_K: return weighted_blocks<q3_k, kBlock, 110>();
    case DType::Q4_K: return weighted_blocks<q4_k, kBlock, 144>();
    case DType::Q5_K: return weighted_blocks<q5_k, kBlock, 176>();
    case DType::Q6_K: return weighted_blocks<q6_k, kBlock, 210>();
    default: return {};
  }
}

}  // namespace strata::gguf
