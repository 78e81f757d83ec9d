// Drafts: guesses of the next tokens that one verify window checks together. A guess is kept when the sampler, asked as
// without drafts, chooses the same token: the text and its distribution cannot depend on drafts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace strata {

inline constexpr int kMaxDrafts = 7;  // a verify window has these and the token before them: 8 rows

// Continues the text as it went on where its last tokens stood before: no model is asked.
class PromptLookup {
 public:
  void append(std::span<const int32_t> tokens);
  void truncate(size_t length);  // forgets what came after; costs the tokens that are left
  size_t length() const { return tokens_.size(); }
  // Up to `limit` tokens that followed the latest earlier place where the last 5, 4, 3 or 2 tokens stood; empty: none.
  std::vector<int32_t> propose(int limit) const;

 private:
  static constexpr int kShortest = 2, kLongest = 5;
  void index(size_t end);

  std::vector<int32_t> tokens_;
  // Hash of n tokens to the place behind their latest and their previous occurrence.
  struct Places {
    uint32_t latest = 0, previous = 0;
  };
  std::array<std::unordered_map<uint64_t, Places>, kLongest - kShortest + 1> places_;
};

// How many drafts pay: tokens expected from a window over what the window costs, from measured acceptance and times.
// Decides speed alone.
class DraftLength {
 public:
  explicit DraftLength(int limit);  // 0 .. kMaxDrafts

  // What to draft next: 0 when drafts do not pay. Every 64th window at 0 is tried with one draft again.
  int next();
  // A window with `drafted` guesses of which the first `accepted` held; it took that long, drafting included.
  void observe(int drafted, int accepted, double seconds);

  struct Position {
    int64_t tried = 0, accepted = 0;  // windows that reached the position with all before it accepted
  };
  const std::array<Position, kMaxDrafts>& positions() const { return positions_; }
  double expected_tokens(int drafts) const;
  double expected_seconds(int drafts) const;

 private:
  double rate(int position) const;

  int limit_;
  int last_ = 0;
  int windows_off_ = 0;
  std::array<Position, kMaxDrafts> positions_{};
  std::array<double, kMaxDrafts> recent_{};  // acceptance, newer windows weigh more
  struct {
    double weight = 0, drafts = 0, drafts_squared = 0, seconds = 0, drafts_seconds = 0;
  } times_;  // weighted sums over windows
};

}  // namespace strata
