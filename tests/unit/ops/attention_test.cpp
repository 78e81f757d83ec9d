#include "ops/attention/attention.h"

#include <cstdlib>

#include "ops/attention/parity.h"
#include "support/ops_test.h"
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

// A queue that runs one arm.
struct ArmQueue : TestQueue {
  explicit ArmQueue(const Arm<AttentionArgs>& arm, int threads = 1) : TestQueue(threads) {
    queue.request_arm("attention", std::string(arm.name));
    queue.strict_arms = true;
  }
};

std::vector<Arm<AttentionArgs>> arms_here() {
  std::vector<Arm<AttentionArgs>> arms;
  for (const auto& arm : attention_arms())
    if (arm.image == nullptr && cpu_features().has(arm.isa)) arms.push_back(arm);
  return arms;
}

// The splits, merged by hand in float64, give what the plain formula gives; and what a defect of a merge would give is
// outside of the bound.
TEST(Attention, TheBoundTellsAWrongMergeFromARightOne) {
  constexpr int64_t kCells = 700, kDim = 24, kPart = 256;
  Random random(1);
  const Problem problem(2, 1, kDim, {kCells, kCells}, random, 3);
  const AttentionArgs args = problem.args();
  const std::vector<double> whole = oracle(args);
  std::vector<double> bound(whole.size());
  attention_bound(args, bound.data(), nullptr);
  struct Part {
    std::vector<double> out, lse;
  };
  std::vector<Part> parts;
  for (int64_t first = 0; first < kCells; first += kPart) {
    const int64_t count = std::min(kPart, kCells - first);
    const Owned n_kv = owned_i32({static_cast<int32_t>(count), static_cast<int32_t>(count)});
    AttentionArgs part = args;
    part.k = args.k.slice(first, count);
    part.v = args.v.slice(first, count);
    part.n_kv = n_kv;
    parts.push_back({std::vector<double>(whole.size()), std::vector<double>(4)});
    attention_oracle(part, parts.back().out.data(), parts.back().lse.data());
  }
  // How many elements of the merge by these weights are outside the bound.
  auto outside = [&](const std::function<double(size_t part, size_t head)>& log_weight, size_t zeroed_from) {
    size_t count = 0;
    for (size_t i = 0; i < whole.size(); ++i) {
      double sum = 0, total = 0;
      for (size_t p = 0; p < parts.size(); ++p) {
        const double weight = std::exp(log_weight(p, i / kDim));
        sum += weight * parts[p].out[i];
        total += weight;
      }
      const double merged = i % kDim >= zeroed_from ? 0 : sum / total;
      count += std::fabs(merged - whole[i]) > bound[i];
    }
    return count;
  };
  auto lse = [&](size_t p, size_t head) { return parts[p].lse[head]; };
  const size_t all = whole.size();
  EXPECT_EQ(outside(lse, kDim), 0u);
  EXPECT_GT(outside([&](size_t p, size_t h) { return p == 1 ? -INFINITY : lse(p, h); }, kDim), all / 2);  // dropped
  EXPECT_GT(outside([&](size_t p, size_t h) { return p == 1 ? lse(p, h) + 0.001 : lse(p, h); }, kDim), all / 2);
  EXPECT_GT(outside([&](size_t p, size_t h) { return lse(p, p == 2 ? (h + 1) % 4 : h); }, kDim), all / 2);  // other row
  EXPECT_EQ(outside(lse, kDim - 4), 16u);  // four channels of each head zeroed
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

// All cells of a call that needs several rounds of splits, alone and among other rows.
TEST(Attention, PromptAndDecodeGiveTheSameBits) {
  for (const auto& arm : arms_here()) {
    Random random(10);
    std::vector<int32_t> lengths;
    for (int32_t t = 0; t < 20; ++t) lengths.push_back(1530 + t);
    const Problem problem(12, 1, 64, lengths, random, 5);
    const AttentionArgs args = problem.args();
    ArmQueue two(arm, 2), three(arm, 3);
    attention(two, args);
    for (int64_t t : {0, 5, 6, 19}) {
      const Owned row(DType::F32, {1, 12, 64});
      AttentionArgs single = args;
      single.q = args.q.slice(t, 1);
      single.n_kv = args.n_kv.slice(t, 1);
      single.out = row;
      attention(three, single);
      EXPECT_TRUE(same_bits(row, args.out.slice(t, 1))) << arm.name << ", row " << t;
    }
  }
}

TEST(Attention, Avx2AndAvx512GiveTheSameBits) {
  Random random(11);
  const Problem problem(12, 2, 80, mixed_lengths(33), random, 5);
  std::vector<std::vector<uint32_t>> bits;
  for (const auto& arm : arms_here()) {
    if (arm.isa == CpuIsa::Portable) continue;
    ArmQueue queue(arm, 2);
    attention(queue, problem.args());
    bits.push_back(packed<uint32_t>(problem.out));
  }
  for (const auto& other : bits) EXPECT_EQ(other, bits.front());
}

// Every kv head reads its own cells, whatever the group, with lse beside out.
// A cache in blocks gives the bits of the f32 cache that it decodes to: for every arm and pair of types.
TEST(Attention, BlocksGiveTheBitsOfTheirDecodedValues) {
  Random random(21);
  const Problem problem(6, 2, 96, {270, 33, 0, 1}, random, 3);
  const std::vector<DType> types{DType::F16, DType::Q8_0, DType::Q4_0};
  const int64_t cells = problem.cells;
  for (const DType k_type : types)
    for (const DType v_type : types) {
      const Owned k(k_type, {cells, 2, 96}), v(v_type, {cells, 2, 96});
      const Owned k_f32(DType::F32, {cells, 2, 96}), v_f32(DType::F32, {cells, 2, 96});
      for (const auto& [source, coded, plain] :
           {std::tuple{&problem.k, &k, &k_f32}, std::tuple{&problem.v, &v, &v_f32}}) {
        std::vector<float> values = packed(source->t().slice(0, cells));
        gguf::encoder(coded->t().dtype)(values.data(), coded->t().data, static_cast<int64_t>(values.size()));
        assign(plain->t(), decoded(*coded));
      }
      for (const auto& arm : arms_here()) {
        ArmQueue queue(arm, 2);
        AttentionArgs args = problem.args();
        args.k = k, args.v = v;
        attention(queue, args);
        const auto blocks = packed<uint32_t>(problem.out);
        args.k = k_f32, args.v = v_f32;
        attention(queue, args);
        EXPECT_EQ(blocks, packed<uint32_t>(problem.out))
            << arm.name << " " << to_string(k_type) << " " << to_string(v_type);
      }
    }
}

TEST(Attention, ALogSumIsThatOfItsOwnHead) {
  for (const auto& arm : arms_here()) {
    Random random(12);
    ArmQueue queue(arm);
    const Problem problem(6, 3, 16, {40, 0, 300}, random);
    const Owned lse(DType::F32, {3, 6}, {2});
    AttentionArgs args = problem.args();
    args.lse = lse;
    attention(queue, args);
    std::vector<double> out(3 * 6 * 16), expected(18), bound(18);
    attention_oracle(args, out.data(), expected.data());
    attention_bound(args, out.data(), bound.data());
    EXPECT_TRUE(within(lse, expected, bound)) << arm.name;
    EXPECT_EQ(lse.f({1, 2}), -INFINITY);
    EXPECT_TRUE(lse.gaps_intact());
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
  for (int64_t cell : {0, 1, 15, 16, 255, 256, 257, 299}) {
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
      flat(DType::F32, {2, 3}), whole(DType::I32, {8, 2, 8}), nothing(DType::F32, {2, 4, 0}),
      no_channels(DType::F32, {8, 2, 0}), three(DType::F32, {8, 3, 8}), none(DType::F32, {8, 0, 8}),
      floats(DType::F32, {2}), tall(DType::F32, {3, 4, 8}), too_long = owned_i32({5, 9}), negative = owned_i32({-1, 3}),
                                                            one = owned_i32({3});
  EXPECT_TRUE(refused("q", [&](AttentionArgs& args) { args.q = flat; }));
  EXPECT_TRUE(refused("q", [&](AttentionArgs& args) { args.q = ints; }));
  EXPECT_TRUE(refused("k", [&](AttentionArgs& args) { args.k = narrow; }));
  EXPECT_TRUE(refused("v", [&](AttentionArgs& args) { args.v = fewer; }));
  EXPECT_TRUE(refused("v", [&](AttentionArgs& args) { args.v = {}; }));
  EXPECT_TRUE(refused("f32, f16, bf16, q8_0 or q4_0", [&](AttentionArgs& args) { args.k = whole; }));
  // 48 channels are one and a half blocks; an odd block in between would shift all that follow.
  const Owned q48(DType::F32, {2, 4, 48}), k48(DType::F32, {8, 2, 48});
  Tensor blocks = make_tensor(k48.t().data, DType::Q8_0, {8, 2, 32});
  blocks.extents[2] = 48;
  for (const DType type : {DType::Q8_0, DType::Q4_0})
    EXPECT_TRUE(refused("heads of 48 channels are no whole blocks of 32", [&](AttentionArgs& args) {
      args.q = args.out = q48;
      args.k = args.v = k48;
      args.v = blocks;
      args.v.dtype = type;
    }));
  EXPECT_TRUE(refused("size 0", [&](AttentionArgs& args) {
    args.q = args.out = nothing;
    args.k = args.v = no_channels;
  }));
  EXPECT_TRUE(refused("lse", [&](AttentionArgs& args) { args.lse = flat; }));
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
    std::vector<double> bound(ours.size());
    attention_bound(args, bound.data(), nullptr);
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
