// What the parity cases of attention and sparse_attention share.
#pragma once

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

// Rows of f32, f16 or bf16.
inline void fill_rows(const Tensor& tensor, Random& random, float low, float high) {
  std::vector<float> values(static_cast<size_t>(tensor.extent(tensor.rank - 1)));
  for_each_row(tensor, [&](void* row) {
    for (float& value : values) value = random.uniform(low, high);
    gguf::encoder(tensor.dtype)(values.data(), row, static_cast<int64_t>(values.size()));
  });
}

inline float& at(const Tensor& tensor, int64_t i, int64_t j, int64_t c) { return tensor[i].row<float>(j)[c]; }

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
