#include "ops/matmul/bench.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/matmul/parity.h"
#include "ops/weights_case.h"

namespace strata {
namespace {

// A few rows over and over: encoders that search take long, and times do not depend on the values.
void fill_repeated(const Tensor& weight, Random& random) {
  const int64_t own = std::min<int64_t>(weight.extent(0), 8);
  fill_weights(weight.slice(0, own), random);
  for (int64_t i = own; i < weight.extent(0); ++i)
    std::memcpy(weight.row<char>(i), weight.row<char>(i % own), bytes_of(weight.dtype, weight.extent(1)));
}

}  // namespace

BenchShape matmul_shape(DType type, int64_t rows, int64_t in, int64_t out, Activations activations) {
  const auto weight_bytes = static_cast<double>(bytes_of(type, in)) * static_cast<double>(out);
  Tensor x;
  BenchShape result = bench_shape<MatmulArgs>(std::string(to_string(type)) + " [" + std::to_string(rows) + ", " +
                                                  std::to_string(in) + "] x [" + std::to_string(out) + "]" +
                                                  (activations == Activations::Int8 ? " int8" : ""),
                                              matmul, matmul_arms(), copies_past_caches(weight_bytes),
                                              [&](CaseMemory& memory, Random& random, MatmulArgs& args) {
                                                if (x.empty()) x = memory.f32({rows, in}, random);
                                                args.x = x;
                                                args.weight = memory.tensor(type, {out, in});
                                                fill_repeated(args.weight, random);
                                                args.y = memory.tensor(DType::F32, {rows, out});
                                                args.activations = activations;
                                              },
                                              {&MatmulArgs::y});
  result.bytes = weight_bytes + 4.0 * static_cast<double>(rows * out);
  result.operations = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  if (is_rounded(activations, type, in)) result.kind = OperationKind::Int8;
  return result;
}

std::vector<std::function<BenchShape()>> matmul_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_XS, DType::IQ3_S,
                     DType::IQ3_XXS, DType::IQ2_XS, DType::MXFP4, DType::Q2_0, DType::F16, DType::BF16})
    for (int64_t rows : {1, 4, 8, 256})
      for (Activations activations : {Activations::Int8, Activations::F32})
        if (activations == Activations::F32 || has_integer_levels(type))
          list.push_back([=] { return matmul_shape(type, rows, 2048, rows == 256 ? 1024 : 6144, activations); });
  return list;
}

// A product of a 27 B model, where devices have to stream weights.
std::vector<std::function<BenchShape()>> matmul_device_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q6_K, DType::IQ4_XS, DType::IQ3_S, DType::BF16})
    for (int64_t rows : {1, 2, 4, 8, 16, 256}) list.push_back([=] { return matmul_shape(type, rows, 5120, 17408); });
  for (DType type : {DType::Q8_0, DType::Q4_K, DType::Q6_K})  // its way back, and a narrow one
    for (auto [in, out] : {std::pair<int64_t, int64_t>{17408, 5120}, {5120, 1024}})
      list.push_back([type, in = in, out = out] { return matmul_shape(type, 1, in, out); });
  return list;
}

}  // namespace strata
