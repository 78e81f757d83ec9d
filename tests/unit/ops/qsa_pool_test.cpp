#include "ops/qsa_pool/qsa_pool.h"

#include "base/half.h"
#include "support/ops_test.h"

namespace strata::test {
namespace {

RopeFrequencies rope_of(int dims, RopePairs pairs = RopePairs::HalfSplit, double factor = 1) {
  RopeParams params;
  params.rotary_dims = dims;
  params.pairs = pairs;
  params.base = 1e4;
  params.scaling = RopeScaling::Yarn;
  params.factor = factor;
  params.original_context = 4096;
  return RopeFrequencies(params);
}

// The raw keys of one sequence, and the state of its blocks. Blocks never written stay canaries.
struct Sequence {
  Sequence(int64_t positions, int64_t ratio, int64_t width, const RopeFrequencies& frequencies, Random& random)
      : rope(&frequencies),
        raw(random_f32({positions, width}, random, -2, 2, {3})),
        weight(random_f32({width}, random, 0.5f, 2)),
        tail(DType::F32, {ratio, width}, {1}),
        pooled(DType::F32, {positions / ratio + 1, width}, {2}) {}
  QsaPoolArgs args(int64_t first, int64_t rows) const {
    return {.raw = raw.t().slice(first, rows),
            .first = first,
            .tail = tail,
            .weight = weight,
            .eps = eps,
            .rope = rope,
            .pooled = pooled};
  }
  const RopeFrequencies* rope;
  float eps = 1e-6f;
  Owned raw, weight, tail, pooled;
};

// Runs one call and checks every block it completes, and that no other row of `pooled` changes.
void pool_and_check(Queue& queue, const Sequence& sequence, int64_t first, int64_t rows) {
  const QsaPoolArgs args = sequence.args(first, rows);
  const int64_t width = args.raw.extent(1), ratio = args.tail.extent(0);
  const int64_t begin = first / ratio, end = (first + rows) / ratio;
  std::vector<double> expected(static_cast<size_t>((end - begin) * width)), bound(expected.size());
  qsa_pool_oracle(args, expected.data());
  qsa_pool_bound(args, bound.data());
  const Owned before = clone(args.pooled);
  qsa_pool(queue, args);
  for (int64_t block = 0; block < args.pooled.extent(0); ++block)
    if (block < begin || block >= end) {
      ASSERT_TRUE(same_bits(args.pooled.slice(block, 1), before.t().slice(block, 1))) << "block " << block;
    }
  if (end > begin) {
    ASSERT_TRUE(within(args.pooled.slice(begin, end - begin), expected, bound)) << "from " << first;
  }
  for (int64_t p = end * ratio; p < first + rows; ++p)
    ASSERT_TRUE(same_bits(args.tail.slice(p % ratio, 1), sequence.raw.t().slice(p, 1))) << "position " << p;
  ASSERT_TRUE(sequence.pooled.gaps_intact() && sequence.tail.gaps_intact());
}

TEST(QsaPool, StaysInItsBound) {
  Random random(1);
  TestQueue queue;
  for (int64_t ratio : {1, 2, 4, 5})
    for (const auto& [width, dims] : {std::pair{2, 2}, std::pair{17, 6}, std::pair{32, 32}, std::pair{128, 64}})
      for (RopePairs pairs : {RopePairs::HalfSplit, RopePairs::Adjacent})
        for (double factor : {1.0, 2.0}) {
          const RopeFrequencies rope = rope_of(dims, pairs, factor);
          Sequence sequence(43, ratio, width, rope, random);
          if (factor == 2) sequence.eps = 0.5f;  // a small eps would hide the factor 1 / ratio: the norm divides it out
          int64_t first = 0;
          for (int64_t rows : {1, 2, 7, 33}) {  // 43 positions in calls of every alignment
            pool_and_check(queue, sequence, first, rows);
            first += rows;
          }
        }
}

TEST(QsaPool, AnySplitIntoCallsAndAnyThreadCountGiveTheSameBits) {
  Random random(2);
  const RopeFrequencies rope = rope_of(8);
  const Sequence sequence(61, 4, 20, rope, random);
  TestQueue one(1);
  qsa_pool(one, sequence.args(0, 61));
  for (int threads : kThreadCounts)
    for (int64_t step : {1, 2, 3, 4, 5, 7, 16}) {
      TestQueue queue(threads);
      const Owned tail(DType::F32, {4, 20}), pooled(DType::F32, {16, 20});
      for (int64_t first = 0; first < 61; first += step) {
        QsaPoolArgs args = sequence.args(first, std::min(step, 61 - first));
        args.tail = tail;
        args.pooled = pooled;
        qsa_pool(queue, args);
      }
      EXPECT_TRUE(same_bits(pooled.t().slice(0, 15), sequence.pooled.t().slice(0, 15))) << "step " << step;
      EXPECT_TRUE(all_canary(pooled.t().slice(15, 1)));  // 61 positions: one cell of block 15
      EXPECT_TRUE(same_bits(tail.t().slice(0, 1), sequence.raw.t().slice(60, 1)));
    }
}

// Block 0 does not rotate. A mean of 2 in one of 16 dims has a root of 1/2: four times the weight.
TEST(QsaPool, TheFirstBlockIsExactForPowersOfTwo) {
  Random random(3);
  TestQueue queue;
  const RopeFrequencies rope = rope_of(16);
  for (int64_t dim = 0; dim < 16; ++dim) {
    const Sequence sequence(4, 4, 16, rope, random);
    for (int64_t p = 0; p < 4; ++p)
      for (int64_t i = 0; i < 16; ++i)  // -1, 1, 3, 5: mean 2
        sequence.raw.f({p, i}) = i == dim ? static_cast<float>(2 * p - 1) : 0.0f;
    QsaPoolArgs args = sequence.args(0, 4);
    args.eps = 0x1p-100f;
    qsa_pool(queue, args);
    for (int64_t i = 0; i < 16; ++i)
      EXPECT_EQ(sequence.pooled.f({0, i}), i == dim ? 4 * sequence.weight.f({i}) : 0.0f) << dim << " " << i;
  }
}

// Mean, then norm, then the rotation by the position of the block's first cell: with equal raw keys, a block is block 0
// turned by the angle b · ratio · frequency.
TEST(QsaPool, ABlockTurnsWithItsFirstPosition) {
  Random random(4);
  TestQueue queue;
  const RopeFrequencies rope = rope_of(2);
  const Sequence sequence(40, 4, 2, rope, random);
  for (int64_t p = 0; p < 40; ++p)
    for (int64_t i = 0; i < 2; ++i) sequence.raw.f({p, i}) = sequence.raw.f({0, i});
  qsa_pool(queue, sequence.args(0, 40));
  const double x = sequence.pooled.f({0, 0}), y = sequence.pooled.f({0, 1});
  for (int64_t block = 0; block < 10; ++block) {
    const double angle = 4.0 * static_cast<double>(block);  // the frequency of the only pair is 1
    // Block 0 is unrotated, so x and y are the same keys; the rotation rounds cosine or sine, a product and the sum.
    const double limit = gamma(3) * (std::fabs(x) + std::fabs(y));
    EXPECT_NEAR(sequence.pooled.f({block, 0}), x * std::cos(angle) - y * std::sin(angle), limit);
    EXPECT_NEAR(sequence.pooled.f({block, 1}), x * std::sin(angle) + y * std::cos(angle), limit);
  }
}

// bf16 and f16 keys are the f32 keys, rounded once.
TEST(QsaPool, NarrowKeysAreTheRoundedF32Keys) {
  Random random(7);
  TestQueue queue;
  const RopeFrequencies rope = rope_of(64);
  const Sequence sequence(100, 4, 128, rope, random);
  sequence.weight.f({3}) = 1e-7f;  // subnormal in f16
  sequence.weight.f({4}) = 1e6f;   // infinite in f16
  qsa_pool(queue, sequence.args(0, 100));
  for (DType type : {DType::BF16, DType::F16}) {
    const Owned narrow(type, {26, 128}, {3}), tail(DType::F32, {4, 128});
    QsaPoolArgs args = sequence.args(0, 100);
    args.pooled = narrow;
    args.tail = tail;
    qsa_pool(queue, args);
    for (int64_t block = 0; block < 25; ++block)
      for (int64_t i = 0; i < 128; ++i) {
        const float key = sequence.pooled.f({block, i});
        ASSERT_EQ(narrow.t().row<uint16_t>(block)[i], type == DType::BF16 ? f32_to_bf16(key) : f32_to_f16(key));
      }
    EXPECT_TRUE(narrow.gaps_intact());
    const uint32_t open = narrow.t().row<uint16_t>(25)[0];  // block 25 is not complete
    EXPECT_TRUE(open == (kCanary & 0xffff) || open == kCanary >> 16);
  }
}

TEST(QsaPool, NanStaysInItsBlock) {
  Random random(5);
  TestQueue queue;
  const RopeFrequencies rope = rope_of(4);
  const Sequence sequence(12, 4, 8, rope, random);
  sequence.raw.f({6, 7}) = NAN;
  qsa_pool(queue, sequence.args(0, 12));
  for (int64_t block = 0; block < 3; ++block)
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(sequence.pooled.f({block, i})), block == 1);
}

TEST(QsaPool, WrongArgumentsAreNamed) {
  Random random(6);
  TestQueue queue;
  const RopeFrequencies rope = rope_of(8), wide_rope = rope_of(10);
  const Sequence sequence(8, 4, 8, rope, random);
  auto refused = [&](const char* argument, auto change) {
    QsaPoolArgs args = sequence.args(0, 8);
    change(args);
    return argument_refused([&] { qsa_pool(queue, args); }, "qsa_pool", argument);
  };
  const Owned flat(DType::F32, {8}), narrow(DType::F32, {4, 7}), ints(DType::I32, {8, 8}), none(DType::F32, {0, 8}),
      one_block(DType::F32, {1, 8}), long_weight(DType::F32, {9});
  EXPECT_TRUE(refused("raw", [&](QsaPoolArgs& args) { args.raw = flat; }));
  EXPECT_TRUE(refused("raw", [&](QsaPoolArgs& args) { args.raw = ints; }));
  EXPECT_TRUE(refused("tail", [&](QsaPoolArgs& args) { args.tail = narrow; }));
  EXPECT_TRUE(refused("ratio", [&](QsaPoolArgs& args) { args.tail = none; }));
  EXPECT_TRUE(refused("weight", [&](QsaPoolArgs& args) { args.weight = long_weight; }));
  EXPECT_TRUE(refused("pooled", [&](QsaPoolArgs& args) { args.pooled = narrow; }));
  EXPECT_TRUE(refused("blocks", [&](QsaPoolArgs& args) { args.pooled = one_block; }));
  EXPECT_TRUE(refused("positions", [&](QsaPoolArgs& args) { args.first = 8; }));
  EXPECT_TRUE(refused("positions", [&](QsaPoolArgs& args) { args.first = -1; }));
  EXPECT_TRUE(refused("rotary dims", [&](QsaPoolArgs& args) { args.rope = &wide_rope; }));
  EXPECT_TRUE(refused("rotary dims", [&](QsaPoolArgs& args) { args.rope = nullptr; }));
  EXPECT_TRUE(all_canary(sequence.pooled) && all_canary(sequence.tail));
}

}  // namespace
}  // namespace strata::test
