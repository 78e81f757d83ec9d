#include "ops/oracle.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gguf/quant.h"
#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {
namespace {

// c_j of the token at `t`: what lies behind an EOS or before the start reads as EOS.
uint64_t predecessor(const std::vector<int32_t>& tokens, int64_t t, int64_t j, int32_t eos) {
  for (int64_t back = 1; back <= j; ++back)
    if (const int32_t token = tokens[static_cast<size_t>(t - back)]; token < 0 || token == eos)
      return static_cast<uint64_t>(eos);
  return static_cast<uint64_t>(tokens[static_cast<size_t>(t - j)]);
}

}  // namespace

void ngram_embedding_oracle(const NgramEmbeddingArgs& args, double* out) {
  const NgramParams& params = *args.params;
  const int64_t past = args.context.extent(0), width = args.table.extent(1);
  std::vector<int32_t> tokens(args.context.as<int32_t>(), args.context.as<int32_t>() + past);
  tokens.insert(tokens.end(), args.ids.as<int32_t>(), args.ids.as<int32_t>() + args.ids.extent(0));
  std::vector<float> values(static_cast<size_t>(width));
  for (int64_t t = past; t < static_cast<int64_t>(tokens.size()); ++t)
    for (int n = 2; n <= params.orders + 1; ++n)
      for (int h = 0; h < params.heads; ++h) {
        uint64_t mix = 0;
        for (int j = 0; j < n; ++j)
          mix ^= predecessor(tokens, t, j, params.eos) * params.multipliers[static_cast<size_t>(j)];
        const auto head = static_cast<size_t>((n - 2) * params.heads + h);
        const uint64_t row = mix % params.head_sizes[head] + params.head_offsets[head];
        gguf::decoder(args.table.dtype)(args.table.row<const void>(static_cast<int64_t>(row)), values.data(), width);
        for (float value : values) *out++ = static_cast<double>(value);
      }
}

void ngram_gate_oracle(const NgramGateArgs& args, double* out) {
  const int64_t rows = args.key.extent(0), streams = args.key.extent(1), hidden = args.key.extent(2);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < streams; ++s) {
      double dot = 0;
      for (int64_t i = 0; i < hidden; ++i) dot += element(args.key, t, s, i) * element(args.query, t, s, i);
      const double score = dot / std::sqrt(static_cast<double>(hidden));
      const double sign = score > 0 ? 1 : (score < 0 ? -1 : 0);
      const double gate = 1 / (1 + std::exp(-sign * std::sqrt(std::max(std::fabs(score), 1e-6))));
      for (int64_t i = 0; i < hidden; ++i) out[(t * streams + s) * hidden + i] = gate * element(args.value, t, i);
    }
}

}  // namespace strata
