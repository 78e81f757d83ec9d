#include "cli/perplexity_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace strata::cli {
namespace {

constexpr int kValuesOfALine = 6;  // on a terminal

// "%10.6lf ± %10.6lf"; a dash where one sample gives no error.
std::string plus_minus(const Estimate& estimate, int width, int digits, double scale = 1, int error_width = 0) {
  if (error_width == 0) error_width = width;
  const std::string error =
      estimate.error ? fmt::format("{:>{}.{}f}", *estimate.error * scale, error_width, digits) : "-";
  return fmt::format("{:>{}.{}f} ± {}", estimate.value * scale, width, digits, error);
}

struct Row {
  const char* name;
  double Distribution::*value;
  int tail;  // index into tails; -1: value
};
constexpr Row kSpread[] = {{"Maximum", &Distribution::maximum, -1},
                           {"99.9%  ", nullptr, 0},
                           {"99.0%  ", nullptr, 1},
                           {"95.0%  ", nullptr, 2},
                           {"90.0%  ", nullptr, 3},
                           {"75.0%  ", &Distribution::three_quarters, -1},
                           {"Median ", &Distribution::median, -1},
                           {"25.0%  ", &Distribution::quarter, -1},
                           {"10.0%  ", nullptr, 4},
                           {" 5.0%  ", nullptr, 5},
                           {" 1.0%  ", nullptr, 6},
                           {" 0.1%  ", nullptr, 7},
                           {"Minimum", &Distribution::minimum, -1}};

double value_of(const Row& row, const Distribution& spread) {
  return row.tail < 0 ? spread.*row.value : spread.tails[static_cast<size_t>(row.tail)];
}

bool is_quarter(const Row& row) {
  return row.value == &Distribution::quarter || row.value == &Distribution::three_quarters;
}

nlohmann::ordered_json json_of(const Distribution& spread, double scale, bool quarters) {
  static constexpr const char* kNames[] = {"maximum", "p99.9", "p99", "p95", "p90",  "p75",    "median",
                                           "p25",     "p10",   "p5",  "p1",  "p0.1", "minimum"};
  nlohmann::ordered_json object;
  for (size_t i = 0; i < std::size(kSpread); ++i)
    if (quarters || !is_quarter(kSpread[i])) object[kNames[i]] = value_of(kSpread[i], spread) * scale;
  return object;
}

}  // namespace

std::string perplexity_text(const Estimate& perplexity) {
  return fmt::format("{:.4f} +/- {}", perplexity.value,
                     perplexity.error ? fmt::format("{:.5f}", *perplexity.error) : std::string("-"));
}

std::string divergence_text(const DivergenceSummary& s) {
  std::string text = "====== Perplexity statistics ======\n";
  const auto line = [&text](const char* name, const std::string& value) {
    text += fmt::format("{}: {}\n", name, value);
  };
  line("Mean PPL(Q)                   ", plus_minus(s.ppl, 10, 6));
  line("Mean PPL(base)                ", plus_minus(s.ppl_base, 10, 6));
  line("Cor(ln(PPL(Q)), ln(PPL(base)))", s.correlation ? fmt::format("{:6.2f}%", *s.correlation * 100) : "-");
  line("Mean ln(PPL(Q)/PPL(base))     ", plus_minus(s.log_ratio, 10, 6));
  line("Mean PPL(Q)/PPL(base)         ", plus_minus(s.ratio, 10, 6));
  line("Mean PPL(Q)-PPL(base)         ", plus_minus(s.ppl_difference, 10, 6));
  text += "\n====== KL divergence statistics ======\n";
  line("Mean    KLD", plus_minus(s.kld, 10, 6));
  for (const Row& row : kSpread)
    if (!is_quarter(row)) text += fmt::format("{} KLD: {:10.6f}\n", row.name, value_of(row, s.kld_spread));
  text += "\n====== Token probability statistics ======\n";
  text += fmt::format("Mean    Δp: {} %\n", plus_minus(s.difference, 6, 3, 100, 5));
  for (const Row& row : kSpread)
    text += fmt::format("{} Δp: {:6.3f}%\n", row.name, value_of(row, s.difference_spread) * 100);
  text += fmt::format("RMS Δp    : {} %\n", plus_minus(s.rms_difference, 6, 3, 100, 5));
  text += fmt::format("Same top p: {} %\n", plus_minus(s.same_top, 6, 3, 100, 5));
  return text;
}

std::string chunk_header() {
  return "chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Δp RMS          "
         "  "
         "Same top p\n";
}

std::string chunk_line(int64_t chunk, const DivergenceSummary& s) {
  return fmt::format("{:4}    {}    {}    {}    {} %    {} %\n", chunk, plus_minus(s.ppl, 9, 4),
                     plus_minus(s.log_ratio, 10, 5), plus_minus(s.kld, 10, 5), plus_minus(s.rms_difference, 6, 3, 100),
                     plus_minus(s.same_top, 6, 3, 100));
}

nlohmann::ordered_json json_of(const Estimate& estimate, double scale) {
  nlohmann::ordered_json object{{"value", estimate.value * scale}, {"error", nullptr}};
  if (estimate.error) object["error"] = *estimate.error * scale;
  return object;
}

nlohmann::ordered_json json_of(const DivergenceSummary& s) {
  nlohmann::ordered_json object;
  object["positions"] = s.positions;
  object["ppl"] = json_of(s.ppl);
  object["ppl_base"] = json_of(s.ppl_base);
  object["correlation"] = nullptr;
  if (s.correlation) object["correlation"] = *s.correlation;
  object["ln_ppl_ratio"] = json_of(s.log_ratio);
  object["ppl_ratio"] = json_of(s.ratio);
  object["ppl_difference"] = json_of(s.ppl_difference);
  object["kld"] = json_of(s.kld);
  object["kld"].update(json_of(s.kld_spread, 1, false));
  object["delta_p"] = json_of(s.difference);
  object["delta_p"].update(json_of(s.difference_spread, 1, true));
  object["rms_delta_p"] = json_of(s.rms_difference);
  object["same_top"] = json_of(s.same_top);
  return object;
}

RunningValues::RunningValues(Progress& progress) : progress_(progress), terminal_(::isatty(STDOUT_FILENO) != 0) {}

void RunningValues::add(int64_t chunk, double perplexity) {
  newest_ = fmt::format("[{}]{:.4f},", chunk, perplexity);
  if (!terminal_) {
    fmt::print("{}", newest_);
    std::fflush(stdout);
    open_ = true;
    return;
  }
  line_ += newest_;
  if (++count_ % kValuesOfALine == 0) end();
}

void RunningValues::end() {
  progress_.clear();
  if (open_ || !line_.empty()) fmt::print("{}\n", line_);
  std::fflush(stdout);
  open_ = false;
  line_.clear();
}

std::string time_left(double done, double total, double seconds) {
  if (done <= 0 || seconds <= 0) return {};
  const auto left = static_cast<int64_t>(std::ceil(seconds / done * (total - done)));
  if (left < 60) return fmt::format("about {} s left", left);
  if (left < 3600) return fmt::format("about {} min {} s left", left / 60, left % 60);
  return fmt::format("about {} h {} min left", left / 3600, left / 60 % 60);
}

}  // namespace strata::cli
