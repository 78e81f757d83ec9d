// Drafts: what prompt lookup proposes, and that the draft length follows acceptance and cost.
#include "runtime/draft.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace strata {
namespace {

using Tokens = std::vector<int32_t>;

Tokens proposed(const Tokens& text, int limit) {
  PromptLookup lookup;
  lookup.append(text);
  return lookup.propose(limit);
}

TEST(PromptLookup, ContinuesTheLatestEarlierPlace) {
  EXPECT_EQ(proposed({1, 2, 3, 4, 1, 2}, 3), (Tokens{3, 4, 1}));
  EXPECT_EQ(proposed({1, 2, 3, 1, 2, 9, 1, 2}, 2), (Tokens{9, 1}));
  EXPECT_EQ(proposed({1, 2, 3, 1, 2, 9, 1, 2}, 0), Tokens{});
  EXPECT_EQ(proposed({1, 2, 3, 4}, 7), Tokens{});
  EXPECT_EQ(proposed({}, 7), Tokens{});
  EXPECT_EQ(proposed({1}, 7), Tokens{});
}

TEST(PromptLookup, ALongerMatchWinsOverALaterOne) {
  // "5 1 2" stood before 7, "1 2" later before 8.
  EXPECT_EQ(proposed({5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2}, 1), (Tokens{7}));
}

TEST(PromptLookup, ARepeatedTokenContinuesItself) { EXPECT_EQ(proposed({4, 4, 4}, 7), (Tokens{4})); }

TEST(PromptLookup, TruncatedIsAsNeverAppended) {
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    Tokens text(static_cast<size_t>(random.below(60)));
    for (int32_t& token : text) token = static_cast<int32_t>(random.below(3));
    const auto length = static_cast<size_t>(random.below(static_cast<int64_t>(text.size()) + 1));
    PromptLookup cut;
    cut.append(text);
    cut.truncate(length);
    text.resize(length);
    EXPECT_EQ(cut.length(), length);
    EXPECT_EQ(cut.propose(5), proposed(text, 5));
  }
}

// Windows in which each draft holds with probability p; a window of k drafts takes 1 + cost·k.
int settled_length(double p, double cost, int limit = kMaxDrafts) {
  DraftLength length(limit);
  Random random(7);
  int drafts = 0;
  std::array<int, kMaxDrafts + 1> chosen{};
  for (int window = 0; window < 600; ++window) {
    drafts = length.next();
    int accepted = 0;
    while (accepted < drafts && random.uniform() < p) ++accepted;
    length.observe(drafts, accepted, 1 + cost * drafts);
    if (window >= 300) ++chosen[static_cast<size_t>(drafts)];
  }
  return static_cast<int>(std::max_element(chosen.begin(), chosen.end()) - chosen.begin());
}

TEST(DraftLength, FollowsAcceptanceAndCost) {
  EXPECT_EQ(settled_length(0.95, 0.05), kMaxDrafts);
  EXPECT_EQ(settled_length(0.95, 0.05, 3), 3);
  EXPECT_EQ(settled_length(0.05, 0.2), 0);
  EXPECT_EQ(settled_length(0.9, 1.5), 0);  // a draft that costs more than the token it may save
  const int middle = settled_length(0.6, 0.15);
  EXPECT_GE(middle, 1);
  EXPECT_LE(middle, 4);
  EXPECT_EQ(settled_length(0.99, 0.01, 0), 0);
}

TEST(DraftLength, TriesAgainAfterItTurnedItselfOff) {
  DraftLength length(4);
  for (int i = 0; i < 400; ++i) {
    const int drafts = length.next();
    length.observe(drafts, 0, 1 + 0.3 * drafts);
  }
  int tried = 0;
  for (int i = 0; i < 400; ++i) {
    const int drafts = length.next();
    tried += drafts > 0;
    length.observe(drafts, 0, 1 + 0.3 * drafts);
  }
  EXPECT_GE(tried, 5);
  EXPECT_LE(tried, 10);
  for (int i = 0; i < 2000; ++i) {  // the text has become easy to guess
    const int drafts = length.next();
    length.observe(drafts, drafts, 1 + 0.05 * drafts);
  }
  EXPECT_EQ(length.next(), 4);
}

TEST(DraftLength, CountsByPosition) {
  DraftLength length(3);
  length.observe(3, 1, 1);
  length.observe(2, 2, 1);
  EXPECT_EQ(length.positions()[0].tried, 2);
  EXPECT_EQ(length.positions()[0].accepted, 2);
  EXPECT_EQ(length.positions()[1].tried, 2);
  EXPECT_EQ(length.positions()[1].accepted, 1);
  EXPECT_EQ(length.positions()[2].tried, 0);
  length.observe(99, -5, -1);  // nonsense counts as the nearest sense
  EXPECT_EQ(length.positions()[0].tried, 3);
}

}  // namespace
}  // namespace strata
