#include "ops/qsa_select/qsa_select.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

constexpr QsaSemantics kSemantics[] = {QsaSemantics::Blocks, QsaSemantics::FixedWidth};

struct Problem {
  Problem(const std::vector<int32_t>& lengths, int block_ratio, int cell_budget, QsaSemantics rule)
      : counts_in(lengths),
        ratio(block_ratio),
        budget(cell_budget),
        semantics(rule),
        most(*std::max_element(lengths.begin(), lengths.end())),
        scores(DType::F32, {rows(), most / ratio + 2}, {1}),  // scores that no row may read stay NaN
        n_kv(owned_i32(lengths)),
        ids(DType::I32, {rows(), std::min<int64_t>(most, budget + ratio - 1) + 2}, {3}),
        counts(DType::I32, {rows()}) {}
  int64_t rows() const { return static_cast<int64_t>(counts_in.size()); }
  int64_t blocks(int64_t row) const { return counts_in[static_cast<size_t>(row)] / ratio; }
  QsaSelectArgs args() const {
    return {.scores = scores,
            .n_kv = n_kv,
            .ratio = ratio,
            .budget = budget,
            .semantics = semantics,
            .ids = ids,
            .counts = counts,
            .thresholds = {}};
  }
  void set_scores(const std::function<float(int64_t, int64_t)>& score) const {
    for (int64_t t = 0; t < rows(); ++t)
      for (int64_t b = 0; b < blocks(t); ++b) scores.f({t, b}) = score(t, b);
  }
  std::vector<int32_t> selected(int64_t row) const {
    const int32_t* first = ids.t().row<int32_t>(row);
    return {first, first + counts.i({row})};
  }
  std::vector<int32_t> counts_in;
  int ratio, budget;
  QsaSemantics semantics;
  int64_t most;
  Owned scores, n_kv, ids, counts;
};

// Ids and counts equal the oracle's, entries behind the count are untouched.
void expect_selection(Queue& queue, const Problem& problem) {
  const QsaSelectArgs args = problem.args();
  const int64_t width = args.ids.extent(1);
  std::vector<int32_t> ids(static_cast<size_t>(problem.rows() * width), static_cast<int32_t>(kCanary));
  std::vector<int32_t> counts(static_cast<size_t>(problem.rows()));
  qsa_select_oracle(args, ids.data(), counts.data());
  qsa_select(queue, args);
  ASSERT_EQ(packed<int32_t>(args.counts), counts);
  ASSERT_EQ(packed<int32_t>(args.ids), ids);
  ASSERT_TRUE(problem.ids.gaps_intact() && problem.counts.gaps_intact());
}

// The score lists that matter: no ties, many ties, only ties, and every special value.
std::vector<std::function<float(int64_t, int64_t)>> score_kinds(Random& random) {
  const std::vector<float> special{0.0f, -0.0f, 1.0f, -1.0f, NAN, -NAN, INFINITY, -INFINITY, 0x1p-149f, -0x1p-149f};
  return {
      [&random](int64_t, int64_t) { return random.uniform(0, 10); },
      [&random](int64_t, int64_t) { return std::max(0.0f, static_cast<float>(random.below(7) - 3)); },
      [](int64_t, int64_t) { return 0.0f; },
      [](int64_t, int64_t) { return NAN; },
      [&random](int64_t, int64_t) { return random.below(4) == 0 ? NAN : random.uniform(-1, 1); },
      [&random, special](int64_t, int64_t) { return special[static_cast<size_t>(random.below(10))]; },
      [](int64_t, int64_t b) { return static_cast<float>(b); },
      [](int64_t t, int64_t b) { return static_cast<float>(t - b); },
  };
}

TEST(QsaSelect, AgreesWithTheOracle) {
  Random random(1);
  TestQueue queue(2);
  for (QsaSemantics semantics : kSemantics)
    for (int ratio : {1, 2, 4, 8})
      for (int blocks : {1, 2, 5}) {
        const int budget = blocks * ratio;
        std::vector<int32_t> lengths;  // all residues, around the budget and well beyond, none
        for (int n = -2 * ratio - 1; n <= 3 * ratio + 1; ++n) lengths.push_back(std::max(0, budget + n));
        for (int n : {0, 1, 97, 98, 99, 100, 101, 257}) lengths.push_back(n);
        for (const auto& score : score_kinds(random)) {
          const Problem problem(lengths, ratio, budget, semantics);
          problem.set_scores(score);
          expect_selection(queue, problem);
        }
      }
}

TEST(QsaSelect, PublishedSizes) {
  Random random(2);
  TestQueue queue(2);
  for (QsaSemantics semantics : kSemantics)
    for (const auto& score : score_kinds(random)) {
      const Problem problem({0, 3, 2047, 2048, 2049, 2050, 2051, 2052, 2053, 2500, 8192, 32771}, 4, 2048, semantics);
      problem.set_scores(score);
      expect_selection(queue, problem);
    }
}

TEST(QsaSelect, MoreThanSixtyFiveThousandBlocks) {
  Random random(3);
  TestQueue queue;
  const auto kinds = score_kinds(random);
  for (size_t kind : {0, 1, 2})
    for (QsaSemantics semantics : kSemantics) {
      const Problem problem({300002}, 4, 2048, semantics);
      problem.set_scores(kinds[kind]);
      expect_selection(queue, problem);
    }
}

// Worked by hand: ratio 4, budget 8, scores 1, 3, 2, 3 of blocks 0 .. 3; then a tail of 0 .. 3 cells.
TEST(QsaSelect, HandMadeSelections) {
  TestQueue queue;
  const std::vector<float> scores{1, 3, 2, 3};
  auto select = [&](int32_t n_kv, QsaSemantics semantics) {
    const Problem problem({n_kv}, 4, 8, semantics);
    problem.set_scores([&](int64_t, int64_t b) { return scores[static_cast<size_t>(b)]; });
    qsa_select(queue, problem.args());
    return problem.selected(0);
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(select(16, QsaSemantics::Blocks), (Ids{4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(select(18, QsaSemantics::Blocks), (Ids{4, 5, 6, 7, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(select(19, QsaSemantics::Blocks), (Ids{4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18}));
  // Fixed width: always 11 cells; the next block in order, number 2, gives its lowest cells.
  EXPECT_EQ(select(16, QsaSemantics::FixedWidth), (Ids{4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15}));
  EXPECT_EQ(select(17, QsaSemantics::FixedWidth), (Ids{4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16}));
  EXPECT_EQ(select(18, QsaSemantics::FixedWidth), (Ids{4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(select(19, QsaSemantics::FixedWidth), (Ids{4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18}));
  for (QsaSemantics semantics : kSemantics) {
    EXPECT_EQ(select(0, semantics), Ids{});
    EXPECT_EQ(select(3, semantics), (Ids{0, 1, 2}));
    EXPECT_EQ(select(11, semantics), (Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));  // everything still fits
  }
  EXPECT_EQ(select(12, QsaSemantics::Blocks), (Ids{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(select(12, QsaSemantics::FixedWidth), (Ids{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(QsaSelect, TiesGoToTheLowestBlock) {
  TestQueue queue;
  const Problem problem({5000}, 4, 12, QsaSemantics::Blocks);
  using Ids = std::vector<int32_t>;
  auto select = [&](float even, float odd) {
    problem.set_scores([&](int64_t, int64_t b) { return b == 700 ? 9.0f : (b % 2 == 0 ? even : odd); });
    qsa_select(queue, problem.args());
    return problem.selected(0);
  };
  const Ids first_two{0, 1, 2, 3, 4, 5, 6, 7, 2800, 2801, 2802, 2803};
  const Ids first_odd{4, 5, 6, 7, 12, 13, 14, 15, 2800, 2801, 2802, 2803};
  EXPECT_EQ(select(-1, 0), first_odd);  // 624 zeros tie for two places
  EXPECT_EQ(select(-1, 2.5f), first_odd);
  EXPECT_EQ(select(NAN, -INFINITY), first_odd);
  EXPECT_EQ(select(-0.0f, 0), first_two);
  EXPECT_EQ(select(NAN, NAN), first_two);
}

TEST(QsaSelect, ARowIsTheSameAloneRepeatedAndForAnyThreadCount) {
  Random random(4);
  for (QsaSemantics semantics : kSemantics) {
    std::vector<int32_t> lengths;
    for (int32_t t = 0; t < 33; ++t) lengths.push_back(t % 5 == 0 ? t : 40 + 13 * t);
    const Problem problem(lengths, 4, 40, semantics);
    problem.set_scores(score_kinds(random)[1]);
    TestQueue one(1);
    qsa_select(one, problem.args());
    for (int threads : kThreadCounts) {
      TestQueue queue(threads);
      const int64_t width = problem.ids.t().extent(1);
      for (int repeat = 0; repeat < 5; ++repeat) {
        QsaSelectArgs args = problem.args();
        const Owned ids(DType::I32, {33, width}), counts(DType::I32, {33});
        args.ids = ids;
        args.counts = counts;
        qsa_select(queue, args);
        ASSERT_TRUE(same_bits(ids, problem.ids));
        ASSERT_TRUE(same_bits(counts, problem.counts));
      }
      for (int64_t t = 0; t < 33; ++t) {
        QsaSelectArgs args = problem.args();
        const Owned ids(DType::I32, {1, width}), counts(DType::I32, {1});
        args.scores = problem.scores.t().slice(t, 1);
        args.n_kv = problem.n_kv.t().slice(t, 1);
        args.ids = ids;
        args.counts = counts;
        qsa_select(queue, args);
        ASSERT_TRUE(same_bits(ids, problem.ids.t().slice(t, 1))) << "row " << t;
        ASSERT_TRUE(same_bits(counts, problem.counts.t().slice(t, 1))) << "row " << t;
      }
    }
  }
}

// Every guess gives the same result, and leaves the key of the last selected block.
TEST(QsaSelect, AGuessNeverChangesTheResult) {
  Random random(5);
  TestQueue queue;
  std::vector<uint32_t> guesses{0,          1,          0x007ffffe, 0x007fffff, 0x7fffffff,
                                0x80000000, 0x80000001, 0xff800000, 0xffffffff};
  for (int i = 0; i < 20; ++i) guesses.push_back(static_cast<uint32_t>(random.next()));
  for (QsaSemantics semantics : kSemantics)
    for (const auto& score : score_kinds(random)) {
      const Problem problem({70, 20002, 40001, 39}, 4, 40, semantics);
      problem.set_scores(score);
      expect_selection(queue, problem);
      const std::vector<int32_t> ids = packed<int32_t>(problem.ids);
      std::vector<int32_t> expected(4), unused_ids(ids.size()), unused_counts(4);
      qsa_select_oracle(problem.args(), unused_ids.data(), unused_counts.data(), expected.data());
      guesses.push_back(static_cast<uint32_t>(expected[1]));
      for (uint32_t guess : guesses) {
        const Owned thresholds = owned_i32(std::vector<int32_t>(4, static_cast<int32_t>(guess)));
        QsaSelectArgs args = problem.args();
        args.thresholds = thresholds;
        qsa_select(queue, args);
        ASSERT_EQ(packed<int32_t>(problem.ids), ids) << guess;
        expected[3] = static_cast<int32_t>(guess);  // 39 cells are all taken
        ASSERT_EQ(packed<int32_t>(thresholds), expected) << guess;
      }
    }
}

TEST(QsaSelect, OrderKeys) {
  const std::vector<float> rising{-INFINITY, -3e38f, -1, -0x1p-149f, 0, 0x1p-149f, 1, 3e38f, INFINITY};
  for (size_t i = 0; i + 1 < rising.size(); ++i) EXPECT_LT(qsa_order_key(rising[i]), qsa_order_key(rising[i + 1]));
  EXPECT_EQ(qsa_order_key(-0.0f), qsa_order_key(0.0f));
  EXPECT_EQ(qsa_order_key(NAN), 0u);
  EXPECT_EQ(qsa_order_key(-NAN), 0u);
  EXPECT_EQ(qsa_order_key(-INFINITY), 0x007FFFFFu);
  EXPECT_EQ(qsa_order_key(0.0f), 0x80000000u);
}

TEST(QsaSelect, WrongArgumentsAreNamed) {
  TestQueue queue;
  const Problem problem({20, 9}, 4, 8, QsaSemantics::Blocks);
  problem.set_scores([](int64_t, int64_t) { return 1.0f; });
  auto refused = [&](const char* argument, auto change) {
    QsaSelectArgs args = problem.args();
    change(args);
    return argument_refused([&] { qsa_select(queue, args); }, "qsa_select", argument);
  };
  const Owned flat(DType::F32, {2}), floats(DType::F32, {2, 20}), few_scores(DType::F32, {2, 4}),
      few_ids(DType::I32, {2, 10}), one = owned_i32({3}), negative = owned_i32({3, -1}), tall(DType::I32, {3, 20});
  EXPECT_TRUE(refused("scores", [&](QsaSelectArgs& args) { args.scores = flat; }));
  EXPECT_TRUE(refused("scores", [&](QsaSelectArgs& args) { args.scores = few_scores; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaSelectArgs& args) { args.n_kv = one; }));
  EXPECT_TRUE(refused("n_kv", [&](QsaSelectArgs& args) { args.n_kv = negative; }));
  EXPECT_TRUE(refused("ids", [&](QsaSelectArgs& args) { args.ids = few_ids; }));
  EXPECT_TRUE(refused("ids", [&](QsaSelectArgs& args) { args.ids = floats; }));
  EXPECT_TRUE(refused("ids", [&](QsaSelectArgs& args) { args.ids = tall; }));
  EXPECT_TRUE(refused("counts", [&](QsaSelectArgs& args) { args.counts = one; }));
  EXPECT_TRUE(refused("thresholds", [&](QsaSelectArgs& args) { args.thresholds = one; }));
  EXPECT_TRUE(refused("budget", [&](QsaSelectArgs& args) { args.budget = 0; }));
  EXPECT_TRUE(refused("budget", [&](QsaSelectArgs& args) { args.budget = -8; }));
  EXPECT_TRUE(refused("budget", [&](QsaSelectArgs& args) { args.budget = 10; }));
  EXPECT_TRUE(refused("ratio", [&](QsaSelectArgs& args) { args.ratio = 0; }));
  EXPECT_TRUE(all_canary(problem.ids) && all_canary(problem.counts));
}

}  // namespace
}  // namespace strata::test
