#include "base/processors.h"

#include <charconv>

#include "base/error.h"
#include "base/settings_text.h"

namespace strata {
namespace {

cpu_set_t system_set(const ProcessorSet& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < ProcessorSet::kMost; ++i)
    if (processors.contains(i)) CPU_SET(static_cast<size_t>(i), &set);
  return set;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// A processor's number; `absent` for an empty text, -1 for anything else.
int number_in(std::string_view text, int absent) {
  if (text.empty()) return absent;
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value < ProcessorSet::kMost ? value : -1;
}

int last_of(const ProcessorSet& set) { return set.empty() ? 0 : set.nth(set.count() - 1); }

}  // namespace

ProcessorSet ProcessorSet::parse_mask(std::string_view mask, const std::string& where) {
  const auto refuse = [&] {
    throw Error(ErrorKind::Usage, quoted_text(mask) + " is no mask of processors, such as 0x3", where);
  };
  const std::string_view digits = mask.starts_with("0x") || mask.starts_with("0X") ? mask.substr(2) : mask;
  if (digits.empty() || digits.size() > size_t{kMost} / 4) refuse();
  ProcessorSet set;
  for (size_t i = 0; i < digits.size(); ++i) {
    const int value = hex_value(digits[digits.size() - 1 - i]);
    if (value < 0) refuse();
    for (int bit = 0; bit < 4; ++bit)
      if ((value >> bit & 1) != 0) set.add(static_cast<int>(i) * 4 + bit);
  }
  return set;
}

ProcessorSet ProcessorSet::parse_range(std::string_view range, const std::string& where) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash), high = dash < range.size() ? range.substr(dash + 1) : low;
  const int first = number_in(low, 0), last = number_in(high, last_of(allowed()));
  if (range.empty() || range == "-" || first < 0 || last < first)
    throw Error(ErrorKind::Usage, quoted_text(range) + " is no range of processors, such as 0-3", where);
  ProcessorSet set;
  for (int i = first; i <= last; ++i) set.add(i);
  return set;
}

ProcessorSet ProcessorSet::allowed() {
  ProcessorSet set;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return set;
  for (int i = 0; i < kMost; ++i)
    if (CPU_ISSET(static_cast<size_t>(i), &mine)) set.add(i);
  return set;
}

int ProcessorSet::nth(int index) const {
  for (int i = 0; i < kMost; ++i)
    if (contains(i) && index-- == 0) return i;
  return 0;
}

std::string ProcessorSet::describe() const {
  std::string text;
  for (int i = 0; i < kMost; ++i) {
    if (!contains(i)) continue;
    const int first = i;
    while (i + 1 < kMost && contains(i + 1)) ++i;
    text += (text.empty() ? "" : ",") + std::to_string(first) + (i > first ? "-" + std::to_string(i) : "");
  }
  return text;
}

void ProcessorSet::check_allowed(const std::string& where) const {
  const ProcessorSet mine = allowed();
  for (int i = 0; i < kMost; ++i)
    if (contains(i) && !mine.contains(i))
      throw Error(ErrorKind::Usage,
                  "this program may not use processor " + std::to_string(i) + ": there are " + mine.describe(), where);
}

ThreadAffinity::ThreadAffinity(const ProcessorSet& processors) {
  if (processors.empty()) return;
  const ProcessorSet before = ProcessorSet::allowed();
  const cpu_set_t wanted = system_set(processors);
  if (::sched_setaffinity(0, sizeof wanted, &wanted) == 0) before_ = before;
}

ThreadAffinity::~ThreadAffinity() {
  if (before_.empty()) return;
  const cpu_set_t before = system_set(before_);
  ::sched_setaffinity(0, sizeof before, &before);
}

}  // namespace strata
