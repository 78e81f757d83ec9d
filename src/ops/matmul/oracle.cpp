#include <vector>

#include "gguf/quant.h"
#include "ops/matmul/activations.h"

namespace strata {

void matmul_oracle(const MatmulArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), outputs = args.weight.extent(0);
  const gguf::DecodeRow decode = gguf::decoder(args.weight.dtype);
  std::vector<float> w(static_cast<size_t>(in));
  const std::vector<double> x = activations_of(args);
  for (int64_t o = 0; o < outputs; ++o) {
    decode(args.weight.row<char>(o), w.data(), in);
    for (int64_t t = 0; t < rows; ++t) {
      const double* row = x.data() + t * in;
      double sum = 0;
      for (int64_t i = 0; i < in; ++i) sum += row[i] * static_cast<double>(w[static_cast<size_t>(i)]);
      const double bias = args.bias.empty() ? 0.0 : static_cast<double>(args.bias.f32()[o]);
      out[t * outputs + o] = static_cast<double>(args.scale) * sum + bias;
    }
  }
}

}  // namespace strata
