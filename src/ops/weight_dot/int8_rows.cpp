#include "ops/weight_dot/int8_rows.h"

#include <algorithm>
#include <bit>

#include "ops/weight_dot/rounded.h"

namespace strata {
namespace {

constexpr size_t kLine = 64;
static_assert(std::bit_cast<int32_t>(kSmallestRounded) == kSmallestRoundedBits);

// The first address of a line in memory with room for one more.
char* at_line(std::vector<char>& memory, size_t bytes) {
  if (memory.size() < bytes + kLine) memory.resize(bytes + kLine);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (kLine - address % kLine) % kLine;
}

int64_t pieces_of(int64_t in) { return (in + kPiece - 1) / kPiece; }

}  // namespace

Int8Traits int8_traits(DType type) {
  switch (type) {
    case DType::Q4_0: return {.offset = 8};
    case DType::Q2_0: return {.offset = 1};
    case DType::MXFP4: return {.offset = 12};
    case DType::Q4_K:
    case DType::Q5_K: return {.minima = true};
    case DType::Q6_K: return {.offset = 32, .halves = true};
    case DType::IQ2_XS:
    case DType::IQ2_S: return {.offset = 128, .halves = true};
    default: return {.offset = 128};
  }
}

Int8Rows::Int8Rows(const Int8Kernel& kernel, DType weights, int64_t rows, int64_t in)
    : kernel_(kernel), traits_(kernel.traits(weights)), rows_(rows), in_(in), row_pieces_(pieces_of(in)) {
  pieces_ = std::make_unique_for_overwrite<Int8Piece[]>(static_cast<size_t>(rows * row_pieces_));
}

void Int8Rows::round(ThreadPool& pool, const std::function<const float*(int64_t row)>& x) {
  pool.run(rows_, ThreadPool::grain_of(in_ / 2), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) kernel_.round(x(t), in_, traits_, pieces_.get() + t * row_pieces_);
  });
}

Int8Dot::Int8Dot(const Int8Kernel& kernel, const Tensor& weight)
    : kernel_(kernel),
      weight_(weight),
      in_(weight.extent(1)),
      few_(kernel.few(weight.dtype)),
      pack_(kernel.pack(weight.dtype)),
      traits_(kernel.traits(weight.dtype)),
      grid_(kernel.grid(weight.dtype)) {}

void Int8Dot::run(int64_t first, int64_t count, const std::vector<const Int8Piece*>& x, const std::vector<float*>& y,
                  float scale, const float* bias, std::vector<char>& panel) const {
  const auto rows = static_cast<int64_t>(x.size());
  if (rows == 0 || count == 0) return;
  if (rows <= kernel_.few_rows)
    return few_({weight_.row<const uint8_t>(first), weight_.stride(0), count, in_, x.data(), rows, y.data(), scale,
                 bias, grid_});
  if (rows <= kernel_.turns_rows) return in_turns(first, count, x, y, scale, bias);
  const int64_t group_bytes = pieces_of(in_) * (kPiece / 32) * kernel_.block_bytes;
  char* panels = at_line(panel, static_cast<size_t>(kernel_.panel_groups * group_bytes));
  const int64_t most = kernel_.panel_columns * kernel_.panel_groups;
  for (int64_t column = 0; column < count; column += most) {
    const int64_t wide = std::min(most, count - column);
    int64_t groups = 0;
    for (int64_t at = 0; at < wide; at += kernel_.panel_columns, ++groups)
      pack_({weight_.row<const uint8_t>(first + column + at), weight_.stride(0),
             std::min(kernel_.panel_columns, wide - at), in_, grid_, panels + groups * group_bytes});
    const int64_t next = column + wide;
    kernel_.panel({panels, groups, group_bytes, wide, in_, x.data(), rows, y.data(), column, scale,
                   bias == nullptr ? nullptr : bias + column, traits_, weight_.row<const uint8_t>(first + next),
                   std::min(most, count - next) * weight_.stride(0)});
  }
}

void Int8Dot::in_turns(int64_t first, int64_t count, const std::vector<const Int8Piece*>& x,
                       const std::vector<float*>& y, float scale, const float* bias) const {
  constexpr int64_t kColumns = 64;
  const auto rows = static_cast<int64_t>(x.size());
  std::vector<float*> to(x.size());
  for (int64_t column = 0; column < count; column += kColumns) {
    for (size_t t = 0; t < y.size(); ++t) to[t] = y[t] + column;
    for (int64_t row = 0; row < rows; row += kernel_.few_rows)
      few_({weight_.row<const uint8_t>(first + column), weight_.stride(0), std::min(kColumns, count - column), in_,
            x.data() + row, std::min(kernel_.few_rows, rows - row), to.data() + row, scale,
            bias == nullptr ? nullptr : bias + column, grid_});
  }
}

}  // namespace strata
