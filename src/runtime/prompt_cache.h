// Sequences of finished requests, kept for prompts that begin with the same tokens. A kept sequence and its copies
// share memory, and results do not depend on what was found.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "cache/page_pool.h"
#include "model/sequence.h"

namespace strata {

inline constexpr int64_t kCheckpointStep = 64;
inline constexpr size_t kMaxCheckpoints = 8;  // of one sequence

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b);

// Where to copy the sequence while a prompt is read, ascending multiples of kCheckpointStep before its last token: the
// largest, the largest within the first `shared` tokens, and powers of two, so that at most half of a common beginning
// is lost.
std::vector<int64_t> checkpoint_positions(int64_t prompt, int64_t shared);

class PromptCache {
 public:
  // Sequences are dropped, those used longest ago first, while the pool has over `budget` bytes in use, in memory and
  // in a file: running sequences count too.
  PromptCache(PagePool pool, uint64_t budget) : pool_(std::move(pool)), budget_(budget) {}

  struct Hit {
    Sequence sequence;
    int64_t length;  // of the sequence: the tokens that need not be run
  };
  // A copy of what holds most of the prompt's first tokens, but not all of them.
  std::optional<Hit> find(std::span<const int32_t> prompt);

  // tokens: those that the sequence holds. Takes over what is useful of a kept sequence that this one continues.
  void keep(std::vector<int32_t> tokens, Sequence sequence, std::vector<Sequence> checkpoints, int64_t shared = 0);

  bool evict();  // drops the sequence used longest ago; false: there is none
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<int32_t> tokens;
    Sequence sequence;
    std::vector<Sequence> checkpoints;  // the most useful first
  };
  void shrink();

  PagePool pool_;
  uint64_t budget_;
  std::list<Entry> entries_;  // used last first
};

}  // namespace strata
