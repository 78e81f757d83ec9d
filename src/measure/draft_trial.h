// Output of a model with drafts, for benchmarks: the loop of a request without its text, and with an acceptance that
// can be given instead of measured.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "model/forward.h"
#include "runtime/mtp_drafter.h"
#include "runtime/request.h"

namespace strata {

// Acceptance that is given: drafts are kept or dropped by a seeded draw, whatever the model says, so that the time of a
// window and the acceptance can be told apart.
struct SyntheticAcceptance {
  std::vector<double> rates{};  // of each draft, given that those before it were kept; as many drafts as rates
  double length = 0;            // tokens of a window on average, drafts kept and the one after; 0: not given
  bool given() const { return !rates.empty() || length > 0; }
  int kept(int drafted, Random& random) const;
};

struct DraftCounts {
  int64_t windows = 0, drafted = 0, accepted = 0;
  void add(const DraftCounts& other);
};

struct DraftTrialOptions {
  DraftKind kind = DraftKind::None;
  int limit = kMaxDrafts;  // drafts of a window at most
  SyntheticAcceptance synthetic{};
  uint64_t seed = 1;  // of the draws
};

// One sequence whose output is chosen by the model.
class DraftTrial {
 public:
  // `history`: the tokens of the sequence so far and those that run() is given before it chooses. Error{Model} for MTP
  // without an MTP block.
  DraftTrial(Forward& forward, Sequence& sequence, const DraftTrialOptions& options, std::span<const int32_t> history);

  // Runs prompt tokens; logits [1, V] or empty.
  void prompt(std::span<const int32_t> tokens, const Tensor& logits);
  // One window: the newest token and drafts, at most `most` tokens kept. Returns how many were kept; `newest` becomes
  // the token after them.
  int64_t window(int32_t& newest, int64_t most);

  std::span<const float> logits() const;  // of the last row that the last window kept
  const DraftCounts& counts() const { return counts_; }
  const std::vector<int32_t>& history() const { return history_; }

 private:
  std::vector<int32_t> propose(int64_t room);
  void fill_up(std::vector<int32_t>& drafts, int64_t wanted);

  Forward& forward_;
  Sequence& sequence_;
  const DraftTrialOptions options_;
  std::vector<int32_t> history_;
  std::optional<PromptLookup> lookup_;
  std::unique_ptr<MtpDrafter> mtp_;
  DraftLength length_;
  Random random_;
  DraftCounts counts_;
  std::vector<float> rows_;  // logits of the last window
  int64_t last_row_ = 0;
};

int32_t most_likely(std::span<const float> logits);

// The kind that `Auto` means for this model.
DraftKind resolved_draft(DraftKind kind, const ModelSpec& spec);
const char* draft_name(DraftKind kind);  // "none", "lookup", "mtp", "auto"

}  // namespace strata
