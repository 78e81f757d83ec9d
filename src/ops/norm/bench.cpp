#include "evidence/bench.h"

#include "ops/norm/parity.h"

namespace strata {
namespace {

BenchShape shape(int64_t rows, int64_t groups, int64_t width) {
  const double elements = static_cast<double>(rows * groups) * static_cast<double>(width);
  BenchShape result = bench_shape<NormArgs>(
      "[" + std::to_string(rows) + ", " + std::to_string(groups) + ", " + std::to_string(width) + "]", norm,
      norm_arms(), copies_past_caches(8 * elements),
      [=](CaseMemory& memory, Random& random, NormArgs& args) {
        args.x = memory.f32({rows, groups, width}, random);
        args.weight = memory.f32({width}, random, 0.5f, 1.5f);
        args.y = memory.tensor(DType::F32, {rows, groups, width});
      },
      {&NormArgs::y});
  result.bytes = 8 * elements + 4 * static_cast<double>(width);
  result.operations = 4 * elements;
  return result;
}

}  // namespace

std::vector<std::function<BenchShape()>> norm_shapes() {
  return {[] { return shape(1, 1, 2560); }, [] { return shape(1, 24, 256); }, [] { return shape(512, 1, 2560); },
          [] { return shape(512, 24, 256); }};
}

}  // namespace strata
