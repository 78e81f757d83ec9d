#include "ops/attention/attention.h"

#include <cstdlib>

#include "support/attention_case.h"
#include "support/safetensors_file.h"

namespace strata::test {
namespace {

struct Problem {
  Problem(int64_t heads, int64_t kv_heads, int64_t dim, const std::vector<int32_t>& lengths, Random& random,
          float range = 1)
      : counts(lengths),
        cells(*std::max_element(lengths.begin(), lengths.end())),
        q(random_f32({rows(), heads, dim}, random, -range, range, {4, 3})),
        k(DType::F32, {cells + 3, kv_heads, dim}),  // the last cells stay NaN
        v(DType::F32, {cells + 3, kv_heads, dim}),
        n_kv(owned_i32(lengths)),
        out(DType::F32, {rows(), heads, dim}, {2, 1}) {
    fill(k.t().slice(0, cells), random);
    fill(v.t().slice(0, cells), random);
  }
  int64_t rows() const { return static_cast<int64_t>(counts.size()); }
  AttentionArgs args() const {
    const float scale = 1 / std::sqrt(static_cast<float>(q.t().extent(2)));
    return {.q = q, .k = k, .v = v, .n_kv = n_kv, .scale = scale, .out = out};
  }
  std::vector<int32_t> counts;
  int64_t cells;
  Owned q, k, v, n_kv, out;
};

std::vector<double> oracle(const AttentionArgs& args) {
  std::vector<double> out(static_cast<size_t>(args.out.elements()));
  attention_oracle(args, out.data(), nullptr);
  return out;
}

std::vector<int32_t> mixed_lengths(size_t rows) {
  const std::vector<int32_t> lengths{129, 0, 1, 17, 127, 128, 2, 300, 256};
  std::vector<int32_t> result;
  for (size_t t = 0; t < rows; ++t) result.push_back(lengths[t % lengths.size()]);
  return result;
}

TEST(Attention, StaysInItsBound) {
  struct Shape {
    int64_t heads, kv_heads, dim;
  };
  Random random(1);
  TestQueue queue(2);
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{4, 2, 16}, Shape{6, 3, 17}, Shape{2, 2, 15}, Shape{12, 1, 64}, Shape{4, 1, 320}})
    for (size_t rows : {1, 2, 7, 33})
      for (float range : {1.0f, 30.0f}) {
        const Problem problem(shape.heads, shape.kv_heads, shape.dim, mixed_lengths(rows), random, range);
        const AttentionArgs args = problem.args();
        attention(queue, args);
        const auto bound = attention_bound(args.q, args.k, args.v, double{args.scale}, first_cells(problem.counts));
        ASSERT_TRUE(within(args.out, oracle(args), bound)) << shape.heads << " heads of " << shape.dim;
        ASSERT_TRUE(problem.out.gaps_intact());
      }
}

TEST(Attention, ARowHasTheSameBitsAloneAndForAnyThreadCount) {
  Random random(2);
  const Problem problem(6, 2, 33, mixed_lengths(33), random, 10);
  AttentionArgs args = problem.args();
  TestQueue one(1);
  attention(one, args);
  for (int threads : kThreadCounts) {
    TestQueue queue(threads);
    const Owned batch(DType::F32, {33, 6, 33});
    args.out = batch;
    attention(queue, args);
    ASSERT_TRUE(same_bits(batch, problem.out)) << threads << " threads";
    for (int64_t t = 0; t < 33; ++t) {
      // Alone, with everything past its own cells poisoned.
      const int32_t cells = problem.counts[static_cast<size_t>(t)];
      const Owned k(DType::F32, {problem.cells, 2, 33}), v(DType::F32, {problem.cells, 2, 33});
      if (cells > 0) assign(k.t().slice(0, cells), packed(problem.k.t().slice(0, cells)));
      if (cells > 0) assign(v.t().slice(0, cells), packed(problem.v.t().slice(0, cells)));
      const Owned row(DType::F32, {1, 6, 33}), count = owned_i32({cells});
      AttentionArgs single = args;
      single.q = problem.q.t().slice(t, 1);
      single.k = k;
      single.v = v;
      single.n_kv = count;
      single.out = row;
      attention(queue, single);
      ASSERT_TRUE(same_bits(row, problem.out.t().slice(t, 1))) << "row " << t << ", " << threads << " threads";
    }
  }
}

TEST(Attention, NoCellsGiveZeros) {
  Random random(3);
  TestQueue queue;
  const Problem problem(2, 1, 8, {3, 0}, random);
  attention(queue, problem.args());
  for (uint32_t bits : packed<uint32_t>(problem.out.t().slice(1, 1))) EXPECT_EQ(bits, 0u);
  std::vector<double> out(32), lse(4);
  attention_oracle(problem.args(), out.data(), lse.data());
  EXPECT_EQ(lse[2], -INFINITY);
}

TEST(Attention, OneCellCopiesTheValuesOfItsKvHead) {
  Random random(4);
  TestQueue queue;
  const Problem problem(12, 3, 20, {1}, random);
  attention(queue, problem.args());
  for (int64_t h = 0; h < 12; ++h)
    EXPECT_TRUE(same_bits(problem.out.t()[0].slice(h, 1), problem.v.t()[0].slice(h / 4, 1))) << "head " << h;
}

// Equal keys give equal weights; sums of small integers and the division by 256 are exact.
TEST(Attention, EqualKeysGiveTheExactMean) {
  Random random(5);
  TestQueue queue;
  const Problem problem(2, 1, 16, {256}, random);
  std::vector<double> mean(16, 0.0);
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t c = 0; c < 256; ++c) {
      problem.k.f({c, 0, i}) = problem.k.f({0, 0, i});
      problem.v.f({c, 0, i}) = static_cast<float>(random.below(33) - 16);
      mean[static_cast<size_t>(i)] += double{problem.v.f({c, 0, i})} / 256;
    }
  attention(queue, problem.args());
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(double{problem.out.f({0, h, i})}, mean[static_cast<size_t>(i)]);
}

// A score of 200 leaves the others weights below the f32 range: the result is that cell's value, wherever it is.
TEST(Attention, ADominantCellIsCopiedExactly) {
  Random random(6);
  TestQueue queue;
  for (int64_t cell : {0, 1, 127, 128, 129, 299}) {
    const Problem problem(1, 1, 4, {300}, random);
    AttentionArgs args = problem.args();
    args.scale = 1;
    for (int64_t i = 0; i < 4; ++i) problem.q.f({0, 0, i}) = i == 2 ? 1.0f : 0.0f;
    problem.k.f({cell, 0, 2}) = 200;
    attention(queue, args);
    EXPECT_TRUE(same_bits(problem.out.t()[0], problem.v.t()[cell])) << "cell " << cell;
  }
}

TEST(Attention, NanReachesWhatDependsOnItOnly) {
  Random random(7);
  TestQueue queue;
  const Problem problem(4, 2, 8, {5, 200, 200}, random);
  const AttentionArgs args = problem.args();
  problem.q.f({1, 3, 0}) = NAN;    // all of row 1, head 3
  problem.v.f({150, 0, 6}) = NAN;  // dim 6 of heads 0 and 1 where cell 150 is visible
  attention(queue, args);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < 8; ++i)
        EXPECT_EQ(std::isnan(problem.out.f({t, h, i})), (t == 1 && h == 3) || (t > 0 && h < 2 && i == 6));
  for (int64_t cell : {0, 127, 128, 199}) {  // a NaN score is never compared away
    const Problem other(1, 1, 8, {200}, random);
    other.k.f({cell, 0, 3}) = NAN;
    attention(queue, other.args());
    for (float value : packed(other.out)) EXPECT_TRUE(std::isnan(value)) << "cell " << cell;
  }
}

TEST(Attention, AScoreOfMinusInfinityHasNoWeight) {
  Random random(8);
  TestQueue queue;
  const Problem problem(1, 1, 8, {130}, random), shorter(1, 1, 8, {129}, random);
  for (const Problem* p : {&problem, &shorter})
    for (int64_t i = 0; i < 8; ++i) p->q.f({0, 0, i}) = 1;
  assign(shorter.k.t().slice(0, 129), packed(problem.k.t().slice(0, 129)));
  assign(shorter.v.t().slice(0, 129), packed(problem.v.t().slice(0, 129)));
  problem.k.f({129, 0, 4}) = -INFINITY;
  attention(queue, problem.args());
  attention(queue, shorter.args());
  EXPECT_TRUE(same_bits(problem.out, shorter.out));
  for (int64_t c = 0; c < 130; ++c) problem.k.f({c, 0, 4}) = -INFINITY;
  attention(queue, problem.args());
  for (float value : packed(problem.out)) EXPECT_EQ(value, 0.0f);
  for (double value : oracle(problem.args())) EXPECT_EQ(value, 0.0);
}

TEST(Attention, WrongArgumentsAreNamed) {
  Random random(9);
  TestQueue queue;
  const Problem problem(4, 2, 8, {5, 3}, random);
  auto refused = [&](const char* argument, auto change) {
    AttentionArgs args = problem.args();
    change(args);
    return argument_refused([&] { attention(queue, args); }, "attention", argument);
  };
  const Owned ints(DType::I32, {2, 4, 8}), narrow(DType::F32, {8, 2, 7}), fewer(DType::F32, {7, 2, 8}),
      flat(DType::F32, {2, 4}), three(DType::F32, {8, 3, 8}), none(DType::F32, {8, 0, 8}), floats(DType::F32, {2}),
      tall(DType::F32, {3, 4, 8}), too_long = owned_i32({5, 9}), negative = owned_i32({-1, 3}), one = owned_i32({3});
  EXPECT_TRUE(refused("q", [&](AttentionArgs& args) { args.q = flat; }));
  EXPECT_TRUE(refused("q", [&](AttentionArgs& args) { args.q = ints; }));
  EXPECT_TRUE(refused("k", [&](AttentionArgs& args) { args.k = narrow; }));
  EXPECT_TRUE(refused("v", [&](AttentionArgs& args) { args.v = fewer; }));
  EXPECT_TRUE(refused("v", [&](AttentionArgs& args) { args.v = {}; }));
  EXPECT_TRUE(refused("kv heads", [&](AttentionArgs& args) { args.k = args.v = three; }));
  EXPECT_TRUE(refused("kv heads", [&](AttentionArgs& args) { args.k = args.v = none; }));
  EXPECT_TRUE(refused("n_kv", [&](AttentionArgs& args) { args.n_kv = too_long; }));
  EXPECT_TRUE(refused("n_kv", [&](AttentionArgs& args) { args.n_kv = negative; }));
  EXPECT_TRUE(refused("n_kv", [&](AttentionArgs& args) { args.n_kv = one; }));
  EXPECT_TRUE(refused("n_kv", [&](AttentionArgs& args) { args.n_kv = floats; }));
  EXPECT_TRUE(refused("out", [&](AttentionArgs& args) { args.out = tall; }));
  EXPECT_TRUE(all_canary(problem.out));
}

// Vectors of an independent float64 program. They may hold the outputs of some heads only, which `heads` then lists.
class AttentionFixture {
 public:
  explicit AttentionFixture(const std::string& path) : file_(path) {}

  void check(const std::string& keys, const std::string& group, const std::string& range, bool big) const {
    SCOPED_TRACE(keys + "." + group + "." + range + (big ? " big" : ""));
    const std::string name = keys + "." + group, result = name + (big ? ".big_" : ".") + range;
    const int64_t begin = std::stoll(range), end = std::stoll(range.substr(range.find('_') + 1));
    const Owned q = load(name + (big ? ".qbig" : ".q"), 1), k = load(keys + ".k_i8", 32), v = load(keys + ".v_i8", 32);
    const int64_t heads = q.t().extent(0), dim = q.t().extent(1);
    const Owned n_kv = owned_i32({static_cast<int32_t>(end - begin)}), out(DType::F32, {1, heads, dim});
    const AttentionArgs args{.q = make_f32(q.t().f32(), {1, heads, dim}),
                             .k = k.t().slice(begin, end - begin),
                             .v = v.t().slice(begin, end - begin),
                             .n_kv = n_kv,
                             .scale = 1 / std::sqrt(static_cast<float>(dim)),
                             .out = out};
    std::vector<double> ours(static_cast<size_t>(heads * dim)), lse(static_cast<size_t>(heads));
    attention_oracle(args, ours.data(), lse.data());
    TestQueue queue;
    attention(queue, args);
    const auto bound =
        attention_bound(args.q, args.k, args.v, double{args.scale}, first_cells({static_cast<int32_t>(end - begin)}));
    const std::vector<double> theirs = file_.values(result + ".o"), their_lse = file_.values(result + ".lse");
    std::vector<int64_t> present(static_cast<size_t>(heads));
    for (int64_t h = 0; h < heads; ++h) present[static_cast<size_t>(h)] = h;
    if (file_.has(name + ".heads")) {
      const auto listed = file_.values(name + ".heads");
      present.assign(listed.begin(), listed.end());
    }
    ASSERT_EQ(theirs.size(), present.size() * static_cast<size_t>(dim));
    // Our scale is an f32. Its difference from 1/sqrt(dim) moves the scores; outputs are means of |v| <= 4, so a score
    // that moves by e moves them by less than 8 e. 1e-12 is for float64 sums of up to 2049 terms: two float64 programs
    // agreed to 4e-14.
    const double moved = std::fabs(double{args.scale} * std::sqrt(static_cast<double>(dim)) - 1) * largest_score(args);
    const double tolerance = 1e-12 + 8 * moved;
    for (size_t row = 0; row < present.size(); ++row) {
      const auto h = static_cast<size_t>(present[row]);
      EXPECT_NEAR(lse[h], their_lse[row], 1e-12 + moved) << "head " << h;
      for (size_t i = 0; i < static_cast<size_t>(dim); ++i) {
        const double expected = theirs[row * static_cast<size_t>(dim) + i];
        const size_t at = h * static_cast<size_t>(dim) + i;
        ASSERT_NEAR(ours[at], expected, tolerance) << "head " << h << ", dim " << i;
        ASSERT_NEAR(double{out.t().f32()[at]}, expected, bound[at] + tolerance) << "head " << h << ", dim " << i;
      }
    }
  }

 private:
  static double largest_score(const AttentionArgs& args) {
    const int64_t heads = args.q.extent(1), dim = args.q.extent(2), group = heads / args.k.extent(1);
    double largest = 0;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t c = 0; c < args.k.extent(0); ++c) {
        double dot = 0;
        for (int64_t i = 0; i < dim; ++i)
          dot += double{args.q[0].row<float>(h)[i]} * double{args.k[c].row<float>(h / group)[i]};
        largest = std::max(largest, std::fabs(dot * double{args.scale}));
      }
    return largest;
  }
  Owned load(const std::string& name, float divisor) const {
    Owned tensor(DType::F32, file_.shape(name));
    std::vector<float> values = file_.floats(name);
    for (float& value : values) value /= divisor;
    assign(tensor.t(), values);
    return tensor;
  }
  SafetensorsFile file_;
};

TEST(Attention, AgreesWithAnIndependentProgram) {
  const AttentionFixture fixture(STRATA_SOURCE_DIR "/tests/fixtures/kernels/attn_small.safetensors");
  for (const auto& [keys, group] : {std::pair{"d128", "g8"}, std::pair{"d256", "g12"}}) {
    for (const char* range : {"0_63", "0_64", "0_65"}) fixture.check(keys, group, range, false);
    fixture.check(keys, group, "0_65", true);
  }
}

TEST(Attention, AgreesWithAllVectorsOfAnIndependentProgram) {
  if (std::getenv("TEST_ALL") == nullptr) GTEST_SKIP() << "set TEST_ALL=1";
  const AttentionFixture fixture(STRATA_SOURCE_DIR "/../shared/fixtures/kernels/attn.safetensors");
  for (const char* keys : {"d128", "d256"})
    for (const char* group : {"g8", "g12"}) {
      for (const char* range : {"0_1", "0_63", "0_64", "0_65", "0_2049", "0_1024", "1024_2049", "2048_2049"})
        fixture.check(keys, group, range, false);
      for (const char* range : {"0_65", "0_2049"}) fixture.check(keys, group, range, true);
    }
}

}  // namespace
}  // namespace strata::test
