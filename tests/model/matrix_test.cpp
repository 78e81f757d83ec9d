// Same tokens, same bits: the fixed matrix of what a run may look like, on the default model and a tiny model of every
// family. Logits and taps of every row, and the state at the end, against one call over all tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "model/bits_model.h"
#include "support/model_run.h"

namespace strata::test {
namespace {

constexpr int64_t kPrefixes[] = {1, 63, 64, 65, 128};

struct MatrixModel {
  std::string name;
  int64_t resident;  // positions in the first tier, 0: all

  friend std::ostream& operator<<(std::ostream& out, const MatrixModel& model) {
    return out << model.name << (model.resident > 0 ? " in a file" : "");
  }
};

std::vector<MatrixModel> matrix_models() {
  std::vector<MatrixModel> all;
  for (const std::string& name : bits_models())
    for (const int64_t resident : {int64_t{0}, kPageRows}) all.push_back({name, resident});
  return all;
}

class Matrix : public testing::TestWithParam<MatrixModel> {
 protected:
  // With one page in memory, pages have left it and come back.
  void TearDown() override {
    const FileTierStats file = model.pool().file();
    EXPECT_EQ(GetParam().resident == 0 ? file.reserved : 0, 0u);
    if (IsSkipped() || file.reserved == 0) return;
    EXPECT_GT(file.released, 0u);
    EXPECT_GT(file.read, 0u);
  }

  // The second tier of the default model takes long: all of it is in the long form, and always the rest.
  bool takes_long() const { return !model.small() && GetParam().resident > 0 && !test_all(); }
  static uint64_t taken(const PagePool& pool) { return pool.used() + pool.file().used; }

  Tokens part(const Tokens& all, int64_t from, int64_t to) const {
    return Tokens(all.begin() + from, all.begin() + std::min(to, static_cast<int64_t>(all.size())));
  }
  const PlainRun& plain(const Tokens& all) { return model.remembered(all); }

  // Runs tokens up to `to` in calls of `step`.
  void feed(Sequence& sequence, const Tokens& all, int64_t to, int64_t step, int threads = 1) {
    while (sequence.length() < to) {
      const int64_t from = sequence.length();
      CallRows call(model, sequence, part(all, from, std::min(from + step, to)));
      together(threads, {&call}, {&all}, {from});
    }
  }

  void together(int threads, std::vector<CallRows*> calls, const std::vector<const Tokens*>& texts,
                const std::vector<int64_t>& first) {
    run_together(model.forward(threads), calls);
    for (size_t i = 0; i < calls.size(); ++i)
      ASSERT_EQ(calls[i]->compare(plain(*texts[i]), first[i], calls[i]->rows()), "") << "sequence " << i;
  }

  BitsModel model{GetParam().name, CpuIsa::Avx512Bf16, {.resident = GetParam().resident}};
  const int64_t total = model.small() ? 150 : 300;  // 300: part of the rows prune
  const Tokens tokens = model.random_tokens(1, total);
};

TEST_P(Matrix, MicroBatchesThreadsAndCompany) {
  if (takes_long()) GTEST_SKIP() << "set TEST_ALL=1";
  // Where a token takes milliseconds, steps of one begin late; StateAfterPromptAfterStepsAndAfterResume does them all.
  Sequence late = model.sequence();
  if (!model.small()) feed(late, tokens, 220, 512);
  const Tokens other_a = model.random_tokens(2, model.context()), other_b = model.random_tokens(3, model.context());
  for (const int64_t step : {1, 7, 64, 512})
    for (const int threads : {1, 2, 3})
      for (const bool company : {false, true}) {
        SCOPED_TRACE(std::to_string(step) + " tokens at a time, " + std::to_string(threads) + " threads" +
                     (company ? ", in company" : ""));
        Sequence sequence = step == 1 ? late : model.sequence(), a = model.sequence(), b = model.sequence();
        if (!company) feed(sequence, tokens, total, step, threads);
        // One neighbour decodes, the other takes prompt chunks of another size.
        while (sequence.length() < total) {
          const int64_t at = sequence.length(), at_a = a.length(), at_b = b.length();
          CallRows call_a(model, a, part(other_a, at_a, at_a + 1)), call_b(model, b, part(other_b, at_b, at_b + 33));
          CallRows call(model, sequence, part(tokens, at, at + step));
          together(threads, {&call_a, &call, &call_b}, {&other_a, &tokens, &other_b}, {at_a, at, at_b});
        }
        EXPECT_EQ(model.hash(sequence), plain(tokens).state);
        if (HasFatalFailure()) return;
      }
}

// Drafts of up to 7 tokens, of which the first j are right, from one end of the text to the other.
TEST_P(Matrix, EveryCountOfAcceptedDrafts) {
  if (takes_long()) GTEST_SKIP() << "set TEST_ALL=1";
  const int64_t start = total - 90;
  Sequence prompt = model.sequence();
  feed(prompt, tokens, start, 512);
  for (int64_t accepted = 0; accepted <= 7; ++accepted) {
    SCOPED_TRACE(std::to_string(accepted) + " accepted");
    Sequence sequence = prompt;
    while (sequence.length() < total) {
      const int64_t from = sequence.length();
      const int64_t rows = std::min(sequence.max_window(), total - from), right = std::min(1 + accepted, rows);
      Tokens window = part(tokens, from, from + rows);
      for (int64_t i = right; i < rows; ++i)
        window[static_cast<size_t>(i)] =
            (window[static_cast<size_t>(i)] + 1) % static_cast<int32_t>(model.vocabulary());
      CallRows call(model, sequence, window, 1);  // as a decoder does: the drafts are not certain
      std::vector<CallRows*> calls{&call};
      run_together(model.forward(2), calls);
      ASSERT_EQ(call.compare(plain(tokens), from, right), "");
      if (right < rows) {
        EXPECT_NE(call.compare(plain(tokens), from, rows), "") << "a wrong guess has the bits of the right token";
        sequence.truncate(from + right);
      }
      ASSERT_EQ(sequence.length(), from + right);
    }
    EXPECT_EQ(model.hash(sequence), plain(tokens).state);
  }
}

TEST_P(Matrix, APrefixGoesOnInTwoWays) {
  PagePool pool;
  pool.poison(true);
  for (const int64_t prefix : kPrefixes) {
    SCOPED_TRACE("a prefix of " + std::to_string(prefix));
    const int64_t end = std::min(prefix + 70, total);
    const Tokens one = part(tokens, 0, end);
    Tokens two = one;
    const Tokens fresh = model.random_tokens(static_cast<uint64_t>(prefix), end - prefix);
    std::copy(fresh.begin(), fresh.end(), two.begin() + prefix);
    Sequence first = model.sequence(pool);
    feed(first, one, prefix, 512);
    Sequence second = first;
    // In turns, then in the same calls.
    feed(first, one, prefix + 1, 1);
    feed(second, two, prefix + 7, 7);
    feed(first, one, prefix + 7, 6);
    while (first.length() < end) {
      const int64_t at = first.length();
      CallRows a(model, first, part(one, at, at + 9)), b(model, second, part(two, at, at + 9));
      together(2, {&a, &b}, {&one, &two}, {at, at});
      ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_EQ(model.hash(first), plain(one).state);
    EXPECT_EQ(model.hash(second), plain(two).state);
    EXPECT_NE(model.hash(first), model.hash(second));
  }
  EXPECT_EQ(taken(pool), 0u);
}

TEST_P(Matrix, CopiesTakeNoMemoryAndRunSideBySide) {
  PagePool pool;
  for (const int64_t length : kPrefixes) {
    SCOPED_TRACE("copied at " + std::to_string(length));
    Sequence first = model.sequence(pool);
    feed(first, tokens, length, 512);
    const uint64_t used = taken(pool);
    Sequence second = first, third = second;
    EXPECT_EQ(taken(pool), used);
    const int64_t end = std::min(length + 20, total);
    for (int64_t at = length; at < end; at += 10) {
      CallRows a(model, first, part(tokens, at, at + 10)), b(model, second, part(tokens, at, at + 10)),
          c(model, third, part(tokens, at, at + 10));
      together(3, {&a, &b, &c}, {&tokens, &tokens, &tokens}, {at, at, at});
    }
    EXPECT_EQ(model.hash(first), model.hash(second));
    EXPECT_EQ(model.hash(first), model.hash(third));
  }
}

// A call takes all its memory before it writes, so that a lack of it fails one sequence and leaves the others whole.
TEST_P(Matrix, PreparedCallsTakeNoMemory) {
  PagePool pool;
  Sequence sequence = model.sequence(pool);
  std::vector<float> taps(static_cast<size_t>(total * model.width()));
  for (const int64_t step : {1, 56, 7, 1, 8, 64, 2}) {
    const int64_t first = sequence.length();
    const Sequence copy = sequence;
    const int64_t certain = step > 8 ? step : 1;
    sequence.prepare(step, certain);
    uint64_t used = pool.used();
    const Tensor tap = make_f32(taps.data(), {step, model.width()});
    const Tokens some = part(tokens, first, first + step);
    const std::vector<Segment> pass{{&sequence, some, {}, tap, certain}};
    model.forward(1).run(pass);
    EXPECT_EQ(pool.used(), used) << step << " rows behind " << first;
    if (model.spec().mtp_layers == 0) continue;
    sequence.prepare_mtp(step);
    used = pool.used();
    model.forward(1).draft(tap, some, first, sequence, {});
    EXPECT_EQ(pool.used(), used) << step << " pairs behind " << first;
  }
}

TEST_P(Matrix, SavedAndResumed) {
  for (const int64_t length : kPrefixes) {
    SCOPED_TRACE("saved at " + std::to_string(length));
    PagePool pool;
    pool.poison(true);
    Sequence first = model.sequence();
    feed(first, tokens, length, 512);
    Sequence second = model.sequence(pool);
    load_into(second, model.saved(first));
    EXPECT_EQ(second.length(), length);
    EXPECT_EQ(model.hash(second), model.hash(first));
    const int64_t end = std::min(length + 70, total);
    feed(second, tokens, length + 1, 1);
    feed(second, tokens, end, 64);
    EXPECT_EQ(model.hash(second), plain(part(tokens, 0, end)).state);
  }
}

TEST_P(Matrix, StateAfterPromptAfterStepsAndAfterResume) {
  Sequence stepped = model.sequence();
  for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{128}, total}) {
    SCOPED_TRACE(std::to_string(length) + " tokens");
    feed(stepped, tokens, length, 1);
    const uint64_t prompt = plain(part(tokens, 0, length)).state;
    EXPECT_EQ(model.hash(stepped), prompt);
    Sequence resumed = model.sequence();
    load_into(resumed, model.saved(stepped));
    EXPECT_EQ(model.hash(resumed), prompt);
    EXPECT_EQ(model.saved(resumed), model.saved(stepped));
  }
}

// An MTP block: pairs at once or in pieces, with guesses taken back, through copies and archives.
TEST_P(Matrix, DraftsTakenBackCopiedAndResumed) {
  if (model.spec().mtp_layers == 0) GTEST_SKIP() << "no MTP block";
  const int64_t pairs = 99, vocabulary = model.vocabulary(), width = model.width();
  std::vector<float> taps(static_cast<size_t>((pairs + 1) * width));
  auto tap = [&](int64_t first, int64_t rows) { return make_f32(taps.data() + first * width, {rows, width}); };
  auto draft = [&](Sequence& sequence, int64_t first, const Tokens& next, std::vector<float>& logits) {
    const auto rows = static_cast<int64_t>(next.size());
    logits.resize(static_cast<size_t>(rows * vocabulary));
    model.forward(2).draft(tap(first, rows), next, first, sequence, make_f32(logits.data(), {rows, vocabulary}));
  };
  Sequence prompt = model.sequence();
  model.forward(1).run(part(tokens, 0, pairs + 1), prompt, {}, tap(0, pairs + 1));
  std::vector<float> whole, some;
  Sequence once = prompt;
  draft(once, 0, part(tokens, 1, pairs + 1), whole);
  for (const int64_t step : {1, 7, 63, 64, 65}) {
    SCOPED_TRACE(std::to_string(step) + " pairs at a time");
    Sequence sequence = prompt;
    for (int64_t at = 0; at < pairs;) {
      const int64_t rows = std::min(step, pairs - at);
      draft(sequence, at, part(tokens, at + 1, at + rows + 1), some);
      ASSERT_EQ(std::memcmp(some.data(), whole.data() + at * vocabulary, some.size() * sizeof(float)), 0) << at;
      at += rows;
      if (at + 3 < pairs) {  // three wrong pairs
        draft(sequence, at, model.random_tokens(static_cast<uint64_t>(at), 3), some);
        sequence.truncate_mtp(at);
      }
      Sequence resumed = model.sequence();
      load_into(resumed, model.saved(sequence));
      EXPECT_EQ(resumed.mtp_length(), at);
      sequence = resumed;
    }
    EXPECT_EQ(model.saved(sequence), model.saved(once));
  }
}

// The comparisons above can fail: one other token changes every later row, and the state.
TEST_P(Matrix, HasForce) {
  Tokens other = tokens;
  constexpr size_t kChanged = 40;
  other[kChanged] = (other[kChanged] + 1) % static_cast<int32_t>(model.vocabulary());
  const PlainRun &a = plain(tokens), &b = plain(other);
  for (size_t row = 0; row < kChanged; ++row) {
    EXPECT_EQ(a.logits[row], b.logits[row]);
    EXPECT_EQ(a.taps[row], b.taps[row]);
  }
  for (size_t row = kChanged; row < kChanged + 20; ++row) EXPECT_NE(a.logits[row], b.logits[row]) << row;
  EXPECT_NE(a.state, b.state);
}

INSTANTIATE_TEST_SUITE_P(Models, Matrix, testing::ValuesIn(matrix_models()), [](const auto& test) {
  return test.param.name + (test.param.resident > 0 ? "_in_a_file" : "");
});

// Each type of cache, and the anchored form of delta nets, give bits of their own, and keep the promise.
TEST(MatrixOfCaches, EveryTypeKeepsThePromise) {
  std::vector<CacheOptions> all;
  for (const DType type : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0})
    all.push_back({.keys = type, .values = type, .index_keys = type == DType::F32 ? DType::F32 : DType::F16});
  all.push_back({.anchored = true});
  std::vector<uint64_t> states;
  for (const CacheOptions& caches : all) {
    SCOPED_TRACE(std::string(to_string(caches.keys)) + (caches.anchored ? ", anchored" : ""));
    BitsModel model("mini", CpuIsa::Avx512Bf16, caches);
    const Tokens tokens = model.random_tokens(1, 290);
    const PlainRun& plain = model.remembered(tokens);
    for (const int64_t step : {7, 64}) {
      Sequence sequence = model.sequence();
      while (sequence.length() < 290) {
        const int64_t at = sequence.length();
        CallRows call(model, sequence, Tokens(tokens.begin() + at, tokens.begin() + std::min<int64_t>(at + step, 290)));
        std::vector<CallRows*> calls{&call};
        run_together(model.forward(2), calls);
        ASSERT_EQ(call.compare(plain, at, call.rows()), "");
        Sequence resumed = model.sequence();
        load_into(resumed, model.saved(sequence));
        sequence = resumed;
      }
      EXPECT_EQ(model.hash(sequence), plain.state);
    }
    states.push_back(plain.state);
  }
  std::sort(states.begin(), states.end());
  EXPECT_EQ(std::unique(states.begin(), states.end()), states.end()) << "a setting without effect";
}

}  // namespace
}  // namespace strata::test
