#include "gguf/quant_search.h"

#include <algorithm>

namespace strata::gguf {
namespace {

// Candidates stretch the levels over range / (levels + t): t < 0 wastes levels at the ends, t > 0 clips the extremes to
// make the steps finer. Each is followed by refits of scale and min to the levels that it chose.
constexpr float kStretchFirst = -1.f, kStretchStep = 0.25f;
constexpr int kStretches = 13;
constexpr int kRefits = 2;

}  // namespace

uint16_t cover_f16(float largest, float levels) {
  constexpr uint16_t kLargestFinite = 0x7bff;
  const uint16_t nearest = std::min(f32_to_f16(largest / levels), kLargestFinite);
  const bool short_of_it = largest > (levels + 0.5f) * f16_to_f32(nearest);
  return short_of_it && nearest < kLargestFinite ? static_cast<uint16_t>(nearest + 1) : nearest;
}

void magnitude_weights(const float* x, int n, float* weights) {
  Lanes squares;
  for (int i = 0; i < n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) squares.lane[l] += x[i + l] * x[i + l];
  const float inverse_rms = inverse(std::sqrt(squares.sum() / static_cast<float>(n)));
  for (int i = 0; i < n; ++i) weights[i] = 1.f + std::fabs(x[i]) * inverse_rms;
}

void error_weights(const float* x, const float* importance, int n, float* weights) {
  float largest = 0.f;
  if (importance != nullptr)
    for (int i = 0; i < n; ++i)
      if (std::isfinite(importance[i])) largest = std::max(largest, importance[i]);
  if (largest < kNegligible) {
    magnitude_weights(x, n, weights);
    return;
  }
  // The floor keeps sums positive and the levels of unimportant elements sensible.
  constexpr float kFloor = 0x1p-16f;
  for (int i = 0; i < n; ++i) {
    const float w = std::isfinite(importance[i]) ? importance[i] / largest : 0.f;
    weights[i] = w > kFloor ? w : kFloor;
  }
}

AffineSums affine_sums(const float* x, const float* weights, int n, int levels, float scale, float min) {
  const float inv = inverse(scale), top = static_cast<float>(levels);
  Lanes error, w_, wq, wqq, wx, wxq;
  for (int i = 0; i < n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const float value = x[i + l], w = weights[i + l];
      const float q = clamp_round((value + min) * inv, 0.f, top);
      const float miss = scale * q - min - value;
      error.lane[l] += w * miss * miss;
      w_.lane[l] += w;
      wq.lane[l] += w * q;
      wqq.lane[l] += w * q * q;
      wx.lane[l] += w * value;
      wxq.lane[l] += w * value * q;
    }
  return {error.sum(), w_.sum(), wq.sum(), wqq.sum(), wx.sum(), wxq.sum()};
}

AffineFit fit_affine(const float* x, const float* weights, int n, int levels) {
  const float low = std::min(0.f, *std::min_element(x, x + n));
  const float high = *std::max_element(x, x + n);
  if (high - low < kNegligible) return {0.f, -low, 0.f};
  AffineFit best;
  bool first = true;
  for (int k = 0; k < kStretches; ++k) {
    const float stretch = kStretchFirst + kStretchStep * static_cast<float>(k);
    float scale = (high - low) / (static_cast<float>(levels) + stretch), min = -low;
    for (int refit = 0; refit <= kRefits; ++refit) {
      const AffineSums s = affine_sums(x, weights, n, levels, scale, min);
      if (first || s.error < best.error) best = {scale, min, s.error};
      first = false;
      // Normal equations of Σ w (scale·q - min - x)².
      const float determinant = s.w * s.wqq - s.wq * s.wq;
      if (!(determinant > 0.f)) break;
      float next = (s.w * s.wxq - s.wq * s.wx) / determinant;
      float next_min = (next * s.wq - s.wx) / s.w;
      if (next_min < 0.f) {
        next_min = 0.f;
        next = s.wxq / s.wqq;
      }
      if (!(next > 0.f) || (next == scale && next_min == min)) break;
      scale = next;
      min = next_min;
    }
  }
  return best;
}

void affine_levels(const float* x, int n, int levels, float scale, float min, uint8_t* q) {
  const float inv = inverse(scale), top = static_cast<float>(levels);
  for (int i = 0; i < n; ++i) q[i] = static_cast<uint8_t>(clamp_round((x[i] + min) * inv, 0.f, top));
}

SymmetricSums symmetric_sums(const float* x, const float* weights, int n, int low, int high, float scale) {
  const float inv = inverse(scale), bottom = static_cast<float>(low), top = static_cast<float>(high);
  Lanes error, wqq, wxq;
  for (int i = 0; i < n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const float value = x[i + l], w = weights[i + l];
      const float q = clamp_round(value * inv, bottom, top);
      const float miss = scale * q - value;
      error.lane[l] += w * miss * miss;
      wqq.lane[l] += w * q * q;
      wxq.lane[l] += w * value * q;
    }
  return {error.sum(), wqq.sum(), wxq.sum()};
}

SymmetricFit fit_symmetric(const float* x, const float* weights, int n, int low, int high) {
  const auto [least, most] = std::minmax_element(x, x + n);
  const float extreme = -*least > *most ? *least : *most;
  if (std::fabs(extreme) < kNegligible) return {};
  SymmetricFit best;
  bool first = true;
  for (int k = 0; k < kStretches; ++k) {
    const float stretch = kStretchFirst + kStretchStep * static_cast<float>(k);
    float scale = extreme / (static_cast<float>(low) - stretch);  // the extreme lies on the longer, negative side
    for (int refit = 0; refit <= kRefits; ++refit) {
      const SymmetricSums s = symmetric_sums(x, weights, n, low, high, scale);
      if (first || s.error < best.error) best = {scale, s.error};
      first = false;
      if (!(s.wqq > 0.f)) break;
      const float next = s.wxq / s.wqq;
      if (next == scale || next == 0.f) break;
      scale = next;
    }
  }
  return best;
}

void symmetric_levels(const float* x, int n, int low, int high, float scale, int8_t* q) {
  const float inv = inverse(scale), bottom = static_cast<float>(low), top = static_cast<float>(high);
  for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(clamp_round(x[i] * inv, bottom, top));
}

}  // namespace strata::gguf
