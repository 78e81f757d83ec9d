// Cases of qsa_pool: storage types, ratios, all alignments of a call to its blocks, strides, exact keys, magnitudes.
#include "ops/qsa_pool/parity.h"

#include <algorithm>
#include <cmath>

#include "evidence/parity_case.h"

namespace strata {
namespace {

using Builder = CaseBuilder<QsaPoolArgs>;

RopeFrequencies frequencies(int dims, RopePairs pairs, double factor) {
  RopeParams params;
  params.rotary_dims = dims;
  params.pairs = pairs;
  params.base = 1e4;
  params.scaling = RopeScaling::Yarn;
  params.factor = factor;
  params.original_context = 4096;
  return RopeFrequencies(params);
}

struct Shape {
  DType stored = DType::F32;
  int64_t ratio = 4, width = 128;
  int dims = 64;
  int64_t first = 0, rows = 0;
  float magnitude = 1, weight = 1;
  RopePairs pairs = RopePairs::HalfSplit;
  double factor = 1;
  float eps = 1e-6f;
};

std::string label(const Shape& s) {
  return std::string(to_string(s.stored)) + " width " + std::to_string(s.width) + " ratio " + std::to_string(s.ratio) +
         ", positions " + std::to_string(s.first) + " + " + std::to_string(s.rows);
}

// What the type cannot hold becomes an infinity (f16 from 65520 on).
double stored_value(DType type, double value) {
  return type == DType::F16 && std::fabs(value) >= 65520 ? std::copysign(INFINITY, value) : value;
}

void expect_pooled(Builder& build, bool exact) {
  const QsaPoolArgs& args = build.args();
  const int64_t width = args.raw.extent(1), ratio = args.tail.extent(0);
  const int64_t begin = args.first / ratio, end = (args.first + args.raw.extent(0)) / ratio;
  const auto elements = static_cast<size_t>(args.pooled.elements()), before = static_cast<size_t>(begin * width);
  std::vector<double> expected(elements), bound(elements);
  std::vector<uint8_t> written(elements, 0);
  qsa_pool_oracle(args, expected.data() + before);
  if (!exact) qsa_pool_bound(args, bound.data() + before);
  for (double& value : expected) value = stored_value(args.pooled.dtype, value);
  std::fill_n(written.begin() + begin * width, (end - begin) * width, uint8_t{1});
  build.output("pooled", &QsaPoolArgs::pooled, std::move(expected), std::move(bound), std::move(written));
}

// Slot s holds the last given key of a position p = s mod ratio; slots that never got one stay as they are.
void expect_tail(Builder& build) {
  const QsaPoolArgs& args = build.args();
  const int64_t width = args.raw.extent(1), ratio = args.tail.extent(0), rows = args.raw.extent(0);
  std::vector<double> expected;
  std::vector<uint8_t> written;
  for (int64_t slot = 0; slot < ratio; ++slot) {
    const float* key = slot < args.first % ratio ? args.tail.row<float>(slot) : nullptr;
    for (int64_t t = std::max<int64_t>(0, rows - ratio); t < rows; ++t)
      if ((args.first + t) % ratio == slot) key = args.raw.row<float>(t);
    for (int64_t i = 0; i < width; ++i) expected.push_back(key == nullptr ? 0 : static_cast<double>(key[i]));
    written.insert(written.end(), static_cast<size_t>(width), key != nullptr);
  }
  std::vector<double> bound(expected.size(), 0);
  build.output("tail", &QsaPoolArgs::tail, std::move(expected), std::move(bound), std::move(written));
  build.restored(&QsaPoolArgs::tail);
}

void expect(Builder& build, bool exact = false) {
  expect_pooled(build, exact);
  expect_tail(build);
  build.input("raw", &QsaPoolArgs::raw);
  build.input("weight", &QsaPoolArgs::weight);
  const QsaPoolArgs args = build.args();
  for (int64_t step : {1, 3, 4, 5}) {
    if (args.raw.extent(0) <= step) continue;
    build.variant("calls of " + std::to_string(step), [args, step](Queue& queue) {
      for (int64_t done = 0; done < args.raw.extent(0); done += step) {
        QsaPoolArgs part = args;
        part.raw = args.raw.slice(done, std::min(step, args.raw.extent(0) - done));
        part.first = args.first + done;
        qsa_pool(queue, part);
      }
    });
  }
}

ParityCase random_case(const Shape& s, uint64_t seed, int64_t nan_at = -1) {
  Random random(seed);
  Builder build(label(s), qsa_pool, qsa_pool_arms());
  const auto rope = std::make_shared<RopeFrequencies>(frequencies(s.dims, s.pairs, s.factor));
  QsaPoolArgs& args = build.args();
  args.raw = build.memory().f32({s.rows, s.width}, random, -s.magnitude, s.magnitude, {3});
  args.first = s.first;
  args.tail = build.memory().tensor(DType::F32, {s.ratio, s.width}, {1});
  for (int64_t slot = 0; slot < s.first % s.ratio; ++slot)
    for (int64_t i = 0; i < s.width; ++i) args.tail.row<float>(slot)[i] = random.uniform(-s.magnitude, s.magnitude);
  args.weight = build.memory().f32({s.width}, random, 0.5f * s.weight, 2 * s.weight);
  args.eps = s.eps;
  args.pooled = build.memory().tensor(s.stored, {(s.first + s.rows) / s.ratio + 1, s.width}, {2});
  args.rope = rope.get();
  if (nan_at >= 0) args.raw.row<float>(nan_at)[s.width / 2] = NAN;
  expect(build);
  ParityCase test = build.build();
  test.memory = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(test.memory, rope);
  return test;
}

// Block b has one dim that is not 0, among those that are not rotated, with the mean ±2: of 16 dims the root is 1/2, so
// the key is ±4 times the weight, exactly in every type.
ParityCase one_hot_case(DType stored, uint64_t seed) {
  Random random(seed);
  constexpr int64_t kWidth = 16, kBlocks = 28;
  Builder build("one-hot " + std::string(to_string(stored)), qsa_pool, qsa_pool_arms());
  const auto rope = std::make_shared<RopeFrequencies>(frequencies(2, RopePairs::HalfSplit, 1));
  QsaPoolArgs& args = build.args();
  args.raw = build.memory().tensor(DType::F32, {4 * kBlocks, kWidth});
  for (int64_t p = 0; p < 4 * kBlocks; ++p)
    for (int64_t i = 0; i < kWidth; ++i) {
      const int64_t block = p / 4;
      const auto value = static_cast<float>(2 * (p % 4) - 1);  // -1, 1, 3, 5
      args.raw.row<float>(p)[i] = i == 2 + block % 14 ? (block < 14 ? value : -value) : 0.0f;
    }
  args.tail = build.memory().tensor(DType::F32, {4, kWidth});
  args.weight = build.memory().tensor(DType::F32, {kWidth});
  for (int64_t i = 0; i < kWidth; ++i) args.weight.f32()[i] = static_cast<float>(32 + random.below(96)) / 32;
  args.eps = 0x1p-100f;
  args.pooled = build.memory().tensor(stored, {kBlocks, kWidth});
  args.rope = rope.get();
  expect(build, true);
  ParityCase test = build.build();
  test.memory = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(test.memory, rope);
  return test;
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto add = [&](const Shape& s) { list.push_back([=, n = next++] { return random_case(s, n); }); };
  for (DType stored : {DType::F32, DType::BF16, DType::F16}) {
    for (int64_t ratio : {1, 2, 4, 5})
      for (const auto& [width, dims] : {std::pair{2, 2}, std::pair{17, 6}, std::pair{32, 32}, std::pair{128, 64}})
        for (const auto& [first, rows] :
             {std::pair{0, 1}, std::pair{0, 43}, std::pair{7, 1}, std::pair{6, 2}, std::pair{3, 8}, std::pair{5, 33}}) {
          Shape s{.stored = stored, .ratio = ratio, .width = width, .dims = dims, .first = first, .rows = rows};
          s.pairs = rows % 2 == 0 ? RopePairs::Adjacent : RopePairs::HalfSplit;
          s.factor = ratio == 2 ? 2 : 1;
          s.eps = ratio == 5 ? 0.5f : 1e-6f;  // a small eps would hide the factor 1 / ratio: the norm divides it out
          add(s);
        }
    add({.stored = stored, .first = 65535, .rows = 6});  // large angles
    add({.stored = stored, .width = 16, .dims = 16, .first = 1048573, .rows = 9, .factor = 2});
    add({.stored = stored, .rows = 0});
    add({.stored = stored, .rows = 64, .magnitude = 1e-20f});
    add({.stored = stored, .rows = 64, .magnitude = 1e17f});
    add({.stored = stored, .rows = 64, .weight = 1e-6f});  // f16 subnormals
    add({.stored = stored, .rows = 64, .weight = 4e4f});   // f16 overflows
    list.push_back([=, n = next++] { return random_case({.stored = stored, .rows = 24}, n, 9); });
    list.push_back([=, n = next++] { return one_hot_case(stored, n); });
  }
  return list;
}

}  // namespace

OperatorEvidence qsa_pool_evidence() { return {"qsa_pool", arm_infos(qsa_pool_arms()), cases, false}; }

}  // namespace strata
