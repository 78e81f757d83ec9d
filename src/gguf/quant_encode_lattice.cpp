// Encoder of IQ3_S: groups of four magnitudes are rows of a grid of 512, signs are free, 32 elements share a 4-bit
// scale. The nearest row is exact: all rows are searched, those that cannot win by one comparison for eight of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "gguf/iq_grids.h"
#include "gguf/quant_detail.h"
#include "gguf/quant_search.h"

namespace strata::gguf {
namespace {

constexpr int kBlock = 256, kSub = 32, kSubs = 8, kRows = 8;  // rows of a sub-block
constexpr float kLargestF16 = 65504.f;
constexpr int kLevels = 8;  // magnitudes 1, 3, ..., 15
constexpr int kTopStep = 15, kTopScale = 31;

// Grid rows in the order of their first two magnitudes (as one number of two octal digits), with the last two likewise.
struct RowTable {
  struct Row {
    uint16_t index;
    uint8_t tail;
  };
  std::array<uint16_t, 65> first{};  // of each head
  std::array<Row, 512> rows{};
};

constexpr size_t pair_of(int a, int b) { return static_cast<size_t>(a / 2 * kLevels + b / 2); }

RowTable make_table() {
  RowTable table;
  uint16_t count = 0;
  for (size_t head = 0; head < 64; ++head) {
    table.first[head] = count;
    for (uint16_t index = 0; index < 512; ++index) {
      const auto& row = kIq3sGrid[index];
      if (pair_of(row[0], row[1]) == head) table.rows[count++] = {index, static_cast<uint8_t>(pair_of(row[2], row[3]))};
    }
  }
  table.first[64] = count;
  return table;
}

const RowTable& row_table() {
  static const RowTable table = make_table();
  return table;
}

// The row with the least Σ w (scale·g - a)² over its four magnitudes a >= 0.
uint16_t nearest_row(const RowTable& table, const float* a, const float* weights, float scale) {
  float cost[4][kLevels], head[64], tail[64];
  for (int j = 0; j < 4; ++j)
    for (int level = 0; level < kLevels; ++level) {
      const float miss = scale * static_cast<float>(2 * level + 1) - a[j];
      cost[j][level] = weights[j] * miss * miss;
    }
  for (int i = 0; i < kLevels; ++i)
    for (int k = 0; k < kLevels; ++k) {
      head[kLevels * i + k] = cost[0][i] + cost[1][k];
      tail[kLevels * i + k] = cost[2][i] + cost[3][k];
    }
  auto least = [](const float* values) {
    return std::min({values[0], values[1], values[2], values[3], values[4], values[5], values[6], values[7]});
  };
  const float least_tail = least(cost[2]) + least(cost[3]), least_head = least(cost[0]) + least(cost[1]);
  float best = INFINITY;
  uint16_t chosen = 0;
  auto scan = [&](size_t h) {
    for (size_t r = table.first[h]; r < table.first[h + 1]; ++r) {
      const float total = head[h] + tail[table.rows[r].tail];
      if (!(total < best)) continue;
      best = total;
      chosen = table.rows[r].index;
    }
  };
  // A head of least cost first: its rows set a bound that few others meet.
  for (size_t h = 0; h < 64; ++h)
    if (head[h] == least_head) {
      scan(h);
      break;
    }
  for (size_t h = 0; h < 64; ++h)
    if (head[h] + least_tail < best) scan(h);
  return chosen;
}

struct LatticeSums {
  float error, wgg, wag;  // Σ w (scale·g - a)², Σ w g², Σ w a g
};

LatticeSums nearest_rows(const float* a, const float* weights, float scale, uint16_t* rows) {
  const RowTable& table = row_table();
  float grid[kSub];
  for (int r = 0; r < kRows; ++r) {
    rows[r] = nearest_row(table, a + 4 * r, weights + 4 * r, scale);
    for (int j = 0; j < 4; ++j) grid[4 * r + j] = static_cast<float>(kIq3sGrid[rows[r]][static_cast<size_t>(j)]);
  }
  Lanes error, wgg, wag;
  for (int i = 0; i < kSub; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const float w = weights[i + l], g = grid[i + l], miss = scale * g - a[i + l];
      error.lane[l] += w * miss * miss;
      wgg.lane[l] += w * g * g;
      wag.lane[l] += w * a[i + l] * g;
    }
  return {error.sum(), wgg.sum(), wag.sum()};
}

// Magnitudes that the largest element is laid on, from stretched to clipping.
constexpr float kAnchors[] = {16.5f, 15.f, 13.f, 11.5f, 10.f};
constexpr int kRefits = 1;

float fit_scale(const float* a, const float* weights) {
  const auto [least_of, most_of] = std::minmax_element(a, a + kSub);
  const float largest = *most_of;
  if (largest < kNegligible) return 0.f;
  if (*least_of == largest) return largest;  // the one row of equal magnitudes is 1, 1, 1, 1
  uint16_t rows[kRows];
  float best = 0.f, least = INFINITY;
  for (const float anchor : kAnchors) {
    float scale = largest / anchor;
    for (int refit = 0; refit <= kRefits; ++refit) {
      const LatticeSums s = nearest_rows(a, weights, scale, rows);
      if (s.error < least) {
        least = s.error;
        best = scale;
      }
      scale = s.wag / s.wgg;  // positive: some a is, and every g
    }
  }
  return best;
}

constexpr int kNear = 1;

void iq3_s(const float* __restrict values, const float* __restrict importance, uint8_t* __restrict block) {
  float a[kBlock], weights[kBlock], free_scale[kSubs], most = 0.f;
  std::fill(block + 2, block + 110, uint8_t{0});
  for (int i = 0; i < kBlock; ++i) {
    const float x = finite_or_limit(values[i], kLargestF16 * kTopScale * 15.f);
    a[i] = std::fabs(x);
    if (x < 0.f) block[74 + i / 8] |= static_cast<uint8_t>(1u << (i % 8));
  }
  for (int s = 0; s < kSubs; ++s) {
    error_weights(a + kSub * s, part_of(importance, kSub * s), kSub, weights + kSub * s);
    free_scale[s] = fit_scale(a + kSub * s, weights + kSub * s);
    most = std::max(most, free_scale[s]);
  }
  uint16_t d = cover_f16(most, kTopScale);
  const float unit = f16_to_f32(d);
  float error_sum = 0.f, energy = 0.f;
  for (int s = 0; s < kSubs; ++s) {
    // scale = unit·(1 + 2·step)
    const Window steps(free_scale[s] - unit, 2.f * unit, kNear, 0, kTopStep);
    uint16_t rows[kRows] = {}, candidate[kRows];
    int chosen = 0;
    float least = INFINITY;
    for (int step = steps.first; step <= steps.last; ++step) {
      const float error =
          nearest_rows(a + kSub * s, weights + kSub * s, unit * static_cast<float>(1 + 2 * step), candidate).error;
      if (!(error < least)) continue;
      least = error;
      chosen = step;
      std::copy_n(candidate, kRows, rows);
    }
    error_sum += least;
    for (int i = 0; i < kSub; ++i) energy += weights[kSub * s + i] * a[kSub * s + i] * a[kSub * s + i];
    block[106 + s / 2] |= static_cast<uint8_t>(chosen << (4 * (s % 2)));
    for (int r = 0; r < kRows; ++r) {
      block[2 + kRows * s + r] = static_cast<uint8_t>(rows[r] & 255u);
      block[66 + s] |= static_cast<uint8_t>((rows[r] >> 8) << r);
    }
  }
  if (energy <= error_sum) d = 0;  // under the least f16: no scale of a sub-block is 0, so the block's must be
  store_u16(block, d);
}

}  // namespace

Encoder lattice_encoder(DType type) { return type == DType::IQ3_S ? weighted_blocks<iq3_s, kBlock, 110>() : Encoder{}; }

}  // namespace strata::gguf
