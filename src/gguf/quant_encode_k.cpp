// Encoders of Q4_K and Q6_K. Three stages: a free fit of each sub-block; the f16 scale of the block and integer
// scales near the free ones, each chosen by the error it leaves; then a least-squares refit of the f16 scales with the
// integers held, kept if the error falls. The f16 scales are rounded before any integer is chosen.
#include <algorithm>
#include <cmath>

#include "gguf/quant_detail.h"
#include "gguf/quant_search.h"

namespace strata::gguf {
namespace {

constexpr int kBlock = 256;
constexpr float kLargestF16 = 65504.f;
constexpr int kBlockRefits = 2;
// Integer scales up to this far from the free fit are tried. With 64 levels for 16 elements the error jumps with every
// small change of the scale, and a wide window costs little next to the fit; pairs of scale and min gain under 1 % from 2.
constexpr int kNearSymmetric = 8, kNearAffine = 1;

// Magnitudes up to half the least f16: every scale of the block rounds to 0.
bool vanishes(const float* x) {
  return std::all_of(x, x + kBlock, [](float value) { return std::fabs(value) <= 0x1p-25f; });
}

// x ≈ d·scale[s]·q - dmin·min[s], 8 sub-blocks of 32, q = 0..levels, scale and min 0..63.
struct AffineBlock {
  static constexpr int kSubs = 8, kSize = 32, kTop = 63;
  uint16_t d = 0, dmin = 0;
  int scale[kSubs] = {}, min[kSubs] = {};
  AffineSums sums[kSubs] = {};
  double error = 0;
};

struct AffineSource {
  const float* x;
  const float* weights;
  int levels;
  AffineFit fits[AffineBlock::kSubs];
};

int nearest_scale(float free, float unit, int low, int high) {
  return unit != 0.f ? static_cast<int>(clamp_round(free / unit, static_cast<float>(low), static_cast<float>(high))) : 0;
}

// Chooses the integer scales under given f16 scales.
AffineBlock choose_affine(const AffineSource& source, uint16_t d, uint16_t dmin) {
  constexpr int kSize = AffineBlock::kSize, kTop = AffineBlock::kTop;
  AffineBlock block{.d = d, .dmin = dmin};
  const float unit = f16_to_f32(d), min_unit = f16_to_f32(dmin);
  for (int s = 0; s < AffineBlock::kSubs; ++s) {
    const int scale0 = nearest_scale(source.fits[s].scale, unit, 0, kTop);
    const int min0 = nearest_scale(source.fits[s].min, min_unit, 0, kTop);
    bool first = true;
    for (int scale = std::max(0, scale0 - kNearAffine); scale <= std::min(kTop, scale0 + kNearAffine); ++scale)
      for (int min = std::max(0, min0 - kNearAffine); min <= std::min(kTop, min0 + kNearAffine); ++min) {
        const AffineSums sums =
            affine_sums(source.x + kSize * s, source.weights + kSize * s, kSize, source.levels,
                        unit * static_cast<float>(scale), min_unit * static_cast<float>(min));
        if (!first && !(sums.error < block.sums[s].error)) continue;
        first = false;
        block.scale[s] = scale;
        block.min[s] = min;
        block.sums[s] = sums;
      }
    block.error += block.sums[s].error;
  }
  return block;
}

// d and dmin that minimise the error with every integer of the block held; false if they are not usable.
bool refit_affine(const AffineBlock& block, float& d, float& dmin) {
  double qq = 0, qm = 0, mm = 0, xq = 0, xm = 0;
  for (int s = 0; s < AffineBlock::kSubs; ++s) {
    const AffineSums& sums = block.sums[s];
    const double scale = block.scale[s], min = block.min[s];
    qq += scale * scale * sums.wqq;
    qm += scale * min * sums.wq;
    mm += min * min * sums.w;
    xq += scale * sums.wxq;
    xm += min * sums.wx;
  }
  const double determinant = qq * mm - qm * qm;
  if (determinant > 0) {
    d = static_cast<float>((xq * mm - xm * qm) / determinant);
    dmin = static_cast<float>((xq * qm - xm * qq) / determinant);
  } else if (qq > 0 && mm == 0) {
    d = static_cast<float>(xq / qq);
    dmin = 0.f;
  } else {
    return false;
  }
  return d > 0.f && dmin >= 0.f;
}

AffineBlock encode_affine(const float* x, int levels, uint8_t* q) {
  constexpr int kSize = AffineBlock::kSize;
  AffineBlock best;
  float weights[kBlock];
  if (vanishes(x)) {
    std::fill(q, q + kBlock, uint8_t{0});
    return best;
  }
  AffineSource source{x, weights, levels, {}};
  float most_scale = 0.f, most_min = 0.f;
  for (int s = 0; s < AffineBlock::kSubs; ++s) {
    magnitude_weights(x + kSize * s, kSize, weights + kSize * s);
    source.fits[s] = fit_affine(x + kSize * s, weights + kSize * s, kSize, levels);
    most_scale = std::max(most_scale, source.fits[s].scale);
    most_min = std::max(most_min, source.fits[s].min);
  }
  best = choose_affine(source, cover_f16(most_scale, AffineBlock::kTop), cover_f16(most_min, AffineBlock::kTop));
  for (int refit = 0; refit < kBlockRefits; ++refit) {
    float d, dmin;
    if (!refit_affine(best, d, dmin)) break;
    const AffineBlock next = choose_affine(source, cover_f16(d, 1.f), cover_f16(dmin, 1.f));
    if (!(next.error < best.error)) break;
    best = next;
  }
  for (int s = 0; s < AffineBlock::kSubs; ++s)
    affine_levels(x + kSize * s, kSize, levels, f16_to_f32(best.d) * static_cast<float>(best.scale[s]),
                  f16_to_f32(best.dmin) * static_cast<float>(best.min[s]), q + kSize * s);
  return best;
}

// The inverse of scale_min: eight pairs of 6 bits in 12 bytes.
void store_scale_min(const AffineBlock& b, uint8_t* c) {
  for (int s = 0; s < 4; ++s) {
    c[s] = static_cast<uint8_t>(b.scale[s] | (b.scale[s + 4] >> 4) << 6);
    c[s + 4] = static_cast<uint8_t>(b.min[s] | (b.min[s + 4] >> 4) << 6);
    c[s + 8] = static_cast<uint8_t>((b.scale[s + 4] & 15) | (b.min[s + 4] & 15) << 4);
  }
}

void q4_k(const float* __restrict values, uint8_t* __restrict block) {
  float x[kBlock];
  uint8_t q[kBlock];
  // Down to -dmin·63, up to d·63·15.
  for (int i = 0; i < kBlock; ++i)
    x[i] = std::max(finite_or_limit(values[i], kLargestF16 * 63.f * 15.f), -kLargestF16 * 63.f);
  const AffineBlock fit = encode_affine(x, 15, q);
  store_u16(block, fit.d);
  store_u16(block + 2, fit.dmin);
  store_scale_min(fit, block + 4);
  for (int pair = 0; pair < 4; ++pair)
    for (int l = 0; l < 32; ++l)
      block[16 + 32 * pair + l] = static_cast<uint8_t>(q[64 * pair + l] | q[64 * pair + 32 + l] << 4);
}

// x ≈ d·scale[s]·q, 16 sub-blocks of 16, q = low..high, scale -top..top-1.
struct SymmetricBlock {
  static constexpr int kSubs = 16, kSize = 16;
  uint16_t d = 0;
  int scale[kSubs] = {};
  SymmetricSums sums[kSubs] = {};
  double error = 0;
};

struct SymmetricSource {
  const float* x;
  const float* weights;
  int low, high, top;
  SymmetricFit fits[SymmetricBlock::kSubs];
};

SymmetricBlock choose_symmetric(const SymmetricSource& source, uint16_t d) {
  constexpr int kSize = SymmetricBlock::kSize;
  SymmetricBlock block{.d = d};
  const float unit = f16_to_f32(d);
  const int least = -source.top, most = source.top - 1;
  for (int s = 0; s < SymmetricBlock::kSubs; ++s) {
    const int scale0 = nearest_scale(source.fits[s].scale, unit, least, most);
    bool first = true;
    for (int scale = std::max(least, scale0 - kNearSymmetric); scale <= std::min(most, scale0 + kNearSymmetric); ++scale) {
      const SymmetricSums sums = symmetric_sums(source.x + kSize * s, source.weights + kSize * s, kSize, source.low,
                                                source.high, unit * static_cast<float>(scale));
      if (!first && !(sums.error < block.sums[s].error)) continue;
      first = false;
      block.scale[s] = scale;
      block.sums[s] = sums;
    }
    block.error += block.sums[s].error;
  }
  return block;
}

// The signed f16 nearest to d, rounded away from 0 rather than to it.
uint16_t signed_f16(float d, float levels) {
  const uint16_t magnitude = cover_f16(std::fabs(d), levels);
  return d < 0.f ? static_cast<uint16_t>(magnitude | 0x8000u) : magnitude;
}

SymmetricBlock encode_symmetric(const float* x, int low, int high, int top, int8_t* q) {
  constexpr int kSize = SymmetricBlock::kSize;
  SymmetricBlock best;
  float weights[kBlock];
  if (vanishes(x)) {
    std::fill(q, q + kBlock, int8_t{0});
    return best;
  }
  SymmetricSource source{x, weights, low, high, top, {}};
  float extreme = 0.f;
  for (int s = 0; s < SymmetricBlock::kSubs; ++s) {
    magnitude_weights(x + kSize * s, kSize, weights + kSize * s);
    source.fits[s] = fit_symmetric(x + kSize * s, weights + kSize * s, kSize, low, high);
    if (std::fabs(source.fits[s].scale) > std::fabs(extreme)) extreme = source.fits[s].scale;
  }
  // The extreme scale takes -top, the integer without a positive partner.
  best = choose_symmetric(source, signed_f16(-extreme, static_cast<float>(top)));
  for (int refit = 0; refit < kBlockRefits; ++refit) {
    double qq = 0, xq = 0;
    for (int s = 0; s < SymmetricBlock::kSubs; ++s) {
      const double scale = best.scale[s];
      qq += scale * scale * best.sums[s].wqq;
      xq += scale * best.sums[s].wxq;
    }
    if (!(qq > 0)) break;
    const SymmetricBlock next = choose_symmetric(source, signed_f16(static_cast<float>(xq / qq), 1.f));
    if (!(next.error < best.error)) break;
    best = next;
  }
  for (int s = 0; s < SymmetricBlock::kSubs; ++s)
    symmetric_levels(x + kSize * s, kSize, low, high, f16_to_f32(best.d) * static_cast<float>(best.scale[s]),
                     q + kSize * s);
  return best;
}

void q6_k(const float* __restrict values, uint8_t* __restrict block) {
  float x[kBlock];
  int8_t q[kBlock];
  for (int i = 0; i < kBlock; ++i) x[i] = finite_or_limit(values[i], kLargestF16 * 128.f * 32.f);
  const SymmetricBlock fit = encode_symmetric(x, -32, 31, 128, q);
  std::fill(block, block + 192, uint8_t{0});
  for (int i = 0; i < kBlock; ++i) {
    const int n = i / 128, j = (i % 128) / 32, l = i % 32, level = q[i] + 32;
    block[64 * n + 32 * (j % 2) + l] |= static_cast<uint8_t>((level & 15) << (4 * (j / 2)));
    block[128 + 32 * n + l] |= static_cast<uint8_t>((level >> 4) << (2 * j));
  }
  for (int s = 0; s < SymmetricBlock::kSubs; ++s) block[192 + s] = static_cast<uint8_t>(fit.scale[s]);
  store_u16(block + 208, fit.d);
}

}  // namespace

EncodeRow k_encoder(DType type) {
  switch (type) {
    case DType::Q4_K: return encode_blocks<q4_k, kBlock, 144>;
    case DType::Q6_K: return encode_blocks<q6_k, kBlock, 210>;
    default: return nullptr;
  }
}

}  // namespace strata::gguf
