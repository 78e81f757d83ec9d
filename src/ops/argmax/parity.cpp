// Cases of argmax, all exact: one logit to a vocabulary, equal ones at the borders of what a block takes, zeros of both
// signs, values that are not finite at both ends, masks that leave out the best, all or none.
#include "ops/argmax/parity.h"

#include <cmath>
#include <limits>

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<ArgmaxArgs>;

enum class Kind { Random, Ties, Zeros, Negative, Broken, Extremes };
enum class Mask { Absent, Most, WithoutBest, One, None };

struct Shape {
  int64_t rows, count;
  Kind kind;
  Mask mask = Mask::Absent;
};

const char* const kKinds[] = {"random", "ties", "zeros", "negative", "not finite", "extremes"};
const char* const kMasks[] = {"", ", most allowed", ", the best not allowed", ", one allowed", ", none allowed"};

void fill_row(float* x, int64_t count, const Shape& shape, int64_t row, Random& random) {
  for (int64_t i = 0; i < count; ++i) x[i] = random.uniform(-8, 8);
  if (shape.kind == Kind::Negative)
    for (int64_t i = 0; i < count; ++i) x[i] = -1 - std::fabs(x[i]);
  if (shape.kind == Kind::Ties)
    for (const int64_t at : {count - 1, count / 2, int64_t{4095}, int64_t{4096}, int64_t{8191}, int64_t{31}})
      if (at < count && random.below(3) != 0) x[at] = 9;
  if (shape.kind == Kind::Zeros)
    for (int64_t i = 0; i < count; ++i) x[i] = random.below(2) == 0 ? 0.0f : -0.0f;
  if (shape.kind == Kind::Extremes) {
    x[random.below(count)] = std::numeric_limits<float>::max();
    x[random.below(count)] = std::numeric_limits<float>::lowest();
    x[random.below(count)] = std::numeric_limits<float>::denorm_min();
  }
  if (shape.kind != Kind::Broken) return;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float odd[] = {std::nanf(""), kInfinity, -kInfinity};
  if (row % 4 != 3) x[row % 4 == 0 ? 0 : row % 4 == 1 ? count - 1 : random.below(count)] = odd[row % 3];
}

void fill_mask(const ArgmaxArgs& args, Mask mask, Random& random) {
  auto* words = args.allowed.as<uint32_t>();
  const int64_t count = args.logits.extent(1);
  for (int64_t i = 0; i < args.allowed.extent(0); ++i)
    words[i] = mask == Mask::None || mask == Mask::One ? 0 : ~(1u << random.below(32));
  if (mask == Mask::One) words[(count - 1) / 32] = 1u << ((count - 1) % 32);
  if (mask != Mask::WithoutBest) return;
  std::vector<double> best(static_cast<size_t>(args.logits.extent(0)));
  argmax_oracle({args.logits, {}, args.ids}, best.data());
  for (const double id : best)
    if (id >= 0) words[static_cast<int64_t>(id) / 32] &= ~(1u << (static_cast<int64_t>(id) % 32));
}

ParityCase make_case(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Builder build(std::to_string(shape.rows) + " x " + std::to_string(shape.count) + ", " +
                    kKinds[static_cast<int>(shape.kind)] + kMasks[static_cast<int>(shape.mask)],
                argmax, argmax_arms());
  ArgmaxArgs& args = build.args();
  args.logits = build.memory().f32({shape.rows, shape.count}, random, -8, 8, {3});
  for (int64_t t = 0; t < shape.rows; ++t) fill_row(args.logits.row<float>(t), shape.count, shape, t, random);
  args.ids = build.memory().tensor(DType::I32, {shape.rows, 1}, {2});
  if (shape.mask != Mask::Absent) {
    args.allowed = build.memory().tensor(DType::I32, {(shape.count + 31) / 32});
    fill_mask(args, shape.mask, random);
  }
  if (shape.mask == Mask::Absent && shape.kind != Kind::Broken) build.input("logits", &ArgmaxArgs::logits);
  build.output("ids", &ArgmaxArgs::ids, argmax_oracle);
  build.rows({&ArgmaxArgs::logits, &ArgmaxArgs::ids});
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return make_case(shape, s); }); };
  for (const Kind kind : {Kind::Random, Kind::Ties, Kind::Zeros, Kind::Negative, Kind::Broken, Kind::Extremes})
    for (const int64_t count : {1, 31, 4096, 4097, 20000})
      for (const int64_t rows : {1, 5}) add({rows, count, kind});
  for (const Mask mask : {Mask::Most, Mask::WithoutBest, Mask::One, Mask::None})
    for (const int64_t count : {1, 33, 4096, 9001})
      for (const Kind kind : {Kind::Random, Kind::Ties, Kind::Broken}) add({3, count, kind, mask});
  add({1, 151936, Kind::Ties, Mask::Most});
  return list;
}

}  // namespace

OperatorEvidence argmax_evidence() { return {"argmax", arm_infos(argmax_arms()), cases}; }

}  // namespace strata
