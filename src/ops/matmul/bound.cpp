#include <cmath>
#include <vector>

#include "evidence/parity_case.h"
#include "gguf/quant.h"
#include "ops/matmul/matmul.h"

namespace strata {

// gamma(in/16 + 7) of the element's own magnitude sum; products below the normal range add 2^-149 each.
void matmul_bound(const MatmulArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), count = args.weight.extent(0);
  std::vector<float> w(static_cast<size_t>(in));
  const double roundings = gamma(static_cast<double>(in / 16 + 7));
  for (int64_t o = 0; o < count; ++o) {
    gguf::decoder(args.weight.dtype)(args.weight.row<const void>(o), w.data(), in);
    for (int64_t t = 0; t < rows; ++t) {
      const float* x = args.x.row<const float>(t);
      double magnitude = 0;
      for (int64_t i = 0; i < in; ++i)
        magnitude += std::fabs(static_cast<double>(x[i]) * static_cast<double>(w[static_cast<size_t>(i)]));
      magnitude *= std::fabs(static_cast<double>(args.scale));
      if (!args.bias.empty()) magnitude += std::fabs(static_cast<double>(args.bias.f32()[o]));
      out[t * count + o] = roundings * magnitude + static_cast<double>(in + 2) * 0x1p-149;
    }
  }
}

}  // namespace strata
