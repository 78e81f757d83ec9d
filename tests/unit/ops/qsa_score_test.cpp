#include "ops/qsa_score/qsa_score.h"

#include "base/half.h"
#include "ops/qsa_score/parity.h"
#include "support/ops_test.h"

namespace strata::test {
namespace {

constexpr DType kForms[] = {DType::F32, DType::BF16, DType::F16};

void set_key(const Tensor& keys, int64_t row, int64_t i, float value) {
  if (keys.dtype == DType::F32)
    keys.row<float>(row)[i] = value;
  else
    keys.row<uint16_t>(row)[i] = keys.dtype == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value);
}
void set_keys(const Tensor& keys, const std::vector<float>& values) {
  const int64_t d = keys.extent(1);
  for (int64_t b = 0; b < static_cast<int64_t>(values.size()) / d; ++b)
    for (int64_t i = 0; i < d; ++i) set_key(keys, b, i, values[static_cast<size_t>(b * d + i)]);
}

// Rows that see the given numbers of blocks, and tails of 0 .. 3 cells.
struct Problem {
  Problem(int64_t heads, int64_t dim, const std::vector<int32_t>& blocks, Random& random, float range = 1,
          DType form = DType::F32)
      : counts(blocks),
        most(*std::max_element(blocks.begin(), blocks.end())),
        q(random_f32({rows(), heads, dim}, random, -range, range, {4, 3})),
        pooled(form, {most + 2, dim}),  // the last keys stay canaries
        dead(form, {1, dim}),
        n_kv(DType::I32, {rows()}),
        scores(DType::F32, {rows(), most + 3}, {2}) {
    for (int64_t b = 0; b < most; ++b)
      for (int64_t i = 0; i < dim; ++i) set_key(pooled, b, i, random.uniform(-range, range));
    for (int64_t i = 0; i < dim; ++i) set_key(dead, 0, i, random.uniform(-range, range));
    for (int64_t t = 0; t < rows(); ++t) n_kv.i({t}) = 4 * blocks[static_cast<size_t>(t)] + static_cast<int32_t>(t % 4);
  }
  int64_t rows() const { return static_cast<int64_t>(counts.size()); }
  QsaScoreArgs args() const {
    return {.q = q, .pooled = pooled, .dead = {}, .n_kv = n_kv, .ratio = 4, .scores = scores};
  }
  QsaScoreArgs args_with_dead() const {
    QsaScoreArgs with = args();
    with.dead = dead.t()[0];
    return with;
  }

  std::vector<int32_t> counts;
  int64_t most;
  Owned q, pooled, dead, n_kv, scores;
};

// Written scores against the oracle, all others still canaries.
void expect_scores(const Problem& problem, const QsaScoreArgs& args) {
  const int64_t width = args.scores.extent(1);
  std::vector<double> expected(static_cast<size_t>(problem.rows() * width)), bound(expected.size());
  qsa_score_oracle(args, expected.data());
  qsa_score_bound(args, bound.data());
  for (int64_t t = 0; t < problem.rows(); ++t) {
    const int64_t written = problem.counts[static_cast<size_t>(t)] + (args.dead.empty() ? 0 : 1);
    for (int64_t b = 0; b < width; ++b) {
      const auto at = static_cast<size_t>(t * width + b);
      if (b < written) {
        ASSERT_LE(std::fabs(double{problem.scores.f({t, b})} - expected[at]), bound[at]) << "row " << t << ", " << b;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(problem.scores.f({t, b})), kCanary) << "row " << t << ", block " << b;
      }
    }
  }
  ASSERT_TRUE(problem.scores.gaps_intact());
}

// Runs `body` with each arm that this processor has.
void with_each_arm(const std::function<void(TestQueue&, const std::string&)>& body, int threads = 1) {
  for (const Arm<QsaScoreArgs>& arm : qsa_score_arms()) {
    TestQueue queue(threads);
    if (arm.image != nullptr || !queue.queue.cpu.has(arm.isa)) continue;
    queue.queue.strict_arms = true;
    queue.queue.request_arm("qsa_score", std::string(arm.name));
    body(queue, std::string(arm.name));
  }
}
bool can_run(const std::string& arm, const QsaScoreArgs& args) {
  return refusal_of<QsaScoreArgs>(qsa_score_arms(), arm, args).empty();
}

std::vector<int32_t> mixed_blocks(size_t rows) {
  const std::vector<int32_t> blocks{33, 0, 1, 31, 32, 70, 64, 5};
  std::vector<int32_t> result;
  for (size_t t = 0; t < rows; ++t) result.push_back(blocks[t % blocks.size()]);
  return result;
}

TEST(QsaScore, StaysInItsBound) {
  Random random(1);
  TestQueue queue(2);
  for (DType form : kForms)
    for (int64_t heads : {1, 4, 5})
      for (int64_t dim : {1, 15, 16, 17, 128, 320})
        for (size_t rows : {1, 2, 7, 33})
          for (float range : {1.0f, 300.0f}) {
            const Problem problem(heads, dim, mixed_blocks(rows), random, range, form);
            const QsaScoreArgs args = rows == 2 ? problem.args() : problem.args_with_dead();
            qsa_score(queue, args);
            expect_scores(problem, args);
          }
}

TEST(QsaScore, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(2);
  for (DType form : kForms) {
    const Problem problem(4, 40, mixed_blocks(33), random, 1, form);
    with_each_arm([&](TestQueue& one, const std::string& arm) {
      if (!can_run(arm, problem.args())) return;
      qsa_score(one, problem.args_with_dead());
      for (int threads : kThreadCounts) {
        TestQueue queue(threads);
        queue.queue.request_arm("qsa_score", arm);
        QsaScoreArgs args = problem.args_with_dead();
        const Owned batch(DType::F32, {33, problem.most + 3});
        args.scores = batch;
        qsa_score(queue, args);
        ASSERT_TRUE(same_bits(batch, problem.scores)) << arm << ", " << threads << " threads";
        for (int64_t t = 0; t < 33; ++t) {
          const Owned row(DType::F32, {1, problem.most + 3});
          args.q = problem.q.t().slice(t, 1);
          args.n_kv = problem.n_kv.t().slice(t, 1);
          args.scores = row;
          qsa_score(queue, args);
          ASSERT_TRUE(same_bits(row, problem.scores.t().slice(t, 1))) << arm << ", row " << t;
        }
      }
    });
  }
}

TEST(QsaScore, OneHotQueriesReadSingleKeysExactly) {
  Random random(3);
  const Problem problem(4, 20, std::vector<int32_t>(20, 70), random);
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < 20; ++i) problem.q.f({t, h, i}) = i == t && h == t % 4 ? 1.0f : 0.0f;
  with_each_arm([&](TestQueue& queue, const std::string& arm) {
    if (!can_run(arm, problem.args())) return;
    qsa_score(queue, problem.args());
    for (int64_t t = 0; t < 20; ++t)
      for (int64_t b = 0; b < 70; ++b)
        ASSERT_EQ(problem.scores.f({t, b}), std::max(problem.pooled.f({b, t}), 0.0f)) << arm << " " << t << " " << b;
  });
}

// q is rounded to the type of the keys, to nearest, ties to even: the products then are exact.
TEST(QsaScore, TheQueryIsRoundedToTheKeysType) {
  Random random(8);
  const Problem bf16(1, 1, {1}, random, 1, DType::BF16), f16(1, 1, {1}, random, 1, DType::F16);
  set_key(bf16.pooled, 0, 0, 1);
  set_key(f16.pooled, 0, 0, 1);
  auto score = [](const Problem& problem, float q) {
    problem.q.f({0, 0, 0}) = q;
    float result = 0;
    with_each_arm([&](TestQueue& queue, const std::string& arm) {
      if (!can_run(arm, problem.args())) return;
      qsa_score(queue, problem.args());
      EXPECT_TRUE(arm == "portable" || result == problem.scores.f({0, 0}) || result == 0) << arm;
      result = problem.scores.f({0, 0});
    });
    return result;
  };
  EXPECT_EQ(score(bf16, 1 + 0x1p-8f), 1.0f);
  EXPECT_EQ(score(bf16, 1 + 0x1p-8f + 0x1p-20f), 1 + 0x1p-7f);
  EXPECT_EQ(score(bf16, 1 + 3 * 0x1p-8f), 1 + 0x1p-6f);
  EXPECT_EQ(score(f16, 1 + 0x1p-11f), 1.0f);
  EXPECT_EQ(score(f16, 1 + 3 * 0x1p-11f), 1 + 0x1p-9f);
  EXPECT_EQ(score(f16, 65519.9f), 65504.0f);
  EXPECT_EQ(score(f16, 65520.0f), INFINITY);
}

// Relu acts on each head, not on the sum; a score without a positive head is +0, never -0.
TEST(QsaScore, NegativeHeadsCountAsPlusZero) {
  Random random(4);
  const Problem problem(2, 1, {3}, random);
  assign<float>(problem.q, {1, -3});
  set_keys(problem.pooled, {2, -0.0f, -5});
  with_each_arm([&](TestQueue& queue, const std::string& arm) {
    if (!can_run(arm, problem.args())) return;
    qsa_score(queue, problem.args());
    EXPECT_EQ(problem.scores.f({0, 0}), 2.0f) << arm;
    EXPECT_EQ(std::bit_cast<uint32_t>(problem.scores.f({0, 1})), 0u) << arm;
    EXPECT_EQ(problem.scores.f({0, 2}), 15.0f) << arm;
  });
}

TEST(QsaScore, NonFiniteProducts) {
  Random random(5);
  for (DType form : kForms) {
    const Problem problem(2, 2, {4}, random, 1, form);
    assign<float>(problem.q, {1, 0, 1, 1});
    set_keys(problem.pooled, {NAN, 1, -INFINITY, 1, INFINITY, 1, 1, INFINITY});
    with_each_arm([&](TestQueue& queue, const std::string& arm) {
      if (!can_run(arm, problem.args())) return;
      qsa_score(queue, problem.args());
      EXPECT_TRUE(std::isnan(problem.scores.f({0, 0}))) << arm;
      EXPECT_EQ(problem.scores.f({0, 1}), 0.0f) << arm;  // relu(-inf) = 0 in both heads
      EXPECT_EQ(problem.scores.f({0, 2}), INFINITY) << arm;
      EXPECT_TRUE(std::isnan(problem.scores.f({0, 3}))) << arm;  // 0 · inf in the first head
    });
    std::vector<double> expected(static_cast<size_t>(problem.scores.t().extent(1)));
    qsa_score_oracle(problem.args(), expected.data());
    EXPECT_TRUE(std::isnan(expected[0]) && expected[1] == 0 && std::isinf(expected[2]) && std::isnan(expected[3]));
  }
}

// The spare row: score of the dead key, 1e9 more with an open block, the same bits in every arm.
TEST(QsaScore, TheSpareRowHoldsTheDeadKey) {
  Random random(9);
  for (DType form : kForms) {
    const Problem problem(1, 2, {3, 3, 0, 0, 2}, random, 1, form);  // tails of 0, 1, 2, 3, 0 cells
    for (int64_t t = 0; t < 5; ++t) assign<float>(problem.q.t()[t], {1, 2});
    set_keys(problem.dead, {3, 0.5f});
    std::vector<uint32_t> first;
    with_each_arm([&](TestQueue& queue, const std::string& arm) {
      if (!can_run(arm, problem.args())) return;
      qsa_score(queue, problem.args_with_dead());
      EXPECT_EQ(problem.scores.f({0, 3}), 4.0f);
      EXPECT_EQ(problem.scores.f({1, 3}), 1e9f);  // 4 vanishes: one ulp is 64
      EXPECT_EQ(problem.scores.f({2, 0}), 1e9f);
      EXPECT_EQ(problem.scores.f({3, 0}), 1e9f);
      EXPECT_EQ(problem.scores.f({4, 2}), 4.0f);
      EXPECT_EQ(std::bit_cast<uint32_t>(problem.scores.f({4, 3})), kCanary);
    });
    const Problem wide(5, 77, mixed_blocks(33), random, 1, form);
    with_each_arm([&](TestQueue& queue, const std::string& arm) {
      if (!can_run(arm, wide.args())) return;
      qsa_score(queue, wide.args_with_dead());
      std::vector<uint32_t> bits;
      for (int64_t t = 0; t < 33; ++t)
        bits.push_back(std::bit_cast<uint32_t>(wide.scores.f({t, wide.counts[static_cast<size_t>(t)]})));
      if (first.empty()) first = bits;
      EXPECT_EQ(bits, first) << arm;
    });
  }
}

// Each block is one lane with its own sums in order: the width of the vectors does not show.
TEST(QsaScore, Avx2AndAvx512GiveTheSameBits) {
  Random random(10);
  for (DType form : kForms)
    for (int64_t heads : {1, 4, 7}) {
      const Problem problem(heads, 77, mixed_blocks(9), random, 1, form);
      std::vector<std::vector<uint32_t>> results;
      with_each_arm([&](TestQueue& queue, const std::string& arm) {
        if (arm != "avx2" && arm != "avx512") return;
        qsa_score(queue, problem.args());
        results.push_back(packed<uint32_t>(problem.scores));
      });
      for (const std::vector<uint32_t>& result : results) EXPECT_EQ(result, results.front());
    }
}

// What the bound of the bf16 form relies on: a step is two fused multiply-adds rounded to nearest, upper dim first.
TEST(QsaScore, TheBf16InstructionIsTwoFusedMultiplyAdds) {
  Random random(11);
  const Problem problem(1, 33, mixed_blocks(6), random, 1, DType::BF16);
  with_each_arm([&](TestQueue& queue, const std::string& arm) {
    if (arm != "avx512bf16") return;
    qsa_score(queue, problem.args());
    for (int64_t t = 0; t < 6; ++t)
      for (int64_t b = 0; b < problem.counts[static_cast<size_t>(t)]; ++b) {
        auto product_added = [&](int64_t i, float sum) {
          if (i >= 33) return sum;
          const float q = bf16_to_f32(f32_to_bf16(problem.q.f({t, 0, i})));
          return std::fma(bf16_to_f32(problem.pooled.t().row<uint16_t>(b)[i]), q, sum);
        };
        float sum = 0;
        for (int64_t i = 0; i < 33; i += 2) sum = product_added(i, product_added(i + 1, sum));
        ASSERT_EQ(problem.scores.f({t, b}), std::max(sum, 0.0f)) << t << " " << b;
      }
  });
}

// The parity check of selections: blind where the bounds may change them, else it sees one exchanged block.
TEST(QsaScore, TheSelectionCheckSeesOneExchangedBlock) {
  const std::vector<double> expected{5, 1, 4, 2, 3}, bound(5, 0.4), wide(5, 0.6);
  bool force = false;
  const std::vector<float> same{5, 1, 4, 2, 3}, exchanged{5, 1, 3, 2, 4}, nan{5, 1, NAN, 2, 3};
  EXPECT_EQ(qsa_score_selection(expected.data(), bound.data(), same.data(), 5, 2, force), "");
  EXPECT_TRUE(force);
  EXPECT_NE(qsa_score_selection(expected.data(), bound.data(), exchanged.data(), 5, 2, force), "");
  EXPECT_NE(qsa_score_selection(expected.data(), bound.data(), nan.data(), 5, 2, force), "");
  EXPECT_EQ(qsa_score_selection(expected.data(), bound.data(), exchanged.data(), 5, 1, force), "");
  EXPECT_EQ(qsa_score_selection(expected.data(), wide.data(), exchanged.data(), 5, 2, force), "");
  EXPECT_FALSE(force);
}

TEST(QsaScore, WrongArgumentsAreNamed) {
  Random random(6);
  TestQueue queue;
  const Problem problem(4, 8, {3, 2}, random);
  auto refused = [&](const char* argument, auto change) {
    QsaScoreArgs args = problem.args();
    change(args);
    return argument_refused([&] { qsa_score(queue, args); }, "qsa_score", argument);
  };
  const Owned flat(DType::F32, {2, 8}), narrow(DType::F32, {5, 7}), floats(DType::F32, {2}), ints(DType::I32, {2, 6}),
      tall(DType::F32, {3, 6}), short_scores(DType::F32, {2, 3}),
      negative = owned_i32({12, -1}), too_many = owned_i32({24, 2}), one = owned_i32({3}), other_dead(DType::BF16, {8}),
      no_heads(DType::F32, {2, 0, 8});
  EXPECT_TRUE(refused("q", [&](QsaScoreArgs& args) { args.q = flat; }));
  EXPECT_TRUE(refused("q", [&](QsaScoreArgs& args) { args.q = no_heads; }));
  EXPECT_TRUE(refused("pooled", [&](QsaScoreArgs& args) { args.pooled = narrow; }));
  EXPECT_TRUE(refused("pooled", [&](QsaScoreArgs& args) { args.pooled = ints; }));
  EXPECT_TRUE(refused("dead", [&](QsaScoreArgs& args) { args.dead = other_dead; }));
  EXPECT_TRUE(refused("dead", [&](QsaScoreArgs& args) { args.dead = floats; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaScoreArgs& args) { args.n_kv = floats; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaScoreArgs& args) { args.n_kv = one; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaScoreArgs& args) { args.n_kv = negative; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaScoreArgs& args) { args.n_kv = too_many; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaScoreArgs& args) {  // three blocks fit, the spare row does not
    args.dead = problem.dead.t()[0];
    args.scores = short_scores;
  }));
  EXPECT_TRUE(refused("ratio", [&](QsaScoreArgs& args) { args.ratio = 0; }));
  EXPECT_TRUE(refused("scores", [&](QsaScoreArgs& args) { args.scores = ints; }));
  EXPECT_TRUE(refused("scores", [&](QsaScoreArgs& args) { args.scores = tall; }));
  EXPECT_TRUE(all_canary(problem.scores));
}

}  // namespace
}  // namespace strata::test
