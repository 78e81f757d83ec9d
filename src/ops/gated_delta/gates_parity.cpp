// Cases of gated_delta_gates: alpha and b interleaved in one row, edges of both functions, one and many rows.
#include "evidence/parity_case.h"
#include "ops/gated_delta/parity.h"

namespace strata {
namespace {

using Builder = CaseBuilder<GatedDeltaGatesArgs>;

// Every second element of the rows of `pairs`, from `first` on.
Tensor interleaved(const Tensor& pairs, int64_t first) {
  Tensor part = pairs;
  part.data = pairs.f32() + first;
  part.extents[1] = pairs.extent(1) / 2;
  part.strides[1] = 8;
  return part;
}

void expect(Builder& build) {
  const GatedDeltaGatesArgs& args = build.args();
  std::vector<double> g(static_cast<size_t>(args.g.elements())), beta(g.size()), g_bound(g.size()),
      beta_bound(g.size());
  gated_delta_gates_oracle(args, g.data(), beta.data());
  gated_delta_gates_bound(args, g_bound.data(), beta_bound.data());
  build.input("dt_bias", &GatedDeltaGatesArgs::dt_bias);
  build.input("a", &GatedDeltaGatesArgs::a);
  build.output("g", &GatedDeltaGatesArgs::g, std::move(g), std::move(g_bound));
  build.output("beta", &GatedDeltaGatesArgs::beta, std::move(beta), std::move(beta_bound));
  build.rows(
      {&GatedDeltaGatesArgs::alpha, &GatedDeltaGatesArgs::b, &GatedDeltaGatesArgs::g, &GatedDeltaGatesArgs::beta});
}

ParityCase packed_case(int64_t rows, int64_t heads, float magnitude, uint64_t seed) {
  Random random(seed);
  Builder build(std::to_string(rows) + " rows, " + std::to_string(heads) + " heads", gated_delta_gates,
                gated_delta_gates_arms());
  GatedDeltaGatesArgs& args = build.args();
  args.alpha = build.memory().f32({rows, heads}, random, -magnitude, magnitude, {3});
  args.b = build.memory().f32({rows, heads}, random, -magnitude, magnitude, {1});
  args.dt_bias = build.memory().f32({heads}, random, -3, 3);
  args.a = build.memory().f32({heads}, random, -8, 0);
  args.g = build.memory().tensor(DType::F32, {rows, heads}, {2});
  args.beta = build.memory().tensor(DType::F32, {rows, heads}, {5});
  build.input("alpha", &GatedDeltaGatesArgs::alpha);
  build.input("b", &GatedDeltaGatesArgs::b);
  expect(build);
  return build.build();
}

ParityCase edges_case(uint64_t seed) {
  constexpr float kEdges[] = {0,      -0.0f, 20,     20.5f, 19.5f,  21,        100,      -100, 1e30f,
                              -1e30f, -88,   -87.3f, 88.8f, 1e-30f, -INFINITY, INFINITY, NAN,  -104};
  constexpr int64_t kRows = 18, kHeads = 5;
  Random random(seed);
  Builder build("edges, interleaved", gated_delta_gates, gated_delta_gates_arms());
  GatedDeltaGatesArgs& args = build.args();
  const Tensor pairs = build.memory().f32({kRows, 2 * kHeads}, random, -12, 12, {3});
  args.alpha = interleaved(pairs, 0);
  args.b = interleaved(pairs, 1);
  args.dt_bias = build.memory().f32({kHeads}, random, -3, 3);
  args.a = build.memory().f32({kHeads}, random, -8, -0.1f);
  args.g = build.memory().tensor(DType::F32, {kRows, kHeads});
  args.beta = build.memory().tensor(DType::F32, {kRows, kHeads});
  args.dt_bias.f32()[0] = 0;
  args.dt_bias.f32()[1] = 0;
  args.a.f32()[1] = 0;
  for (int64_t t = 0; t < kRows; ++t) {
    for (int64_t i = 0; i < 4; ++i) pairs.row<float>(t)[i] = kEdges[t];
    if (!std::isfinite(kEdges[t])) pairs.row<float>(t)[2] = -20;  // 0 times infinity is of no interest
  }
  expect(build);
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  for (int64_t rows : {0, 1, 2, 37, 513})
    for (int64_t heads : {1, 15, 16, 17, 48})
      list.push_back([=, own = next++] { return packed_case(rows, heads, 12, own); });
  list.push_back([own = next++] { return packed_case(9, 6, 1e20f, own); });
  list.push_back([own = next++] { return edges_case(own); });
  return list;
}

}  // namespace

OperatorEvidence gated_delta_gates_evidence() {
  return {"gated_delta_gates", arm_infos(gated_delta_gates_arms()), cases, false, nullptr, "gated_delta"};
}

}  // namespace strata
