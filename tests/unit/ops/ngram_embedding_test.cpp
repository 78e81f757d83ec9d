#include "ops/ngram_embedding/ngram_embedding.h"

#include <algorithm>

#include "model/ngram_constants.h"
#include "support/ops_test.h"

namespace strata::test {
namespace {

constexpr int32_t kEos = 3;

// The definition, read off token by token from the whole sequence: nothing is carried from one token to the next.
std::vector<int64_t> rows_by_definition(const NgramParams& params, const std::vector<int32_t>& sequence, size_t first) {
  std::vector<int64_t> rows;
  for (size_t t = first; t < sequence.size(); ++t)
    for (int n = 2; n <= params.orders + 1; ++n)
      for (int head = 0; head < params.heads; ++head) {
        uint64_t mix = 0;
        for (int j = 0; j < n; ++j) {
          bool cut = static_cast<size_t>(j) > t;
          for (int back = 1; back <= j && !cut; ++back) cut = sequence[t - static_cast<size_t>(back)] == params.eos;
          const auto token = static_cast<uint64_t>(cut ? params.eos : sequence[t - static_cast<size_t>(j)]);
          mix ^= token * params.multipliers[static_cast<size_t>(j)];
        }
        const auto index = static_cast<size_t>((n - 2) * params.heads + head);
        rows.push_back(static_cast<int64_t>(mix % params.head_sizes[index] + params.head_offsets[index]));
      }
  return rows;
}

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

std::vector<int32_t> random_tokens(size_t count, Random& random) {
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = random.below(4) == 0 ? kEos : static_cast<int32_t>(random.below(300));
  return tokens;
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

TEST(NgramRows, FollowTheDefinition) {
  Random random(1);
  for (int orders : {1, 2, 4})
    for (int heads : {1, 3, 8}) {
      const NgramParams params = ngram_params(orders, heads, kEos, 77, 320, 0, 101);
      for (size_t count : {1u, 2u, 50u}) {
        const std::vector<int32_t> tokens = random_tokens(count, random);
        EXPECT_EQ(rows_of(params, tokens, 0, count), rows_by_definition(params, tokens, 0)) << orders << " " << heads;
      }
    }
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

TEST(NgramRows, SplitCallsGiveTheSameRows) {
  Random random(2);
  for (int orders : {1, 2, 3}) {
    const NgramParams params = ngram_params(orders, 2, kEos, 5, 320, 0, 1009);
    const std::vector<int32_t> tokens = random_tokens(40, random);
    const std::vector<int64_t> whole = rows_of(params, tokens, 0, 40);
    for (size_t cut = 0; cut <= 40; ++cut) {
      std::vector<int64_t> joined = rows_of(params, tokens, 0, cut), rest = rows_of(params, tokens, cut, 40 - cut);
      joined.insert(joined.end(), rest.begin(), rest.end());
      EXPECT_EQ(joined, whole) << "cut at " << cut;
    }
  }
}

TEST(NgramRows, LargeTokensAndMultipliersWrapIn64Bits) {
  NgramParams params = ngram_params(2, 2, 0, 1234, 248320, 0, 20000000);
  const std::vector<int32_t> published{248319, 248318, 1, 0, 248317};
  EXPECT_EQ(rows_of(params, published, 0, 5), rows_by_definition(params, published, 0));
  params.multipliers = {UINT64_MAX, UINT64_MAX - 6, 0x8000000000000001ull};
  const std::vector<int32_t> large{INT32_MAX, INT32_MAX - 1, 7};
  EXPECT_EQ(rows_of(params, large, 0, 3), rows_by_definition(params, large, 0));
}

struct Case {
  Case(int64_t rows, DType type, int64_t width, uint64_t seed = 1)
      : random(seed),
        params(ngram_params(2, 3, kEos, seed, 320, 0, 17)),
        tokens(random_tokens(static_cast<size_t>(rows), random)),
        ids(owned_i32(tokens)),
        context(owned_i32({-1, 9})),
        table(random_weight(type, {static_cast<int64_t>(ngram_table_rows(params)), width}, random)),
        y(DType::F32, {rows, 6, width}) {
    args = {&params, ids, context, table, y};
  }
  Random random;
  NgramParams params;
  std::vector<int32_t> tokens;
  Owned ids, context, table, y;
  NgramEmbeddingArgs args;
};

void run(const NgramEmbeddingArgs& args, int threads = 1) {
  TestQueue queue(threads);
  ngram_embedding(queue, args);
}

TEST(NgramEmbedding, CopiesTheRowsOfTheTable) {
  Random random(4);
  for (auto [type, width] : std::vector<std::pair<DType, int64_t>>{
           {DType::F32, 5}, {DType::F16, 160}, {DType::BF16, 7}, {DType::Q8_0, 160}, {DType::Q4_K, 256}}) {
    const Case problem(width < 100 ? 19 : 200, type, width);  // 200: shared among the threads
    std::vector<int32_t> sequence{9};
    sequence.insert(sequence.end(), problem.tokens.begin(), problem.tokens.end());
    const std::vector<int64_t> rows = rows_by_definition(problem.params, sequence, 1);
    const std::vector<float> table = decoded(problem.table);
    std::vector<float> expected;
    for (int64_t row : rows)
      expected.insert(expected.end(), table.begin() + row * width, table.begin() + (row + 1) * width);
    for (int threads : kThreadCounts) {
      fill(problem.y, random, -2, 2);  // nothing of the call before is left
      run(problem.args, threads);
      EXPECT_EQ(packed(problem.y), expected) << to_string(type) << ", " << threads << " threads";
      EXPECT_TRUE(problem.y.gaps_intact());
    }
  }
}

TEST(NgramEmbedding, NoRows) {
  Case problem(1, DType::F32, 4);
  problem.args.ids = problem.args.ids.slice(0, 0);
  problem.args.y = problem.args.y.slice(0, 0);
  EXPECT_NO_THROW(run(problem.args));
  EXPECT_TRUE(all_canary(problem.y));
}

TEST(NgramEmbedding, WrongArgumentsAreNamed) {
  Case problem(2, DType::F32, 4);
  float x[64] = {};
  const auto refused = [&](const char* argument, const std::function<void(NgramEmbeddingArgs&, NgramParams&)>& change) {
    NgramParams params = problem.params;
    NgramEmbeddingArgs args = problem.args;
    args.params = &params;
    change(args, params);
    return argument_refused([&] { run(args); }, "ngram_embedding", argument);
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

struct GateCase {
  GateCase(int64_t rows, int64_t streams, int64_t hidden, float size = 2, uint64_t seed = 1)
      : random(seed),
        key(random_f32({rows, streams, hidden}, random, -size, size)),
        query(random_f32({rows, streams, hidden}, random, -size, size)),
        value(random_f32({rows, hidden}, random, -3, 3)),
        y(DType::F32, {rows, streams, hidden}),
        args{key, query, value, y} {}
  Random random;
  Owned key, query, value, y;
  NgramGateArgs args;
};

void run(const NgramGateArgs& args, int threads = 1) {
  TestQueue queue(threads);
  ngram_gate(queue, args);
}

double root_of(double s) { return (s > 0 ? 1 : (s < 0 ? -1 : 0)) * std::sqrt(std::max(std::fabs(s), 1e-6)); }
double gate_of(double s) { return 1 / (1 + std::exp(-root_of(s))); }

// s errs by e: the dot product (hidden/16 + 5 roundings), 1/sqrt(hidden) and its product (4 u). The gate grows with s
// (with a jump at 0), so it lies between its values at s - e and s + e; the root rounds twice (slope of sigmoid <=
// 1/4), sigmoid 6 u, the product with value 1 u.
std::vector<double> gate_bound(const NgramGateArgs& args) {
  const int64_t rows = args.key.extent(0), streams = args.key.extent(1), hidden = args.key.extent(2);
  const auto n = static_cast<double>(hidden);
  std::vector<double> bound;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < streams; ++i) {
      double sum = 0, sum_abs = 0;
      for (int64_t c = 0; c < hidden; ++c) {
        const double product =
            static_cast<double>(args.key[t].row<float>(i)[c]) * static_cast<double>(args.query[t].row<float>(i)[c]);
        sum += product;
        sum_abs += std::fabs(product);
      }
      const double s = sum / std::sqrt(n), e = 1.01 * kU * (std::ceil(n / 16) + 9) * sum_abs / std::sqrt(n) + kTiny;
      const double gate = gate_of(s), interval = std::max(gate_of(s + e) - gate, gate - gate_of(s - e));
      const double rounding = kU * (2 * std::fabs(root_of(s)) / 4 + 7 * gate);
      for (int64_t c = 0; c < hidden; ++c)
        bound.push_back(1.01 * (interval + rounding) * std::fabs(static_cast<double>(args.value.row<float>(t)[c])) +
                        kTiny);
    }
  return bound;
}

TEST(NgramGate, MatchesTheOracle) {
  uint64_t seed = 1;
  for (int64_t rows : {1, 5})
    for (int64_t streams : {1, 2, 4})
      for (int64_t hidden : {1, 15, 64, 129})
        for (float size : {0.01f, 2.0f, 20.0f}) {
          const GateCase problem(rows, streams, hidden, size, seed++);
          std::vector<double> y(static_cast<size_t>(rows * streams * hidden));
          ngram_gate_oracle(problem.args, y.data());
          run(problem.args);
          ASSERT_TRUE(within(problem.y, y, gate_bound(problem.args))) << rows << " " << streams << " " << hidden;
          EXPECT_TRUE(problem.y.gaps_intact());
        }
}

TEST(NgramGate, SignAndFloorOfTheRoot) {
  const GateCase problem(1, 4, 1);
  problem.value.f({0, 0}) = 1;
  const std::vector<float> scores{0, 1e-9f, -1e-9f, -4};  // hidden is 1: s = key · query
  for (int64_t i = 0; i < 4; ++i) {
    problem.key.f({0, i, 0}) = scores[static_cast<size_t>(i)];
    problem.query.f({0, i, 0}) = 1;
  }
  run(problem.args);
  const double u = 8 * kU;                  // sigmoid and the root
  EXPECT_EQ(problem.y.f({0, 0, 0}), 0.5f);  // sign(0) is 0
  EXPECT_NEAR(problem.y.f({0, 1, 0}), 1 / (1 + std::exp(-1e-3)), u);
  EXPECT_NEAR(problem.y.f({0, 2, 0}), 1 / (1 + std::exp(1e-3)), u);
  EXPECT_NEAR(problem.y.f({0, 3, 0}), 1 / (1 + std::exp(2.0)), u);
}

TEST(NgramGate, RowsAndThreadsGiveTheSameBits) {
  // Large enough that every loop is shared among the threads (ThreadPool::grain_of).
  const GateCase whole(11, 4, 3001);
  run(whole.args);
  for (int threads : kThreadCounts) {
    const GateCase again(11, 4, 3001);
    run(again.args, threads);
    EXPECT_TRUE(same_bits(again.y, whole.y)) << threads << " threads";
  }
  const GateCase single(11, 4, 3001);
  for (int64_t t = 0; t < 11; ++t)
    run(NgramGateArgs{single.key.t().slice(t, 1), single.query.t().slice(t, 1), single.value.t().slice(t, 1),
                      single.y.t().slice(t, 1)});
  EXPECT_TRUE(same_bits(single.y, whole.y));
}

TEST(NgramGate, NaNStaysInItsStream) {
  const GateCase problem(2, 3, 8);
  problem.key.f({1, 2, 5}) = NAN;
  run(problem.args);
  for (int64_t t = 0; t < 2; ++t)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(std::isnan(problem.y.f({t, i, c})), t == 1 && i == 2);
}

TEST(NgramGate, WrongArgumentsAreNamed) {
  float x[64] = {};
  const auto refused = [&](const char* argument, Tensor NgramGateArgs::*tensor, const Tensor& wrong) {
    NgramGateArgs args{make_f32(x, {2, 3, 4}), make_f32(x, {2, 3, 4}), make_f32(x, {2, 4}), make_f32(x, {2, 3, 4})};
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "ngram_gate", argument);
  };
  EXPECT_TRUE(refused("key is", &NgramGateArgs::key, make_f32(x, {6, 4})));
  EXPECT_TRUE(refused("query is", &NgramGateArgs::query, make_f32(x, {2, 3, 3})));
  EXPECT_TRUE(refused("value is", &NgramGateArgs::value, make_f32(x, {2, 3})));
  EXPECT_TRUE(refused("y is", &NgramGateArgs::y, make_tensor(x, DType::F16, {2, 3, 4})));
}

}  // namespace
}  // namespace strata::test
