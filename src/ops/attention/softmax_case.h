// What the parity cases of attention and sparse_attention share.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "evidence/parity_case.h"
#include "gguf/quant.h"

namespace strata {

struct HeadShape {
  int64_t heads, kv_heads, dim;
};

inline std::string label(const HeadShape& shape) {
  return std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + " heads of " + std::to_string(shape.dim);
}

inline constexpr DType kKvTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0};

// Rows of any type of keys and values.
inline void fill_rows(const Tensor& tensor, Random& random, float low, float high) {
  std::vector<float> values(static_cast<size_t>(tensor.extent(tensor.rank - 1)));
  for_each_row(tensor, [&](void* row) {
    for (float& value : values) value = random.uniform(low, high);
    gguf::encoder(tensor.dtype)(values.data(), row, static_cast<int64_t>(values.size()));
  });
}

inline float& at(const Tensor& tensor, int64_t i, int64_t j, int64_t c) { return tensor[i].row<float>(j)[c]; }

// q and k such that row t gives cell chosen[t] a score of about 1000 and all others 0, each row through a channel of
// its own, with a scale of 1. The weight of every other cell is 0, in float64 as well: the values of the cell are
// copied. k may be of any type.
inline void dominate(const Tensor& q, const Tensor& k, const std::vector<int32_t>& chosen) {
  const int64_t rows = q.extent(0), dim = q.extent(2);
  std::vector<float> values(static_cast<size_t>(dim));
  auto channel = [&](int64_t t) { return t * dim / rows; };
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < q.extent(1); ++h)
      for (int64_t c = 0; c < dim; ++c) at(q, t, h, c) = c == channel(t) ? 1.0f : 0.0f;
  for (int64_t cell = 0; cell < k.extent(0); ++cell) {
    std::fill(values.begin(), values.end(), 0.0f);
    for (int64_t t = 0; t < rows; ++t)
      if (chosen[static_cast<size_t>(t)] == cell) values[static_cast<size_t>(channel(t))] = 1000;
    for (int64_t x = 0; x < k.extent(1); ++x) gguf::encoder(k.dtype)(values.data(), k[cell].row<void>(x), dim);
  }
}

// Makes the scale of a block NaN: all its channels are.
inline void spoil_block(const Tensor& tensor, int64_t cell, int64_t kv_head, int64_t block) {
  const uint16_t nan = 0x7e00;
  std::memcpy(tensor[cell].row<char>(kv_head) + block * info(tensor.dtype).block_bytes, &nan, sizeof nan);
}

// The same cells in pages at shuffled places, where the copy does not cost more than the case.
template <class Args>
void add_paged_variant(CaseBuilder<Args>& build, void (*run)(Queue&, const Args&), Random& random) {
  const Args& args = build.args();
  if (args.k.extent(0) == 0 || args.k.extent(0) > 6000) return;
  const RowPages k = build.memory().paged(args.k, 64, random), v = build.memory().paged(args.v, 64, random);
  build.variant("cells in pages", [=, &args](Queue& queue) {
    Args paged = args;
    paged.k.data = const_cast<void*>(k.page[0]);
    paged.v.data = const_cast<void*>(v.page[0]);
    paged.k_pages = k;
    paged.v_pages = v;
    run(queue, paged);
  });
}

enum class Tolerance { Bound, Zero };

// The outputs' oracle values, and the inputs that controls may spoil.
template <class Args>
void expect_softmax(CaseBuilder<Args>& build, void (*oracle)(const Args&, double*, double*),
                    void (*bound)(const Args&, double*, double*), Tolerance tolerance = Tolerance::Bound) {
  constexpr int64_t kSmall = 1 << 20;  // a copy of more would cost more than it shows
  const Args& args = build.args();
  const auto elements = static_cast<size_t>(args.out.elements());
  std::vector<double> out(elements), out_bound(elements), lse(elements / static_cast<size_t>(args.out.extent(2)));
  std::vector<double> lse_bound(lse.size());
  oracle(args, out.data(), lse.data());
  bound(args, out_bound.data(), lse_bound.data());
  if (tolerance == Tolerance::Zero) std::fill(out_bound.begin(), out_bound.end(), 0.0);
  build.input("q", &Args::q);
  if (args.k.elements() <= kSmall) {
    if (args.k.dtype == DType::F32) build.input("k", &Args::k);
    if (args.v.dtype == DType::F32) build.input("v", &Args::v);
  }
  build.output("out", &Args::out, std::move(out), std::move(out_bound));
  if (!args.lse.empty()) build.output("lse", &Args::lse, std::move(lse), std::move(lse_bound));
}

}  // namespace strata
