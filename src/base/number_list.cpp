#include "base/number_list.h"

#include <charconv>

#include "base/settings_text.h"

namespace strata {
namespace {

// Takes a number off the front; false when there is none.
bool take_number(std::string_view& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

struct Range {
  int64_t first = 0, last = 0, step = 1;
  bool multiplies = false;
};

std::string read_range(std::string_view text, Range& range) {
  std::string_view rest = text;
  const std::string form = quoted_text(text) + " is no number and no range such as 1-8, 0-4096+1024 or 1-64*2";
  if (!take_number(rest, range.first)) return form;
  range.last = range.first;
  if (rest.empty()) return {};
  if (rest.front() != '-') return form;
  rest.remove_prefix(1);
  if (!take_number(rest, range.last)) return form;
  if (range.last < range.first) return quoted_text(text) + " ends before it begins";
  if (rest.empty()) return {};
  range.multiplies = rest.front() == '*';
  if (!range.multiplies && rest.front() != '+') return form;
  rest.remove_prefix(1);
  if (!take_number(rest, range.step) || !rest.empty()) return form;
  if (range.step < (range.multiplies ? 2 : 1)) return quoted_text(text) + " never ends: its step is too small";
  if (range.multiplies && range.first < 1)
    return quoted_text(text) + " never ends: it multiplies " + std::to_string(range.first);
  return {};
}

}  // namespace

std::string append_numbers(std::string_view text, std::vector<int64_t>& numbers) {
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    Range range;
    if (std::string reason = read_range(text.substr(0, comma), range); !reason.empty()) return reason;
    text.remove_prefix(more ? comma + 1 : text.size());
    for (int64_t number = range.first;;) {
      if (numbers.size() == kMaxListed) return "more than " + std::to_string(kMaxListed) + " numbers";
      numbers.push_back(number);
      int64_t next = 0;
      const bool overflow = range.multiplies ? __builtin_mul_overflow(number, range.step, &next)
                                             : __builtin_add_overflow(number, range.step, &next);
      if (overflow || next > range.last) break;
      number = next;
    }
  }
  return {};
}

}  // namespace strata
