// Inputs of a parity case of either operator: q, k and v are views into one row [q | k | v], every head has its own
// data.
#pragma once

#include <functional>

#include "evidence/parity_case.h"
#include "ops/gated_delta/cases.h"

namespace strata {

template <class Args>
void fill_problem(CaseMemory& memory, Args& args, const GatedDeltaShape& shape,
                  const std::function<GateKind(int64_t head)>& gates, float magnitude, Random& random) {
  const int64_t keys = shape.key_heads * shape.dk, values = shape.value_heads * shape.dv;
  const Tensor packed = memory.tensor(DType::F32, {shape.rows, 2 * keys + values}, {5});
  args.q = heads_view(packed, 0, shape.key_heads, shape.dk);
  args.k = heads_view(packed, keys, shape.key_heads, shape.dk);
  args.v = heads_view(packed, 2 * keys, shape.value_heads, shape.dv);
  for_each_row(args.v, [&](void* row) {
    for (int64_t j = 0; j < shape.dv; ++j) static_cast<float*>(row)[j] = random.uniform(-magnitude, magnitude);
  });
  for (int64_t t = 0; t < shape.rows; ++t)
    for (int64_t head = 0; head < shape.key_heads; ++head) {
      fill_key(args.q[t][head], random);
      fill_key(args.k[t][head], random);
    }
  args.g = memory.tensor(DType::F32, {shape.rows, shape.value_heads}, {1});
  args.beta = memory.tensor(DType::F32, {shape.rows, shape.value_heads}, {2});
  for (int64_t h = 0; h < shape.value_heads; ++h)
    for (int64_t t = 0; t < shape.rows; ++t) {
      args.g.template row<float>(t)[h] = random_gate(gates(h), t, random);
      args.beta.template row<float>(t)[h] = random_beta(gates(h), random);
    }
  args.mapping = shape.mapping;
  args.state = memory.f32({shape.value_heads, shape.dk, shape.dv}, random, -magnitude / 2, magnitude / 2, {3, 1});
  args.out = memory.tensor(DType::F32, {shape.rows, shape.value_heads, shape.dv}, {7});
}

// Keys and queries are unit vectors, values and states small integers that differ, so that every result is exact: a
// query of 2^40 swamps the eps, and with dk = 16 the factor 1/sqrt(dk) is exact too.
template <class Args>
void code_problem(CaseMemory& memory, Args& args, const GatedDeltaShape& shape, Random& random) {
  fill_problem(
      memory, args, shape, [](int64_t) { return GateKind::NoDecay; }, 1, random);
  for (int64_t t = 0; t < shape.rows; ++t) {
    for (int64_t head = 0; head < shape.key_heads; ++head)
      for (int64_t i = 0; i < shape.dk; ++i) {
        args.q[t].template row<float>(head)[i] = i == (5 * t + head) % shape.dk ? 0x1p40f : 0.0f;
        args.k[t].template row<float>(head)[i] = i == (3 * t + 7 * head) % shape.dk ? 0x1p40f : 0.0f;
      }
    for (int64_t h = 0; h < shape.value_heads; ++h) {
      args.beta.template row<float>(t)[h] = 1;
      if (t == 20 + h) args.g.template row<float>(t)[h] = -INFINITY;
      for (int64_t j = 0; j < shape.dv; ++j)
        args.v[t].template row<float>(h)[j] = static_cast<float>(20000 + j + shape.dv * (h + shape.value_heads * t));
    }
  }
  float code = 1;
  for_each_row(args.state, [&](void* row) {
    for (int64_t j = 0; j < shape.dv; ++j) static_cast<float*>(row)[j] = code++;
  });
}

// Every head had something to compute; a single row with beta 0 may give zeros.
template <class Args>
void expect_every_head(const Args& args, const std::vector<double>& out) {
  const int64_t rows = args.out.extent(0), heads = args.out.extent(1), dv = args.out.extent(2);
  if (rows < 31) return;
  for (int64_t h = 0; h < heads; ++h) {
    double sum = 0;
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t j = 0; j < dv; ++j) sum += std::fabs(out[static_cast<size_t>((t * heads + h) * dv + j)]);
    if (sum == 0) throw Error(ErrorKind::Evidence, "head " + std::to_string(h) + " computes nothing", "gated_delta");
  }
}

inline std::string label(const GatedDeltaShape& shape, const std::string& gates) {
  return std::to_string(shape.rows) + " rows, heads " + std::to_string(shape.key_heads) + "/" +
         std::to_string(shape.value_heads) + ", " + std::to_string(shape.dk) + "x" + std::to_string(shape.dv) +
         (shape.mapping == HeadMapping::Tiled ? ", tiled, " : ", grouped, ") + gates;
}

}  // namespace strata
