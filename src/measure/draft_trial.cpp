#include "measure/draft_trial.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace strata {

int32_t most_likely(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

DraftKind resolved_draft(DraftKind kind, const ModelSpec& spec) {
  if (kind != DraftKind::Auto) return kind;
  return spec.mtp_layers > 0 ? DraftKind::Mtp : DraftKind::Lookup;
}

const char* draft_name(DraftKind kind) {
  switch (kind) {
    case DraftKind::None: return "none";
    case DraftKind::Lookup: return "lookup";
    case DraftKind::Mtp: return "mtp";
    case DraftKind::Auto: return "auto";
  }
  return "unknown";
}

void DraftCounts::add(const DraftCounts& other) {
  windows += other.windows;
  drafted += other.drafted;
  accepted += other.accepted;
}

int SyntheticAcceptance::kept(int drafted, Random& random) const {
  int count = 0;
  if (length > 0) {  // the two whole numbers around the mean: the least variance
    const double drafts = length - 1;
    count = static_cast<int>(drafts);
    if (random.uniform() < drafts - count) ++count;
    return std::min(count, drafted);
  }
  const int most = std::min(drafted, static_cast<int>(rates.size()));
  while (count < most && random.uniform() < rates[static_cast<size_t>(count)]) ++count;
  return count;
}

DraftTrial::DraftTrial(Forward& forward, Sequence& sequence, const DraftTrialOptions& options,
                       std::span<const int32_t> history)
    : forward_(forward),
      sequence_(sequence),
      options_(options),
      history_(history.begin(), history.end()),
      length_(options.kind == DraftKind::None ? 0 : options.limit),
      random_(options.seed) {
  if (options.kind == DraftKind::Lookup) lookup_.emplace().append(history_);
  if (options.kind != DraftKind::Mtp) return;
  if (forward.spec().mtp_layers < 1) throw Error(ErrorKind::Model, "this model has no MTP block to draft with");
  mtp_ = std::make_unique<MtpDrafter>(forward, sequence);
}

void DraftTrial::prompt(std::span<const int32_t> tokens, const Tensor& logits) {
  Segment segment{.sequence = &sequence_, .tokens = tokens, .logits = logits};
  const int64_t first = sequence_.length();
  if (mtp_) segment.tap = mtp_->taps(static_cast<int64_t>(tokens.size()));
  forward_.run({&segment, 1});
  if (!mtp_) return;
  mtp_->keep(first, sequence_.length() - first);
  mtp_->feed(std::span(history_).first(static_cast<size_t>(sequence_.length())));
}

// Drafts that a window cannot do without, so that its size is as asked for: tokens after the newest one.
void DraftTrial::fill_up(std::vector<int32_t>& drafts, int64_t wanted) {
  while (static_cast<int64_t>(drafts.size()) < wanted)
    drafts.push_back(
        static_cast<int32_t>((history_.back() + static_cast<int64_t>(drafts.size()) + 1) % forward_.spec().vocabulary));
}

std::vector<int32_t> DraftTrial::propose(int64_t room) {
  if (options_.kind == DraftKind::None) return {};
  const bool synthetic = options_.synthetic.given();
  int64_t wanted = std::min<int64_t>(synthetic ? options_.limit : length_.next(), room);
  if (!options_.synthetic.rates.empty())
    wanted = std::min(wanted, static_cast<int64_t>(options_.synthetic.rates.size()));
  std::vector<int32_t> drafts;
  if (wanted < 1) return drafts;
  drafts = mtp_ ? mtp_->propose(history_, static_cast<int>(wanted)) : lookup_->propose(static_cast<int>(wanted));
  if (synthetic) fill_up(drafts, wanted);
  return drafts;
}

std::span<const float> DraftTrial::logits() const {
  const auto vocabulary = static_cast<size_t>(forward_.spec().vocabulary);
  return std::span(rows_).subspan(static_cast<size_t>(last_row_) * vocabulary, vocabulary);
}

int64_t DraftTrial::window(int32_t& newest, int64_t most) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t first = sequence_.length(), vocabulary = forward_.spec().vocabulary;
  history_.resize(static_cast<size_t>(first));
  history_.push_back(newest);
  if (lookup_ && lookup_->length() < history_.size()) lookup_->append({&newest, 1});
  std::vector<int32_t> tokens{newest};
  const int64_t room =
      std::min({most - 1, int64_t{kMaxDrafts}, sequence_.max_window() - 1, sequence_.capacity() - first - 1});
  const std::vector<int32_t> drafts = propose(room);
  tokens.insert(tokens.end(), drafts.begin(), drafts.end());
  const auto rows = static_cast<int64_t>(tokens.size());
  rows_.resize(static_cast<size_t>(rows * vocabulary));
  Segment segment{.sequence = &sequence_, .tokens = tokens, .logits = make_f32(rows_.data(), {rows, vocabulary})};
  segment.certain = 1;
  if (mtp_) segment.tap = mtp_->taps(rows);
  forward_.run({&segment, 1});

  const int drafted = static_cast<int>(drafts.size());
  int held = options_.synthetic.given() ? options_.synthetic.kept(drafted, random_) : 0;
  if (!options_.synthetic.given())
    while (last_row_ = held, held < drafted && most_likely(logits()) == drafts[static_cast<size_t>(held)]) ++held;
  last_row_ = held;
  newest = most_likely(logits());
  const int64_t kept = 1 + held;
  if (kept < rows) sequence_.truncate(first + kept);
  history_.insert(history_.end(), drafts.begin(), drafts.begin() + held);
  if (lookup_) lookup_->append(std::span(drafts).first(static_cast<size_t>(held)));
  if (mtp_) mtp_->keep(first, kept);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (drafted > 0 || options_.kind != DraftKind::None) length_.observe(drafted, held, seconds);
  counts_.add({1, drafted, held});
  return kept;
}

}  // namespace strata
