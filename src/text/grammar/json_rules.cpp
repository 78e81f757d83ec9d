#include "text/grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <vector>

namespace strata::text::grammar {

namespace {

constexpr uint32_t kMaxIndent = 32, kMaxDigits = 20, kMaxExponentDigits = 2;

const CharSet kDigit{{'0', '9'}}, kHex{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};

}  // namespace

// The rule is there before its body is made, so that the body may refer to it.
template <class Make>
ExprId JsonRules::rule(const char* name, const Make& make) {
  const auto [known, is_new] = known_.try_emplace(name, 0);
  if (is_new) {
    const uint32_t added = rules_.add_rule(name);
    known->second = added;
    rules_.rules[added].keep = true;
    const ExprId body = make();
    rules_.define(added, body);
    return rules_.rule_ref(added);
  }
  return rules_.rule_ref(known->second);
}

ExprId JsonRules::space() {
  return rule("json-space", [&] {
    const ExprId newline = rules_.sequence({rules_.optional(rules_.literal("\r")), rules_.literal("\n")});
    const ExprId indent = rules_.repeat(rules_.char_class({{' ', ' '}, {'\t', '\t'}}), 0, kMaxIndent);
    return rules_.alternation(
        {rules_.literal(""), rules_.literal(" "), rules_.sequence({rules_.repeat(newline, 1, 2), indent})});
  });
}

ExprId JsonRules::character() {
  if (character_) return *character_;
  const ExprId hex = rules_.char_class(kHex), d = rules_.char_class({{'D', 'D'}, {'d', 'd'}});
  const ExprId hex2 = rules_.sequence({hex, hex});
  const ExprId no_d = rules_.char_class({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}});
  const ExprId below_surrogates = rules_.sequence({d, rules_.char_class({{'0', '7'}}), hex2});
  const ExprId high = rules_.sequence({d, rules_.char_class({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), hex2});
  const ExprId low = rules_.sequence({d, rules_.char_class({{'C', 'F'}, {'c', 'f'}}), hex2});
  const ExprId pair = rules_.sequence({high, rules_.literal("\\u"), low});
  const ExprId unicode = rules_.alternation({rules_.sequence({no_d, hex, hex2}), below_surrogates, pair});
  CharSet letters;
  for (const char c : std::string_view("\"\\/bfnrt")) letters.add(static_cast<char32_t>(c), static_cast<char32_t>(c));
  const ExprId escape =
      rules_.alternation({rules_.char_class(letters), rules_.sequence({rules_.literal("u"), unicode})});
  character_ =
      rules_.alternation({rules_.char_class(json_plain_chars()), rules_.sequence({rules_.literal("\\"), escape})});
  return *character_;
}

ExprId JsonRules::string() { return string(0, kUnbounded); }

ExprId JsonRules::string(uint32_t min, uint32_t max) {
  const std::string name = "json-string " + std::to_string(min) + " " + std::to_string(max);
  return rule(name.c_str(), [&] {
    const ExprId quote = rules_.literal("\"");
    return rules_.sequence({quote, rules_.repeat(character(), min, max), quote});
  });
}

ExprId JsonRules::integer() {
  return rule("json-integer", [&] { return integer_range(rules_, std::nullopt, std::nullopt); });
}

ExprId JsonRules::number() {
  return rule("json-number", [&] {
    const ExprId digit = rules_.char_class(kDigit);
    const ExprId fraction = rules_.sequence({rules_.literal("."), rules_.repeat(digit, 1, kMaxDigits)});
    const ExprId sign = rules_.optional(rules_.char_class({{'+', '+'}, {'-', '-'}}));
    const ExprId exponent = rules_.sequence(
        {rules_.char_class({{'E', 'E'}, {'e', 'e'}}), sign, rules_.repeat(digit, 1, kMaxExponentDigits)});
    const ExprId whole = rules_.alternation(
        {rules_.literal("0"),
         rules_.sequence({rules_.char_class({{'1', '9'}}), rules_.repeat(digit, 0, kMaxDigits - 1)})});
    return rules_.sequence(
        {rules_.optional(rules_.literal("-")), whole, rules_.optional(fraction), rules_.optional(exponent)});
  });
}

ExprId JsonRules::boolean() { return rules_.alternation({rules_.literal("true"), rules_.literal("false")}); }

ExprId JsonRules::value() {
  return rule("json-value", [&] {
    return rules_.alternation({object(), array(), string(), number(), boolean(), null()});
  });
}

ExprId JsonRules::object() {
  return rule("json-object", [&] {
    const ExprId member = rules_.sequence({string(), colon(), value()});
    const ExprId members = rules_.sequence({member, rules_.star(rules_.sequence({comma(), member}))});
    return enclosed("{", members, true, "}");
  });
}

ExprId JsonRules::array() {
  return rule("json-array", [&] { return list_of(value(), 0, kUnbounded); });
}

ExprId JsonRules::comma() { return rules_.sequence({rules_.literal(","), space()}); }
ExprId JsonRules::colon() { return rules_.sequence({rules_.literal(":"), rules_.optional(rules_.literal(" "))}); }

ExprId JsonRules::enclosed(const char* open, ExprId items, bool optional, const char* close) {
  const ExprId inner = rules_.sequence({items, space()});
  return rules_.sequence(
      {rules_.literal(open), space(), optional ? rules_.optional(inner) : inner, rules_.literal(close)});
}

ExprId JsonRules::list_of(ExprId item, uint32_t min, uint32_t max) {
  if (max == 0) return rules_.sequence({rules_.literal("["), space(), rules_.literal("]")});
  const uint32_t more_min = min > 0 ? min - 1 : 0, more_max = max == kUnbounded ? max : max - 1;
  const ExprId more = rules_.repeat(rules_.sequence({comma(), item}), more_min, more_max);
  return enclosed("[", rules_.sequence({item, more}), min == 0, "]");
}

namespace {

// Numbers of the digits after the first `from`, all of one length, between two bounds; an absent bound is none.
class DigitRange {
 public:
  explicit DigitRange(Rules& rules) : rules_(rules) {}

  ExprId between(const std::string& low, const std::string& high, size_t from = 0) {
    if (from == low.size()) return rules_.literal("");
    const char a = low[from], b = high[from];
    if (a == b) return rules_.sequence({digits(a, a), between(low, high, from + 1)});
    std::vector<ExprId> ways{rules_.sequence({digits(a, a), bounded(low, from + 1, true)})};
    if (a + 1 < b) ways.push_back(rules_.sequence({digits(a + 1, b - 1), any(low.size() - from - 1)}));
    ways.push_back(rules_.sequence({digits(b, b), bounded(high, from + 1, false)}));
    return rules_.alternation(ways);
  }

 private:
  ExprId digits(int low, int high) {
    return rules_.char_class({{static_cast<char32_t>(low), static_cast<char32_t>(high)}});
  }
  ExprId any(size_t count) {
    const auto times = static_cast<uint32_t>(count);
    return count == 0 ? rules_.literal("") : rules_.repeat(digits('0', '9'), times, times);
  }
  ExprId bounded(const std::string& bound, size_t from, bool lower) {
    if (bound.find_first_not_of(lower ? '0' : '9', from) == std::string::npos) return any(bound.size() - from);
    const char c = bound[from];
    std::vector<ExprId> ways{rules_.sequence({digits(c, c), bounded(bound, from + 1, lower)})};
    const int beyond_low = lower ? c + 1 : '0', beyond_high = lower ? '9' : c - 1;
    if (beyond_low <= beyond_high) {
      ways.push_back(rules_.sequence({digits(beyond_low, beyond_high), any(bound.size() - from - 1)}));
    }
    return rules_.alternation(ways);
  }

  Rules& rules_;
};

// Of natural numbers, written in decimal.
ExprId natural_range(Rules& rules, const std::string& low, const std::string& high) {
  std::vector<ExprId> lengths;
  for (size_t length = low.size(); length <= high.size(); ++length) {
    const std::string first = length == low.size() ? low : "1" + std::string(length - 1, '0');
    const std::string last = length == high.size() ? high : std::string(length, '9');
    if (length == low.size() && length < high.size() && low == "0") {
      lengths.push_back(rules.char_class({{'0', '9'}}));
    } else {
      lengths.push_back(DigitRange(rules).between(first, last));
    }
  }
  return rules.alternation(lengths);
}

std::string magnitude(int64_t value) {
  return std::to_string(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}

}  // namespace

ExprId integer_range(Rules& rules, std::optional<int64_t> low, std::optional<int64_t> high) {
  const std::string most(kMaxDigits, '9');
  std::vector<ExprId> ways;
  if (!high || *high >= 0) {
    ways.push_back(natural_range(rules, low && *low > 0 ? magnitude(*low) : "0", high ? magnitude(*high) : most));
  }
  if (!low || *low < 0) {
    const ExprId below = natural_range(rules, high && *high < 0 ? magnitude(*high) : "1", low ? magnitude(*low) : most);
    ways.push_back(rules.sequence({rules.literal("-"), below}));
  }
  return rules.alternation(ways);
}

const char* format_pattern(std::string_view format) {
// Years 0001 to 9999; the 29th of February in leap years only.
#define STRATA_DATE                                                                          \
  "(([1-9]\\d{3}|0[1-9]\\d\\d|00[1-9]\\d|000[1-9])-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])" \
  "|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))"                                \
  "|(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)"
#define STRATA_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kFormats = {{
      {"date", "^" STRATA_DATE "$"},
      {"time", "^" STRATA_TIME "$"},
      {"date-time", "^" STRATA_DATE "T" STRATA_TIME "$"},
      {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
  }};
#undef STRATA_DATE
#undef STRATA_TIME
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& f) { return f.first == format; });
  return found == kFormats.end() ? nullptr : found->second;
}

}  // namespace strata::text::grammar
