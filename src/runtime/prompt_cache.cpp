#include "runtime/prompt_cache.h"

#include <algorithm>
#include <bit>

namespace strata {
namespace {

// One checkpoint for each length, kMaxCheckpoints at most: those at wanted lengths first, then the longest.
void thin(std::vector<Sequence>& checkpoints, const std::vector<int64_t>& wanted) {
  auto rank = [&](const Sequence& sequence) {
    return std::pair(std::binary_search(wanted.begin(), wanted.end(), sequence.length()), sequence.length());
  };
  std::stable_sort(checkpoints.begin(), checkpoints.end(),
                   [&](const Sequence& a, const Sequence& b) { return rank(a) > rank(b); });
  const auto same = [](const Sequence& a, const Sequence& b) { return a.length() == b.length(); };
  checkpoints.erase(std::unique(checkpoints.begin(), checkpoints.end(), same), checkpoints.end());
  if (checkpoints.size() > kMaxCheckpoints) checkpoints.erase(checkpoints.begin() + kMaxCheckpoints, checkpoints.end());
}

}  // namespace

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(most), b.begin()).first - a.begin();
}

std::vector<int64_t> checkpoint_positions(int64_t prompt, int64_t shared) {
  std::vector<int64_t> positions;
  const int64_t last = (prompt - 1) / kCheckpointStep * kCheckpointStep;
  auto add = [&](int64_t position) {
    const bool fits = position > 0 && position <= last && positions.size() < kMaxCheckpoints;
    if (fits && std::find(positions.begin(), positions.end(), position) == positions.end())
      positions.push_back(position);
  };
  add(last);
  add(std::min(shared, last) / kCheckpointStep * kCheckpointStep);
  for (auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(last))); power >= kCheckpointStep;
       power /= 2)
    add(power);
  std::sort(positions.begin(), positions.end());
  return positions;
}

std::optional<PromptCache::Hit> PromptCache::find(std::span<const int32_t> prompt) {
  const Sequence* best = nullptr;
  auto owner = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const int64_t common = std::min(common_prefix(entry->tokens, prompt), static_cast<int64_t>(prompt.size()) - 1);
    auto consider = [&](const Sequence& sequence) {
      if (sequence.length() > common || sequence.length() <= (best == nullptr ? 0 : best->length())) return;
      best = &sequence;
      owner = entry;
    };
    consider(entry->sequence);
    for (const Sequence& checkpoint : entry->checkpoints) consider(checkpoint);
  }
  if (best == nullptr) return std::nullopt;
  Hit hit{*best, best->length()};
  entries_.splice(entries_.begin(), entries_, owner);
  return hit;
}

void PromptCache::keep(std::vector<int32_t> tokens, Sequence sequence, std::vector<Sequence> checkpoints,
                       int64_t shared) {
  if (tokens.empty()) return;
  Entry entry{std::move(tokens), std::move(sequence), std::move(checkpoints)};
  for (auto other = entries_.begin(); other != entries_.end();) {
    const int64_t common = common_prefix(entry.tokens, other->tokens);
    for (const Sequence& checkpoint : other->checkpoints)
      if (checkpoint.length() <= common) entry.checkpoints.push_back(checkpoint);
    const bool continued = common == static_cast<int64_t>(other->tokens.size());
    other = continued ? entries_.erase(other) : std::next(other);
  }
  thin(entry.checkpoints, checkpoint_positions(static_cast<int64_t>(entry.tokens.size()), shared));
  entries_.push_front(std::move(entry));
  shrink();
}

bool PromptCache::evict() {
  if (entries_.empty()) return false;
  entries_.pop_back();
  return true;
}

void PromptCache::shrink() {
  bool dropped = false;
  while (pool_.used() + pool_.file().used > budget_ && !entries_.empty()) {
    dropped = true;
    std::vector<Sequence>& checkpoints = entries_.back().checkpoints;
    if (entries_.size() == 1 && !checkpoints.empty())
      checkpoints.pop_back();  // the sequence of the latest request goes last
    else
      evict();
  }
  if (dropped) pool_.trim();
}

}  // namespace strata
