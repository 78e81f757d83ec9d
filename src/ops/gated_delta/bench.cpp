#include "evidence/bench.h"

#include "ops/gated_delta/parity.h"
#include "ops/gated_delta/parity_problem.h"

namespace strata {
namespace {

std::string label(int64_t rows, int64_t value_heads) {
  return std::to_string(rows) + (rows == 1 ? " row, heads 16/" : " rows, heads 16/") + std::to_string(value_heads) +
         " of 128x128";
}

GatedDeltaShape sizes(int64_t rows, int64_t value_heads) {
  return {rows, 16, value_heads, 128, 128, HeadMapping::Tiled};
}

double state_bytes(const GatedDeltaShape& shape) {
  return 4.0 * static_cast<double>(shape.value_heads * shape.dk * shape.dv);
}

double row_bytes(const GatedDeltaShape& shape) {
  return 4.0 *
         static_cast<double>(shape.rows * (2 * shape.key_heads * shape.dk + 2 * shape.value_heads * (shape.dv + 1)));
}

template <class Args>
void fill_args(CaseMemory& memory, Args& args, const GatedDeltaShape& shape, Random& random) {
  fill_problem(
      memory, args, shape, [](int64_t) { return GateKind::Mild; }, 1, random);
  // The state of the call before counts for nothing, so that every call of an arm gives the same result.
  for (int64_t h = 0; h < shape.value_heads; ++h) args.g.template row<float>(0)[h] = -100;
}

BenchShape recurrence(int64_t rows, int64_t value_heads) {
  const GatedDeltaShape shape = sizes(rows, value_heads);
  BenchShape result = bench_shape<GatedDeltaArgs>(
      label(rows, value_heads), gated_delta, gated_delta_arms(), copies_past_caches(state_bytes(shape) + row_bytes(shape)),
      [=](CaseMemory& memory, Random& random, GatedDeltaArgs& args) { fill_args(memory, args, shape, random); },
      {&GatedDeltaArgs::out});
  // An element of the state takes four operation slots a row, each of the width of a multiply-add.
  result.operations = 8.0 * static_cast<double>(rows) * state_bytes(shape) / 4;
  result.bytes = row_bytes(shape) + 2 * state_bytes(shape);
  return result;
}

BenchShape anchored(int64_t rows, int64_t value_heads) {
  const GatedDeltaShape shape = sizes(rows, value_heads);
  const int64_t first = rows == 1 ? kDeltaChunk / 2 : 0;
  const int64_t key_ring = shape.key_heads * kDeltaChunk * shape.dk, value_ring = value_heads * kDeltaChunk * shape.dv;
  BenchShape result = bench_shape<GatedDeltaAnchoredArgs>(
      label(rows, value_heads) + (rows == 1 ? ", half a chunk open" : ""), gated_delta_anchored,
      gated_delta_anchored_arms(), copies_past_caches(state_bytes(shape) + row_bytes(shape)),
      [=](CaseMemory& memory, Random& random, GatedDeltaAnchoredArgs& args) {
        fill_args(memory, args, shape, random);
        args.first = first;
        args.ring_k = memory.f32({shape.key_heads, kDeltaChunk, shape.dk}, random, -0.1f, 0.1f);
        args.ring_u = memory.f32({value_heads, kDeltaChunk, shape.dv}, random);
        args.ring_g = memory.f32({value_heads, kDeltaChunk}, random, -0.05f, 0);
      },
      {&GatedDeltaAnchoredArgs::out});
  // Reads by key and query, the fold, half a chunk of rows twice; the products of the rows once a key head.
  const double half = static_cast<double>(kDeltaChunk + 1) / 2, count = static_cast<double>(rows);
  const double fold = rows == 1 ? 0 : 2;
  result.operations =
      count * ((4 + fold) * state_bytes(shape) / 4 + 4 * half * static_cast<double>(value_heads * shape.dv) +
               4 * half * static_cast<double>(shape.key_heads * shape.dk));
  result.bytes = row_bytes(shape) + (rows == 1 ? 1 : 2) * state_bytes(shape) +
                 4.0 * static_cast<double>(key_ring + value_ring) * (rows == 1 ? 0.5 : 0);
  return result;
}

}  // namespace

std::vector<std::function<BenchShape()>> gated_delta_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (int64_t value_heads : {48, 32})
    for (int64_t rows : {1, 1024}) list.push_back([=] { return recurrence(rows, value_heads); });
  return list;
}

// A prompt as published figures of other kernels have it.
std::vector<std::function<BenchShape()>> gated_delta_device_shapes() {
  auto list = gated_delta_shapes();
  list.push_back([] { return recurrence(32768, 48); });
  return list;
}

std::vector<std::function<BenchShape()>> gated_delta_anchored_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (int64_t value_heads : {48, 32})
    for (int64_t rows : {1, 1024}) list.push_back([=] { return anchored(rows, value_heads); });
  return list;
}

std::vector<std::function<BenchShape()>> gated_delta_anchored_device_shapes() {
  auto list = gated_delta_anchored_shapes();
  list.push_back([] { return anchored(32768, 48); });
  return list;
}

}  // namespace strata
