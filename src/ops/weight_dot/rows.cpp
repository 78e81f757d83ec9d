#include "ops/weight_dot/rows.h"

#include <algorithm>
#include <memory>

#include "gguf/quant.h"
#include "ops/weight_dot/grid.h"

namespace strata {
WeightDot::WeightDot(const WeightDotKernel& kernel, const Tensor& weight)
    : kernel_(kernel), weight_(weight), in_(weight.extent(1)), grid_(lattice_grid(weight.dtype)) {
  const bool whole = in_ % 32 == 0 && in_ > 0;  // plain types are decoded 32 at a time
  few_ = whole ? kernel.few(weight.dtype) : nullptr;
  decode_ = whole ? kernel.decode(weight.dtype) : nullptr;
}

// Elements begin .. begin + elements - 1 of a row, then zeros up to whole lanes.
void WeightDot::decode(const char* row, int64_t begin, int64_t elements, int64_t ahead, float* out) const {
  const char* blocks = row + bytes_of(weight_.dtype, begin);
  if (decode_ != nullptr) return decode_(blocks, out, elements, grid_, ahead);
  gguf::decoder(weight_.dtype)(blocks, out, elements);
  std::fill(out + elements, out + (elements + 15) / 16 * 16, 0.0f);
}

void WeightDot::run(int64_t first, int64_t count, const std::vector<const float*>& x, const std::vector<float*>& y,
                    float scale, const float* bias, std::vector<float>& panel) const {
  const auto rows = static_cast<int64_t>(x.size());
  if (rows == 0 || count == 0) return;
  if (few_ != nullptr && rows <= kernel_.few_rows)
    return few_({weight_.row<const uint8_t>(first), weight_.stride(0), count, in_, x.data(), rows, y.data(), scale,
                 bias, grid_});
  constexpr size_t kLine = 64;  // loads that cross the lines of the cache take twice as long
  panel.resize(static_cast<size_t>(kPanelRows * kPanelStride) + kLine / sizeof(float));
  void* place = panel.data();
  size_t space = panel.size() * sizeof(float);
  auto* decoded = static_cast<float*>(std::align(kLine, static_cast<size_t>(kPanelRows * kPanelStride), place, space));
  const int64_t most = rows <= 16 ? kNarrowRows : kPanelRows;
  for (int64_t column = 0; column < count; column += most) {
    const int64_t wide = std::min(most, count - column);
    for (int64_t begin = 0; begin == 0 || begin < in_; begin += kDotChunk) {
      const int64_t terms = std::min(kDotChunk, in_ - begin);
      for (int64_t i = 0; i < wide; ++i)
        decode(weight_.row<const char>(first + column + i), begin, terms, most * weight_.stride(0),
               decoded + i * kPanelStride);
      kernel_.panel({decoded, wide, terms, x.data(), begin, rows, y.data(), column, begin > 0});
    }
  }
  if (scale == 1 && bias == nullptr) return;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < count; ++i) {
      float& value = y[static_cast<size_t>(t)][i];
      const float product = value * scale;
      value = bias != nullptr ? product + bias[i] : product;
    }
}

}  // namespace strata
