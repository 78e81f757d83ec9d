// Cases of norm: sizes around the lanes, one weight or one a group, strides, in place, exact powers of two, magnitudes
// at both ends, non-finite groups.
#include "ops/norm/parity.h"

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<NormArgs>;

struct Shape {
  int64_t rows, groups, width;
  bool per_group = false, in_place = false;
  float eps = 1e-6f, magnitude = 3;
};

std::string label(const Shape& shape) {
  return "[" + std::to_string(shape.rows) + ", " + std::to_string(shape.groups) + ", " + std::to_string(shape.width) +
         "] up to " + std::to_string(shape.magnitude) + (shape.per_group ? ", a weight each" : "") +
         (shape.in_place ? ", in place" : "");
}

void fill_args(Builder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  NormArgs& args = build.args();
  args.x =
      build.memory().f32({shape.rows, shape.groups, shape.width}, random, -shape.magnitude, shape.magnitude, {7, 2});
  args.weight = shape.per_group ? build.memory().f32({shape.groups, shape.width}, random, 0, 2, {1})
                                : build.memory().f32({shape.width}, random);
  args.eps = shape.eps;
  args.y = shape.in_place ? args.x : build.memory().tensor(DType::F32, {shape.rows, shape.groups, shape.width}, {1, 4});
}

ParityCase finish(Builder& build, bool exact = false) {
  build.input("x", &NormArgs::x);
  build.input("weight", &NormArgs::weight);
  if (build.args().y.data == build.args().x.data) build.restored(&NormArgs::x);
  build.output("y", &NormArgs::y, norm_oracle, exact ? nullptr : norm_bound);
  build.rows({&NormArgs::x, &NormArgs::y});
  return build.build();
}

ParityCase random_case(const Shape& shape, uint64_t seed) {
  Builder build(label(shape), norm, norm_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// One entry of 2 in 16: the mean of squares is 1/4 and the root 1/2, exactly, since eps is lost in the sum. Row t
// reads weight t alone.
ParityCase one_hot_case(uint64_t seed) {
  Builder build("one-hot powers of two", norm, norm_arms());
  fill_args(build, {.rows = 17, .groups = 1, .width = 16, .eps = 0x1p-100f}, seed);
  for (int64_t t = 0; t < 17; ++t)
    for (int64_t i = 0; i < 16; ++i) build.args().x[t].f32()[i] = t == i ? -2.0f : 0.0f;
  return finish(build, true);
}

ParityCase non_finite_case(uint64_t seed) {
  Builder build("NaN and infinity in single groups", norm, norm_arms());
  fill_args(build, {.rows = 5, .groups = 3, .width = 20}, seed);
  const Tensor& x = build.args().x;
  x[1].row<float>(0)[19] = NAN;
  x[2].row<float>(1)[3] = INFINITY;
  x[4].row<float>(2)[0] = -INFINITY;
  std::fill_n(x[3].row<float>(2), 20, 0.0f);
  return finish(build);
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random_case(shape, s); }); };
  for (int64_t width : {1, 15, 16, 17, 31, 33, 320})
    for (int64_t rows : {1, 2, 33})
      for (int64_t groups : {1, 3})
        for (bool per_group : {false, true}) {
          add({rows, groups, width, per_group});
          add({rows, groups, width, per_group, true, 1e-5f});
        }
  for (float eps : {1e-12f, 0.5f}) add({3, 2, 40, false, false, eps});
  for (float magnitude : {1e-30f, 1e-18f, 1e18f}) add({3, 2, 160, false, false, 1e-6f, magnitude});
  add({3, 2, 160, false, false, 1e-30f, 1e-15f});
  add({0, 2, 16});
  add({21, 2, 2560, true});
  list.push_back([s = next++] { return one_hot_case(s); });
  list.push_back([s = next++] { return non_finite_case(s); });
  return list;
}

}  // namespace

OperatorEvidence norm_evidence() { return {"norm", arm_infos(norm_arms()), cases, false, norm_shapes}; }

}  // namespace strata
