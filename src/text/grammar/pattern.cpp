#include "text/grammar/pattern.h"

#include <algorithm>

#include "text/unicode.h"

namespace strata::text::grammar {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// \d, \w and \s as ECMAScript has them, which JSON Schema refers to.
const CharSet kDigits{{'0', '9'}};
const CharSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharSet kBlank{{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                     {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharSet kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

uint64_t add_lengths(uint64_t a, uint64_t b) { return a == kEndless || b == kEndless ? kEndless : a + b; }

class PatternParser {
 public:
  PatternParser(Rules& rules, std::string_view text, ExprId any_char, const std::string& where)
      : rules_(rules), text_(text), any_char_(any_char), where_(where) {}

  Pattern parse() {
    const GrammarLimits& limits = rules_.limits;
    if (text_.size() > limits.pattern_bytes) {
      refuse("the pattern has " + std::to_string(text_.size()) + " bytes, the limit is " +
                 std::to_string(limits.pattern_bytes),
             where_);
    }
    const Pattern pattern = parse_alternatives(0);
    if (pos_ < text_.size()) fail("')' without '('");
    return pattern;
  }

 private:
  [[noreturn]] void fail(const std::string& message, size_t at) const {
    refuse("pattern: " + message + " at byte " + std::to_string(at), where_);
  }
  [[noreturn]] void fail(const std::string& message) const { fail(message, pos_); }

  char peek(size_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  bool at_end() const { return pos_ >= text_.size(); }
  bool take(std::string_view text) {
    if (text_.substr(pos_, text.size()) != text) return false;
    pos_ += text.size();
    return true;
  }

  Pattern parse_alternatives(size_t depth) {
    std::vector<ExprId> exprs;
    Pattern all{0, kEndless, 0};
    do {
      const Pattern one = parse_sequence(depth);
      exprs.push_back(one.expr);
      all.min = std::min(all.min, one.min);
      all.max = std::max(all.max, one.max);
    } while (take("|"));
    all.expr = rules_.alternation(exprs);
    return all;
  }

  // At the top a sequence may be anchored at both ends; an end that is not has any characters outside.
  Pattern parse_sequence(size_t depth) {
    std::vector<ExprId> parts;
    uint64_t min = 0, max = 0;
    const auto free_end = [&] {
      parts.push_back(rules_.star(any_char_));
      max = kEndless;
    };
    if (depth == 0 && !take("^")) free_end();
    bool anchored_end = depth > 0;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (depth == 0 && peek() == '$' && (pos_ + 1 == text_.size() || peek(1) == '|')) {
        ++pos_;
        anchored_end = true;
        break;
      }
      Pattern part = parse_atom(depth);
      part = parse_quantifiers(part);
      parts.push_back(part.expr);
      min = add_lengths(min, part.min);
      max = add_lengths(max, part.max);
    }
    if (!anchored_end) free_end();
    return {rules_.sequence(parts), min, max};
  }

  Pattern one_char(const CharSet& set) { return {char_expr(set), 1, 1}; }

  // The JSON text of one character of a set.
  ExprId char_expr(const CharSet& set) {
    std::vector<ExprId> ways;
    const CharSet plain = set.intersection(json_plain_chars());
    if (!plain.empty()) ways.push_back(rules_.char_class(plain));
    for (const CharRange range : set.ranges()) {
      for (char32_t code = range.low; code <= std::min<char32_t>(range.high, '\\'); ++code) {
        if (const std::string escape = json_escape(code); !escape.empty()) ways.push_back(rules_.literal(escape));
      }
    }
    return rules_.alternation(ways);
  }

  Pattern parse_atom(size_t depth) {
    switch (peek()) {
      case '(': return parse_group(depth);
      case '[': return one_char(parse_class());
      case '.': ++pos_; return one_char(kLineEnds.complement());
      case '^':
      case '$': fail("an anchor is supported at the ends of the pattern only");
      case '*':
      case '+':
      case '?':
      case '{': fail("there is nothing to repeat before this quantifier");
      case '\\': return one_char(parse_escape(false));
      default: return one_char(single(parse_plain()));
    }
  }

  Pattern parse_group(size_t depth) {
    const size_t begin = pos_++;
    if (depth >= rules_.limits.pattern_nesting) {
      fail("groups nest deeper than the limit of " + std::to_string(rules_.limits.pattern_nesting), begin);
    }
    if (peek() == '?') {
      if (take("?<") && peek() != '=' && peek() != '!') {
        const size_t end = text_.find('>', pos_);
        if (end == std::string_view::npos) fail("this group name is not closed", begin);
        pos_ = end + 1;
      } else if (!take("?:")) {
        fail("look-around and flags are not supported", begin);
      }
    }
    const Pattern group = parse_alternatives(depth + 1);
    if (!take(")")) fail("this '(' is not closed", begin);
    return group;
  }

  Pattern parse_quantifiers(Pattern part) {
    uint32_t min = 0, max = kUnbounded;
    const size_t begin = pos_;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (take("{")) {
      max = min = parse_count(begin);
      if (take(",")) max = peek() == '}' ? kUnbounded : parse_count(begin);
      if (!take("}")) fail("'{' begins no {m}, {m,} or {m,n}; write \\{ for the character", begin);
      if (max < min) fail("the upper bound of the repetition is below the lower one", begin);
    } else {
      return part;
    }
    take("?");  // lazy: the same texts
    const char c = peek();
    if (c == '*' || c == '+' || c == '?' || c == '{') fail("there is nothing to repeat before this quantifier");
    const auto times = [](uint64_t length, uint32_t count) {
      return length == 0 || count == 0 ? 0 : length == kEndless || count == kUnbounded ? kEndless : length * count;
    };
    return {rules_.repeat(part.expr, min, max), times(part.min, min), times(part.max, max)};
  }

  uint32_t parse_count(size_t begin) {
    if (!is_digit(peek())) fail("'{' begins no {m}, {m,} or {m,n}; write \\{ for the character", begin);
    uint64_t value = 0;
    for (; is_digit(peek()); ++pos_)
      value = std::min<uint64_t>(10 * value + static_cast<uint64_t>(peek() - '0'), 999'999'999);
    if (value > rules_.limits.repetition) {
      fail("the repetition bound " + std::to_string(value) + " is above the limit of " +
               std::to_string(rules_.limits.repetition),
           begin);
    }
    return static_cast<uint32_t>(value);
  }

  static CharSet single(char32_t code) { return CharSet{{code, code}}; }

  char32_t parse_plain() {
    const Utf8Result result = decode_utf8(text_.substr(pos_, 4));
    if (result.kind != Utf8Kind::Complete) fail("invalid UTF-8");
    pos_ += result.length;
    return result.code;
  }

  CharSet parse_escape(bool in_class) {
    const size_t begin = pos_++;
    if (at_end()) fail("the pattern ends in a backslash", begin);
    const char c = text_[pos_++];
    switch (c) {
      case 'd': return kDigits;
      case 'D': return kDigits.complement();
      case 'w': return kWord;
      case 'W': return kWord.complement();
      case 's': return kBlank;
      case 'S': return kBlank.complement();
      case 'n': return single('\n');
      case 'r': return single('\r');
      case 't': return single('\t');
      case 'f': return single('\f');
      case 'v': return single('\v');
      case 'x': return single(parse_hex(2, begin));
      case 'u': return single(parse_unicode(begin));
      case '0':
        if (!is_digit(peek())) return single(0);
        break;
      case 'b':
        if (in_class) return single('\b');
        break;
      default: break;
    }
    const bool letter = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter) fail(std::string("\\") + c + " is not supported", begin);
    --pos_;
    return single(parse_plain());
  }

  char32_t parse_unicode(size_t begin) {
    if (!take("{")) {
      const char32_t high = parse_hex(4, begin);
      if (high < 0xD800 || high > 0xDBFF || !take("\\u")) return checked(high, begin);
      const char32_t low = parse_hex(4, begin);
      if (low < 0xDC00 || low > 0xDFFF) fail("a high surrogate stands alone", begin);
      return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    int digits = 0;
    while (peek(static_cast<size_t>(digits)) != '}' && digits < 7) ++digits;
    if (digits == 0 || digits > 6) fail("\\u{...} has 1 to 6 hex digits", begin);
    const char32_t code = parse_hex(digits, begin);
    ++pos_;
    return checked(code, begin);
  }

  char32_t checked(char32_t code, size_t begin) const {
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) fail("the escape names no character", begin);
    return code;
  }

  char32_t parse_hex(int digits, size_t begin) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i, ++pos_) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("the escape needs " + std::to_string(digits) + " hex digits", begin);
      value = 16 * value + static_cast<char32_t>(digit);
    }
    return value;
  }

  CharSet parse_class() {
    const size_t begin = pos_++;
    const bool negated = take("^");
    CharSet set;
    while (peek() != ']' || at_end()) {
      if (at_end()) fail("this class is not closed", begin);
      const size_t at = pos_;
      const CharSet low = peek() == '\\' ? parse_escape(true) : single(parse_plain());
      if (peek() != '-' || peek(1) == ']' || pos_ + 1 >= text_.size()) {
        set.add(low);
        continue;
      }
      ++pos_;
      const CharSet high = peek() == '\\' ? parse_escape(true) : single(parse_plain());
      const bool both_single = low.ranges().size() == 1 && high.ranges().size() == 1 &&
                               low.ranges()[0].low == low.ranges()[0].high &&
                               high.ranges()[0].low == high.ranges()[0].high;
      if (!both_single || high.ranges()[0].low < low.ranges()[0].low) fail("this range has no two ends in order", at);
      set.add(low.ranges()[0].low, high.ranges()[0].low);
    }
    ++pos_;
    set.normalise();
    return negated ? set.complement() : set;
  }

  Rules& rules_;
  std::string_view text_;
  ExprId any_char_;
  const std::string& where_;
  size_t pos_ = 0;
};

}  // namespace

Pattern parse_pattern(Rules& rules, std::string_view pattern, ExprId any_char, const std::string& where) {
  return PatternParser(rules, pattern, any_char, where).parse();
}

}  // namespace strata::text::grammar
