// Cases of hyper_read and hyper_write: stream counts, logits past every threshold of exp, strides, rows on
// multiples of 16 bytes, integer-coded streams behind open and closed gates at zero tolerance, magnitudes at both ends,
// non-finite values.
#include "ops/hyper_connection/parity.h"

#include "evidence/parity_case.h"

namespace strata {
namespace {

using ReadBuilder = CaseBuilder<HyperReadArgs>;
using WriteBuilder = CaseBuilder<HyperWriteArgs>;

struct Shape {
  int64_t rows, streams, hidden;
  float logits = 8, values = 3;
  bool aligned = false;  // rows on multiples of 16 bytes
};
using Pads = std::vector<int64_t>;

std::string label(const Shape& shape) {
  return "[" + std::to_string(shape.rows) + ", " + std::to_string(shape.streams) + ", " + std::to_string(shape.hidden) +
         "], logits up to " + std::to_string(shape.logits) + ", values up to " + std::to_string(shape.values) +
         (shape.aligned ? ", aligned" : "");
}

void fill_args(ReadBuilder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  HyperReadArgs& args = build.args();
  args.normed = build.memory().f32({shape.rows, shape.streams, shape.hidden}, random, -shape.values, shape.values,
                                   shape.aligned ? Pads{8, 4} : Pads{2, 5});
  args.mix = build.memory().f32({shape.rows, shape.streams, shape.hidden}, random, -shape.logits, shape.logits,
                                shape.aligned ? Pads{0, 12} : Pads{4, 1});
  args.u = build.memory().tensor(DType::F32, {shape.rows, shape.hidden}, shape.aligned ? Pads{4} : Pads{3});
}

void fill_args(WriteBuilder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  HyperWriteArgs& args = build.args();
  args.block = build.memory().f32({shape.rows, shape.hidden}, random, -shape.values, shape.values,
                                  shape.aligned ? Pads{4} : Pads{2});
  args.inject = build.memory().f32({shape.rows, shape.streams}, random, -shape.logits, shape.logits, {3});
  args.x = build.memory().f32({shape.rows, shape.streams, shape.hidden}, random, -shape.values, shape.values,
                              shape.aligned ? Pads{12, 4} : Pads{6, 1});
}

ParityCase finish(ReadBuilder& build, bool exact = false) {
  build.input("normed", &HyperReadArgs::normed);
  build.input("mix", &HyperReadArgs::mix);
  build.output("u", &HyperReadArgs::u, hyper_read_oracle, exact ? nullptr : hyper_read_bound);
  build.rows({&HyperReadArgs::normed, &HyperReadArgs::mix, &HyperReadArgs::u});
  return build.build();
}

ParityCase finish(WriteBuilder& build, bool exact = false) {
  build.input("block", &HyperWriteArgs::block);
  build.input("inject", &HyperWriteArgs::inject);
  build.input("x", &HyperWriteArgs::x);
  build.restored(&HyperWriteArgs::x);
  build.output("x after", &HyperWriteArgs::x, hyper_write_oracle, exact ? nullptr : hyper_write_bound);
  build.rows({&HyperWriteArgs::block, &HyperWriteArgs::inject, &HyperWriteArgs::x});
  return build.build();
}

void code(const Tensor& tensor, float factor) {
  float next = 1;
  for_each_row(tensor, [&](void* row) {
    for (int64_t i = 0; i < tensor.extent(tensor.rank - 1); ++i) static_cast<float*>(row)[i] = factor * next++;
  });
}

ParityCase read_random(const Shape& shape, uint64_t seed) {
  ReadBuilder build(label(shape), hyper_read, hyper_read_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

ParityCase write_random(const Shape& shape, uint64_t seed) {
  WriteBuilder build(label(shape), hyper_write, hyper_write_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// One stream is open for each element; the integers are multiples of the stream count, a power of two.
ParityCase read_coded(int64_t streams, uint64_t seed) {
  const Shape shape{7, streams, 37};
  ReadBuilder build("coded " + label(shape), hyper_read, hyper_read_arms());
  fill_args(build, shape, seed);
  code(build.args().normed, static_cast<float>(streams));
  for (int64_t t = 0; t < shape.rows; ++t)
    for (int64_t s = 0; s < streams; ++s)
      for (int64_t i = 0; i < shape.hidden; ++i)
        build.args().mix[t].row<float>(s)[i] = (t + i) % streams == s ? 64.0f : -1000.0f;
  return finish(build, true);
}

// Factors 0, 1 and 2 from logits -1000, 0 and 64.
ParityCase write_coded(int64_t streams, uint64_t seed) {
  const Shape shape{7, streams, 37};
  WriteBuilder build("coded " + label(shape), hyper_write, hyper_write_arms());
  fill_args(build, shape, seed);
  code(build.args().block, 1);
  code(build.args().x, 1000);
  for (int64_t t = 0; t < shape.rows; ++t)
    for (int64_t s = 0; s < streams; ++s) {
      const float logits[] = {-1000, 0, 64};
      build.args().inject.row<float>(t)[s] = logits[(t + s) % 3];
    }
  return finish(build, true);
}

ParityCase read_non_finite(uint64_t seed) {
  const Shape shape{4, 3, 9};
  ReadBuilder build("non-finite " + label(shape), hyper_read, hyper_read_arms());
  fill_args(build, shape, seed);
  const HyperReadArgs& args = build.args();
  args.mix[1].row<float>(0)[2] = NAN;
  args.mix[1].row<float>(2)[3] = -INFINITY;
  args.mix[1].row<float>(1)[4] = INFINITY;
  args.normed[2].row<float>(0)[5] = NAN;
  args.normed[2].row<float>(1)[6] = INFINITY;
  args.normed[2].row<float>(2)[7] = INFINITY;
  args.mix[2].row<float>(2)[7] = -INFINITY;  // 0 · inf
  return finish(build);
}

ParityCase write_non_finite(uint64_t seed) {
  const Shape shape{5, 3, 9};
  WriteBuilder build("non-finite " + label(shape), hyper_write, hyper_write_arms());
  fill_args(build, shape, seed);
  const HyperWriteArgs& args = build.args();
  args.inject.row<float>(1)[0] = NAN;
  args.inject.row<float>(1)[1] = -INFINITY;
  args.inject.row<float>(1)[2] = INFINITY;
  args.block.row<float>(2)[4] = INFINITY;
  args.block.row<float>(3)[5] = NAN;
  args.x[4].row<float>(1)[0] = NAN;
  args.x[4].row<float>(2)[8] = -INFINITY;
  return finish(build);
}

template <class Random, class Coded, class Odd>
std::vector<std::function<ParityCase()>> cases_of(uint64_t seed, Random random, Coded coded, Odd odd) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random(shape, s); }); };
  for (int64_t rows : {1, 6})
    for (int64_t streams : {1, 2, 3, 4})
      for (int64_t hidden : {1, 15, 17, 64})
        for (float logits : {1.0f, 8.0f, 120.0f}) add({rows, streams, hidden, logits});
  for (float values : {1e-40f, 1e-30f, 1e37f}) add({3, 4, 40, 8, values});
  for (int64_t streams : {1, 4})
    for (int64_t hidden : {4, 64, 524}) add({3, streams, hidden, 8, 3, true});
  add({0, 4, 8});
  add({13, 4, 2053});
  for (int64_t streams : {1, 2, 4, 8}) list.push_back([=, s = next++] { return coded(streams, s); });
  list.push_back([=, s = next++] { return odd(s); });
  return list;
}

std::vector<std::function<ParityCase()>> read_cases(uint64_t seed) {
  return cases_of(seed, read_random, read_coded, read_non_finite);
}
std::vector<std::function<ParityCase()>> write_cases(uint64_t seed) {
  return cases_of(seed, write_random, write_coded, write_non_finite);
}

}  // namespace

OperatorEvidence hyper_read_evidence() {
  return {"hyper_read", arm_infos(hyper_read_arms()), read_cases, false, nullptr, "hyper_connection"};
}

OperatorEvidence hyper_write_evidence() {
  return {"hyper_write", arm_infos(hyper_write_arms()), write_cases, false, nullptr, "hyper_connection"};
}

}  // namespace strata
