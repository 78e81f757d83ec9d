#include "ops/gate_act/gate_act.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {

void gate_act_bound(const GateActArgs& args, double* out) {
  const int64_t rows = args.y.extent(0), groups = args.y.extent(1), width = args.y.extent(2);
  const bool one_gate = args.gate.extent(2) == 1;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < width; ++i) {
        const double gate = element(args.gate, t, g, one_gate ? 0 : i);
        const double activated = args.activation == Activation::Silu ? silu(gate) : sigmoid(gate);
        const double value = args.value.empty() ? 1 : element(args.value, t, g, i);
        const double product = value * activated;
        const double flush = args.activation == Activation::Silu ? silu_flush(gate) : sigmoid_flush(gate);
        double bound =
            gamma(activation_roundings(gate) + 1) * std::fabs(product) + (flush + kTiny) * std::fabs(value) + kTiny;
        if (args.accumulate) {
          const double sum = element(args.y, t, g, i) + product;
          bound += gamma(1) * (std::fabs(sum) + bound);
        }
        *out++ = bound;
      }
}

}  // namespace strata
