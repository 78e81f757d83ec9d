// What strata perplexity prints: the lines of llama-perplexity, or JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "measure/divergence.h"

namespace strata::cli {

std::string perplexity_text(const Estimate& perplexity);        // "31.2404 +/- 0.51234"
std::string divergence_text(const DivergenceSummary& summary);  // three blocks
std::string chunk_header();                                     // of the table with a line a chunk
std::string chunk_line(int64_t chunk, const DivergenceSummary& means);
nlohmann::ordered_json json_of(const Estimate& estimate, double scale = 1);
nlohmann::ordered_json json_of(const DivergenceSummary& summary);

// "[1]25.3071,[2]24.8863,". A terminal gets whole lines, and the newest value in the line of progress.
class RunningValues {
 public:
  explicit RunningValues(Progress& progress);
  void add(int64_t chunk, double perplexity);
  void end();  // of the last line
  const std::string& newest() const { return newest_; }

 private:
  Progress& progress_;
  bool terminal_;
  std::string newest_, line_;
  bool open_ = false;
  int count_ = 0;
};

// "about 3 min 20 s left"
std::string time_left(double done, double total, double seconds);

}  // namespace strata::cli
