// Cases of gate_act and residual_add: both activations, one gate an element or a group, accumulation, in place,
// strides, rows on multiples of 16 bytes, gates past every threshold of exp, integer-coded values behind open gates at
// zero tolerance.
#include "ops/gate_act/parity.h"

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<GateActArgs>;

enum class Place { Apart, OverGate, OverValue };

struct Shape {
  int64_t rows, groups, width;
  Activation activation = Activation::Silu;
  bool one_gate = false, accumulate = false, valued = true;
  Place place = Place::Apart;
  float gates = 9, values = 3;
  bool aligned = false;  // rows on multiples of 16 bytes
};
using Pads = std::vector<int64_t>;

std::string label(const Shape& shape) {
  return "[" + std::to_string(shape.rows) + ", " + std::to_string(shape.groups) + ", " + std::to_string(shape.width) +
         "]" + (shape.activation == Activation::Silu ? " silu" : " sigmoid") +
         (shape.one_gate ? ", a gate a group" : "") + (shape.accumulate ? ", accumulated" : "") +
         (shape.valued ? "" : ", no value") + (shape.place == Place::Apart ? "" : ", in place") +
         (shape.aligned ? ", aligned" : "") + ", gates up to " + std::to_string(shape.gates);
}

void fill_args(Builder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  GateActArgs& args = build.args();
  args.gate = build.memory().f32({shape.rows, shape.groups, shape.one_gate ? 1 : shape.width}, random, -shape.gates,
                                 shape.gates, shape.aligned ? Pads{8, 4} : Pads{7, 2});
  if (shape.valued)
    args.value = build.memory().f32({shape.rows, shape.groups, shape.width}, random, -shape.values, shape.values,
                                    shape.aligned ? Pads{4, 0} : Pads{1, 5});
  args.activation = shape.activation;
  args.accumulate = shape.accumulate;
  args.y = shape.place == Place::OverGate    ? args.gate
           : shape.place == Place::OverValue ? args.value
                                             : build.memory().f32({shape.rows, shape.groups, shape.width}, random, -1,
                                                                  1, shape.aligned ? Pads{12, 4} : Pads{0, 3});
}

ParityCase finish(Builder& build, bool exact = false) {
  const GateActArgs& args = build.args();
  build.input("gate", &GateActArgs::gate);
  if (!args.value.empty()) build.input("value", &GateActArgs::value);
  if (args.accumulate || args.y.data == args.gate.data || args.y.data == args.value.data)
    build.restored(&GateActArgs::y);
  build.output("y", &GateActArgs::y, gate_act_oracle, exact ? nullptr : gate_act_bound);
  build.rows({&GateActArgs::gate, &GateActArgs::value, &GateActArgs::y});
  return build.build();
}

ParityCase random_case(const Shape& shape, uint64_t seed) {
  Builder build(label(shape), gate_act, gate_act_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// Gates of 64 (silu 64, sigmoid 1) and -1000 (both 0) are exact, and every value is an integer of its own.
ParityCase coded_case(Activation activation, uint64_t seed) {
  const Shape shape{9, 3, 35, activation};
  Builder build("coded " + label(shape), gate_act, gate_act_arms());
  fill_args(build, shape, seed);
  float code = 1;
  for (int64_t t = 0; t < shape.rows; ++t)
    for (int64_t g = 0; g < shape.groups; ++g)
      for (int64_t i = 0; i < shape.width; ++i) {
        build.args().gate[t].row<float>(g)[i] = (t + g + i) % 3 == 0 ? -1000.0f : 64.0f;
        build.args().value[t].row<float>(g)[i] = code++;
      }
  return finish(build, true);
}

ParityCase extreme_case(Activation activation, bool accumulate, uint64_t seed) {
  const std::vector<float> gates{0,   -0.0f, 1e-30f, 1e-42f, 16.6f, -87.2f, 87,    -87.4f, 88.5f,    -88.8f,
                                 -89, 100,   -100,   -104,   1e30f, -1e30f, 3e38f, -3e38f, INFINITY, NAN};
  const Shape shape{3, 1, static_cast<int64_t>(gates.size()) + 1, activation, false, accumulate};
  Builder build("extreme gates " + label(shape), gate_act, gate_act_arms());
  fill_args(build, shape, seed);
  for (int64_t t = 0; t < shape.rows; ++t) {
    float* row = build.args().gate[t].f32();
    std::copy(gates.begin(), gates.end(), row);
    row[gates.size()] = activation == Activation::Sigmoid ? -INFINITY : 1.0f;
    for (int64_t i = 0; i < shape.width; ++i) build.args().value[t].f32()[i] *= 0.25f;
  }
  build.args().value[1].f32()[2] = -INFINITY;
  build.args().value[2].f32()[5] = NAN;
  return finish(build);
}

// -inf under silu is -inf / inf: NaN in the formula.
ParityCase silu_of_minus_infinity(uint64_t seed) {
  Builder build("silu of minus infinity", gate_act, gate_act_arms());
  fill_args(build, {.rows = 2, .groups = 2, .width = 4}, seed);
  build.args().gate[1].row<float>(0)[2] = -INFINITY;
  return finish(build);
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random_case(shape, s); }); };
  for (Activation activation : {Activation::Silu, Activation::Sigmoid}) {
    for (int64_t rows : {1, 5})
      for (int64_t groups : {1, 3})
        for (int64_t width : {1, 15, 17, 64})
          for (int variant = 0; variant < 8; ++variant)
            add({rows, groups, width, activation, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0});
    for (Place place : {Place::OverGate, Place::OverValue}) add({4, 2, 33, activation, false, false, true, place});
    for (float gates : {1e-30f, 120.0f}) add({3, 2, 40, activation, false, false, true, Place::Apart, gates});
    add({3, 2, 40, activation, false, false, true, Place::Apart, 9, 1e37f});
    add({3, 2, 40, activation, false, false, true, Place::Apart, 9, 1e-37f});
    for (bool one_gate : {false, true}) {
      add({0, 2, 8, activation, one_gate});
      add({11, 3, 3001, activation, one_gate});
    }
    for (int64_t width : {4, 64, 524})
      for (int variant = 0; variant < 8; ++variant)
        add({3, 2, width, activation, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0, Place::Apart, 9, 3,
             true});
    for (Place place : {Place::OverGate, Place::OverValue})
      add({4, 2, 36, activation, false, false, true, place, 9, 3, true});
    list.push_back([=, s = next++] { return coded_case(activation, s); });
    for (bool accumulate : {false, true})
      list.push_back([=, s = next++] { return extreme_case(activation, accumulate, s); });
  }
  list.push_back([s = next++] { return silu_of_minus_infinity(s); });
  return list;
}

void add_run(Queue& queue, const ResidualAddArgs& args) { residual_add(queue, args.x, args.y); }

// The correctly rounded sum: what float64 has to the last bit, rounded once more, is the f32 sum.
void add_oracle(const ResidualAddArgs& args, double* out) {
  for_each_row(args.x, [&](void* row) {
    const auto offset = static_cast<float*>(row) - args.x.f32();
    for (int64_t i = 0; i < args.x.extent(1); ++i)
      *out++ = static_cast<double>(static_cast<float>(static_cast<double>(args.x.f32()[offset + i]) +
                                                      static_cast<double>(args.y.f32()[offset + i])));
  });
}

ParityCase add_case(int64_t rows, int64_t width, float magnitude, bool odd, uint64_t seed) {
  Random random(seed);
  CaseBuilder<ResidualAddArgs> build("[" + std::to_string(rows) + ", " + std::to_string(width) + "] up to " +
                                         std::to_string(magnitude) + (odd ? ", non-finite" : ""),
                                     add_run, residual_add_arms());
  ResidualAddArgs& args = build.args();
  args.x = build.memory().f32({rows, width}, random, -magnitude, magnitude);
  args.y = build.memory().f32({rows, width}, random, -magnitude, magnitude);
  if (odd) {
    const float left[] = {NAN, INFINITY, INFINITY, 1, 3e38f, -0.0f}, right[] = {1, 1, -INFINITY, NAN, 3e38f, 0};
    std::copy(std::begin(left), std::end(left), args.x.f32());
    std::copy(std::begin(right), std::end(right), args.y.f32());
  }
  build.input("x", &ResidualAddArgs::x);
  build.input("y", &ResidualAddArgs::y);
  build.restored(&ResidualAddArgs::x);
  build.output("x after", &ResidualAddArgs::x, add_oracle);
  build.rows({&ResidualAddArgs::x, &ResidualAddArgs::y});
  return build.build();
}

std::vector<std::function<ParityCase()>> add_cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  for (int64_t rows : {0, 1, 3, 5})
    for (int64_t width : {1, 13, 64})
      for (float magnitude : {1e-38f, 1.0f, 1e38f})
        list.push_back([=, s = next++] { return add_case(rows, width, magnitude, false, s); });
  list.push_back([s = next++] { return add_case(3, 50000, 1, false, s); });
  list.push_back([s = next++] { return add_case(2, 13, 1, true, s); });
  return list;
}

}  // namespace

OperatorEvidence gate_act_evidence() { return {"gate_act", arm_infos(gate_act_arms()), cases}; }

OperatorEvidence residual_add_evidence() {
  return {"residual_add", arm_infos(residual_add_arms()), add_cases, false, nullptr, "gate_act"};
}

}  // namespace strata
