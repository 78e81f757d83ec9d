// Drafts from a model's MTP block. The block has a cache of its own in the sequence; it is fed with the pairs (tap of
// position p, token of position p + 1) as soon as both are known.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward.h"

namespace strata {

class MtpDrafter {
 public:
  MtpDrafter(Forward& forward, Sequence& sequence);

  // Where the next forward pass puts its taps: [rows, streams · H].
  Tensor taps(int64_t rows);
  // After a pass of which the first `kept` rows stay, from position `first` on.
  void keep(int64_t first, int64_t kept);
  // Feeds the block with what is known: every pair whose next token is in `history`.
  void feed(std::span<const int32_t> history);
  // Forgets the taps at hand: their pairs are never fed, which costs acceptance alone.
  void skip() { held_.clear(); }
  void drop_guesses();  // takes the cells of guesses back: what is left belongs to the text
  // Up to `limit` tokens that may follow history; empty when the last position's tap is not at hand.
  std::vector<int32_t> propose(std::span<const int32_t> history, int limit);

 private:
  Forward& forward_;
  Sequence& sequence_;
  int64_t width_;
  std::vector<float> pass_, held_, next_, logits_;
  int64_t held_first_ = 0;  // position of the first tap in held_
  int64_t fed_ = 0;         // cells of the block's cache that come from the trunk; behind them lie guesses
};

}  // namespace strata
