// Cases of rope: both layouts of pairs, partial rotation, strides, rows on multiples of 16 bytes, integer-coded quarter
// turns at zero tolerance, magnitudes at both ends, non-finite pairs, positions up to the longest context. Dims that
// are not rotated keep their bits.
#include "ops/rope/parity.h"

#include <cstring>

#include "evidence/parity_case.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {
namespace {

using Builder = CaseBuilder<RopeArgs>;

struct Shape {
  int64_t rows, heads, dim, rotated;
  RopePairs pairs;
  float magnitude = 2;
  bool aligned = false;  // rows on multiples of 16 bytes
};
using Pads = std::vector<int64_t>;

std::string label(const Shape& shape) {
  return "[" + std::to_string(shape.rows) + ", " + std::to_string(shape.heads) + ", " + std::to_string(shape.dim) +
         "], " + std::to_string(shape.rotated) + (shape.pairs == RopePairs::HalfSplit ? " split" : " adjacent") +
         " up to " + std::to_string(shape.magnitude) + (shape.aligned ? ", aligned" : "");
}

void fill_args(Builder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  RopeArgs& args = build.args();
  args.x = build.memory().f32({shape.rows, shape.heads, shape.dim}, random, -shape.magnitude, shape.magnitude,
                              shape.aligned ? Pads{8, 4} : Pads{5, 3});
  args.cos =
      build.memory().f32({shape.rows, shape.rotated / 2}, random, -1.1f, 1.1f, shape.aligned ? Pads{4} : Pads{2});
  args.sin =
      build.memory().f32({shape.rows, shape.rotated / 2}, random, -1.1f, 1.1f, shape.aligned ? Pads{8} : Pads{1});
  args.pairs = shape.pairs;
}

// The dims behind the rotated ones, in order.
std::vector<uint32_t> passed_through(const RopeArgs& args) {
  std::vector<uint32_t> words;
  const int64_t rotated = args.cos.extent(1) * 2;
  for_each_row(args.x, [&](void* row) {
    const auto* start = static_cast<const uint32_t*>(row);
    words.insert(words.end(), start + rotated, start + args.x.extent(2));
  });
  return words;
}

ParityCase finish(Builder& build, bool exact = false) {
  build.input("x", &RopeArgs::x);
  build.input("cos", &RopeArgs::cos);
  build.input("sin", &RopeArgs::sin);
  build.restored(&RopeArgs::x);
  build.output("x after", &RopeArgs::x, rope_oracle, exact ? nullptr : rope_bound);
  build.rows({&RopeArgs::x, &RopeArgs::cos, &RopeArgs::sin});
  build.check([args = build.args(), before = passed_through(build.args())](int64_t&) -> std::string {
    return passed_through(args) == before ? "" : "a dim that is not rotated has other bits";
  });
  return build.build();
}

ParityCase random_case(const Shape& shape, uint64_t seed) {
  Builder build(label(shape), rope, rope_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// Every element is an integer of its own and every pair turns by a quarter, half or three quarters.
ParityCase quarter_turns(RopePairs pairs, bool aligned, uint64_t seed) {
  const Shape shape{9, 3, aligned ? 36 : 38, 32, pairs, 2, aligned};
  Builder build("quarter turns " + label(shape), rope, rope_arms());
  fill_args(build, shape, seed);
  const RopeArgs& args = build.args();
  float code = 1;
  for_each_row(args.x, [&](void* row) {
    for (int64_t i = 0; i < shape.dim; ++i) static_cast<float*>(row)[i] = code++;
  });
  for (int64_t t = 0; t < shape.rows; ++t)
    for (int64_t j = 0; j < shape.rotated / 2; ++j) {
      const int64_t quarter = (t + j) % 4;
      args.cos.row<float>(t)[j] = quarter == 0 ? 1.0f : (quarter == 2 ? -1.0f : 0.0f);
      args.sin.row<float>(t)[j] = quarter == 1 ? 1.0f : (quarter == 3 ? -1.0f : 0.0f);
    }
  return finish(build, true);
}

// A NaN with a payload and negative zeros among the dims that pass; NaN and infinity in rotated pairs.
ParityCase non_finite_case(RopePairs pairs, uint64_t seed) {
  const Shape shape{3, 2, 12, 8, pairs};
  Builder build("non-finite " + label(shape), rope, rope_arms());
  fill_args(build, shape, seed);
  const Tensor& x = build.args().x;
  x[0].row<float>(1)[1] = NAN;
  x[1].row<float>(0)[6] = INFINITY;
  for (int64_t i = 8; i < shape.dim; ++i) x[2].row<float>(0)[i] = -0.0f;
  const uint32_t payload = 0x7fc12345;
  std::memcpy(x[2].row<float>(1) + 10, &payload, sizeof payload);
  build.args().sin.row<float>(2)[3] = NAN;
  return finish(build);
}

// From a position to the rotated x in one bound: cos and sin as angles() gives them, the oracle from the f32 angle in
// float64. Two roundings of cos and sin and the two of the rotation: gamma_4.
ParityCase position_case(RopePairs pairs, RopeScaling scaling, double factor, uint64_t seed) {
  constexpr int64_t kPositions[] = {0, 1, 262143, 262144, 524287, 524288, 1048575, 1048576, 16777215};
  const Shape shape{std::size(kPositions), 2, 80, 64, pairs};
  RopeParams params;
  params.rotary_dims = 64;
  params.pairs = pairs;
  params.base = 1e7;
  params.scaling = scaling;
  params.factor = factor;
  params.original_context = 262144;
  const RopeFrequencies rope_table(params);
  Builder build("positions to 16777215, scale " + std::to_string(factor) + ", " + label(shape), rope, rope_arms());
  fill_args(build, shape, seed);
  const RopeArgs& args = build.args();
  std::vector<double> expected, bound;
  const double m = static_cast<double>(rope_table.magnitude);
  const bool split = pairs == RopePairs::HalfSplit;
  for (int64_t t = 0; t < shape.rows; ++t) {
    rope_table.angles(kPositions[t], args.cos.row<float>(t), args.sin.row<float>(t));
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t i = 0; i < shape.dim; ++i) {
        expected.push_back(element(args.x, t, h, i));
        bound.push_back(0);
        if (i >= shape.rotated) continue;
        const int64_t j = split ? i % 32 : i / 2, partner = split ? (i + 32) % 64 : i ^ 1;
        const bool first = split ? i < 32 : i % 2 == 0;
        const float angle = static_cast<float>(kPositions[t]) * rope_table.frequency[static_cast<size_t>(j)];
        const double c = m * std::cos(static_cast<double>(angle)), s = m * std::sin(static_cast<double>(angle));
        const double own = expected.back(), other = element(args.x, t, h, partner);
        expected.back() = own * c + (first ? -other : other) * s;
        bound.back() = gamma(4) * (std::fabs(own * c) + std::fabs(other * s)) + 2 * kTiny;
      }
  }
  build.input("x", &RopeArgs::x);
  build.restored(&RopeArgs::x);
  build.output("x after", &RopeArgs::x, std::move(expected), std::move(bound));
  build.rows({&RopeArgs::x, &RopeArgs::cos, &RopeArgs::sin});
  return build.build();
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random_case(shape, s); }); };
  for (RopePairs pairs : {RopePairs::HalfSplit, RopePairs::Adjacent}) {
    for (int64_t rows : {1, 2, 7, 33})
      for (int64_t heads : {1, 3})
        for (const auto& [dim, rotated] :
             {std::pair{2, 2}, std::pair{17, 6}, std::pair{64, 64}, std::pair{80, 66}, std::pair{320, 64}})
          add({rows, heads, dim, rotated, pairs});
    add({0, 2, 16, 16, pairs});
    add({2, 2, 16, 0, pairs});
    add({65, 16, 128, 128, pairs});
    for (float magnitude : {1e-38f, 1e38f}) add({3, 2, 16, 12, pairs, magnitude});
    for (const auto& [dim, rotated] : {std::pair{8, 8}, std::pair{64, 64}, std::pair{84, 64}, std::pair{256, 64}})
      for (int64_t heads : {1, 3, 24}) add({5, heads, dim, rotated, pairs, 2, true});
    for (bool aligned : {false, true}) list.push_back([=, s = next++] { return quarter_turns(pairs, aligned, s); });
    list.push_back([=, s = next++] { return non_finite_case(pairs, s); });
    list.push_back([=, s = next++] { return position_case(pairs, RopeScaling::None, 1, s); });
    for (double factor : {2.0, 4.0})
      list.push_back([=, s = next++] { return position_case(pairs, RopeScaling::Yarn, factor, s); });
  }
  return list;
}

}  // namespace

OperatorEvidence rope_evidence() { return {"rope", arm_infos(rope_arms()), cases}; }

}  // namespace strata
