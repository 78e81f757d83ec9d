#include "evidence/ab_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/settings_text.h"

namespace strata {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 30;
constexpr size_t kMaxGates = 64, kMaxLengths = 32;
constexpr std::string_view kForm = "METRIC[@LENGTH]>=CHANGE%, such as prefill@128k>=+5%";

class GateReader {
 public:
  GateReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  std::vector<AbGate> gates() {
    std::vector<AbGate> list;
    do {
      if (list.size() == kMaxGates) fail("more than " + std::to_string(kMaxGates) + " gates");
      list.push_back(gate());
    } while (skip(","));
    if (!done()) fail("expected ',' or the end");
    return list;
  }

  std::vector<int64_t> lengths() {
    std::vector<int64_t> list;
    do {
      if (list.size() == kMaxLengths) fail("more than " + std::to_string(kMaxLengths) + " lengths");
      const int64_t value = length();
      if (std::find(list.begin(), list.end(), value) != list.end()) fail("length " + length_text(value) + " twice");
      list.push_back(value);
    } while (skip(","));
    if (!done()) fail("expected ',' or the end");
    std::sort(list.begin(), list.end());
    return list;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::Usage, fmt::format("{} at position {} of {}", what, at_ + 1, quoted_text(text_)), where_);
  }
  bool done() const { return at_ == text_.size(); }
  void spaces() {
    while (!done() && text_[at_] == ' ') ++at_;
  }
  bool skip(std::string_view token) {
    spaces();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    spaces();
    return true;
  }

  AbGate gate() {
    AbGate gate;
    spaces();
    gate.holdout = text_.substr(at_).starts_with("holdout ") && skip("holdout ");
    if (skip("prefill"))
      gate.metric = AbMetric::Prefill;
    else if (skip("decode"))
      gate.metric = AbMetric::Decode;
    else
      fail("expected prefill or decode (a gate is " + std::string(kForm) + ")");
    if (skip("@")) gate.length = length();
    if (gate.holdout && !gate.length) fail("a holdout needs a length: expected '@'");
    if (!skip(">=")) fail("expected >= (a gate is " + std::string(kForm) + ")");
    gate.per_cent = number();
    if (!skip("%")) fail("expected %");
    return gate;
  }

  double number() {
    const size_t start = at_;
    const bool plus = skip("+");
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || (plus && text_.substr(at_).starts_with('-')) || !std::isfinite(value))
      fail("expected a number such as +5 or -3");
    at_ += static_cast<size_t>(end - begin);
    if (value <= -100 || value > 100000) {
      at_ = start;
      fail("a change lies above -100 % and at most at 100000 %");
    }
    return value;
  }

  int64_t length() {
    spaces();
    const size_t start = at_;
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 1) fail("expected a length in tokens such as 4096 or 128k");
    at_ += static_cast<size_t>(end - begin);
    int64_t unit = 1;
    if (skip("k") || skip("K"))
      unit = 1024;
    else if (skip("m") || skip("M"))
      unit = 1024 * 1024;
    spaces();
    if (value > kMaxLength / unit) {
      at_ = start;
      fail("a length is at most " + length_text(kMaxLength) + " tokens");
    }
    return value * unit;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

}  // namespace

std::vector<AbGate> parse_gates(std::string_view text, const std::string& where) {
  return GateReader(text, where).gates();
}

std::vector<int64_t> parse_lengths(std::string_view text, const std::string& where) {
  return GateReader(text, where).lengths();
}

std::string length_text(int64_t length) {
  return length >= 1024 && length % 1024 == 0 ? fmt::format("{}K", length / 1024) : std::to_string(length);
}

std::string to_text(const AbGate& gate) {
  return fmt::format("{}{}{}>={:+}%", gate.holdout ? "holdout " : "", to_string(gate.metric),
                     gate.length ? "@" + length_text(*gate.length) : std::string(), gate.per_cent);
}

std::string change_text(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:+.1f} %", (ratio - 1) * 100) : std::string("-");
}

}  // namespace strata
