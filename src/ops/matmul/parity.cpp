// Cases of matmul: every dtype, sizes around the lanes and the tile, strided rows, one-hot rows at zero tolerance.
#include "ops/matmul/parity.h"

#include <array>

#include "evidence/parity_case.h"
#include "ops/weights_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<MatmulArgs>;

std::string suffix(Activations activations) { return activations == Activations::Int8 ? " int8" : ""; }

std::string label(DType type, int64_t rows, int64_t in, int64_t out) {
  return std::string(to_string(type)) + " [" + std::to_string(rows) + ", " + std::to_string(in) + "] x [" +
         std::to_string(out) + "]";
}

// An arm's result with rounded activations lies near the exact product as well: as far as rounding may move it.
void expect_near_exact(Builder& build) {
  const MatmulArgs args = build.args();
  const auto count = static_cast<size_t>(args.y.elements());
  std::vector<double> exact(count), limit(count), rounding(count);
  MatmulArgs as_it_is = args;
  as_it_is.activations = Activations::F32;
  matmul_oracle(as_it_is, exact.data());
  matmul_bound(args, limit.data());
  matmul_rounding(args, rounding.data());
  const int64_t columns = args.y.extent(1);
  build.check([=](int64_t& force) -> std::string {
    for (size_t i = 0; i < count; ++i) {
      const auto t = static_cast<int64_t>(i) / columns, o = static_cast<int64_t>(i) % columns;
      const double error = std::fabs(static_cast<double>(args.y.row<const float>(t)[o]) - exact[i]);
      if (!(error <= limit[i] + rounding[i]))
        return "row " + std::to_string(t) + ", column " + std::to_string(o) + " is " + std::to_string(error) +
               " from the exact product, and rounding moves it by " + std::to_string(rounding[i]) + " at most";
      ++force;
    }
    return {};
  });
}

void expect_oracle(Builder& build) {
  const MatmulArgs& args = build.args();
  std::vector<double> expected(static_cast<size_t>(args.y.elements())), bound(expected.size());
  matmul_oracle(args, expected.data());
  matmul_bound(args, bound.data());
  build.input("x", &MatmulArgs::x);
  if (args.weight.dtype == DType::F32) build.input("weight", &MatmulArgs::weight);
  build.output("y", &MatmulArgs::y, std::move(expected), std::move(bound));
  build.rows({&MatmulArgs::x, &MatmulArgs::y});
}

ParityCase random_case(DType type, int64_t rows, int64_t in, int64_t out, float magnitude, uint64_t seed,
                       Activations activations = Activations::F32) {
  Random random(seed);
  Builder build(label(type, rows, in, out) + suffix(activations), matmul, matmul_arms());
  MatmulArgs& args = build.args();
  args.x = build.memory().f32({rows, in}, random, -magnitude, magnitude, {3});
  args.weight = build.memory().tensor(type, {out, in});
  fill_weights(args.weight, random);
  if (out % 2 == 1) {
    args.bias = build.memory().f32({out}, random);
    args.scale = 0.37f;
  }
  args.y = build.memory().tensor(DType::F32, {rows, out}, {5});
  args.activations = activations;
  if (activations == Activations::Int8) expect_near_exact(build);
  expect_oracle(build);
  return build.build();
}

// Row t of x reads element `step` t of the weights' rows alone: 127 is rounded to itself.
ParityCase whole_case(DType type, int64_t in, int64_t step, uint64_t seed) {
  Random random(seed);
  const int64_t rows = in / step, out = 19;
  Builder build("whole " + label(type, rows, in, out) + suffix(Activations::Int8), matmul, matmul_arms());
  MatmulArgs& args = build.args();
  args.x = build.memory().tensor(DType::F32, {rows, in});
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < in; ++i) args.x.row<float>(t)[i] = i == t * step ? 127.0f : 0.0f;
  args.weight = build.memory().tensor(type, {out, in});
  fill_weights(args.weight, random);
  args.y = build.memory().tensor(DType::F32, {rows, out});
  args.activations = Activations::Int8;
  expect_oracle(build);
  return build.build();
}

// A NaN or an infinity in x makes its row NaN and no other.
ParityCase non_finite_case(DType type, uint64_t seed) {
  Random random(seed);
  const int64_t in = 512, out = 18;
  Builder build("NaN and infinity in single rows, " + label(type, 7, in, out) + " int8", matmul, matmul_arms());
  MatmulArgs& args = build.args();
  args.x = build.memory().f32({7, in}, random);
  args.x.row<float>(1)[300] = NAN;
  args.x.row<float>(5)[511] = -INFINITY;
  args.weight = build.memory().tensor(type, {out, in});
  fill_weights(args.weight, random);
  args.y = build.memory().tensor(DType::F32, {7, out});
  args.activations = Activations::Int8;
  expect_oracle(build);
  return build.build();
}

// Row t of x reads element 37 t of the weights' rows alone, exactly.
ParityCase wide_one_hot_case(DType type, int64_t in, uint64_t seed) {
  Random random(seed);
  const int64_t rows = in / 37, out = 11;
  Builder build("one-hot " + label(type, rows, in, out), matmul, matmul_arms());
  MatmulArgs& args = build.args();
  args.x = build.memory().tensor(DType::F32, {rows, in});
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < in; ++i) args.x.row<float>(t)[i] = i == 37 * t ? 1.0f : 0.0f;
  args.weight = build.memory().tensor(type, {out, in});
  fill_weights(args.weight, random);
  args.y = build.memory().tensor(DType::F32, {rows, out});
  std::vector<double> expected(static_cast<size_t>(args.y.elements()));
  matmul_oracle(args, expected.data());
  build.input("x", &MatmulArgs::x);
  build.output("y", &MatmulArgs::y, expected, std::vector<double>(expected.size(), 0));
  return build.build();
}

// Row t reads weight column t alone: every (row, column) has its own exact value.
ParityCase one_hot_case(DType type, int64_t in, uint64_t seed) {
  Random random(seed);
  const int64_t out = 11;
  Builder build("one-hot " + label(type, in, in, out), matmul, matmul_arms());
  MatmulArgs& args = build.args();
  args.x = build.memory().tensor(DType::F32, {in, in});
  for (int64_t t = 0; t < in; ++t)
    for (int64_t i = 0; i < in; ++i) args.x.row<float>(t)[i] = t == i ? 1.0f : 0.0f;
  args.weight = build.memory().tensor(type, {out, in});
  fill_weights(args.weight, random);
  args.y = build.memory().tensor(DType::F32, {in, out});
  std::vector<double> expected(static_cast<size_t>(args.y.elements()));
  matmul_oracle(args, expected.data());
  build.input("x", &MatmulArgs::x);
  build.output("y", &MatmulArgs::y, expected, std::vector<double>(expected.size(), 0));
  return build.build();
}

// Rounded activations: sizes around blocks, pieces of 256, lanes and tiles; tiny, huge and non-finite rows.
void int8_cases(std::vector<std::function<ParityCase()>>& list, uint64_t& next) {
  for (const DTypeInfo& info : all_dtypes()) {
    const DType type = info.type;
    if (!has_integer_levels(type)) continue;
    const int64_t block = info.block_elements;
    auto add = [&](int64_t rows, int64_t in, int64_t out, float magnitude = 1) {
      list.push_back([=, s = next++] { return random_case(type, rows, in, out, magnitude, s, Activations::Int8); });
    };
    for (int64_t in : {block, 3 * block, 2048 + block})
      for (int64_t rows : {1, 2, 4, 19}) add(rows, in, rows == 2 ? 1 : 21);
    add(40, 2560, 67);
    add(3, 512, 9, 1e-35f);
    add(7, 768, 9, 1e25f);
    list.push_back([=, s = next++] { return whole_case(type, std::max<int64_t>(block, 64), 1, s); });
    list.push_back([=, s = next++] { return whole_case(type, 2048 + block, 37, s); });
    list.push_back([=, s = next++] { return non_finite_case(type, s); });
  }
  list.push_back([s = next++] { return random_case(DType::F16, 3, 320, 9, 1, s, Activations::Int8); });  // stays f32
  list.push_back([s = next++] { return random_case(DType::Q8_0, 0, 64, 9, 1, s, Activations::Int8); });
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  for (const DTypeInfo& type : all_dtypes()) {
    const auto block = static_cast<int64_t>(type.block_elements);
    const std::vector<int64_t> widths =
        block == 1 ? std::vector<int64_t>{1, 15, 16, 17, 320, 1031} : std::vector<int64_t>{block, 3 * block, 8 * block};
    for (int64_t in : widths)
      for (int64_t rows : {1, 2, 33})
        for (int64_t out : {1, 41})
          list.push_back([=, t = type.type, s = next++] { return random_case(t, rows, in, out, 1, s); });
    if (type.quantised || type.type == DType::F32 || type.type == DType::F16 || type.type == DType::BF16)
      list.push_back([=, t = type.type, s = next++] { return one_hot_case(t, block == 1 ? 48 : block, s); });
  }
  // Rows long enough for matrix units: whole chunks, a part of one, one and many rows of x.
  for (DType type : {DType::BF16, DType::Q4_0, DType::Q8_0, DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K,
                     DType::IQ4_NL, DType::IQ4_XS, DType::IQ3_S, DType::IQ3_XXS, DType::IQ2_XS, DType::IQ2_S,
                     DType::IQ2_XXS, DType::MXFP4, DType::Q2_0}) {
    const int64_t block = info(type).block_elements;
    for (const auto& size : {std::array<int64_t, 3>{5, block == 256 ? 2304 : 1088, 18}, {50, 2048, 35}})
      list.push_back([=, s = next++] { return random_case(type, size[0], size[1], size[2], 1, s); });
    list.push_back([=, s = next++] { return wide_one_hot_case(type, 2048, s); });
  }
  int8_cases(list, next);
  for (float magnitude : {1e-20f, 1e18f})
    list.push_back([=, s = next++] { return random_case(DType::F32, 3, 320, 9, magnitude, s); });
  list.push_back([s = next++] { return random_case(DType::F32, 0, 16, 3, 1, s); });
  return list;
}

}  // namespace

OperatorEvidence matmul_evidence() {
  return {"matmul", arm_infos(matmul_arms()), cases, false, matmul_shapes, "", matmul_device_shapes};
}

}  // namespace strata
