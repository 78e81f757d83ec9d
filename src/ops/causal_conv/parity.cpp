// Cases of causal_conv, each followed by push_history so that the window is checked too: sizes around the window, every
// split into two calls, taps and dilations, strides, integer-coded inputs at zero tolerance, non-finite inputs.
#include "ops/causal_conv/parity.h"

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<CausalConvArgs>;

struct Shape {
  int64_t rows, channels, width;
  int dilation = 1;
  float magnitude = 2;
  bool aligned = false;  // rows on 16 bytes
};

std::string label(const Shape& shape) {
  return "[" + std::to_string(shape.rows) + ", " + std::to_string(shape.channels) + "], " +
         std::to_string(shape.width) + " taps, dilation " + std::to_string(shape.dilation) + ", up to " +
         std::to_string(shape.magnitude);
}

void conv_and_push(Queue& queue, const CausalConvArgs& args) {
  causal_conv(queue, args);
  queue.space().wait();
  push_history(args.x, args.history);
}

// The last inputs, oldest first.
void history_oracle(const CausalConvArgs& args, double* out) {
  std::vector<double> inputs;
  for (const Tensor& tensor : {args.history, args.x})
    for_each_row(tensor, [&](void* row) {
      for (int64_t c = 0; c < args.x.extent(1); ++c) inputs.push_back(static_cast<double>(static_cast<float*>(row)[c]));
    });
  std::copy(inputs.end() - args.history.elements(), inputs.end(), out);
}

void fill_args(Builder& build, const Shape& shape, uint64_t seed) {
  Random random(seed);
  CausalConvArgs& args = build.args();
  const int64_t past = (shape.width - 1) * shape.dilation;
  const auto padding = [&](int64_t floats) { return shape.aligned ? 4 : floats; };
  args.x = build.memory().f32({shape.rows, shape.channels}, random, -shape.magnitude, shape.magnitude, {padding(3)});
  args.history = build.memory().f32({past, shape.channels}, random, -shape.magnitude, shape.magnitude, {padding(2)});
  args.kernel = build.memory().f32({shape.channels, shape.width}, random, -1, 1, {padding(1)});
  args.dilation = shape.dilation;
  args.y = build.memory().tensor(DType::F32, {shape.rows, shape.channels}, {padding(4)});
}

// Calls of `counts` rows each, the window handed on.
void split(Builder& build, const std::string& name, const std::vector<int64_t>& counts) {
  build.variant(name, [args = build.args(), counts](Queue& queue) {
    int64_t first = 0;
    for (int64_t count : counts) {
      CausalConvArgs part = args;
      part.x = args.x.slice(first, count);
      part.y = args.y.slice(first, count);
      conv_and_push(queue, part);
      first += count;
    }
  });
}

ParityCase finish(Builder& build, bool exact = false) {
  const int64_t rows = build.args().x.extent(0);
  build.input("x", &CausalConvArgs::x);
  build.input("history", &CausalConvArgs::history);
  build.input("kernel", &CausalConvArgs::kernel);
  build.restored(&CausalConvArgs::history);
  build.output("y", &CausalConvArgs::y, causal_conv_oracle, exact ? nullptr : causal_conv_bound);
  build.output("history after", &CausalConvArgs::history, history_oracle);
  for (int64_t cut = 0; cut <= rows; ++cut) split(build, "split at " + std::to_string(cut), {cut, rows - cut});
  split(build, "row by row", std::vector<int64_t>(static_cast<size_t>(rows), 1));
  if (rows == 65) split(build, "many calls", {5, 0, 7, 1, 2, 3, 4, 43});
  return build.build();
}

ParityCase random_case(const Shape& shape, uint64_t seed) {
  Builder build(label(shape), conv_and_push, causal_conv_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// Channel c reads through its tap c mod w alone, and every input is an integer of its own from 64 on, where silu is the
// identity in f32 and float64.
ParityCase one_hot_case(const Shape& shape, uint64_t seed) {
  Builder build("one-hot taps " + label(shape), conv_and_push, causal_conv_arms());
  fill_args(build, shape, seed);
  const CausalConvArgs& args = build.args();
  float code = 64;
  for (const Tensor& tensor : {args.history, args.x})
    for_each_row(tensor, [&](void* row) {
      for (int64_t c = 0; c < shape.channels; ++c) static_cast<float*>(row)[c] = code++;
    });
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t j = 0; j < shape.width; ++j) args.kernel.row<float>(c)[j] = j == c % shape.width ? 1.0f : 0.0f;
  return finish(build, true);
}

ParityCase non_finite_case(uint64_t seed) {
  const Shape shape{14, 5, 4, 2};
  Builder build("NaN and infinity in single channels", conv_and_push, causal_conv_arms());
  fill_args(build, shape, seed);
  const CausalConvArgs& args = build.args();
  args.x.row<float>(4)[1] = NAN;
  args.x.row<float>(6)[2] = INFINITY;
  args.x.row<float>(9)[3] = -INFINITY;
  args.history.row<float>(1)[4] = NAN;
  for (int64_t j = 0; j < 4; ++j) args.kernel.row<float>(2)[j] = 1;
  args.kernel.row<float>(3)[2] = 0;  // 0 · inf
  return finish(build);
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return random_case(shape, s); }); };
  for (int64_t rows : {0, 1, 2, 3, 4, 5, 65})
    for (int64_t channels : {1, 15, 64, 65})
      for (int64_t width : {2, 4, 7})
        for (int dilation : {1, 3}) add({rows, channels, width, dilation});
  add({65, 33, 64, 1});
  add({40, 400, 4, 1});
  for (int64_t rows : {31, 32, 77}) add({rows, 520, 4, 1, 2, true});
  for (float magnitude : {1e-40f, 1e-20f, 300.0f, 1e37f}) add({9, 20, 4, 1, magnitude});
  for (int dilation : {1, 3}) list.push_back([=, s = next++] { return one_hot_case({23, 19, 4, dilation}, s); });
  list.push_back([s = next++] { return non_finite_case(s); });
  return list;
}

}  // namespace

OperatorEvidence causal_conv_evidence() { return {"causal_conv", arm_infos(causal_conv_arms()), cases}; }

}  // namespace strata
