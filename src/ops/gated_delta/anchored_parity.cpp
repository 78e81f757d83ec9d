// Cases of gated_delta_anchored: every kind of start in the chunk, calls that reach, meet and cross its end. Slots that
// are not given hold canaries, NaN to whoever reads them.
#include "ops/gated_delta/parity.h"
#include "ops/gated_delta/parity_problem.h"

namespace strata {
namespace {

using Args = GatedDeltaAnchoredArgs;
using Builder = CaseBuilder<Args>;
using Gates = std::function<GateKind(int64_t)>;

Args rows_of(const Args& args, int64_t first, int64_t count) {
  Args part = args;
  part.first += first;
  for (Tensor Args::*tensor : {&Args::q, &Args::k, &Args::v, &Args::g, &Args::beta, &Args::out})
    part.*tensor = (args.*tensor).slice(first, count);
  return part;
}

// The rows of the open chunk before the call.
void fill_ring(CaseMemory& memory, Args& args, const GatedDeltaShape& shape, const Gates& gates, float magnitude,
               Random& random) {
  args.ring_k = memory.tensor(DType::F32, {shape.key_heads, kDeltaChunk, shape.dk}, {2, 1});
  args.ring_u = memory.tensor(DType::F32, {shape.value_heads, kDeltaChunk, shape.dv}, {1, 3});
  args.ring_g = memory.tensor(DType::F32, {shape.value_heads, kDeltaChunk}, {1});
  std::vector<double> key(static_cast<size_t>(shape.dk));
  for (int64_t slot = 0; slot < args.first % kDeltaChunk; ++slot) {
    for (int64_t head = 0; head < shape.key_heads; ++head) {
      double sum = 1e-6;
      for (double& x : key) {
        x = static_cast<double>(random.uniform(-1, 1));
        sum += x * x;
      }
      for (int64_t i = 0; i < shape.dk; ++i)
        args.ring_k[head].row<float>(slot)[i] =
            static_cast<float>(key[static_cast<size_t>(i)] * (1 - 1e-6) / std::sqrt(sum));
    }
    for (int64_t h = 0; h < shape.value_heads; ++h) {
      args.ring_g.row<float>(h)[slot] = random_gate(gates(h), slot, random);
      for (int64_t j = 0; j < shape.dv; ++j) args.ring_u[h].row<float>(slot)[j] = random.uniform(-magnitude, magnitude);
    }
  }
}

enum class Slot { Given, Written, Stale, Free };

// What a slot holds after the call. Behind the last row of a call that crossed a boundary there are rows of the chunk
// before, of no meaning.
Slot slot_after(const Args& args, int64_t slot) {
  const int64_t start = args.first % kDeltaChunk, end = start + args.q.extent(0);
  if (end < kDeltaChunk) return slot < start ? Slot::Given : (slot < end ? Slot::Written : Slot::Free);
  return slot < end % kDeltaChunk ? Slot::Written : Slot::Stale;
}

// The values of a tensor as they stand.
std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for_each_row(tensor, [&](void* row) {
    for (int64_t i = 0; i < tensor.extent(tensor.rank - 1); ++i)
      values.push_back(static_cast<double>(static_cast<float*>(row)[i]));
  });
  return values;
}

// slot_of: the slot of an element by its index in row-major order.
template <class SlotOf>
void ring_output(Builder& build, const char* name, Tensor Args::*member, std::vector<double> expected,
                 std::vector<double> bound, SlotOf slot_of) {
  std::vector<uint8_t> written(expected.size(), 1);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Slot slot = slot_after(build.args(), slot_of(static_cast<int64_t>(i)));
    if (slot == Slot::Free) written[i] = 0;
    if (slot == Slot::Given) bound[i] = 0;
    if (slot == Slot::Stale) bound[i] = INFINITY;
  }
  build.output(name, member, std::move(expected), std::move(bound), std::move(written));
  build.restored(member);
}

std::vector<double> gates_after(const Args& args) {
  std::vector<double> values = values_of(args.ring_g);
  for (int64_t t = 0; t < args.q.extent(0); ++t)
    for (int64_t h = 0; h < args.v.extent(1); ++h)
      values[static_cast<size_t>(h * kDeltaChunk + (args.first + t) % kDeltaChunk)] =
          static_cast<double>(args.g.row<const float>(t)[h]);
  return values;
}

void variants(Builder& build) {
  const Args args = build.args();
  const int64_t rows = args.q.extent(0);
  const auto by = [&](const std::string& name, int64_t head, int64_t step) {
    if (rows <= head || rows <= step) return;
    build.variant(name, [=](Queue& queue) {
      if (head > 0) gated_delta_anchored(queue, rows_of(args, 0, head));
      for (int64_t first = head; first < rows; first += step)
        gated_delta_anchored(queue, rows_of(args, first, std::min(step, rows - first)));
    });
  };
  by("rows by 1", 0, 1);
  by("rows by 3", 0, 3);
  for (int64_t cut : {31, 63, 64, 65}) by("split at " + std::to_string(cut), cut, rows);
  if (rows > 40) by("40 rows, then single ones", 40, 1);
}

void expect(Builder& build, bool exact) {
  const Args& args = build.args();
  const auto size = [](const Tensor& tensor) { return static_cast<size_t>(tensor.elements()); };
  std::vector<double> out(size(args.out)), state(size(args.state)), ring_k = values_of(args.ring_k),
                                                                    ring_u = values_of(args.ring_u);
  std::vector<double> out_bound(out.size()), state_bound(state.size()), k_bound(ring_k.size()), u_bound(ring_u.size());
  gated_delta_anchored_oracle(args, {out.data(), state.data(), ring_k.data(), ring_u.data()});
  if (!exact) gated_delta_anchored_bound(args, {out_bound.data(), state_bound.data(), k_bound.data(), u_bound.data()});
  expect_every_head(args, out);
  build.input("q", &Args::q);
  build.input("k", &Args::k);
  build.input("v", &Args::v);
  build.input("g", &Args::g);
  build.input("beta", &Args::beta);
  build.input("state", &Args::state);
  const int64_t dk = args.q.extent(2), dv = args.v.extent(2);
  build.output("out", &Args::out, std::move(out), std::move(out_bound));
  build.output("state", &Args::state, std::move(state), std::move(state_bound));
  build.restored(&Args::state);
  ring_output(build, "ring_k", &Args::ring_k, std::move(ring_k), std::move(k_bound),
              [dk](int64_t i) { return i / dk % kDeltaChunk; });
  ring_output(build, "ring_u", &Args::ring_u, std::move(ring_u), std::move(u_bound),
              [dv](int64_t i) { return i / dv % kDeltaChunk; });
  std::vector<double> gates = gates_after(args), no_error(gates.size());
  ring_output(build, "ring_g", &Args::ring_g, std::move(gates), std::move(no_error),
              [](int64_t i) { return i % kDeltaChunk; });
  variants(build);
}

std::string named(int64_t first, const GatedDeltaShape& shape, const std::string& gates) {
  return "from " + std::to_string(first) + ", " + label(shape, gates);
}

ParityCase random_case(int64_t first, const GatedDeltaShape& shape, const std::string& name, const Gates& gates,
                       float magnitude, uint64_t seed) {
  Random random(seed);
  Builder build(named(first, shape, name), gated_delta_anchored, gated_delta_anchored_arms());
  build.args().first = first;
  fill_problem(build.memory(), build.args(), shape, gates, magnitude, random);
  fill_ring(build.memory(), build.args(), shape, gates, magnitude, random);
  expect(build, false);
  return build.build();
}

ParityCase coded_case(int64_t first, HeadMapping mapping, uint64_t seed) {
  const GatedDeltaShape shape{140, 2, 6, 16, 35, mapping};
  Random random(seed);
  Builder build("coded, " + named(first, shape, "clears"), gated_delta_anchored, gated_delta_anchored_arms());
  Args& args = build.args();
  args.first = first;
  code_problem(build.memory(), args, shape, random);
  fill_ring(
      build.memory(), args, shape, [](int64_t) { return GateKind::NoDecay; }, 1, random);
  for (int64_t slot = 0; slot < first % kDeltaChunk; ++slot) {
    for (int64_t head = 0; head < shape.key_heads; ++head)
      for (int64_t i = 0; i < shape.dk; ++i)
        args.ring_k[head].row<float>(slot)[i] = i == (slot + head) % shape.dk ? 1.0f : 0.0f;
    for (int64_t h = 0; h < shape.value_heads; ++h)
      for (int64_t j = 0; j < shape.dv; ++j)
        args.ring_u[h].row<float>(slot)[j] = static_cast<float>(3 + j + 7 * h + 11 * slot);
  }
  expect(build, true);
  return build.build();
}

ParityCase not_finite_case(int which, uint64_t seed) {
  const GatedDeltaShape shape{90, 2, 4, 16, 21};
  constexpr const char* kNames[] = {"v", "state", "q", "k", "g", "beta", "ring_u"};
  Random random(seed);
  Builder build("NaN in " + std::string(kNames[which]) + ", " + named(20, shape, "mild"), gated_delta_anchored,
                gated_delta_anchored_arms());
  Args& args = build.args();
  const auto gates = [](int64_t) { return GateKind::Mild; };
  args.first = 20;
  fill_problem(build.memory(), args, shape, gates, 1, random);
  fill_ring(build.memory(), args, shape, gates, 1, random);
  switch (which) {
    case 0: args.v[9].row<float>(1)[3] = NAN; break;
    case 1: args.state[2].row<float>(4)[17] = NAN; break;
    case 2: args.q[65].row<float>(1)[2] = NAN; break;
    case 3: args.k[50].row<float>(0)[2] = NAN; break;
    case 4: args.g.row<float>(40)[3] = NAN; break;
    case 5: args.beta.row<float>(68)[0] = NAN; break;
    default: args.ring_u[1].row<float>(7)[2] = NAN; break;
  }
  expect(build, false);
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  const auto add = [&](int64_t first, const GatedDeltaShape& shape, float magnitude = 1) {
    const uint64_t own = next++;
    list.push_back([=] {
      return random_case(
          first, shape, "mixed gates", [own](int64_t h) { return mixed_gates(h, own); }, magnitude, own);
    });
  };
  for (int64_t rows : {0, 1, 31, 37, 63, 64, 65, 127, 200})
    for (int64_t first : {0, 37})
      add(first, {rows, 3, 9, 32, 40, first == 0 ? HeadMapping::Tiled : HeadMapping::Grouped});
  for (int64_t first : {1, 15, 16, 17, 62, 63, 64, 127, 6400})
    for (int64_t rows : {1, 5, 66}) add(first, {rows, 2, 4, 16, 20, HeadMapping::Tiled});
  for (int64_t ratio : {1, 2, 3, 4})
    for (HeadMapping mapping : {HeadMapping::Grouped, HeadMapping::Tiled}) add(50, {67, 2, 2 * ratio, 5, 7, mapping});
  constexpr int64_t kOddDims[][2] = {{1, 1}, {16, 64}, {130, 3}, {17, 67}, {48, 130}};
  for (const auto& dims : kOddDims) add(11, {66, 2, 4, dims[0], dims[1], HeadMapping::Tiled});
  for (int kind = 0; kind < kGateKinds; ++kind)
    list.push_back([kind, own = next++] {
      const auto gates = static_cast<GateKind>(kind);
      return random_case(
          40, {130, 2, 4, 24, 20}, name_of(gates), [gates](int64_t) { return gates; }, 1, own);
    });
  for (float magnitude : {1e-25f, 1e18f}) add(30, {70, 1, 9, 16, 20}, magnitude);
  for (int64_t rows : {1, 4}) add(61, {rows, 16, 48, 128, 128, HeadMapping::Tiled});
  for (int64_t rows : {1, 66}) add(5, {rows, 16, 32, 128, 128});
  add(0, {200, 16, 48, 128, 128, HeadMapping::Tiled});
  add(0, {4099, 1, 3, 32, 24, HeadMapping::Tiled});
  for (int64_t first : {0, 60})
    for (HeadMapping mapping : {HeadMapping::Grouped, HeadMapping::Tiled})
      list.push_back([first, mapping, own = next++] { return coded_case(first, mapping, own); });
  for (int which = 0; which < 7; ++which) list.push_back([which, own = next++] { return not_finite_case(which, own); });
  return list;
}

}  // namespace

OperatorEvidence gated_delta_anchored_evidence() {
  return {"gated_delta_anchored", arm_infos(gated_delta_anchored_arms()), cases, false, gated_delta_anchored_shapes,
          "gated_delta",          gated_delta_anchored_device_shapes};
}

}  // namespace strata
