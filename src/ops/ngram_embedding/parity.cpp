// Cases of ngram_embedding (all at zero tolerance: orders, heads, dtypes, EOS everywhere, every split with the context
// handed on, constants that wrap in 64 bits) and of ngram_gate (sizes around the lanes, scores at the jump, open and
// closed gates at zero tolerance, magnitudes at both ends, non-finite values).
#include "ops/ngram_embedding/parity.h"

#include "evidence/parity_case.h"
#include "ops/weights_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<NgramEmbeddingArgs>;
using GateBuilder = CaseBuilder<NgramGateArgs>;

constexpr int32_t kEos = 3;

struct Shape {
  int64_t rows;
  int orders, heads;
  DType type = DType::F32;
  int64_t width = 5;
  bool wraps = false;    // multipliers and tokens up to the largest
  bool aligned = false;  // rows of y on multiples of 16 bytes
};
using Pads = std::vector<int64_t>;

std::string label(const Shape& shape) {
  return std::to_string(shape.rows) + " tokens, " + std::to_string(shape.orders) + " orders of " +
         std::to_string(shape.heads) + ", " + std::string(to_string(shape.type)) + " rows of " +
         std::to_string(shape.width) + (shape.wraps ? ", wrapping" : "") + (shape.aligned ? ", aligned" : "");
}

// Heads of 1 to 12 rows: small, so that every row of the table is met.
NgramParams random_params(const Shape& shape, Random& random) {
  NgramParams params;
  params.orders = shape.orders;
  params.heads = shape.heads;
  params.eos = kEos;
  for (int j = 0; j <= shape.orders; ++j)
    params.multipliers.push_back(shape.wraps ? random.next() | uint64_t{1} << 63 : random.next() % 1000000007 | 1);
  uint64_t offset = 0;
  for (int h = 0; h < shape.orders * shape.heads; ++h) {
    params.head_sizes.push_back(1 + static_cast<uint64_t>(random.below(12)));
    params.head_offsets.push_back(offset);
    offset += params.head_sizes.back();
  }
  return params;
}

// The N-1 tokens before `first`.
Tensor context_of(CaseMemory& memory, const NgramEmbeddingArgs& args, int64_t first) {
  const int64_t past = args.context.extent(0);
  std::vector<int32_t> tokens;
  for (int64_t i = first - past; i < first; ++i)
    tokens.push_back(i < 0 ? args.context.as<int32_t>()[past + i] : args.ids.as<int32_t>()[i]);
  return memory.i32(tokens);
}

void split(Builder& build, int64_t step) {
  const NgramEmbeddingArgs& args = build.args();
  const int64_t rows = args.ids.extent(0);
  std::vector<NgramEmbeddingArgs> calls;
  for (int64_t first = 0; first < rows; first += step) {
    NgramEmbeddingArgs call = args;
    const int64_t count = std::min(step, rows - first);
    call.ids = args.ids.slice(first, count);
    call.y = args.y.slice(first, count);
    call.context = context_of(build.memory(), args, first);
    calls.push_back(call);
  }
  build.variant("calls of " + std::to_string(step), [calls](Queue& queue) {
    for (const NgramEmbeddingArgs& call : calls) ngram_embedding(queue, call);
  });
}

ParityCase embedding_case(const Shape& shape, uint64_t seed) {
  Random random(seed);
  Builder build(label(shape), ngram_embedding, ngram_embedding_arms());
  NgramEmbeddingArgs& args = build.args();
  const NgramParams& params = *build.keep(random_params(shape, random));
  args.params = &params;
  auto token = [&] {
    if (random.below(4) == 0) return kEos;
    return static_cast<int32_t>(shape.wraps ? random.next() >> 33 : static_cast<uint64_t>(random.below(300)));
  };
  std::vector<int32_t> ids(static_cast<size_t>(shape.rows)), context(static_cast<size_t>(shape.orders));
  for (int32_t& id : ids) id = token();
  for (size_t i = 0; i < context.size(); ++i) context[i] = i == 0 && seed % 2 == 0 ? -1 : token();
  args.ids = build.memory().i32(ids);
  args.context = build.memory().i32(context);
  args.table = build.memory().tensor(
      shape.type, {static_cast<int64_t>(params.head_offsets.back() + params.head_sizes.back()), shape.width}, {1});
  fill_weights(args.table, random);
  args.y = build.memory().tensor(DType::F32, {shape.rows, shape.orders * shape.heads, shape.width},
                                 shape.aligned ? Pads{8, 4} : Pads{4, 3});
  build.input("ids", &NgramEmbeddingArgs::ids);
  build.input("context", &NgramEmbeddingArgs::context);
  if (shape.type == DType::F32) build.input("table", &NgramEmbeddingArgs::table);
  build.output("y", &NgramEmbeddingArgs::y, ngram_embedding_oracle);
  for (int64_t step : {1, 2, 3, 7, 31})
    if (step < shape.rows) split(build, step);
  return build.build();
}

std::vector<std::function<ParityCase()>> embedding_cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& shape) { list.push_back([=, s = next++] { return embedding_case(shape, s); }); };
  for (int orders : {1, 2, 4})
    for (int heads : {1, 3, 8})
      for (int64_t rows : {1, 2, 5, 50})
        for (bool wraps : {false, true}) add({rows, orders, heads, DType::F32, 5, wraps});
  for (const DTypeInfo& type : all_dtypes())
    add({19, 2, 2, type.type, type.block_elements == 1 ? 7 : 2 * static_cast<int64_t>(type.block_elements)});
  add({0, 2, 3});
  add({300, 2, 8, DType::BF16, 160});
  add({300, 2, 8, DType::Q8_0, 160});
  for (const DType type : {DType::F32, DType::BF16, DType::Q4_0})
    for (int64_t width : {32, 288}) add({9, 3, 2, type, width, false, true});
  return list;
}

struct GateShape {
  int64_t rows, streams, hidden;
  float magnitude = 2;
  bool aligned = false;  // rows on multiples of 16 bytes
};

std::string label(const GateShape& shape) {
  return "[" + std::to_string(shape.rows) + ", " + std::to_string(shape.streams) + ", " + std::to_string(shape.hidden) +
         "] up to " + std::to_string(shape.magnitude) + (shape.aligned ? ", aligned" : "");
}

void fill_args(GateBuilder& build, const GateShape& shape, uint64_t seed) {
  Random random(seed);
  NgramGateArgs& args = build.args();
  const std::vector<int64_t> extents{shape.rows, shape.streams, shape.hidden};
  args.key =
      build.memory().f32(extents, random, -shape.magnitude, shape.magnitude, shape.aligned ? Pads{8, 4} : Pads{3, 1});
  args.query =
      build.memory().f32(extents, random, -shape.magnitude, shape.magnitude, shape.aligned ? Pads{0, 4} : Pads{2, 4});
  args.value = build.memory().f32({shape.rows, shape.hidden}, random, -3, 3, shape.aligned ? Pads{4} : Pads{1});
  args.y = build.memory().tensor(DType::F32, extents, shape.aligned ? Pads{4, 12} : Pads{5, 2});
}

ParityCase finish(GateBuilder& build, bool exact = false) {
  build.input("key", &NgramGateArgs::key);
  build.input("query", &NgramGateArgs::query);
  build.input("value", &NgramGateArgs::value);
  build.output("y", &NgramGateArgs::y, ngram_gate_oracle, exact ? nullptr : ngram_gate_bound);
  build.rows({&NgramGateArgs::key, &NgramGateArgs::query, &NgramGateArgs::value, &NgramGateArgs::y});
  return build.build();
}

ParityCase gate_random(const GateShape& shape, uint64_t seed) {
  GateBuilder build(label(shape), ngram_gate, ngram_gate_arms());
  fill_args(build, shape, seed);
  return finish(build);
}

// One place of key and query is not zero, a different one for each stream; its product opens the gate (1), closes it
// (0) or is 0 (1/2). All exact, and every value is an even integer of its own.
ParityCase gate_coded(uint64_t seed) {
  const GateShape shape{12, 4, 45};
  GateBuilder build("coded " + label(shape), ngram_gate, ngram_gate_arms());
  fill_args(build, shape, seed);
  float code = 0;
  for (int64_t t = 0; t < shape.rows; ++t) {
    for (int64_t i = 0; i < shape.hidden; ++i) build.args().value.row<float>(t)[i] = code += 2;
    for (int64_t s = 0; s < shape.streams; ++s) {
      float* key = build.args().key[t].row<float>(s);
      float* query = build.args().query[t].row<float>(s);
      std::fill_n(key, shape.hidden, 0.0f);
      std::fill_n(query, shape.hidden, 0.0f);
      const float scores[] = {1e8f, -1e8f, 0.0f};
      const int64_t place = (t * shape.streams + s) % shape.hidden;
      key[place] = 1;
      query[place] = scores[(t + s) % 3];
      query[(place + 1) % shape.hidden] = 1e8f;  // meets a zero
    }
  }
  return finish(build, true);
}

// Scores at and around the jump, where the root has its floor, and where it underflows.
ParityCase gate_jump(uint64_t seed) {
  const std::vector<float> scores{0,  -0.0f,   1e-9f,   -1e-9f, 1e-6f, -1e-6f, 1.1e-6f, 1e-38f,
                                  -4, -1e-42f, 7500.0f, -7500,  -7700, -1e30f, 1e30f,   -7900};
  const GateShape shape{2, static_cast<int64_t>(scores.size()), 1};
  GateBuilder build("scores at the jump", ngram_gate, ngram_gate_arms());
  fill_args(build, shape, seed);
  for (int64_t t = 0; t < 2; ++t)
    for (size_t s = 0; s < scores.size(); ++s) {  // hidden is 1: the score is key · query
      build.args().key[t].row<float>(static_cast<int64_t>(s))[0] = scores[s];
      build.args().query[t].row<float>(static_cast<int64_t>(s))[0] = 1;
    }
  return finish(build);
}

ParityCase gate_non_finite(uint64_t seed) {
  const GateShape shape{4, 3, 18};
  GateBuilder build("non-finite " + label(shape), ngram_gate, ngram_gate_arms());
  fill_args(build, shape, seed);
  const NgramGateArgs& args = build.args();
  args.key[1].row<float>(2)[5] = NAN;
  args.query[1].row<float>(0)[17] = NAN;
  args.key[2].row<float>(0)[3] = INFINITY;  // the score is infinite: the gate is 0 or 1
  args.query[2].row<float>(0)[3] = 1;
  args.key[2].row<float>(1)[3] = INFINITY;
  args.query[2].row<float>(1)[3] = 0;  // NaN
  args.value.row<float>(3)[4] = NAN;
  args.value.row<float>(3)[6] = -INFINITY;
  return finish(build);
}

std::vector<std::function<ParityCase()>> gate_cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const GateShape& shape) { list.push_back([=, s = next++] { return gate_random(shape, s); }); };
  for (int64_t rows : {1, 5})
    for (int64_t streams : {1, 2, 4})
      for (int64_t hidden : {1, 15, 16, 17, 64, 129})
        for (float magnitude : {0.01f, 2.0f, 20.0f}) add({rows, streams, hidden, magnitude});
  for (float magnitude : {1e-21f, 1e18f}) add({3, 2, 40, magnitude});
  add({0, 2, 8});
  add({11, 4, 3001});
  for (int64_t hidden : {4, 64, 1028, 2560}) add({3, 4, hidden, 2, true});
  list.push_back([s = next++] { return gate_coded(s); });
  list.push_back([s = next++] { return gate_jump(s); });
  list.push_back([s = next++] { return gate_non_finite(s); });
  return list;
}

}  // namespace

OperatorEvidence ngram_embedding_evidence() {
  return {"ngram_embedding", arm_infos(ngram_embedding_arms()), embedding_cases};
}

OperatorEvidence ngram_gate_evidence() {
  return {"ngram_gate", arm_infos(ngram_gate_arms()), gate_cases, false, nullptr, "ngram_embedding"};
}

}  // namespace strata
