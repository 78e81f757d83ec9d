#include <algorithm>
#include <unordered_map>

#include "text/grammar/gbnf.h"
#include "text/unicode.h"

namespace strata::text::grammar {

namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class GbnfParser {
 public:
  GbnfParser(std::string_view text, const GrammarLimits& limits) : text_(text), rules_(limits) {}

  Rules parse() {
    if (text_.size() > rules_.limits.text_bytes) {
      refuse("the grammar has " + std::to_string(text_.size()) + " bytes, the limit is " +
                 std::to_string(rules_.limits.text_bytes),
             "grammar");
    }
    skip_space();
    while (pos_ < text_.size()) parse_rule();
    for (const auto& [name, rule] : by_name_) {
      if (!rules_.rules[rule].defined)
        fail("rule '" + std::string(name) + "' is used but not defined", first_use_[rule]);
    }
    const auto root = by_name_.find("root");
    if (root == by_name_.end()) refuse("there is no rule 'root'", "grammar");
    rules_.root = root->second;
    return std::move(rules_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, size_t at) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
    refuse(message, "grammar, line " + std::to_string(line) + ", column " + std::to_string(column));
  }
  [[noreturn]] void fail(const std::string& message) const { fail(message, pos_); }

  char peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  bool at_end() const { return pos_ >= text_.size(); }

  void skip_space() {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        pos_ = std::min(text_.find('\n', pos_), text_.size());
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++pos_;
      } else {
        return;
      }
    }
  }

  std::string_view parse_name() {
    const size_t begin = pos_;
    while (is_name_char(peek())) ++pos_;
    if (pos_ == begin) fail("a rule name is expected");
    return text_.substr(begin, pos_ - begin);
  }

  uint32_t rule_of(std::string_view name, size_t at) {
    const auto [entry, is_new] = by_name_.try_emplace(name, 0);
    if (is_new) {
      entry->second = rules_.add_rule(std::string(name));
      first_use_.push_back(at);
    }
    return entry->second;
  }

  void parse_rule() {
    const size_t begin = pos_;
    const uint32_t rule = rule_of(parse_name(), begin);
    skip_space();
    if (text_.substr(pos_, 3) != "::=") fail("'::=' is expected after the rule name");
    pos_ += 3;
    if (rules_.rules[rule].defined) fail("rule '" + rules_.rules[rule].name + "' is defined twice", begin);
    skip_space();
    rules_.define(rule, parse_alternatives(0));
    if (!at_end() && !starts_rule()) fail("unexpected character");
  }

  // Whether a name and '::=' follow: the next rule begins.
  bool starts_rule() {
    const size_t begin = pos_;
    while (is_name_char(peek())) ++pos_;
    const bool named = pos_ > begin;
    skip_space();
    const bool starts = named && text_.substr(pos_, 3) == "::=";
    pos_ = begin;
    return starts;
  }

  ExprId parse_alternatives(size_t depth) {
    std::vector<ExprId> alternatives{parse_sequence(depth)};
    while (peek() == '|') {
      ++pos_;
      skip_space();
      alternatives.push_back(parse_sequence(depth));
    }
    return rules_.alternation(alternatives);
  }

  ExprId parse_sequence(size_t depth) {
    std::vector<ExprId> parts;
    for (;;) {
      const char c = peek();
      if (at_end() || c == '|' || c == ')') break;
      if (is_name_char(c) && starts_rule()) break;
      ExprId part = parse_symbol(depth);
      skip_space();
      while (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{') {
        part = parse_quantifier(part);
        skip_space();
      }
      parts.push_back(part);
    }
    return rules_.sequence(parts);
  }

  ExprId parse_symbol(size_t depth) {
    const char c = peek();
    if (is_name_char(c)) {
      const size_t begin = pos_;
      return rules_.rule_ref(rule_of(parse_name(), begin));
    }
    switch (c) {
      case '"': return parse_literal();
      case '[': return parse_class();
      case '(': {
        if (depth >= rules_.limits.group_nesting) {
          fail("groups nest deeper than the limit of " + std::to_string(rules_.limits.group_nesting));
        }
        const size_t begin = pos_++;
        skip_space();
        const ExprId group = parse_alternatives(depth + 1);
        if (peek() != ')' || at_end()) fail("this '(' is not closed", begin);
        ++pos_;
        return group;
      }
      case '.': ++pos_; return rules_.char_class(CharSet::all());
      case '<': return parse_token(false);
      case '!':
        ++pos_;
        if (peek() != '<') fail("'!' stands before a token only: !<name>");
        return parse_token(true);
      case '*':
      case '+':
      case '?':
      case '{': fail("there is nothing to repeat before this quantifier");
      default: fail("unexpected character");
    }
  }

  ExprId parse_quantifier(ExprId part) {
    const char c = peek();
    const size_t begin = pos_++;
    if (c == '*') return rules_.star(part);
    if (c == '+') return rules_.repeat(part, 1, kUnbounded);
    if (c == '?') return rules_.optional(part);
    skip_space();
    const uint32_t min = parse_count();
    uint32_t max = min;
    skip_space();
    if (peek() == ',') {
      ++pos_;
      skip_space();
      max = is_digit(peek()) ? parse_count() : kUnbounded;
      skip_space();
    }
    if (peek() != '}') fail("'}' is expected: {m}, {m,} or {m,n}");
    ++pos_;
    if (max < min) fail("the upper bound of the repetition is below the lower one", begin);
    return rules_.repeat(part, min, max);
  }

  uint32_t parse_count() {
    if (!is_digit(peek())) fail("a number is expected: {m}, {m,} or {m,n}");
    const size_t begin = pos_;
    uint64_t value = 0;
    for (; is_digit(peek()); ++pos_)
      value = std::min<uint64_t>(10 * value + static_cast<uint64_t>(peek() - '0'), kUnbounded);
    if (value > rules_.limits.repetition) {
      fail("the repetition bound " + std::string(text_.substr(begin, std::min<size_t>(pos_ - begin, 20))) +
               " is above the limit of " + std::to_string(rules_.limits.repetition),
           begin);
    }
    return static_cast<uint32_t>(value);
  }

  // One character, perhaps escaped, of a literal or a class.
  char32_t parse_char() {
    if (peek() != '\\') {
      const Utf8Result result = decode_utf8(text_.substr(pos_, 4));
      if (result.kind != Utf8Kind::Complete) fail("invalid UTF-8");
      pos_ += result.length;
      return result.code;
    }
    const size_t begin = pos_++;
    const char c = peek();
    ++pos_;
    switch (c) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'x': return parse_hex(2, begin);
      case 'u': return parse_hex(4, begin);
      case 'U': return parse_hex(8, begin);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '^':
      case '-': return static_cast<char32_t>(c);
      default: fail("unknown escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\^ \\- \\xNN \\uNNNN \\UNNNNNNNN", begin);
    }
  }

  char32_t parse_hex(int digits, size_t begin) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++pos_) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("the escape needs " + std::to_string(digits) + " hex digits", begin);
      value = 16 * value + static_cast<uint32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) fail("the escape names no character", begin);
    return value;
  }

  ExprId parse_literal() {
    const size_t begin = pos_++;
    std::string bytes;
    while (peek() != '"' || at_end()) {
      if (at_end() || peek() == '\n') fail("this literal is not closed", begin);
      append_utf8(bytes, parse_char());
    }
    ++pos_;
    return rules_.literal(bytes);
  }

  ExprId parse_class() {
    const size_t begin = pos_++;
    const bool negated = peek() == '^';
    if (negated) ++pos_;
    CharSet set;
    while (peek() != ']' || at_end()) {
      if (at_end() || peek() == '\n') fail("this class is not closed", begin);
      const size_t at = pos_;
      const char32_t low = parse_char();
      char32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        ++pos_;
        if (at_end()) fail("this class is not closed", begin);
        high = parse_char();
        if (high < low) fail("the range ends before it begins", at);
      }
      set.add(low, high);
    }
    ++pos_;
    set.normalise();
    return rules_.char_class(negated ? set.complement() : set);
  }

  ExprId parse_token(bool negated) {
    const size_t begin = pos_;
    const size_t end = text_.find_first_of(">\n", pos_);
    if (end == std::string_view::npos || text_[end] != '>') fail("this token name is not closed", begin);
    pos_ = end + 1;
    return rules_.token(text_.substr(begin, pos_ - begin), negated);
  }

  std::string_view text_;
  size_t pos_ = 0;
  Rules rules_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  std::vector<size_t> first_use_;  // by rule
};

}  // namespace

Rules parse_gbnf(std::string_view text, const GrammarLimits& limits) { return GbnfParser(text, limits).parse(); }

}  // namespace strata::text::grammar
