// Encoders of IQ4_NL, IQ4_XS and MXFP4: the nearest of 16 levels under a scale that leaves the least weighted error.
#include <algorithm>
#include <array>
#include <cmath>

#include "gguf/quant_detail.h"
#include "gguf/quant_search.h"

namespace strata::gguf {
namespace {

constexpr int kGroup = 32;
constexpr float kLargestF16 = 65504.f;
constexpr uint16_t kLargestFinite = 0x7bff;

// Nearest levels by table: all levels are integers, so that every border between two is a multiple of one half and each
// bin of one half belongs to one level.
struct Codebook {
  float lowest = 0, highest = 0;
  std::array<float, 512> level{};  // of bin floor(2 v) + 256
  std::array<uint8_t, 512> index{};
};

constexpr float magnitude(float x) { return x < 0 ? -x : x; }

constexpr Codebook make_codebook(const float (&levels)[16]) {
  Codebook book;
  for (const float level : levels) {
    book.lowest = std::min(book.lowest, level);
    book.highest = std::max(book.highest, level);
  }
  for (int bin = 0; bin < 512; ++bin) {
    const float v = static_cast<float>(bin - 256) * 0.5f + 0.25f;
    size_t best = 0;
    for (size_t i = 1; i < 16; ++i)
      if (magnitude(levels[i] - v) < magnitude(levels[best] - v)) best = i;
    book.level[static_cast<size_t>(bin)] = levels[best];
    book.index[static_cast<size_t>(bin)] = static_cast<uint8_t>(best);
  }
  return book;
}

constexpr Codebook kIq4 = make_codebook(kIq4Levels);
constexpr Codebook kE2m1 = make_codebook(kE2m1Levels);

inline size_t bin_of(const Codebook& book, float v) {
  v = v < book.lowest ? book.lowest : v;
  v = v > book.highest ? book.highest : v;
  return static_cast<size_t>(static_cast<int>(v * 2.f + 256.f));
}

struct CodebookSums {
  float error, wll, wxl;  // Σ w (scale·l - x)², Σ w l², Σ w x l
};

CodebookSums codebook_sums(const Codebook& book, const float* x, const float* weights, float scale) {
  const float inv = inverse(scale);
  Lanes error, wll, wxl;
  for (int i = 0; i < kGroup; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const float value = x[i + l], w = weights[i + l];
      const float level = book.level[bin_of(book, value * inv)];
      const float miss = scale * level - value;
      error.lane[l] += w * miss * miss;
      wll.lane[l] += w * level * level;
      wxl.lane[l] += w * value * level;
    }
  return {error.sum(), wll.sum(), wxl.sum()};
}

void codebook_indices(const Codebook& book, const float* x, float scale, uint8_t* packed) {
  const float inv = inverse(scale);
  for (int j = 0; j < 16; ++j)
    packed[j] =
        static_cast<uint8_t>(book.index[bin_of(book, x[j] * inv)] | book.index[bin_of(book, x[j + 16] * inv)] << 4);
}

// Levels that the extreme is laid on, from stretched to clipping; the scale is negative where the signs differ.
constexpr float kAnchors[] = {-140, -133, -127, -121, -115, -109, -103, -96, 127, 120, 113, 107, 101, 95, 89, 83};
constexpr int kRefits = 2;

SymmetricFit fit_iq4(const float* x, const float* weights) {
  const auto [least, most] = std::minmax_element(x, x + kGroup);
  const float extreme = -*least > *most ? *least : *most;
  if (std::fabs(extreme) < kNegligible) return {};
  SymmetricFit best;
  bool first = true;
  for (const float anchor : kAnchors) {
    float scale = extreme / anchor;
    for (int refit = 0; refit <= kRefits; ++refit) {
      const CodebookSums s = codebook_sums(kIq4, x, weights, scale);
      if (first || s.error < best.error) best = {scale, s.error};
      first = false;
      const float next = s.wxl / s.wll;  // no level is 0
      if (next == scale || next == 0.f) break;
      scale = next;
    }
  }
  return best;
}

// The f16 next to the scale, or the one beyond it where that leaves less error (among subnormals it may).
uint16_t f16_scale(const float* x, const float* weights, float scale) {
  const uint16_t sign = scale < 0.f ? 0x8000u : 0u;
  const uint16_t nearest = std::min(f32_to_f16(std::fabs(scale)), kLargestFinite);
  if (nearest == kLargestFinite || scale == 0.f) return nearest | sign;
  const uint16_t next = static_cast<uint16_t>(nearest + 1);
  auto error = [&](uint16_t h) { return codebook_sums(kIq4, x, weights, f16_to_f32(h | sign)).error; };
  return (error(next) < error(nearest) ? next : nearest) | sign;
}

void iq4_nl(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  float x[kGroup], weights[kGroup];
  for (int i = 0; i < kGroup; ++i) x[i] = finite_or_limit(values[i], kLargestF16 * 127.f);
  error_weights(x, importance, kGroup, weights);
  const uint16_t d = f16_scale(x, weights, fit_iq4(x, weights).scale);
  store_u16(block, d);
  codebook_indices(kIq4, x, f16_to_f32(d), block + 2);
}

// As in the K types: a free fit per group sets d, then integer scales near the free ones by the error that they leave.
// The error is flat around its least: wider windows gain 0.2 %.
constexpr int kNear = 1;

void iq4_xs(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  constexpr int kGroups = 8, kTop = 32;
  float x[kGroups * kGroup], weights[kGroups * kGroup], extreme = 0.f;
  SymmetricFit fits[kGroups];
  for (int i = 0; i < kGroups * kGroup; ++i) x[i] = finite_or_limit(values[i], kLargestF16 * 127.f * kTop);
  for (int g = 0; g < kGroups; ++g) {
    error_weights(x + kGroup * g, part_of(importance, kGroup * g), kGroup, weights + kGroup * g);
    fits[g] = fit_iq4(x + kGroup * g, weights + kGroup * g);
    if (std::fabs(fits[g].scale) > std::fabs(extreme)) extreme = fits[g].scale;
  }
  const uint16_t magnitude = cover_f16(std::fabs(extreme), kTop);
  const uint16_t d = extreme > 0.f ? magnitude | 0x8000u : magnitude;  // the extreme scale takes -32
  const float unit = f16_to_f32(d);
  unsigned high = 0;
  std::fill(block + 4, block + 8, uint8_t{0});
  for (int g = 0; g < kGroups; ++g) {
    const Window window(fits[g].scale, unit, kNear, -kTop, kTop - 1);
    float best = INFINITY;
    int chosen = 0;
    for (int scale = window.first; scale <= window.last; ++scale) {
      const float error =
          codebook_sums(kIq4, x + kGroup * g, weights + kGroup * g, unit * static_cast<float>(scale)).error;
      if (!(error < best)) continue;
      best = error;
      chosen = scale;
    }
    const auto stored = static_cast<unsigned>(chosen + kTop);
    block[4 + g / 2] |= static_cast<uint8_t>((stored & 15u) << (4 * (g % 2)));
    high |= (stored >> 4) << (2 * g);
    codebook_indices(kIq4, x + kGroup * g, unit * static_cast<float>(chosen), block + 8 + 16 * g);
  }
  store_u16(block, d);
  store_u16(block + 2, static_cast<uint16_t>(high));
}

// 2^(e - 128) with normal f32 for the scale, its inverse and its largest multiple.
constexpr int kLeastExponent = 2, kMostExponent = 252, kExponentBias = 128;
constexpr float kLargestMxfp4 = 0x1.8p127f;  // 12·2^(252 - 128)

float power_of_two(int exponent) { return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23); }

void mxfp4(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  float x[kGroup], weights[kGroup], largest = 0.f;
  for (int i = 0; i < kGroup; ++i) {
    x[i] = finite_or_limit(values[i], kLargestMxfp4);
    largest = std::max(largest, std::fabs(x[i]));
  }
  // Exact powers of two bring the largest into [1, 2), so that no square leaves the range of f32.
  const int exponent = std::max(-126, largest > 0.f ? std::ilogb(largest) : -126);
  const float first_half = power_of_two(-exponent / 2), second_half = power_of_two(-(exponent - exponent / 2));
  for (float& value : x) value = value * first_half * second_half;
  error_weights(x, importance, kGroup, weights);
  // From 12·scale = 3..6 times the largest down to where even the 16-fold clips: further down nothing but the least
  // important elements would gain.
  const int first = std::clamp(exponent + kExponentBias - 1, kLeastExponent, kMostExponent);
  const int last = std::clamp(exponent + kExponentBias - 8, kLeastExponent, kMostExponent);
  auto scale_of = [&](int e) { return power_of_two(e - kExponentBias - exponent); };
  int best = first;
  float least = INFINITY;
  for (int e = first; e >= last; --e) {
    const float error = codebook_sums(kE2m1, x, weights, scale_of(e)).error;
    if (!(error < least)) continue;
    least = error;
    best = e;
  }
  block[0] = static_cast<uint8_t>(best);
  codebook_indices(kE2m1, x, scale_of(best), block + 1);
}

}  // namespace

Encoder codebook_encoder(DType type) {
  switch (type) {
    case DType::IQ4_NL: return weighted_blocks<iq4_nl, 32, 18>();
    case DType::IQ4_XS: return weighted_blocks<iq4_xs, 256, 136>();
    case DType::MXFP4: return weighted_blocks<mxfp4, 32, 17>();
    default: return {};
  }
}

}  // namespace strata::gguf
