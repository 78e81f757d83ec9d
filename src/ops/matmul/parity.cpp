// Cases of matmul: every dtype, sizes around the lanes and the tile, strided rows, one-hot rows at zero tolerance.
#include "ops/matmul/parity.h"

#include <array>

#include "evidence/parity_case.h"
#include "ops/weights_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<MatmulArgs>;

std::string label(DType type, int64_t rows, int64_t in, int64_t out) {
  return std::string(to_string(type)) + " [" + std::to_string(rows) + ", " + std::to_string(in) + "] x [" +
         std::to_string(out) + "]";
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

ParityCase random_case(DType type, int64_t rows, int64_t in, int64_t out, float magnitude, uint64_t seed) {
  Random random(seed);
  Builder build(label(type, rows, in, out), matmul, matmul_arms());
  MatmulArgs& args = build.args();
  args.x = build.memory().f32({rows, in}, random, -magnitude, magnitude, {3});
  args.weight = build.memory().tensor(type, {out, in});
  fill_weights(args.weight, random);
  if (out % 2 == 1) {
    args.bias = build.memory().f32({out}, random);
    args.scale = 0.37f;
  }
  args.y = build.memory().tensor(DType::F32, {rows, out}, {5});
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
