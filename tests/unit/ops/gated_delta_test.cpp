// What parity does not show of gated_delta: that its bounds are tight enough to fail mistakes, which arms share bits,
// refused arguments.
#include "ops/gated_delta/gated_delta.h"

#include <algorithm>
#include <deque>

#include "ops/gated_delta/sequences.h"
#include "support/gated_delta_case.h"

namespace strata::test {
namespace {

void run(const GatedDeltaArgs& args, int threads = 1) {
  TestQueue queue(threads);
  gated_delta(queue, args);
}

TEST(GatedDelta, EveryHeadReadsItsOwnKeyHead) {
  // With one row, zero state and beta 1 an output is v (k^ · q^): zero exactly when its key head has zero keys.
  for (HeadMapping mapping : {HeadMapping::Grouped, HeadMapping::Tiled}) {
    GatedDeltaCase problem({1, 3, 6, 16, 8, mapping}, 11);
    Random random(3);
    for (Tensor x : {problem.args.q, problem.args.k}) fill(x, random, 0.1f, 1);
    fill(problem.args.v, random, 0.1f, 1);
    fill(problem.beta, random, 1, 1);
    fill(problem.state, random, 0, 0);
    fill(problem.args.k[0][1], random, 0, 0);
    run(problem.args);
    for (int64_t h = 0; h < 6; ++h) {
      const bool expected = mapping == HeadMapping::Grouped ? h == 2 || h == 3 : h == 1 || h == 4;
      EXPECT_EQ(problem.out.f({0, h, 0}) == 0, expected) << "head " << h;
    }
  }
}

// Mistakes that a loose bound would let pass, on every head of a long case with all kinds of gates; under the bound of
// the recurrence and under the wider one of the chunked forms.
class GatedDeltaControls : public testing::TestWithParam<int64_t> {
 protected:
  static constexpr GatedDeltaShape kShape{200, 2, 8, 64, 32, HeadMapping::Tiled};
  GatedDeltaControls() : problem_(kShape, 40), ref_(gated_delta_reference(problem_.args, GetParam())) {}
  bool accepted() const {
    return within(problem_.out, ref_.out, ref_.out_bound) && within(problem_.state, ref_.state, ref_.state_bound);
  }
  GatedDeltaCase problem_;
  GatedDeltaReference ref_;
};

TEST_P(GatedDeltaControls, BoundIsNotLoose) {
  run(problem_.args);
  ASSERT_TRUE(accepted());
  for (int64_t h = 0; h < kShape.value_heads; ++h) {
    double used = 0;
    for (int64_t t = 0; t < kShape.rows; ++t)
      for (int64_t j = 0; j < kShape.dv; ++j) {
        const auto i = static_cast<size_t>((t * kShape.value_heads + h) * kShape.dv + j);
        if (ref_.out_bound[i] > 0)
          used = std::max(used,
                          std::fabs(static_cast<double>(problem_.out.f({t, h, j})) - ref_.out[i]) / ref_.out_bound[i]);
      }
    RecordProperty("used_by_head_" + std::to_string(h), std::to_string(used));
    // 200 errors that the bound adds up behave like a random walk without decay; a tenth of this would be a loose
    // bound.
    EXPECT_GT(used, GetParam() == 1 ? 0.005 : 0.001) << "head " << h;
  }
}

TEST_P(GatedDeltaControls, OneElementBeyondItsBoundFails) {
  run(problem_.args);
  for (int64_t h = 0; h < kShape.value_heads; ++h) {
    float& value = problem_.out.f({150, h, 7});
    const float right = value;
    value +=
        static_cast<float>(2.5 * ref_.out_bound[static_cast<size_t>((150 * kShape.value_heads + h) * kShape.dv + 7)]);
    EXPECT_FALSE(accepted()) << "head " << h;
    value = right;
  }
}

TEST_P(GatedDeltaControls, AZeroedHeadFails) {
  run(problem_.args);
  for (int64_t h = 0; h < kShape.value_heads; ++h) {
    const std::vector<float> right = packed(problem_.out);
    for (int64_t t = 0; t < kShape.rows; ++t)
      for (int64_t j = 0; j < kShape.dv; ++j) problem_.out.f({t, h, j}) = 0;
    EXPECT_FALSE(accepted()) << "head " << h;
    assign(problem_.out.t(), right);
  }
}

TEST_P(GatedDeltaControls, AllZerosFail) {
  run(problem_.args);
  for (int64_t h = 0; h < kShape.value_heads; ++h)  // every head by itself is out of its bound somewhere
    for (int64_t j = 0; j < kShape.dv; ++j) {
      bool outside = false;
      for (int64_t t = 0; t < kShape.rows; ++t) {
        const auto i = static_cast<size_t>((t * kShape.value_heads + h) * kShape.dv + j);
        outside = outside || std::fabs(ref_.out[i]) > ref_.out_bound[i];
      }
      EXPECT_TRUE(outside) << "head " << h << ", column " << j;
    }
}

TEST_P(GatedDeltaControls, AStaleChunkFails) {
  const Owned start = clone(problem_.state);
  run(rows_of(problem_.args, 0, 64));
  assign(problem_.state.t(), packed(start));
  run(rows_of(problem_.args, 64, kShape.rows - 64));
  EXPECT_FALSE(within(problem_.out, ref_.out, ref_.out_bound));
}

TEST_P(GatedDeltaControls, OneLostDecayFails) {
  const Owned start = clone(problem_.state);
  for (int64_t h = 0; h < kShape.value_heads; ++h) {
    // A token with a decay worth the name that reads what the token before it wrote.
    const auto tells = [&](int64_t t) {
      const int64_t key_head = h % kShape.key_heads;
      return problem_.g.f({t, h}) < -1e-3f && problem_.beta.f({t - 1, h}) > 0.01f &&
             problem_.args.q[t].row<float>(key_head)[0] != 0 && problem_.args.k[t - 1].row<float>(key_head)[0] != 0;
    };
    int64_t t = 100;
    while (t < kShape.rows && !tells(t)) ++t;
    if (t == kShape.rows) {
      EXPECT_EQ(mixed_gates(h, 40), GateKind::NoDecay);
      continue;
    }
    const float right = problem_.g.f({t, h});
    problem_.g.f({t, h}) = 0;
    assign(problem_.state.t(), packed(start));
    run(problem_.args);
    EXPECT_FALSE(accepted()) << "head " << h;
    problem_.g.f({t, h}) = right;
  }
}

TEST_P(GatedDeltaControls, AStaleStateAndTheOtherMappingFail) {
  run(problem_.args);
  run(problem_.args);
  EXPECT_FALSE(accepted());
  GatedDeltaCase other(kShape, 40);
  other.args.mapping = HeadMapping::Grouped;
  run(other.args);
  EXPECT_FALSE(within(other.out, ref_.out, ref_.out_bound));
}

INSTANTIATE_TEST_SUITE_P(Chunks, GatedDeltaControls, testing::Values(1, kDeltaChunk),
                         [](const auto& test) { return "of_" + std::to_string(test.param); });

TEST(GatedDelta, TheVectorArmsGiveTheSameBits) {
  if (!cpu_features().avx512) GTEST_SKIP() << "no AVX-512";
  constexpr const char* kPairs[][2] = {{"avx2", "avx512"}, {"wy-avx2", "wy"}};
  constexpr GatedDeltaShape kShapes[] = {{1, 2, 4, 32, 130}, {9, 1, 3, 130, 128}, {130, 2, 6, 17, 67}};
  for (const auto& pair : kPairs)
    for (const GatedDeltaShape& shape : kShapes) {
      GatedDeltaCase narrow(shape, 80), wide(shape, 80);
      for (int side : {0, 1}) {
        TestQueue queue(2);
        queue.queue.strict_arms = true;
        queue.queue.request_arm("gated_delta", pair[side]);
        gated_delta(queue, side == 0 ? narrow.args : wide.args);
      }
      EXPECT_TRUE(same_bits(narrow.out, wide.out) && same_bits(narrow.state, wide.state)) << pair[1];
    }
}

// One call that stores its state early, and one call each for the stored rows and the rest.
TEST(GatedDelta, StoringEarlyIsTwoCalls) {
  constexpr GatedDeltaShape kShapes[] = {{9, 2, 4, 32, 130}, {40, 1, 3, 17, 67}, {600, 1, 2, 16, 20}};
  for (const char* arm : {"avx512", "avx2", "portable"})
    for (const GatedDeltaShape& shape : kShapes)
      for (int64_t stored : {int64_t{0}, int64_t{1}, int64_t{8}, shape.rows / 2, shape.rows - 1, shape.rows}) {
        GatedDeltaCase one(shape, 81), two(shape, 81);
        TestQueue queue(2);
        queue.queue.request_arm("gated_delta", arm);
        one.args.stored = stored;
        gated_delta(queue, one.args);
        gated_delta(queue, rows_of(two.args, 0, stored));
        const Owned after = clone(two.state);
        gated_delta(queue, rows_of(two.args, stored, shape.rows - stored));
        EXPECT_TRUE(same_bits(one.out, two.out)) << arm << ", " << shape.rows << " rows, " << stored;
        EXPECT_TRUE(same_bits(one.state, after)) << arm << ", " << shape.rows << " rows, " << stored;
        EXPECT_TRUE(one.out.gaps_intact() && one.state.gaps_intact());
      }
}

// Of several sequences at once: some too small to be shared among threads, one that is not, one that stores early.
TEST(GatedDelta, SequencesSideBySideGiveTheSameBits) {
  for (int threads : {1, 2, 3}) {
    std::deque<GatedDeltaCase> alone, beside;
    std::vector<GatedDeltaArgs> calls;
    for (const int64_t rows : {1, 2, 150, 1, 3, 1, 1}) {
      const GatedDeltaShape shape{rows, 2, 6, 32, 32, HeadMapping::Tiled};
      const uint64_t seed = 60 + alone.size();
      alone.emplace_back(shape, seed);
      beside.emplace_back(shape, seed);
    }
    alone[4].args.stored = beside[4].args.stored = 1;
    for (const GatedDeltaCase& problem : alone) run(problem.args);
    for (const GatedDeltaCase& problem : beside) calls.push_back(problem.args);
    TestQueue queue(threads);
    gated_delta_each(SideBySide(queue), calls);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(same_bits(alone[i].out, beside[i].out)) << i;
      EXPECT_TRUE(same_bits(alone[i].state, beside[i].state)) << i;
    }
  }
}

TEST(GatedDelta, ChunksFromTheFirstRowStoreTheStateAtTheEndOnly) {
  GatedDeltaCase problem({9, 1, 2, 8, 6}, 82);
  problem.args.stored = 4;
  TestQueue strict;
  strict.queue.strict_arms = true;
  strict.queue.request_arm("gated_delta", "wy-portable");
  EXPECT_TRUE(
      argument_refused([&] { gated_delta(strict, problem.args); }, "gated_delta", "after all 9 rows, not after 4"));
  for (int64_t stored : {-1, 9}) {
    problem.args.stored = stored;
    EXPECT_NO_THROW(gated_delta(strict, problem.args));
  }
}

TEST(GatedDelta, WrongArgumentsAreNamed) {
  const GatedDeltaCase problem({2, 2, 4, 8, 6}, 50);
  const auto refused = [&](const char* argument, Tensor GatedDeltaArgs::*tensor, const Tensor& wrong) {
    GatedDeltaArgs args = problem.args;
    args.*tensor = wrong;
    return argument_refused([&] { run(args); }, "gated_delta", argument);
  };
  float x[512] = {};
  EXPECT_TRUE(refused("q is", &GatedDeltaArgs::q, {}));
  EXPECT_TRUE(refused("q is", &GatedDeltaArgs::q, make_tensor(x, DType::F16, {2, 2, 8})));
  EXPECT_TRUE(refused("k is", &GatedDeltaArgs::k, make_f32(x, {2, 2, 7})));
  EXPECT_TRUE(refused("k is", &GatedDeltaArgs::k, make_f32(x, {2, 1, 8})));
  EXPECT_TRUE(refused("v is", &GatedDeltaArgs::v, make_f32(x, {1, 4, 6})));
  EXPECT_TRUE(refused("g is", &GatedDeltaArgs::g, make_f32(x, {2, 3})));
  EXPECT_TRUE(refused("beta is", &GatedDeltaArgs::beta, make_f32(x, {2, 2})));
  EXPECT_TRUE(refused("state is", &GatedDeltaArgs::state, make_f32(x, {4, 6, 8})));
  EXPECT_TRUE(refused("out is", &GatedDeltaArgs::out, make_f32(x, {2, 4, 8})));

  for (int64_t stored : {-2, 3}) {
    GatedDeltaArgs args = problem.args;
    args.stored = stored;
    EXPECT_TRUE(argument_refused([&] { run(args); }, "gated_delta", "stored is " + std::to_string(stored)));
  }

  GatedDeltaCase uneven({2, 2, 4, 8, 6}, 51);
  uneven.args.v = make_f32(x, {2, 3, 6});
  uneven.args.g = uneven.args.beta = make_f32(x, {2, 3});
  uneven.args.state = make_f32(x, {3, 8, 6});
  uneven.args.out = make_f32(x, {2, 3, 6});
  EXPECT_TRUE(argument_refused([&] { run(uneven.args); }, "gated_delta", "3 value heads"));
}

TEST(GatedDeltaGates, WrongArgumentsAreNamed) {
  float x[16] = {};
  const GatedDeltaGatesArgs good{make_f32(x, {2, 3}), make_f32(x, {2, 3}), make_f32(x, {3}),
                                 make_f32(x, {3}),    make_f32(x, {2, 3}), make_f32(x, {2, 3})};
  const auto refused = [&](const char* argument, Tensor GatedDeltaGatesArgs::*tensor) {
    GatedDeltaGatesArgs args = good;
    args.*tensor = make_f32(x, {2, 4});
    if (tensor == &GatedDeltaGatesArgs::alpha) args.alpha.dtype = DType::I32;
    TestQueue queue;
    return argument_refused([&] { gated_delta_gates(queue, args); }, "gated_delta_gates", argument);
  };
  EXPECT_TRUE(refused("alpha", &GatedDeltaGatesArgs::alpha));
  EXPECT_TRUE(refused("b is", &GatedDeltaGatesArgs::b));
  EXPECT_TRUE(refused("dt_bias", &GatedDeltaGatesArgs::dt_bias));
  EXPECT_TRUE(refused("a is", &GatedDeltaGatesArgs::a));
  EXPECT_TRUE(refused("g is", &GatedDeltaGatesArgs::g));
  EXPECT_TRUE(refused("beta is", &GatedDeltaGatesArgs::beta));
}

}  // namespace
}  // namespace strata::test
