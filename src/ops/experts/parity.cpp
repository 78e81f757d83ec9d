// Cases of experts: every dtype in every matrix, routings that leave experts out or crowd one, sizes around the lanes,
// integer-coded weights at zero tolerance, weights nobody may read, magnitudes at both ends, non-finite rows.
#include "ops/experts/parity.h"

#include <numeric>

#include "evidence/parity_case.h"
#include "ops/weights_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<ExpertsArgs>;

enum class Routing { Random, AllToOne, NotTheMiddle };

struct Shape {
  int64_t rows, hidden, inner, experts, k;
  DType gate = DType::F32, up = DType::F32, down = DType::F32;
  bool scaled = false;
  Routing routing = Routing::Random;
  float magnitude = 1;
  Activations activations = Activations::F32;
};

std::string label(const Shape& shape) {
  return std::to_string(shape.rows) + " rows, " + std::to_string(shape.k) + " of " + std::to_string(shape.experts) +
         ", " + std::to_string(shape.hidden) + "/" + std::to_string(shape.inner) + " " +
         std::string(to_string(shape.gate)) + "/" + std::string(to_string(shape.up)) + "/" +
         std::string(to_string(shape.down)) + (shape.scaled ? " scaled" : "") +
         (shape.activations == Activations::Int8 ? " int8" : "");
}

bool is_left_out(const Shape& shape, int64_t expert) {
  return shape.routing == Routing::NotTheMiddle && expert == shape.experts / 2;
}

// k different experts for each row. With AllToOne, the first slot is the last expert for every row.
void choose(const Shape& shape, const Tensor& ids, Random& random) {
  for (int64_t t = 0; t < shape.rows; ++t) {
    std::vector<int32_t> order;
    for (int32_t e = 0; e < shape.experts; ++e)
      if (!is_left_out(shape, e)) order.push_back(e);
    if (shape.routing == Routing::AllToOne) std::swap(order.front(), order.back());
    const int64_t fixed = shape.routing == Routing::AllToOne ? 1 : 0;
    for (int64_t slot = 0; slot < shape.k; ++slot) {
      const int64_t left = static_cast<int64_t>(order.size()) - slot;
      if (slot >= fixed)
        std::swap(order[static_cast<size_t>(slot)], order[static_cast<size_t>(slot + random.below(left))]);
      ids.row<int32_t>(t)[slot] = order[static_cast<size_t>(slot)];
    }
  }
}

// Experts that nobody chose keep the canaries: NaN as f32.
Tensor weights(Builder& build, DType type, const Shape& shape, int64_t out, int64_t in, Random& random) {
  const Tensor tensor = build.memory().tensor(type, {shape.experts, out, in}, {1, 1});
  for (int64_t e = 0; e < shape.experts; ++e)
    if (!is_left_out(shape, e)) fill_weights(tensor[e], random);
  return tensor;
}

Tensor scales(Builder& build, const Shape& shape, Random& random) {
  const Tensor tensor = build.memory().f32({shape.experts}, random, 0.25f, 2);
  for (int64_t e = 0; e < shape.experts; ++e)
    if (is_left_out(shape, e)) tensor.f32()[e] = NAN;
  return tensor;
}

void fill_args(Builder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  ExpertsArgs& args = build.args();
  args.x = build.memory().f32({shape.rows, shape.hidden}, random, -shape.magnitude, shape.magnitude, {3});
  args.ids = build.memory().tensor(DType::I32, {shape.rows, shape.k}, {2});
  choose(shape, args.ids, random);
  args.weights = build.memory().f32({shape.rows, shape.k}, random, 0, 1, {1});
  args.gate = weights(build, shape.gate, shape, shape.inner, shape.hidden, random);
  args.up = weights(build, shape.up, shape, shape.inner, shape.hidden, random);
  args.down = weights(build, shape.down, shape, shape.hidden, shape.inner, random);
  if (shape.scaled) {
    args.gate_scale = scales(build, shape, random);
    args.up_scale = scales(build, shape, random);
    args.down_scale = scales(build, shape, random);
  }
  args.y = build.memory().tensor(DType::F32, {shape.rows, shape.hidden}, {4});
  args.activations = shape.activations;
}

ParityCase finish(Builder& build, bool exact = false) {
  const ExpertsArgs& args = build.args();
  build.input("x", &ExpertsArgs::x);
  build.input("ids", &ExpertsArgs::ids);
  build.input("weights", &ExpertsArgs::weights);
  if (args.gate.dtype == DType::F32) build.input("gate", &ExpertsArgs::gate);
  if (args.up.dtype == DType::F32) build.input("up", &ExpertsArgs::up);
  if (args.down.dtype == DType::F32) build.input("down", &ExpertsArgs::down);
  if (!args.gate_scale.empty()) build.input("gate_scale", &ExpertsArgs::gate_scale);
  if (!args.up_scale.empty()) build.input("up_scale", &ExpertsArgs::up_scale);
  if (!args.down_scale.empty()) build.input("down_scale", &ExpertsArgs::down_scale);
  build.output("y", &ExpertsArgs::y, experts_oracle, exact ? nullptr : experts_bound);
  build.rows({&ExpertsArgs::x, &ExpertsArgs::ids, &ExpertsArgs::weights, &ExpertsArgs::y});
  return build.build();
}

ParityCase random_case(const Shape& shape, uint64_t seed) {
  Builder build(label(shape), experts, experts_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

void fill_f32(const Tensor& tensor, const std::function<float(int64_t expert, int64_t row, int64_t i)>& value) {
  for (int64_t e = 0; e < tensor.extent(0); ++e)
    for (int64_t row = 0; row < tensor.extent(1); ++row)
      for (int64_t i = 0; i < tensor.extent(2); ++i) tensor[e].row<float>(row)[i] = value(e, row, i);
}

// The exact cases: every gate is 64, where silu is the identity in f32 and float64, and routing weights are powers of
// two.
void open_gates(Builder& build) {
  const ExpertsArgs& args = build.args();
  fill_f32(args.gate, [](int64_t, int64_t, int64_t) { return 64.0f; });
  for (int64_t t = 0; t < args.x.extent(0); ++t) {
    for (int64_t i = 0; i < args.x.extent(1); ++i) args.x.row<float>(t)[i] = i == t % args.x.extent(1) ? 1.0f : 0.0f;
    for (int64_t slot = 0; slot < args.ids.extent(1); ++slot)
      args.weights.row<float>(t)[slot] = static_cast<float>(1 << slot);
  }
}

// Row t reads column t of up; down of expert e shifts the inner index by e; each weight of up is an integer of its own.
ParityCase integer_case(uint64_t seed) {
  const Shape shape{21, 21, 19, 5, 2};
  Builder build("integer-coded " + label(shape), experts, experts_arms());
  fill_args(build, shape, seed);
  open_gates(build);
  float code = 1;
  fill_f32(build.args().up, [&](int64_t, int64_t, int64_t) { return code++; });
  fill_f32(build.args().down,
           [&](int64_t e, int64_t c, int64_t i) { return i == (c + e) % shape.inner ? 1.0f : 0.0f; });
  return finish(build, true);
}

// Row t reads column t of a quantised up alone.
ParityCase one_hot_up(DType type, uint64_t seed) {
  const int64_t width = std::max<int64_t>(info(type).block_elements, 32);
  const Shape shape{width, width, 11, 3, 1, DType::F32, type};
  Builder build("one-hot " + label(shape), experts, experts_arms());
  fill_args(build, shape, seed);
  open_gates(build);
  fill_f32(build.args().down, [&](int64_t, int64_t c, int64_t i) { return i == c % shape.inner ? 1.0f : 0.0f; });
  return finish(build, true);
}

// Row t reads column t of a quantised down alone: expert e passes x on to its inner indices from 32 e on.
ParityCase one_hot_down(DType type, uint64_t seed) {
  const int64_t hidden = 32, inner = std::max<int64_t>(info(type).block_elements, hidden);
  const Shape shape{inner, hidden, inner, inner / hidden, 1, DType::F32, DType::F32, type};
  Builder build("one-hot " + label(shape), experts, experts_arms());
  fill_args(build, shape, seed);
  open_gates(build);
  for (int64_t t = 0; t < shape.rows; ++t) build.args().ids.row<int32_t>(t)[0] = static_cast<int32_t>(t / hidden);
  fill_f32(build.args().up, [&](int64_t e, int64_t row, int64_t i) { return row == hidden * e + i ? 1.0f : 0.0f; });
  return finish(build, true);
}

ParityCase non_finite_case(uint64_t seed) {
  const Shape shape{7, 24, 16, 4, 2};
  Builder build("NaN and infinity in single rows", experts, experts_arms());
  fill_args(build, shape, seed);
  const ExpertsArgs& args = build.args();
  args.x.row<float>(1)[7] = NAN;
  args.x.row<float>(3)[0] = INFINITY;
  args.weights.row<float>(5)[1] = NAN;
  args.weights.row<float>(6)[0] = INFINITY;
  return finish(build);
}

// A NaN in a weight row touches the rows that chose its expert and no other.
ParityCase nan_weight_case(uint64_t seed) {
  const Shape shape{9, 20, 12, 4, 2};
  Builder build("NaN in one expert", experts, experts_arms());
  fill_args(build, shape, seed);
  build.args().down[2].row<float>(11)[3] = NAN;
  build.args().up[1].row<float>(4)[0] = NAN;
  return finish(build);
}

ParityCase non_finite_int8_case(uint64_t seed) {
  const Shape shape{
      7, 64, 32, 4, 2, DType::Q8_0, DType::Q4_0, DType::Q8_0, false, Routing::Random, 1, Activations::Int8};
  Builder build("NaN and infinity in single rows, " + label(shape), experts, experts_arms());
  fill_args(build, shape, seed);
  build.args().x.row<float>(1)[7] = NAN;
  build.args().x.row<float>(3)[63] = INFINITY;
  return finish(build);
}

// Rounded activations: in every matrix, in one of them, in rows long and short, with few and many rows for an expert.
void int8_cases(const std::function<void(const Shape&)>& add) {
  const DType f32 = DType::F32;
  auto rounded = [&](Shape shape) {
    shape.activations = Activations::Int8;
    add(shape);
  };
  for (const DTypeInfo& type : all_dtypes()) {
    if (!has_integer_levels(type.type)) continue;
    const DType t = type.type;
    const int64_t block = type.block_elements;
    rounded({3, 2 * block, block, 3, 2, t, t, t, true});
    rounded({2, block, 9, 3, 2, t, f32, f32});
    rounded({2, block, 9, 3, 2, f32, t, f32});
    rounded({2, 9, block, 3, 2, f32, f32, t});
  }
  rounded({5, 256, 64, 4, 3, DType::Q4_K, DType::Q6_K, DType::Q8_0, true});
  rounded({33, 512, 160, 4, 2, DType::Q4_K, DType::Q8_0, DType::Q5_0, true});
  for (Routing routing : {Routing::AllToOne, Routing::NotTheMiddle})
    rounded({33, 288, 96, 6, 2, DType::Q8_0, DType::Q4_0, DType::Q8_0, true, routing});
  for (float magnitude : {1e-30f, 1e10f})
    rounded({3, 64, 32, 4, 2, DType::Q8_0, DType::Q8_0, DType::Q4_0, false, Routing::Random, magnitude});
  rounded({0, 64, 32, 4, 2, DType::Q8_0, DType::Q8_0, DType::Q4_0});
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random_case(shape, s); }); };
  const DType f32 = DType::F32;
  for (int64_t rows : {1, 3, 33})
    for (auto [hidden, inner] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {17, 5}, {64, 24}, {100, 130}})
      for (auto [count, k] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {8, 3}, {5, 5}})
        for (bool scaled : {false, true}) add({rows, hidden, inner, count, k, f32, f32, f32, scaled});
  for (const DTypeInfo& type : all_dtypes()) {
    const auto block = static_cast<int64_t>(type.block_elements);
    const DType t = type.type;
    if (t == f32) continue;
    const int64_t wide = block == 1 ? 40 : 2 * block, narrow = block == 1 ? 17 : block;
    add({3, wide, narrow, 3, 2, t, t, t, true});
    add({2, narrow, 9, 3, 2, t, f32, f32});
    add({2, narrow, 9, 3, 2, f32, t, f32});
    add({2, 9, narrow, 3, 2, f32, f32, t});
    if (type.quantised || t == DType::F16 || t == DType::BF16) {
      list.push_back([=, s = next++] { return one_hot_up(t, s); });
      list.push_back([=, s = next++] { return one_hot_down(t, s); });
    }
  }
  add({5, 256, 64, 4, 3, DType::Q4_K, DType::Q6_K, DType::Q8_0, true});
  for (Routing routing : {Routing::AllToOne, Routing::NotTheMiddle})
    for (DType type : {f32, DType::Q8_0}) add({33, 64, 32, 6, 2, type, type, type, true, routing});
  for (float magnitude : {1e-30f, 1e10f}) add({3, 40, 24, 4, 2, f32, f32, f32, false, Routing::Random, magnitude});
  add({0, 8, 8, 4, 2});
  // Rows long enough for matrix units, in all matrices or in two; few and many pairs for each expert.
  add({3, 1024, 1024, 3, 2, DType::Q8_0, DType::Q4_0, DType::Q6_K, true});
  add({2, 2048, 64, 4, 3, DType::Q4_K, DType::IQ4_XS, DType::Q8_0});
  add({33, 1024, 32, 2, 2, DType::Q6_K, DType::MXFP4, DType::Q8_0, true});
  add({21, 2560, 32, 8, 3, DType::Q8_0, DType::Q8_0, DType::Q8_0, true});
  int8_cases(add);
  list.push_back([s = next++] { return non_finite_int8_case(s); });
  list.push_back([s = next++] { return integer_case(s); });
  list.push_back([s = next++] { return non_finite_case(s); });
  list.push_back([s = next++] { return nan_weight_case(s); });
  // More experts than a wave has lanes, for few and for many threads.
  add({2, 40, 24, 128, 8, f32, f32, f32, true});
  add({41, 16, 8, 70, 8, f32, f32, f32, true, Routing::AllToOne});
  return list;
}

}  // namespace

OperatorEvidence experts_evidence() { return {"experts", arm_infos(experts_arms()), cases}; }

}  // namespace strata
