// Cases of sparse_attention: lists around blocks and splits, different for every row, anywhere in the cells. Cells that
// no row selects stay canaries, and so do the ids behind a row's count.
#include "ops/sparse_attention/parity.h"

#include <algorithm>

#include "ops/attention/softmax_case.h"
#include "ops/attention/softmax_kernel_types.h"

namespace strata {
namespace {

using Builder = CaseBuilder<SparseAttentionArgs>;

struct Plan {
  HeadShape shape;
  int64_t cells;
  std::vector<int64_t> counts;  // of each row
  DType k = DType::F32, v = DType::F32;
  float range = 1;  // of q
  int64_t run = 1;  // selected cells come in runs of this length
  int64_t pad = 3;  // elements between the cells; a multiple of 8: heads are whole, aligned pieces of 16 bytes
};

std::string name_of(const Plan& plan) {
  std::string name = std::to_string(plan.counts.size()) + " rows, " + label(plan.shape) + ", lists of";
  for (size_t t = 0; t < std::min<size_t>(plan.counts.size(), 4); ++t) name += " " + std::to_string(plan.counts[t]);
  return name + " of " + std::to_string(plan.cells) + ", k " + std::string(to_string(plan.k)) + ", v " +
         std::string(to_string(plan.v));
}

// `count` of `cells` in ascending order, in runs, the last cell of all among them.
std::vector<int32_t> choose(int64_t count, int64_t cells, int64_t run, Random& random) {
  std::vector<int32_t> ids;
  int64_t left = count;
  for (int64_t cell = cells; left > 0;) {  // downwards
    const int64_t length = std::min(run, left), spare = cell - left;
    for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(--cell));
    left -= length;
    if (left > 0 && spare > 0) cell -= random.below(std::min(spare, 2 * spare * run / std::max(left, run)) + 1);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

void fill(Builder& build, const Plan& plan, Random& random) {
  SparseAttentionArgs& args = build.args();
  const auto rows = static_cast<int64_t>(plan.counts.size());
  const auto [heads, kv_heads, dim] = plan.shape;
  const int64_t width = rows == 0 ? 0 : *std::max_element(plan.counts.begin(), plan.counts.end());
  args.q = build.memory().f32({rows, heads, dim}, random, -plan.range, plan.range, {4, 3});
  args.k = build.memory().tensor(plan.k, {plan.cells, kv_heads, dim}, {plan.pad, plan.pad % 8 == 0 ? 8 : 2});
  args.v = build.memory().tensor(plan.v, {plan.cells, kv_heads, dim}, {plan.pad, plan.pad % 8 == 0 ? 16 : 4});
  args.ids = build.memory().tensor(DType::I32, {rows, width + 2}, {5});
  args.counts = build.memory().i32(std::vector<int32_t>(plan.counts.begin(), plan.counts.end()));
  for (int64_t t = 0; t < rows; ++t) {
    const auto ids = choose(plan.counts[static_cast<size_t>(t)], plan.cells, plan.run, random);
    std::copy(ids.begin(), ids.end(), args.ids.row<int32_t>(t));
    for (int32_t cell : ids) {
      fill_rows(args.k[cell], random, -1, 1);
      fill_rows(args.v[cell], random, -1, 1);
    }
  }
  args.scale = 1 / std::sqrt(static_cast<float>(dim));
  args.out = build.memory().tensor(DType::F32, {rows, heads, dim}, {2, 1});
  args.lse = build.memory().tensor(DType::F32, {rows, heads}, {3});
}

ParityCase finish(Builder& build, Tolerance tolerance = Tolerance::Bound) {
  expect_softmax(build, sparse_attention_oracle, sparse_attention_bound, tolerance);
  using Args = SparseAttentionArgs;
  build.rows({&Args::q, &Args::ids, &Args::counts, &Args::out, &Args::lse});
  return build.build();
}

ParityCase random_case(const Plan& plan, uint64_t seed) {
  Random random(seed);
  Builder build(name_of(plan), sparse_attention, sparse_attention_arms());
  fill(build, plan, random);
  add_paged_variant(build, sparse_attention, random);
  return finish(build);
}

// Row t gives its t-th chosen cell a score 200 above all others: the values there are copied.
ParityCase dominant_case(uint64_t seed) {
  Random random(seed);
  const int64_t rows = 7, dim = 48;
  Builder build("one dominant cell in each list", sparse_attention, sparse_attention_arms());
  fill(build, {{4, 2, dim}, 3000, std::vector<int64_t>(static_cast<size_t>(rows), 2 * kSplit + 3)}, random);
  const SparseAttentionArgs& args = build.args();
  const std::vector<int64_t> places{0, 15, 16, kSplit - 1, kSplit, 2 * kSplit, 2 * kSplit + 2};
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t c = 0; c < dim; ++c) at(args.q, t, h, c) = c == t ? 1.0f : 0.0f;
    const int32_t chosen = args.ids.row<int32_t>(t)[places[static_cast<size_t>(t)]];
    for (int64_t cell = 0; cell < 3000; ++cell)
      for (int64_t x = 0; x < 2; ++x) {
        at(args.k, cell, x, t) = cell == chosen ? 200.0f : 0.0f;
        for (int64_t c = rows; c < dim; ++c) at(args.k, cell, x, c) = 0;
        for (int64_t c = 0; c < dim; ++c) at(args.v, cell, x, c) = static_cast<float>((cell * 2 + x) * dim + c + 1);
      }
  }
  build.args().scale = 1;
  return finish(build, Tolerance::Zero);
}

// The same with keys and values in blocks.
ParityCase dominant_block_case(DType type, uint64_t seed) {
  Random random(seed);
  const std::vector<int64_t> places{0, 15, 16, kSplit - 1, kSplit, 2 * kSplit, 2 * kSplit + 2};
  Builder build("one dominant cell in each list, " + std::string(to_string(type)), sparse_attention,
                sparse_attention_arms());
  fill(build, {{6, 2, 96}, 3000, std::vector<int64_t>(places.size(), 2 * kSplit + 3), type, type}, random);
  std::vector<int32_t> chosen;
  for (size_t t = 0; t < places.size(); ++t)
    chosen.push_back(build.args().ids.row<int32_t>(static_cast<int64_t>(t))[places[t]]);
  dominate(build.args().q, build.args().k, chosen);
  build.args().scale = 1;
  return finish(build, Tolerance::Zero);
}

// A NaN in a cell reaches the rows that select it only; minus infinity leaves the list of every row. Row 0 has the
// value at the places of its list that `bad` names.
ParityCase bad_key_case(const std::string& name, float value, const std::function<bool(int64_t n)>& bad,
                        uint64_t seed) {
  Random random(seed);
  Builder build(std::to_string(value) + " in " + name, sparse_attention, sparse_attention_arms());
  fill(build, {{4, 2, 24}, 700, {600, 300, 1, 20}}, random);
  const SparseAttentionArgs& args = build.args();
  for (int64_t t = 0; t < 4; ++t)
    for (int64_t h = 0; h < 4; ++h) at(args.q, t, h, 7) = 1;
  for (int64_t n = 0; n < 600; ++n)
    if (bad(n)) at(args.k, args.ids.row<int32_t>(0)[n], 1, 7) = value;
  return finish(build);
}

std::vector<std::function<ParityCase()>> cases(uint64_t seed) {
  std::vector<std::function<ParityCase()>> list;
  uint64_t next = seed * 1000003;
  auto plan = [&](const Plan& one) { list.push_back([one, s = next++] { return random_case(one, s); }); };
  plan({{4, 2, 64}, 3000, {0, 1, 3, 15, 16, 17, 255, 256, 257, 511, 512, 513, 2051}});
  int64_t rows = 1;
  for (int64_t group : {1, 2, 4, 6, 8, 12, 16})
    plan({{2 * group, 2, 60},
          900,
          std::vector<int64_t>(static_cast<size_t>(rows++), 259),
          DType::F32,
          DType::F32,
          3,
          4});
  for (int64_t dim : {1, 15, 16, 17, 60, 64, 80, 96, 126, 128, 256})
    plan({{4, 2, dim}, 500, {300, 0, 37}, DType::F32, DType::F32, 1, 1, dim});
  for (DType k : kKvTypes)
    for (DType v : kKvTypes) plan({{6, 2, 64}, 400, {270, 5, 0}, k, v, 2, 4, 7});
  for (DType kv : {DType::Q8_0, DType::Q4_0}) {
    plan({{4, 2, 32}, 900, {513, 0, 1, 15, 16, 17, 255, 256, 257}, kv, kv});
    plan({{12, 1, 96}, 600, {259, 300}, kv, kv, 3, 4});
    plan({{4, 2, 256}, 2000, {1000}, kv, kv, 1, 4});
  }
  plan({{12, 1, 32}, 300, std::vector<int64_t>(50, 40), DType::BF16, DType::BF16});
  for (DType kv : {DType::BF16, DType::F16})
    for (int64_t dim : {64, 128, 256}) {
      plan({{12, 1, dim}, 600, {259, 300, 0, 1}, kv, kv, 2, 4, 3});
      plan({{12, 1, dim}, 600, {259, 300, 0, 1}, kv, kv, 2, 4, 8});
      plan({{10, 2, dim}, 600, {513, 2, 255}, kv, kv, 1, 1, 8});
    }
  plan({{4, 2, 16}, 10, {}});
  plan({{4, 2, 16}, 10, {0, 0}});
  plan({{4, 2, 16}, 10, {10, 10, 10, 1}});
  list.push_back([s = next++] { return dominant_case(s); });
  for (DType type : {DType::Q8_0, DType::Q4_0})
    list.push_back([=, s = next++] { return dominant_block_case(type, s); });
  for (float value : {NAN, -INFINITY})
    list.push_back([=, s = next++] {
      return bad_key_case(
          "some keys", value, [](int64_t n) { return n % 128 == 1; }, s);
    });
  for (int64_t split : {0, 1})
    list.push_back([=, s = next++] {
      const auto whole = [=](int64_t n) { return n / kSplit == split; };
      return bad_key_case("split " + std::to_string(split), -INFINITY, whole, s);
    });
  plan({{12, 1, 256}, 32768, {2051}, DType::BF16, DType::BF16, 1, 4, 256});
  plan({{2, 1, 64}, 131072, {2051, 100}, DType::F16, DType::F16, 1, 4, 0});
  plan({{1, 1, 8}, 1048576, {2051, 3}, DType::BF16, DType::F16, 1, 4, 0});
  return list;
}

}  // namespace

OperatorEvidence sparse_attention_evidence() {
  return {"sparse_attention", arm_infos(sparse_attention_arms()), cases, false, sparse_attention_shapes};
}

}  // namespace strata
