#include "ops/ngram_embedding/ngram_embedding.h"

#include "model/ngram_constants.h"
#include "support/ops_test.h"

namespace strata::test {
namespace {

constexpr int32_t kEos = 3;

// Rows of tokens first .. first + count - 1, with the context that precedes them.
std::vector<int64_t> rows_of(const NgramParams& params, const std::vector<int32_t>& sequence, size_t first,
                             size_t count) {
  std::vector<int32_t> before;
  for (int s = params.orders; s >= 1; --s)
    before.push_back(first >= static_cast<size_t>(s) ? sequence[first - static_cast<size_t>(s)] : -1);
  const Owned ids = owned_i32(
      {sequence.begin() + static_cast<int64_t>(first), sequence.begin() + static_cast<int64_t>(first + count)});
  const Owned context = owned_i32(before);
  std::vector<int64_t> rows(count * params.head_sizes.size(), -1);
  ngram_rows(params, ids, context, rows.data());
  return rows;
}

TEST(NgramConstants, ReproduceThePublishedOnes) {
  const NgramParams params = ngram_params(2, 8, kEos, 1234, 248320, 0, 20000000);
  EXPECT_EQ(params.multipliers, (std::vector<uint64_t>{23703573157769, 20109073645365, 8052911324071}));
  EXPECT_EQ(params.head_sizes[0], 20000003u);
  EXPECT_EQ(params.head_sizes[1], 20000023u);
  EXPECT_EQ(params.head_offsets[2], 40000026u);
  EXPECT_EQ(ngram_table_rows(params), 320001536u);
  for (uint64_t multiplier : params.multipliers) EXPECT_LT(multiplier * 248319, uint64_t{1} << 63);
  // The next module goes on where the primes of this one end, with other multipliers.
  const NgramParams next = ngram_params(2, 8, kEos, 1234, 248320, 1, 20000000);
  EXPECT_GT(next.head_sizes.front(), params.head_sizes.back());
  EXPECT_EQ(next.head_offsets.front(), 0u);
  EXPECT_NE(next.multipliers, params.multipliers);
}

TEST(NgramRows, ContextRulesByHand) {
  // The head size lies above every mix, so that the row is the mix itself.
  NgramParams params;
  params.orders = 2;
  params.heads = 1;
  params.eos = kEos;
  params.multipliers = {1, 1000, 1000000};
  params.head_sizes = {1u << 30, 1u << 30};
  params.head_offsets = {0, 0};
  const auto pair = [](int64_t c0, int64_t c1, int64_t c2) {
    const int64_t two = c0 ^ (c1 * 1000);
    return std::vector<int64_t>{two, two ^ (c2 * 1000000)};
  };
  const std::vector<int32_t> tokens{10, 11, 12, kEos, 13, 14, 15};
  const std::vector<std::vector<int64_t>> expected{pair(10, kEos, kEos),  // before the start everything reads as EOS
                                                   pair(11, 10, kEos),   pair(12, 11, 10),
                                                   pair(kEos, 12, 11),    // its own EOS does not cut its context
                                                   pair(13, kEos, kEos),  // the EOS and all before it read as EOS
                                                   pair(14, 13, kEos),   pair(15, 14, 13)};
  const std::vector<int64_t> rows = rows_of(params, tokens, 0, tokens.size());
  for (size_t t = 0; t < tokens.size(); ++t)
    EXPECT_EQ((std::vector<int64_t>{rows[2 * t], rows[2 * t + 1]}), expected[t]) << "token " << t;

  // A context whose newest token is EOS hides the older one.
  const Owned ids = owned_i32({20}), cut = owned_i32({19, kEos}), open = owned_i32({kEos, 19});
  std::vector<int64_t> one(2);
  ngram_rows(params, ids, cut, one.data());
  EXPECT_EQ(one, pair(20, kEos, kEos));
  ngram_rows(params, ids, open, one.data());
  EXPECT_EQ(one, pair(20, 19, kEos));
}

TEST(NgramEmbedding, WrongArgumentsAreNamed) {
  TestQueue queue;
  float x[64] = {};
  const NgramParams good = ngram_params(2, 3, kEos, 1, 320, 0, 17);
  const Owned ids = owned_i32({1, 2}), context = owned_i32({-1, 9}),
              table(DType::F32, {static_cast<int64_t>(ngram_table_rows(good)), 4}), y(DType::F32, {2, 6, 4});
  const auto refused = [&](const char* argument, const std::function<void(NgramEmbeddingArgs&, NgramParams&)>& change) {
    NgramParams params = good;
    NgramEmbeddingArgs args{&params, ids, context, table, y};
    change(args, params);
    return argument_refused([&] { ngram_embedding(queue, args); }, "ngram_embedding", argument);
  };
  EXPECT_TRUE(refused("params is absent", [](auto& args, auto&) { args.params = nullptr; }));
  EXPECT_TRUE(refused("ids is", [&](auto& args, auto&) { args.ids = make_f32(x, {2}); }));
  EXPECT_TRUE(refused("context is", [&](auto& args, auto&) { args.context = make_tensor(x, DType::I32, {3}); }));
  EXPECT_TRUE(refused("table is", [&](auto& args, auto&) { args.table = {}; }));
  EXPECT_TRUE(refused("y is", [&](auto& args, auto&) { args.y = make_f32(x, {2, 5, 4}); }));
  EXPECT_TRUE(refused("multipliers", [](auto&, auto& params) { params.multipliers.pop_back(); }));
  EXPECT_TRUE(refused("head sizes", [](auto&, auto& params) { params.head_sizes.pop_back(); }));
  EXPECT_TRUE(refused("head offsets", [](auto&, auto& params) { params.head_offsets.push_back(0); }));
  EXPECT_TRUE(refused("head 2", [](auto&, auto& params) { params.head_sizes[2] = 0; }));
  EXPECT_TRUE(refused("head 5", [](auto&, auto& params) { params.head_sizes[5] = UINT64_MAX; }));
  EXPECT_TRUE(refused("head 5", [](auto&, auto& params) { params.head_offsets[5] = UINT64_MAX; }));
  EXPECT_TRUE(refused("table", [](auto& args, auto& params) {
    args.table.extents[0] = static_cast<int64_t>(params.head_offsets.back() + params.head_sizes.back()) - 1;
  }));
  EXPECT_TRUE(refused("orders", [](auto&, auto& params) { params.orders = -2; }));
  EXPECT_TRUE(refused("heads", [](auto&, auto& params) { params.heads = 0; }));
}

TEST(NgramGate, SignAndFloorOfTheRoot) {
  TestQueue queue;
  float scores[] = {0, 1e-9f, -1e-9f, -4}, ones[] = {1, 1, 1, 1}, y[4] = {};  // hidden is 1: s = key · query
  ngram_gate(queue,
             {make_f32(scores, {1, 4, 1}), make_f32(ones, {1, 4, 1}), make_f32(ones, {1, 1}), make_f32(y, {1, 4, 1})});
  const double u = 8 * kUnitRoundoff;  // sigmoid and the root
  EXPECT_EQ(y[0], 0.5f);               // sign(0) is 0
  EXPECT_NEAR(y[1], 1 / (1 + std::exp(-1e-3)), u);
  EXPECT_NEAR(y[2], 1 / (1 + std::exp(1e-3)), u);
  EXPECT_NEAR(y[3], 1 / (1 + std::exp(2.0)), u);
}

TEST(NgramGate, WrongArgumentsAreNamed) {
  TestQueue queue;
  float x[64] = {};
  const auto refused = [&](const char* argument, Tensor NgramGateArgs::*tensor, const Tensor& wrong) {
    NgramGateArgs args{make_f32(x, {2, 3, 4}), make_f32(x, {2, 3, 4}), make_f32(x, {2, 4}), make_f32(x, {2, 3, 4})};
    args.*tensor = wrong;
    return argument_refused([&] { ngram_gate(queue, args); }, "ngram_gate", argument);
  };
  EXPECT_TRUE(refused("key is", &NgramGateArgs::key, make_f32(x, {6, 4})));
  EXPECT_TRUE(refused("query is", &NgramGateArgs::query, make_f32(x, {2, 3, 3})));
  EXPECT_TRUE(refused("value is", &NgramGateArgs::value, make_f32(x, {2, 3})));
  EXPECT_TRUE(refused("y is", &NgramGateArgs::y, make_tensor(x, DType::F16, {2, 3, 4})));
}

}  // namespace
}  // namespace strata::test
