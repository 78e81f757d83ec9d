// The chunk-anchored form: prompt, single steps, windows with rejections and resumed sequences give the same bits.
#include <algorithm>

#include "ops/gated_delta/parity.h"
#include "support/gated_delta_case.h"

namespace strata::test {
namespace {

constexpr int64_t kRows = 3 * kDeltaChunk + 21;
constexpr GatedDeltaShape kShape{kRows, 2, 6, 20, 35, HeadMapping::Tiled};

std::vector<std::string> arms_here() {
  std::vector<std::string> names;
  for (const ArmInfo& arm : arm_infos(gated_delta_anchored_arms()))
    if (arm.image == nullptr && cpu_features().has(arm.isa)) names.push_back(arm.name);
  return names;
}

// What a sequence keeps between calls: the state at the last boundary, the ring, the number of committed rows.
struct Sequence {
  Sequence()
      : state(DType::F32, {kShape.value_heads, kShape.dk, kShape.dv}),
        ring_k(DType::F32, {kShape.key_heads, kDeltaChunk, kShape.dk}),
        ring_u(DType::F32, {kShape.value_heads, kDeltaChunk, kShape.dv}),
        ring_g(DType::F32, {kShape.value_heads, kDeltaChunk}) {
    fill_free();
  }

  // Slots that no committed row holds become NaN.
  void fill_free() {
    for (const Tensor& ring : {ring_k.t(), ring_u.t()})
      for (int64_t h = 0; h < ring.extent(0); ++h)
        for (int64_t slot = rows % kDeltaChunk; slot < kDeltaChunk; ++slot)
          std::fill_n(ring[h].row<float>(slot), ring.extent(2), NAN);
    for (int64_t h = 0; h < kShape.value_heads; ++h)
      std::fill(ring_g.t().row<float>(h) + rows % kDeltaChunk, ring_g.t().row<float>(h) + kDeltaChunk, NAN);
  }

  // The committed part, and only that.
  Sequence resumed() const {
    Sequence copy;
    copy.rows = rows;
    assign(copy.state.t(), packed(state));
    assign(copy.ring_k.t(), packed(ring_k));
    assign(copy.ring_u.t(), packed(ring_u));
    assign(copy.ring_g.t(), packed(ring_g));
    copy.fill_free();
    return copy;
  }

  Owned state, ring_k, ring_u, ring_g;
  int64_t rows = 0;
};

testing::AssertionResult same(const Sequence& a, const Sequence& b) {
  Sequence x = a.resumed(), y = b.resumed();
  if (x.rows != y.rows) return testing::AssertionFailure() << x.rows << " and " << y.rows << " rows";
  if (!same_bits(x.state, y.state)) return testing::AssertionFailure() << "state";
  if (!same_bits(x.ring_k, y.ring_k)) return testing::AssertionFailure() << "ring_k";
  if (!same_bits(x.ring_u, y.ring_u)) return testing::AssertionFailure() << "ring_u";
  if (!same_bits(x.ring_g, y.ring_g)) return testing::AssertionFailure() << "ring_g";
  return testing::AssertionSuccess();
}

class GatedDeltaAnchored : public testing::TestWithParam<std::string> {
 protected:
  GatedDeltaAnchored() : inputs_(kShape, 70), drafts_(kShape, 71), whole_out_(DType::F32, out_shape()) {
    queue_.queue.strict_arms = true;
    queue_.queue.request_arm("gated_delta_anchored", GetParam());
    whole_ = start();
    process(whole_, kRows, whole_out_);
  }

  static std::vector<int64_t> out_shape() { return {kRows, kShape.value_heads, kShape.dv}; }

  Sequence start() const {
    Sequence sequence;
    assign(sequence.state.t(), packed(inputs_.state));
    return sequence;
  }

  // Rows [first, first + count) of `rows` at the sequence's position; commits none.
  void call(Sequence& sequence, const GatedDeltaArgs& rows, int64_t first, int64_t count, const Tensor& out) {
    const GatedDeltaArgs part = rows_of(rows, first, count);
    gated_delta_anchored(queue_, {part.q, part.k, part.v, part.g, part.beta, part.mapping, sequence.rows,
                                  sequence.state, sequence.ring_k, sequence.ring_u, sequence.ring_g, out});
  }

  void process(Sequence& sequence, int64_t count, const Owned& out) {
    call(sequence, inputs_.args, sequence.rows, count, out.t().slice(sequence.rows, count));
    sequence.rows += count;
  }

  GatedDeltaCase inputs_, drafts_;
  TestQueue queue_{2};
  Sequence whole_;
  Owned whole_out_;
};

TEST_P(GatedDeltaAnchored, MatchesTheRecurrence) {
  // The plain recurrence over the same rows, up to the last boundary for the state.
  GatedDeltaCase plain(kShape, 70);
  const GatedDeltaReference ref = gated_delta_reference(plain.args, kDeltaChunk);
  EXPECT_TRUE(within(whole_out_, ref.out, ref.out_bound));
  const GatedDeltaArgs folded = rows_of(plain.args, 0, kRows / kDeltaChunk * kDeltaChunk);
  const GatedDeltaReference at_boundary = gated_delta_reference(folded, kDeltaChunk);
  EXPECT_TRUE(within(whole_.state, at_boundary.state, at_boundary.state_bound));
}

TEST_P(GatedDeltaAnchored, PromptThenSingleSteps) {
  for (int64_t prompt = 0; prompt < kDeltaChunk; ++prompt) {
    Sequence sequence = start();
    const Owned out(DType::F32, out_shape());
    process(sequence, prompt, out);
    while (sequence.rows < kRows) {
      sequence.fill_free();
      process(sequence, 1, out);
    }
    ASSERT_TRUE(same(sequence, whole_)) << "prompt of " << prompt;
    ASSERT_TRUE(same_bits(out, whole_out_)) << "prompt of " << prompt;
  }
}

TEST_P(GatedDeltaAnchored, WindowsWithRejections) {
  Random random(5);
  int64_t rejected = 0;
  for (int round = 0; round < 8; ++round) {
    Sequence sequence = start();
    const Owned out(DType::F32, out_shape()), window_out(DType::F32, {8, kShape.value_heads, kShape.dv});
    while (sequence.rows < kRows) {
      // The first row is sure; the others are drafts and end below the slot whose row folds the chunk.
      const int64_t below_fold = kDeltaChunk - 1 - sequence.rows % kDeltaChunk;
      const int64_t size = std::min({1 + random.below(8), std::max<int64_t>(1, below_fold), kRows - sequence.rows});
      const int64_t accepted = 1 + random.below(size);
      GatedDeltaCase window(kShape, 70);  // right rows up to the first that is rejected
      for (int64_t t = sequence.rows + accepted; t < sequence.rows + size; ++t) {
        assign(window.conv.t().slice(t, 1), packed(drafts_.conv.t().slice(t, 1)));
        assign(window.g.t().slice(t, 1), packed(drafts_.g.t().slice(t, 1)));
        ++rejected;
      }
      sequence.fill_free();
      call(sequence, window.args, sequence.rows, size, window_out.t().slice(0, size));
      assign(out.t().slice(sequence.rows, accepted), packed(window_out.t().slice(0, accepted)));
      sequence.rows += accepted;
    }
    ASSERT_TRUE(same(sequence, whole_)) << "round " << round;
    ASSERT_TRUE(same_bits(out, whole_out_)) << "round " << round;
  }
  EXPECT_GT(rejected, 100);
}

TEST_P(GatedDeltaAnchored, ResumedAtEveryOffset) {
  const Owned out(DType::F32, out_shape());
  Sequence sequence = start();
  for (int64_t rows = 0; rows < 2 * kDeltaChunk; ++rows) {
    Sequence resumed = sequence.resumed();
    const Owned rest(DType::F32, out_shape());
    process(resumed, kRows - rows, rest);
    ASSERT_TRUE(same(resumed, whole_)) << "resumed at " << rows;
    ASSERT_TRUE(same_bits(rest.t().slice(rows, kRows - rows), whole_out_.t().slice(rows, kRows - rows)));
    process(sequence, 1, out);
  }
}

TEST_P(GatedDeltaAnchored, AnotherChunkGridGivesOtherBits) {
  // What the comparisons above would see if chunks began with the call.
  Sequence sequence = start();
  const Owned out(DType::F32, out_shape());
  sequence.rows = 1;
  call(sequence, inputs_.args, 0, kRows, out);
  EXPECT_FALSE(same_bits(out, whole_out_));
}

INSTANTIATE_TEST_SUITE_P(Arms, GatedDeltaAnchored, testing::ValuesIn(arms_here()),
                         [](const auto& test) { return test.param; });

TEST(GatedDeltaAnchoredArguments, WrongOnesAreNamed) {
  const GatedDeltaCase problem({2, 2, 4, 8, 6}, 50);
  float ring[4 * 64 * 8];
  const GatedDeltaAnchoredArgs good{problem.args.q,
                                    problem.args.k,
                                    problem.args.v,
                                    problem.args.g,
                                    problem.args.beta,
                                    HeadMapping::Grouped,
                                    3,
                                    problem.args.state,
                                    make_f32(ring, {2, 64, 8}),
                                    make_f32(ring, {4, 64, 6}),
                                    make_f32(ring, {4, 64}),
                                    problem.args.out};
  const auto refused = [&](const char* argument, const std::function<void(GatedDeltaAnchoredArgs&)>& change) {
    GatedDeltaAnchoredArgs args = good;
    change(args);
    TestQueue queue;
    return argument_refused([&] { gated_delta_anchored(queue, args); }, "gated_delta_anchored", argument);
  };
  EXPECT_TRUE(refused("k is", [&](auto& args) { args.k = make_f32(ring, {2, 2, 7}); }));
  EXPECT_TRUE(refused("ring_k is", [&](auto& args) { args.ring_k = make_f32(ring, {2, 32, 8}); }));
  EXPECT_TRUE(refused("ring_u is", [&](auto& args) { args.ring_u = make_f32(ring, {2, 64, 6}); }));
  EXPECT_TRUE(refused("ring_g is", [&](auto& args) { args.ring_g = {}; }));
  EXPECT_TRUE(refused("first is -1", [&](auto& args) { args.first = -1; }));
}

}  // namespace
}  // namespace strata::test
