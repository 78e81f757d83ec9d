#include "base/fmath.h"
#include "ops/gate_act/gate_act.h"
#include "ops/gate_act/lanes.h"

namespace strata {
namespace {

template <class Act>
void gated_rows(const GateActArgs& args, Act act, int64_t begin, int64_t end) {
  const int64_t groups = args.y.extent(1), width = args.y.extent(2);
  const bool one_gate = args.gate.extent(2) == 1;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t t = item / groups, group = item % groups;
    const float* gate = args.gate[t].row<const float>(group);
    const float* value = args.value.empty() ? nullptr : args.value[t].row<const float>(group);
    float* y = args.y[t].row<float>(group);
    const float shared = one_gate ? act(gate[0]) : 0.0f;
    for (int64_t i = 0; i < width; ++i) {
      const float activated = one_gate ? shared : act(gate[i]);
      const float product = value == nullptr ? activated : value[i] * activated;
      y[i] = args.accumulate ? y[i] + product : product;
    }
  }
}

void gated_on_lanes(Queue& queue, const GateActArgs& args, const GateActKernel& kernel) {
  const int64_t groups = args.y.extent(1), width = args.y.extent(2);
  const bool silu = args.activation == Activation::Silu;
  queue.pool().run(args.y.extent(0) * groups, ThreadPool::grain_of(width), [&](int64_t begin, int64_t end, int) {
    if (args.gate.extent(2) == 1)
      return silu ? gated_rows(args, silu_f32, begin, end) : gated_rows(args, sigmoid_f32, begin, end);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / groups, group = item % groups;
      kernel.row({args.gate[t].row<const float>(group),
                  args.value.empty() ? nullptr : args.value[t].row<const float>(group), args.y[t].row<float>(group),
                  width, silu, args.accumulate});
    }
  });
}

}  // namespace

void gate_act_avx2(Queue& queue, const GateActArgs& args) { gated_on_lanes(queue, args, kGateActAvx2); }
void gate_act_avx512(Queue& queue, const GateActArgs& args) { gated_on_lanes(queue, args, kGateActAvx512); }

void gate_act_portable(Queue& queue, const GateActArgs& args) {
  queue.pool().run(args.y.extent(0) * args.y.extent(1), ThreadPool::grain_of(args.y.extent(2) * 8),
                   [&](int64_t begin, int64_t end, int) {
                     if (args.activation == Activation::Silu)
                       gated_rows(args, silu_f32, begin, end);
                     else
                       gated_rows(args, sigmoid_f32, begin, end);
                   });
}

void residual_add_portable(Queue& queue, const ResidualAddArgs& args) {
  queue.pool().run(args.x.elements(), ThreadPool::grain_of(1), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) args.x.f32()[i] += args.y.f32()[i];
  });
}

}  // namespace strata
