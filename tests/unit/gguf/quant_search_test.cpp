// The scale searches against brute force on a fine grid of scales.
#include "gguf/quant_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace strata::gguf {
namespace {

double affine_error(const std::vector<float>& x, const std::vector<float>& w, int levels, double scale, double min) {
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double q = scale > 0 ? std::clamp(std::nearbyint((x[i] + min) / scale), 0.0, double(levels)) : 0.0;
    const double miss = scale * q - min - x[i];
    error += w[i] * miss * miss;
  }
  return error;
}

double symmetric_error(const std::vector<float>& x, const std::vector<float>& w, int low, int high, double scale) {
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double q = scale != 0 ? std::clamp(std::nearbyint(x[i] / scale), double(low), double(high)) : 0.0;
    error += w[i] * (scale * q - x[i]) * (scale * q - x[i]);
  }
  return error;
}

std::vector<float> sample(size_t n, int kind, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(-1.f, 1.f);
  std::vector<float> x(n);
  for (float& value : x) {
    value = kind == 1 ? uniform(rng) : normal(rng);
    if (kind == 2) value = std::fabs(value) + 0.5f;  // minimum above zero: min stays 0
    if (kind == 3) value = value * value * value;    // heavy tails
  }
  return x;
}

struct Totals {
  double searched = 0, brute = 0, worst = 0;
  void add(double a, double b) {
    searched += a;
    brute += b;
    worst = std::max(worst, a / b);
  }
};

std::vector<float> weights_of(const std::vector<float>& x) {
  std::vector<float> w(x.size());
  magnitude_weights(x.data(), static_cast<int>(x.size()), w.data());
  return w;
}

TEST(QuantSearch, WeightsGrowWithMagnitude) {
  const std::vector<float> w = weights_of({3.f, -3.f, 3.f, -3.f, 0.f, 0.f, 0.f, 0.f});
  EXPECT_EQ(w[0], w[1]);
  EXPECT_NEAR(w[0], 1.f + std::sqrt(2.f), 1e-6);  // rms = 3 / sqrt(2); a few roundings of 6e-8
  EXPECT_EQ(w[4], 1.f);
  for (const float weight : weights_of(std::vector<float>(32, 0.f))) EXPECT_EQ(weight, 1.f);
}

// Grid: scales from 0.6 to 1.2 of range / levels in steps of 0.5 %, minima within two steps of the lowest value in
// steps of 1/16 level. The error has many local minima in scale and min, so that neither side is the true optimum: over
// twelve blocks the search may lose 2 % of the squared error to the grid (1 % of the RMS), in the worst block 10 %; it
// may win no more than 5 %, since a grid so fine is close to optimal.
TEST(QuantSearch, AffineIsNearBruteForce) {
  std::mt19937 rng(21);
  for (int kind = 0; kind < 4; ++kind) {
    Totals totals;
    for (int block = 0; block < 12; ++block) {
      const std::vector<float> x = sample(32, kind, rng), w = weights_of(x);
      const AffineFit fit = fit_affine(x.data(), w.data(), 32, 15);
      const double error = affine_error(x, w, 15, fit.scale, fit.min);
      EXPECT_GT(fit.scale, 0.f);
      EXPECT_GE(fit.min, 0.f);
      // 32 terms, each a few roundings of 2^-24 of values up to 15 levels: 1e-3 of the mean squared miss.
      EXPECT_NEAR(fit.error, error, 1e-3 * error);
      const auto [low, high] = std::minmax_element(x.begin(), x.end());
      const double bottom = std::min(0.f, *low), unit = (*high - bottom) / 15;
      double best = 1e30;
      for (double scale = 0.6 * unit; scale < 1.2 * unit; scale += 0.005 * unit)
        for (double min = -bottom - 2 * unit; min < -bottom + 2 * unit; min += unit / 16)
          best = std::min(best, affine_error(x, w, 15, scale, std::max(0.0, min)));
      totals.add(error, best);
    }
    std::printf("affine kind %d: mean %.4f of brute force, worst %.4f\n", kind, totals.searched / totals.brute,
                totals.worst);
    EXPECT_LE(totals.searched, 1.02 * totals.brute) << kind;
    EXPECT_GE(totals.searched, 0.95 * totals.brute) << kind;
    EXPECT_LE(totals.worst, 1.10) << kind;
  }
}

// Grid: 1500 scales of either sign from 0.5 to 1.25 of extreme / |low|. With 8 levels a few candidates find the
// optimum: 2 % as above. With 64 levels for 16 elements some of 3000 scales happens to lie near all elements at once; a
// few candidates cannot find it and an encoder with integer scales could not store it: 15 %, and quant_encode_test
// bounds what is stored.
TEST(QuantSearch, SymmetricIsNearBruteForce) {
  std::mt19937 rng(22);
  for (const int low : {-32, -4}) {
    for (int kind = 0; kind < 4; ++kind) {
      Totals totals;
      for (int block = 0; block < 40; ++block) {
        const std::vector<float> x = sample(16, kind, rng), w = weights_of(x);
        const SymmetricFit fit = fit_symmetric(x.data(), w.data(), 16, low, -low - 1);
        const double error = symmetric_error(x, w, low, -low - 1, fit.scale);
        EXPECT_NEAR(fit.error, error, 1e-3 * error);
        double extreme = 0, best = 1e30;
        for (const float value : x) extreme = std::max(extreme, double(std::fabs(value)));
        for (int k = 0; k < 1500; ++k)
          for (const double sign : {-1.0, 1.0})
            best = std::min(best, symmetric_error(x, w, low, -low - 1, sign * extreme / -low * (0.5 + k / 2000.0)));
        totals.add(error, best);
      }
      std::printf("symmetric %d kind %d: mean %.4f of brute force, worst %.4f\n", low, kind,
                  totals.searched / totals.brute, totals.worst);
      EXPECT_LE(totals.searched, (low == -4 ? 1.02 : 1.15) * totals.brute);
      EXPECT_GE(totals.searched, 0.95 * totals.brute);
    }
  }
}

TEST(QuantSearch, DegenerateBlocks) {
  const std::vector<float> w(32, 1.f);
  const std::vector<float> zeros(32, 0.f), negative(32, -2.5f), positive(32, 2.5f);
  std::vector<float> tiny(32, 1e-40f);  // the inverse of its scale would be infinite
  tiny[3] = 0.f;
  AffineFit fit = fit_affine(zeros.data(), w.data(), 32, 15);
  EXPECT_EQ(fit.scale, 0.f);
  EXPECT_EQ(fit.min, 0.f);
  fit = fit_affine(negative.data(), w.data(), 32, 15);
  EXPECT_EQ(affine_error(negative, w, 15, fit.scale, fit.min), 0.0);
  fit = fit_affine(positive.data(), w.data(), 32, 15);
  EXPECT_NEAR(affine_error(positive, w, 15, fit.scale, fit.min), 0.0, 32 * 2.5 * 2.5 * 0x1p-44);  // 2^-22 of the value
  fit = fit_affine(tiny.data(), w.data(), 32, 15);
  EXPECT_TRUE(std::isfinite(fit.scale) && std::isfinite(fit.min) && std::isfinite(fit.error));
  EXPECT_EQ(fit_symmetric(zeros.data(), w.data(), 16, -32, 31).scale, 0.f);
  EXPECT_EQ(fit_symmetric(tiny.data(), w.data(), 16, -32, 31).scale, 0.f);
}

TEST(QuantSearch, CoverF16KeepsTheLargestInReach) {
  for (double largest = 0x1p-30; largest < 1e7; largest *= 1.01) {
    for (const float levels : {1.f, 8.f, 63.f, 127.f}) {
      const float d = f16_to_f32(cover_f16(static_cast<float>(largest), levels));
      if (largest > 65504.0 * levels) {
        EXPECT_EQ(d, 65504.f);
      } else {
        EXPECT_LE(largest, (levels + 0.5) * d * (1 + 0x1p-23));
        EXPECT_NEAR(d, largest / levels, std::max(0x1p-24, largest / levels * 0x1p-11));
      }
    }
  }
  EXPECT_EQ(cover_f16(0.f, 127.f), 0);
}

}  // namespace
}  // namespace strata::gguf
