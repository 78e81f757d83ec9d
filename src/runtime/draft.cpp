#include "runtime/draft.h"

#include <algorithm>

#include "base/hash.h"

namespace strata {
namespace {

constexpr double kKeep = 0.95;          // of an average, with each new window: about the last 20 count
constexpr double kFirstGuess = 0.6;     // acceptance before there is any
constexpr double kGuessWeight = 4;      // windows that the first guess counts for
constexpr int kProbe = 64;              // windows without drafts between two tries
constexpr double kExtraRowCost = 0.15;  // of a window's time, for each draft, until other lengths were timed
constexpr double kLeastSpread = 0.05;   // variance of the lengths below which their times tell nothing

}  // namespace

void PromptLookup::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    tokens_.push_back(token);
    index(tokens_.size());
  }
}

void PromptLookup::index(size_t end) {
  for (int n = kShortest; n <= kLongest; ++n) {
    const auto count = static_cast<size_t>(n);
    if (end < count) return;
    Places& places = places_[count - kShortest][hash64(tokens_.data() + end - count, count * sizeof(int32_t))];
    places.previous = places.latest;
    places.latest = static_cast<uint32_t>(end);
  }
}

void PromptLookup::truncate(size_t length) {
  if (length >= tokens_.size()) return;
  const std::vector<int32_t> kept(tokens_.begin(), tokens_.begin() + static_cast<int64_t>(length));
  tokens_.clear();
  for (auto& places : places_) places.clear();
  append(kept);
}

std::vector<int32_t> PromptLookup::propose(int limit) const {
  const size_t end = tokens_.size();
  for (int n = kLongest; n >= kShortest; --n) {
    const auto count = static_cast<size_t>(n);
    if (end < count || limit < 1) continue;
    const auto& places = places_[count - kShortest];
    const auto found = places.find(hash64(tokens_.data() + end - count, count * sizeof(int32_t)));
    if (found == places.end() || found->second.previous == 0) continue;
    const size_t start = found->second.previous;
    // Equal hashes of other tokens would only be a bad guess.
    const size_t wanted = std::min(static_cast<size_t>(limit), end - start);
    const auto first = tokens_.begin() + static_cast<int64_t>(start);
    return {first, first + static_cast<int64_t>(wanted)};
  }
  return {};
}

DraftLength::DraftLength(int limit) : limit_(std::clamp(limit, 0, kMaxDrafts)), last_(limit_) {}

double DraftLength::rate(int position) const {
  const auto at = static_cast<size_t>(position);
  const double weight = static_cast<double>(std::min<int64_t>(positions_[at].tried, 20));
  return (kFirstGuess * kGuessWeight + recent_[at] * weight) / (kGuessWeight + weight);
}

double DraftLength::expected_tokens(int drafts) const {
  double tokens = 1, reached = 1;
  for (int i = 0; i < drafts; ++i) tokens += reached *= rate(i);
  return tokens;
}

// A straight line through the windows timed so far.
double DraftLength::expected_seconds(int drafts) const {
  if (times_.weight == 0) return 1 + kExtraRowCost * drafts;
  const double mean_drafts = times_.drafts / times_.weight, mean_seconds = times_.seconds / times_.weight;
  const double spread = times_.drafts_squared / times_.weight - mean_drafts * mean_drafts;
  const double joint = times_.drafts_seconds / times_.weight - mean_drafts * mean_seconds;
  const double usual = mean_seconds * kExtraRowCost / (1 + kExtraRowCost * mean_drafts);
  const double slope = spread > kLeastSpread ? std::max(joint / spread, 0.0) : usual;
  return std::max(mean_seconds + slope * (drafts - mean_drafts), mean_seconds * 0.01);
}

int DraftLength::next() {
  if (times_.weight == 0) return last_ = limit_;
  int best = 0;
  for (int k = 1; k <= limit_; ++k)
    if (expected_tokens(k) * expected_seconds(best) > expected_tokens(best) * expected_seconds(k)) best = k;
  if (best == 0 && limit_ > 0 && ++windows_off_ >= kProbe) best = 1;
  if (best > 0) windows_off_ = 0;
  return last_ = best;
}

void DraftLength::observe(int drafted, int accepted, double seconds) {
  drafted = std::clamp(drafted, 0, kMaxDrafts);
  accepted = std::clamp(accepted, 0, drafted);
  for (int i = 0; i < drafted && i <= accepted; ++i) {
    const auto at = static_cast<size_t>(i);
    const double held = i < accepted ? 1 : 0;
    recent_[at] = positions_[at].tried == 0 ? held : kKeep * recent_[at] + (1 - kKeep) * held;
    ++positions_[at].tried;
    positions_[at].accepted += i < accepted;
  }
  if (!(seconds > 0)) return;
  times_.weight = kKeep * times_.weight + 1;
  times_.drafts = kKeep * times_.drafts + drafted;
  times_.drafts_squared = kKeep * times_.drafts_squared + drafted * drafted;
  times_.seconds = kKeep * times_.seconds + seconds;
  times_.drafts_seconds = kKeep * times_.drafts_seconds + drafted * seconds;
}

}  // namespace strata
