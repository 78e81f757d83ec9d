// Cases of gated_delta: lengths around the chunk, both mappings, every kind of gate, odd sizes, values with their own
// exact result per (head, key, column).
#include "ops/gated_delta/parity.h"

#include "ops/gated_delta/parity_problem.h"

namespace strata {
namespace {

using Builder = CaseBuilder<GatedDeltaArgs>;

GatedDeltaArgs rows_of(const GatedDeltaArgs& args, int64_t first, int64_t count) {
  GatedDeltaArgs part = args;
  for (Tensor GatedDeltaArgs::*tensor : {&GatedDeltaArgs::q, &GatedDeltaArgs::k, &GatedDeltaArgs::v, &GatedDeltaArgs::g,
                                         &GatedDeltaArgs::beta, &GatedDeltaArgs::out})
    part.*tensor = (args.*tensor).slice(first, count);
  return part;
}

// The stored rows and the rest in calls of their own; then each row of the rest as the last of a call.
void stored_variants(Builder& build) {
  const GatedDeltaArgs args = build.args();
  const int64_t rest = args.q.extent(0) - args.stored;
  const auto stored = [args](Queue& queue) {
    GatedDeltaArgs part = rows_of(args, 0, args.stored);
    part.stored = -1;
    gated_delta(queue, part);
  };
  const auto thrown_away = [args](Queue& queue, int64_t count) {
    GatedDeltaArgs part = rows_of(args, args.stored, count);
    part.stored = 0;
    gated_delta(queue, part);
  };
  build.variant("two calls", [=](Queue& queue) {
    stored(queue);
    thrown_away(queue, rest);
  });
  if (rest > 16) return;
  build.variant("the rest once for each of its rows", [=](Queue& queue) {
    stored(queue);
    for (int64_t count = rest; count > 0; --count) thrown_away(queue, count);
  });
}

void expect(Builder& build, bool exact) {
  const GatedDeltaArgs& args = build.args();
  std::vector<double> out(static_cast<size_t>(args.out.elements())), state(static_cast<size_t>(args.state.elements()));
  std::vector<double> out_bound(out.size()), state_bound(state.size());
  gated_delta_oracle(args, out.data(), state.data());
  // The bound of the chunked arms covers the recurrence as well.
  if (!exact) gated_delta_bound(args, kDeltaChunk, out_bound.data(), state_bound.data());
  expect_every_head(args, out);
  build.input("q", &GatedDeltaArgs::q);
  build.input("k", &GatedDeltaArgs::k);
  build.input("v", &GatedDeltaArgs::v);
  build.input("g", &GatedDeltaArgs::g);
  build.input("beta", &GatedDeltaArgs::beta);
  build.input("state", &GatedDeltaArgs::state);
  build.output("out", &GatedDeltaArgs::out, std::move(out), std::move(out_bound));
  build.output("state", &GatedDeltaArgs::state, std::move(state), std::move(state_bound));
  build.restored(&GatedDeltaArgs::state);
  if (args.stored >= 0) return stored_variants(build);
  // Long cases are not repeated row by row: the kernels do not know how many rows came before.
  if (args.q.extent(0) <= 200)
    build.rows({&GatedDeltaArgs::q, &GatedDeltaArgs::k, &GatedDeltaArgs::v, &GatedDeltaArgs::g, &GatedDeltaArgs::beta,
                &GatedDeltaArgs::out});
  for (int64_t cut : {31, 63, 64, 65})
    if (cut < args.q.extent(0))
      build.variant("split at " + std::to_string(cut), [args, cut](Queue& queue) {
        gated_delta(queue, rows_of(args, 0, cut));
        gated_delta(queue, rows_of(args, cut, args.q.extent(0) - cut));
      });
}

using Gates = std::function<GateKind(int64_t)>;

ParityCase random_case(const GatedDeltaShape& shape, const std::string& name, const Gates& gates, float magnitude,
                       uint64_t seed) {
  Random random(seed);
  Builder build(label(shape, name), gated_delta, gated_delta_arms());
  fill_problem(build.memory(), build.args(), shape, gates, magnitude, random);
  expect(build, false);
  return build.build();
}

ParityCase stored_case(const GatedDeltaShape& shape, int64_t stored, uint64_t seed) {
  Random random(seed);
  Builder build(label(shape, "mixed gates, stored after " + std::to_string(stored)), gated_delta, gated_delta_arms());
  fill_problem(
      build.memory(), build.args(), shape, [seed](int64_t h) { return mixed_gates(h, seed); }, 1, random);
  build.args().stored = stored;
  expect(build, false);
  return build.build();
}

ParityCase coded_case(HeadMapping mapping, uint64_t seed) {
  const GatedDeltaShape shape{70, 2, 6, 16, 35, mapping};
  Random random(seed);
  Builder build("coded, " + label(shape, "clears"), gated_delta, gated_delta_arms());
  code_problem(build.memory(), build.args(), shape, random);
  expect(build, true);
  return build.build();
}

// NaN and infinity stay in their head and column (v, state) or reach the heads that read them (q, k, g, beta).
ParityCase not_finite_case(int which, uint64_t seed) {
  const GatedDeltaShape shape{70, 2, 4, 16, 21};
  constexpr const char* kNames[] = {"v", "state", "q", "k", "g", "beta"};
  Random random(seed);
  Builder build("NaN in " + std::string(kNames[which]) + ", " + label(shape, "mild"), gated_delta, gated_delta_arms());
  GatedDeltaArgs& args = build.args();
  fill_problem(
      build.memory(), args, shape, [](int64_t) { return GateKind::Mild; }, 1, random);
  switch (which) {
    case 0:
      args.v[9].row<float>(1)[3] = NAN;
      args.v[66].row<float>(2)[20] = NAN;
      break;
    case 1: args.state[2].row<float>(4)[17] = NAN; break;
    case 2: args.q[65].row<float>(1)[2] = NAN; break;
    case 3: args.k[33].row<float>(0)[2] = NAN; break;
    case 4: args.g.row<float>(40)[3] = NAN; break;
    default: args.beta.row<float>(68)[0] = NAN; break;
  }
  expect(build, false);
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  const auto add = [&](const GatedDeltaShape& shape, float magnitude = 1) {
    const uint64_t own = next++;
    list.push_back([=] {
      return random_case(
          shape, "mixed gates", [own](int64_t h) { return mixed_gates(h, own); }, magnitude, own);
    });
  };
  for (int64_t rows : {0, 1, 31, 37, 63, 64, 65, 127, 200})
    for (HeadMapping mapping : {HeadMapping::Grouped, HeadMapping::Tiled}) add({rows, 3, 9, 32, 40, mapping});
  for (int64_t ratio : {1, 2, 3, 4})
    for (HeadMapping mapping : {HeadMapping::Grouped, HeadMapping::Tiled}) add({67, 2, 2 * ratio, 5, 7, mapping});
  constexpr int64_t kOddDims[][2] = {{1, 1}, {16, 64}, {130, 3}, {17, 67}, {48, 130}};
  for (const auto& dims : kOddDims) add({66, 2, 4, dims[0], dims[1], HeadMapping::Tiled});
  for (int kind = 0; kind < kGateKinds; ++kind)
    list.push_back([kind, own = next++] {
      const auto gates = static_cast<GateKind>(kind);
      return random_case(
          {130, 2, 4, 24, 20}, name_of(gates), [gates](int64_t) { return gates; }, 1, own);
    });
  for (float magnitude : {1e-25f, 1e18f}) add({70, 1, 9, 16, 20}, magnitude);
  for (int64_t rows : {1, 3}) add({rows, 16, 48, 128, 128, HeadMapping::Tiled});
  for (int64_t rows : {1, 66}) add({rows, 16, 32, 128, 128});
  add({200, 16, 48, 128, 128, HeadMapping::Tiled});
  add({4099, 1, 3, 32, 24, HeadMapping::Tiled});
  constexpr int64_t kStored[][2] = {{1, 0}, {1, 1}, {2, 1}, {9, 1}, {9, 8}, {16, 7}, {40, 17}, {70, 64}, {300, 260}};
  for (const auto& [rows, stored] : kStored)
    list.push_back([rows = rows, stored = stored, own = next++] {
      return stored_case({rows, 2, 6, 17, 67, HeadMapping::Tiled}, stored, own);
    });
  list.push_back([own = next++] { return stored_case({8, 16, 48, 128, 128}, 3, own); });
  for (HeadMapping mapping : {HeadMapping::Grouped, HeadMapping::Tiled})
    list.push_back([mapping, own = next++] { return coded_case(mapping, own); });
  for (int which = 0; which < 6; ++which) list.push_back([which, own = next++] { return not_finite_case(which, own); });
  return list;
}

}  // namespace

OperatorEvidence gated_delta_evidence() {
  return {
      "gated_delta", arm_infos(gated_delta_arms()), cases, false, gated_delta_shapes, "", gated_delta_device_shapes};
}

}  // namespace strata
