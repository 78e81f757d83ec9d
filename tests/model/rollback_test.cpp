// Windows of which a part is taken back: whatever was rejected in between, the logits of the tokens that stay are those
// of a plain run bit for bit, and so is the state.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "support/model_run.h"

namespace strata::test {
namespace {

// A text, its logits and the hash of the state at every position, from a run without windows.
struct Plain {
  std::vector<int32_t> ids;
  std::vector<float> logits;
  std::vector<uint64_t> hashes;

  Plain(ModelRun& model, const CacheOptions& caches, int64_t tokens, uint64_t seed) {
    Random random(seed);
    for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(random.below(model.vocabulary())));
    Sequence sequence(model.spec(), tokens, caches);
    hashes.push_back(sequence.hash());
    for (const int32_t& id : ids) {
      const std::vector<float> row = model.run({&id, 1}, sequence);
      logits.insert(logits.end(), row.begin(), row.end());
      hashes.push_back(sequence.hash());
    }
  }
};

// One sequence on its way along a plain text.
struct Walker {
  const Plain* plain = nullptr;
  Sequence sequence;
  std::vector<int32_t> window = {};
  int64_t accepted = 0;
  std::vector<float> logits = {};

  int64_t left() const { return static_cast<int64_t>(plain->ids.size()) - sequence.length(); }
  bool done() const { return left() == 0; }

  // The next window: right tokens, then wrong ones that will be taken back. Certain rows; all of a prompt's.
  int64_t plan(Random& random, int64_t vocabulary) {
    const int64_t at = sequence.length();
    const bool prompt = random.below(8) == 0;
    const int64_t rows = std::min(left(), 1 + random.below(prompt ? 40 : sequence.max_window()));
    accepted = prompt ? rows : 1 + random.below(rows);
    window.assign(plain->ids.begin() + at, plain->ids.begin() + at + accepted);
    while (static_cast<int64_t>(window.size()) < rows) window.push_back(static_cast<int32_t>(random.below(vocabulary)));
    logits.resize(static_cast<size_t>(rows * vocabulary));
    return prompt ? -1 : 1;
  }
  Segment segment(int64_t certain, int64_t vocabulary) {
    return {.sequence = &sequence,
            .tokens = window,
            .logits = make_f32(logits.data(), {static_cast<int64_t>(window.size()), vocabulary}),
            .certain = certain};
  }
  void check_and_take_back(int64_t vocabulary) {
    const int64_t start = sequence.length() - static_cast<int64_t>(window.size());
    ASSERT_EQ(std::memcmp(logits.data(), plain->logits.data() + start * vocabulary,
                          static_cast<size_t>(accepted * vocabulary) * sizeof(float)),
              0)
        << window.size() << " rows from position " << start << ", " << accepted << " accepted";
    sequence.truncate(start + accepted);
  }
};

void check_hash(ModelRun& model, const Walker& walker) {
  Sequence copy = walker.sequence;
  model.forward().settle(copy);
  ASSERT_EQ(copy.hash(), walker.plain->hashes[static_cast<size_t>(copy.length())]) << copy.length();
}

void windows(const std::string& path, bool anchored, int64_t tokens, uint64_t seeds) {
  ModelRun model(path, 2);
  CacheOptions caches;
  caches.anchored = anchored;
  const Plain texts[] = {Plain(model, caches, tokens, 20), Plain(model, caches, tokens, 21)};
  PagePool pool;
  pool.poison(true);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    std::vector<Walker> walkers;
    for (int i = 0; i < 3; ++i) walkers.push_back({&texts[i % 2], Sequence(model.spec(), tokens + 8, caches, pool)});
    while (!std::all_of(walkers.begin(), walkers.end(), [](const Walker& walker) { return walker.done(); })) {
      std::vector<Walker*> chosen;
      for (Walker& walker : walkers)
        if (!walker.done() && random.below(3) > 0) chosen.push_back(&walker);
      std::vector<Segment> segments;
      for (Walker* walker : chosen) {
        const int64_t certain = walker->plan(random, model.vocabulary());
        segments.push_back(walker->segment(certain, model.vocabulary()));
      }
      model.forward().run(segments);
      for (Walker* walker : chosen) {
        ASSERT_NO_FATAL_FAILURE(walker->check_and_take_back(model.vocabulary()));
        if (random.below(4) == 0) {
          ASSERT_NO_FATAL_FAILURE(check_hash(model, *walker));
        }
        if (random.below(6) == 0) model.forward().settle(walker->sequence);
      }
      // A copy takes the place of another walker, and both go on apart.
      if (random.below(5) == 0)
        walkers[static_cast<size_t>(random.below(3))] = Walker(walkers[static_cast<size_t>(random.below(3))]);
    }
    for (const Walker& walker : walkers) ASSERT_NO_FATAL_FAILURE(check_hash(model, walker));
  }
}

std::string peer_model() { return fixture_folder("gguf-peer") + "/qwen35.gguf"; }
std::string mini_model() { return source_path("models/strata-mini-q8_0.gguf"); }

TEST(Rollback, PeerFileSerial) { windows(peer_model(), false, 150, 8); }
TEST(Rollback, PeerFileAnchored) { windows(peer_model(), true, 150, 8); }
TEST(Rollback, DefaultModelSerial) { windows(mini_model(), false, 80, 1); }
TEST(Rollback, DefaultModelAnchored) { windows(mini_model(), true, 80, 1); }

struct Refusal : testing::Test {
  ModelRun model{peer_model()};
  Sequence sequence{model.spec(), 64, CacheOptions()};
  const std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

  void run(int64_t rows, int64_t certain) {
    const Segment segment{.sequence = &sequence, .tokens = {ids.data(), static_cast<size_t>(rows)}, .certain = certain};
    model.forward().run({&segment, 1});
  }
};

TEST_F(Refusal, MoreUncertainRowsThanTheWindowChangesNothing) {
  run(4, -1);
  const uint64_t before = sequence.hash();
  EXPECT_THROW(run(10, 1), Error);
  EXPECT_THROW(run(4, 5), Error);
  EXPECT_THROW(run(4, -2), Error);
  EXPECT_EQ(sequence.hash(), before);
  EXPECT_NO_THROW(run(9, 1));
}

TEST_F(Refusal, RowsThatWereCertainAreNotTakenBack) {
  run(5, 3);
  EXPECT_THROW(sequence.truncate(2), Error);
  EXPECT_EQ(sequence.length(), 5);  // nothing has changed
  sequence.truncate(3);
  EXPECT_NO_THROW(run(4, 1));
}

TEST_F(Refusal, PendingRowsMustBeSettledBeforeTheStateIsSaved) {
  run(5, 3);
  ArchiveWriter nowhere([](const void*, size_t) {});
  EXPECT_THROW(sequence.hash(), Error);
  EXPECT_THROW(sequence.save(nowhere), Error);
  model.forward().settle(sequence);
  EXPECT_NO_THROW(sequence.hash());
  EXPECT_NO_THROW(sequence.save(nowhere));
  EXPECT_THROW(sequence.truncate(4), Error);
}

// The pool is too small for a copy's own state: the pass fails before anything is written.
TEST_F(Refusal, AFullPoolIsSeenBeforeTheFirstWrite) {
  Sequence probe(model.spec(), 64, CacheOptions());
  PagePool pool(probe.bytes().total() + (64 << 10));
  sequence = Sequence(model.spec(), 64, CacheOptions(), pool);
  run(3, 1);
  const Sequence copy = sequence;
  EXPECT_THROW(run(4, 1), Error);
  EXPECT_THROW(model.forward().settle(sequence), Error);
  EXPECT_EQ(sequence.length(), 3);
  EXPECT_EQ(sequence.layers.front().delta.pending(), 2);
}

TEST_F(Refusal, MaxWindow) {
  EXPECT_EQ(sequence.max_window(), 8);
  CacheOptions caches;
  caches.anchored = true;
  sequence = Sequence(model.spec(), 256, caches);
  const int64_t expected[] = {8, 8, 7, 6, 5, 4, 3, 2, 1, 1, 8};  // from position 54
  for (int i = 0; i < 54; ++i) run(1, -1);
  for (const int64_t window : expected) {
    EXPECT_EQ(sequence.max_window(), window) << sequence.length();
    run(1, -1);
  }
}

}  // namespace
}  // namespace strata::test
