#include "ops/oracle.h"

#include <cmath>

#include "ops/gate_act/gate_act.h"

namespace strata {

void gate_act_oracle(const GateActArgs& args, double* out) {
  const int64_t rows = args.y.extent(0), groups = args.y.extent(1), width = args.y.extent(2);
  const bool one_gate = args.gate.extent(2) == 1;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < width; ++i) {
        const double gate = element(args.gate, t, g, one_gate ? 0 : i);
        const double sigmoid = 1 / (1 + std::exp(-gate));
        double y = args.activation == Activation::Silu ? gate * sigmoid : sigmoid;
        if (!args.value.empty()) y *= element(args.value, t, g, i);
        if (args.accumulate) y += element(args.y, t, g, i);
        out[(t * groups + g) * width + i] = y;
      }
}

}  // namespace strata
