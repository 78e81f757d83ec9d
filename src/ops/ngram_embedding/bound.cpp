#include "ops/ngram_embedding/ngram_embedding.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {
namespace {

double root_of(double score) {
  return (score > 0 ? 1 : (score < 0 ? -1 : 0)) * std::sqrt(std::max(std::fabs(score), 1e-6));
}

// Error of the computed gate of a score within `error` of `score`: the gate grows with the score.
double gate_error(double score, double error) {
  const double gate = sigmoid(root_of(score));
  const double low_root = root_of(score - error), high_root = root_of(score + error);
  const double low = sigmoid(low_root), high = sigmoid(high_root);
  const double slope = std::max(low * (1 - low), std::max(high * (1 - high), low < 0.5 && high > 0.5 ? 0.25 : 0.0));
  const double root = gamma(2) * std::max(std::fabs(low_root), std::fabs(high_root));
  return std::max(high - gate, gate - low) + 1.01 * slope * root + gamma(activation_roundings(low_root)) * high +
         sigmoid_flush(low_root);
}

}  // namespace

void ngram_gate_bound(const NgramGateArgs& args, double* out) {
  const int64_t rows = args.key.extent(0), streams = args.key.extent(1), hidden = args.key.extent(2);
  const double scale = 1 / std::sqrt(static_cast<double>(hidden));
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < streams; ++s) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < hidden; ++i) {
        const double product = element(args.key, t, s, i) * element(args.query, t, s, i);
        sum += product;
        magnitude += std::fabs(product);
      }
      const double below_normal = magnitude > 0 ? static_cast<double>(hidden + 1) * kTiny : 0;
      const double error = gamma(dot_roundings(hidden) + 3) * magnitude * scale + below_normal;
      const double gate = sigmoid(root_of(sum * scale)), off = gate_error(sum * scale, error);
      for (int64_t i = 0; i < hidden; ++i)
        *out++ = (off + gamma(1) * (gate + off)) * std::fabs(element(args.value, t, i)) + kTiny;
    }
}

}  // namespace strata
