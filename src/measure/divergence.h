// How far one model's probabilities are from another's: statistics over the scored positions of a text. Everything in
// float64. docs/measuring.md has the formulas.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "measure/logits_file.h"

namespace strata {

// A value and its standard error; none where one sample does not give one.
struct Estimate {
  double value = 0;
  std::optional<double> error;
};

Estimate mean_of(std::span<const double> samples);
// e to the mean of -ln p of each token; the error is that of the mean times the value.
Estimate perplexity_of(std::span<const double> nll);

// One position under a base and under the model that is compared with it.
struct PositionDivergence {
  double nll = 0, nll_base = 0;  // -ln p of the token that follows
  double kld = 0;                // sum of p_base (ln p_base - ln p)
  double difference = 0;         // p - p_base of the token that follows
  bool same_top = false;         // ties go to the lower token
};
// Tokens of which the base says no more than ln p <= known_above are left out of the sum.
PositionDivergence compare_position(std::span<const double> log_p, std::span<const double> base, int32_t target,
                                    double known_above);

inline constexpr std::array<double, 8> kTailShares{0.999, 0.99, 0.95, 0.9, 0.1, 0.05, 0.01, 0.001};

struct Distribution {
  double maximum = 0, median = 0, minimum = 0, quarter = 0, three_quarters = 0;
  std::array<double, kTailShares.size()> tails{};  // quantiles, in the order of kTailShares
};

struct DivergenceSummary {
  int64_t positions = 0;
  Estimate ppl, ppl_base, log_ratio, ratio, ppl_difference;
  std::optional<double> correlation;  // of the means of ln p; none where one does not vary
  Estimate kld;
  Distribution kld_spread;
  Estimate difference, rms_difference;  // of p of the token that follows
  Distribution difference_spread;
  Estimate same_top;  // share
};

class DivergenceSamples {
 public:
  void add(const PositionDivergence& position);
  int64_t size() const { return static_cast<int64_t>(nll_.size()); }
  DivergenceSummary summary() const;
  DivergenceSummary means() const;  // without the two spreads, whose quantiles need sorting

 private:
  std::vector<double> nll_, nll_base_, kld_, difference_;
  int64_t same_top_ = 0;
};

// Two files of logits, position by position.
struct LogitsDifference {
  struct Place {
    int64_t chunk = 0, position = 0;  // chunk from 0, position in it
    int32_t token = 0;                // whose logit
    double a = 0, b = 0;              // logits, or ln p when a file holds codes
    double difference() const { return a - b; }
  };
  int64_t positions = 0;  // compared: those that both files have
  int64_t rows_a = 0, rows_b = 0;
  int64_t differing = 0;             // positions
  std::optional<Place> first;        // that differs in its bits
  Place largest;                     // |a - b|
  double mean_kld = 0, max_kld = 0;  // of B from A
  int64_t same_top = 0;              // positions
  bool equal() const { return differing == 0 && rows_a == rows_b; }
};

// Error{Usage} naming what differs when they are not about the same tokens; Error{Format}; Error{Interrupted}.
LogitsDifference compare_files(const LogitsFile& a, const LogitsFile& b, ThreadPool& pool,
                               const std::atomic<bool>& interrupted,
                               const std::function<void(int64_t done, int64_t total)>& progress = {});

// Empty when both are about the same tokens in the same chunks; else what differs, as "chunks of 512 tokens, not 256".
std::string other_text(const LogitsHeader& wanted, const LogitsHeader& given);

}  // namespace strata
