#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/jinja_text.h"
#include "text/unicode.h"

namespace strata::text::jinja {

void fail_at(uint32_t line, const std::string& message) {
  throw Error(ErrorKind::Model, message, fmt::format("template line {}", line));
}

namespace {

constexpr size_t kMaxBrackets = 1000;  // the parser stops at its own limit long before

size_t spaces_from(std::string_view text, size_t pos) {
  size_t end = pos;
  while (end < text.size()) {
    const size_t length = space_at(text, end);
    if (length == 0) break;
    end += length;
  }
  return end - pos;
}

std::string_view without_spaces_at_end(std::string_view text) {
  size_t end = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t space = space_at(text, pos);
    pos += space != 0 ? space : char_length(text, pos);
    if (space == 0) end = pos;
  }
  return text.substr(0, end);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<uint8_t>(c) >= 0x80;
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Escapes of a Python string.
class Unescaper {
 public:
  Unescaper(std::string_view text, uint32_t line) : text_(text), line_(line) {}

  std::string result() {
    while (pos_ < text_.size()) {
      if (text_[pos_] != '\\') {
        out_ += text_[pos_++];
      } else {
        ++pos_;
        escape();
      }
    }
    return std::move(out_);
  }

 private:
  void escape() {
    constexpr std::string_view kNames = "\\'\"abfnrtv";
    constexpr std::string_view kBytes = "\\'\"\a\b\f\n\r\t\v";
    const char c = text_[pos_++];  // the lexer has seen to it that something follows
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      out_ += kBytes[i];
    } else if (c == '\n') {
      return;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c >= '0' && c <= '7') {
      octal(c);
    } else if (c == 'N') {
      fail_at(line_, "\\N{...} in a string is not supported");
    } else {
      out_ += '\\';
      out_ += c;
    }
  }

  void code(size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int digit = pos_ < text_.size() ? hex_digit(text_[pos_++]) : -1;
      if (digit < 0 || value > 0x110000) fail_at(line_, "malformed escape in a string");
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) fail_at(line_, "escape of no character in a string");
    append_utf8(out_, value);
  }

  void octal(char first) {
    uint32_t value = static_cast<uint32_t>(first - '0');
    for (int i = 0; i < 2 && pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '7'; ++i) {
      value = value * 8 + static_cast<uint32_t>(text_[pos_++] - '0');
    }
    append_utf8(out_, value);
  }

  std::string_view text_;
  uint32_t line_;
  size_t pos_ = 0;
  std::string out_;
};

}  // namespace

std::string Lexer::normalised(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void Lexer::advance(size_t length) {
  const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(pos_);
  line_ += static_cast<uint32_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(length), '\n'));
  pos_ += length;
}

void Lexer::skip_spaces() { advance(spaces_from(source_, pos_)); }

Token Lexer::take(TokenKind kind, size_t length) {
  Token token;
  token.kind = kind;
  token.line = line_;
  token.raw = source_.substr(pos_, length);
  advance(length);
  return token;
}

Token Lexer::next() { return mode_ == Mode::Outside ? outside() : inside(); }

// Text up to the next tag, or the tag itself where no text is left before it.
Token Lexer::outside() {
  for (;;) {
    size_t tag = pos_;
    for (;;) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        if (pos_ == source_.size()) return take(TokenKind::End, 0);
        return take(TokenKind::Text, source_.size() - pos_);
      }
      if (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#') break;
      ++tag;
    }
    std::string_view text = source_.substr(pos_, tag - pos_);
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    if (sign == '-') {
      text = without_spaces_at_end(text);
    } else if (sign != '+' && source_[tag + 1] != '{') {  // lstrip_blocks
      const size_t newline = text.rfind('\n');
      const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
      const bool from_line_start = newline != std::string_view::npos || line_starting_;
      if (from_line_start && spaces_from(text, start) == text.size() - start) text = text.substr(0, start);
    }
    const uint32_t line = line_;
    advance(tag - pos_);
    if (!text.empty()) {
      Token token;
      token.kind = TokenKind::Text;
      token.line = line;
      token.raw = text;
      line_starting_ = false;  // what stands before the tag is dealt with
      return token;
    }
    if (source_[tag + 1] != '#') return tag_begin();
    skip_comment();
  }
}

Token Lexer::tag_begin() {
  const bool print = source_[pos_ + 1] == '{';
  mode_ = print ? Mode::Print : Mode::Block;
  tag_line_ = line_;
  after_dot_ = false;
  const bool sign = pos_ + 2 < source_.size() && (source_[pos_ + 2] == '-' || source_[pos_ + 2] == '+');
  return take(print ? TokenKind::PrintBegin : TokenKind::BlockBegin, sign ? 3 : 2);
}

void Lexer::skip_comment() {
  const size_t sign_length = pos_ + 2 < source_.size() && (source_[pos_ + 2] == '-' || source_[pos_ + 2] == '+');
  const size_t end = source_.find("#}", pos_ + 2 + sign_length);
  if (end == std::string_view::npos) fail_at(line_, "a comment is not closed: '#}' is missing");
  const char sign = end > pos_ + 2 + sign_length ? source_[end - 1] : ' ';
  const size_t before = pos_;
  advance(end + 2 - pos_);
  if (sign == '-') {
    skip_spaces();
  } else if (sign != '+' && sees("\n")) {  // trim_blocks
    advance(1);
  }
  line_starting_ = pos_ > before && source_[pos_ - 1] == '\n';
}

// The end of a tag, where one stands at this place.
bool Lexer::tag_end(Token& token) {
  if (!open_.empty()) return false;
  const std::string_view close = mode_ == Mode::Print ? "}}" : "%}";
  const char sign = pos_ < source_.size() ? source_[pos_] : ' ';
  const bool has_sign = sign == '-' || (sign == '+' && mode_ == Mode::Block);
  if (!rest().substr(has_sign ? 1 : 0).starts_with(close)) return false;
  token = take(mode_ == Mode::Print ? TokenKind::PrintEnd : TokenKind::BlockEnd, close.size() + (has_sign ? 1 : 0));
  if (sign == '-') {
    skip_spaces();
  } else if (!has_sign && mode_ == Mode::Block && sees("\n")) {  // trim_blocks
    advance(1);
  }
  line_starting_ = source_[pos_ - 1] == '\n';
  mode_ = Mode::Outside;
  return true;
}

Token Lexer::inside() {
  skip_spaces();
  Token token;
  if (tag_end(token)) return token;
  if (pos_ == source_.size()) {
    fail_at(tag_line_, fmt::format("a tag is not closed: '{}' is missing", mode_ == Mode::Print ? "}}" : "%}"));
  }
  const char c = source_[pos_];
  const bool after_dot = after_dot_;
  after_dot_ = false;
  if (is_name_start(c)) {
    size_t end = pos_;
    while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
    return take(TokenKind::Name, end - pos_);
  }
  after_dot_ = after_dot && is_digit(c);
  if (is_digit(c)) return number_token();
  if (c == '\'' || c == '"') return string_token();
  return operator_token();
}

Token Lexer::string_token() {
  const char quote = source_[pos_];
  size_t end = pos_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail_at(line_, "a string is not closed");
  Token token = take(TokenKind::String, end + 1 - pos_);
  token.text = Unescaper(token.raw.substr(1, token.raw.size() - 2), token.line).result();
  return token;
}

Token Lexer::number_token() {
  const auto digits_from = [&](size_t pos) {
    while (pos < source_.size() && (is_digit(source_[pos]) ||
                                    (source_[pos] == '_' && pos + 1 < source_.size() && is_digit(source_[pos + 1])))) {
      ++pos;
    }
    return pos;
  };
  const auto digit_at = [&](size_t pos) { return pos < source_.size() && is_digit(source_[pos]); };
  const auto char_is = [&](size_t pos, std::string_view set) {
    return pos < source_.size() && set.find(source_[pos]) != std::string_view::npos;
  };
  if (source_[pos_] == '0' && char_is(pos_ + 1, "xXoObB")) {
    size_t end = pos_ + 2;
    while (end < source_.size() && (hex_digit(source_[end]) >= 0 || source_[end] == '_')) ++end;
    return take(TokenKind::Integer, end - pos_);
  }
  size_t end = digits_from(pos_);
  if (after_dot_) return take(TokenKind::Integer, end - pos_);  // x.0.1 is two subscripts
  TokenKind kind = TokenKind::Integer;
  if (char_is(end, ".") && digit_at(end + 1)) {
    kind = TokenKind::Float;
    end = digits_from(end + 1);
  }
  if (char_is(end, "eE")) {
    const size_t exponent = end + (char_is(end + 1, "+-") ? 2 : 1);
    if (digit_at(exponent)) {
      kind = TokenKind::Float;
      end = digits_from(exponent);
    }
  }
  return take(kind, end - pos_);
}

Token Lexer::operator_token() {
  constexpr std::array<std::string_view, 6> kDouble = {"//", "**", "==", "!=", ">=", "<="};
  const auto two = std::find_if(kDouble.begin(), kDouble.end(), [&](std::string_view op) { return sees(op); });
  if (two != kDouble.end()) return take(TokenKind::Operator, 2);
  const char c = source_[pos_];
  if (std::string_view("+-*/%~[](){}<>=.:|,").find(c) == std::string_view::npos) {
    const bool printable = c > ' ' && c <= '~';
    fail_at(line_, printable ? fmt::format("unexpected character '{}'", c) : "unexpected character");
  }
  if (c == '(' || c == '[' || c == '{') {
    if (open_.size() >= kMaxBrackets) fail_at(line_, "the template exceeds its limit 'nesting'");
    open_ += c == '(' ? ')' : c == '[' ? ']' : '}';
  } else if (c == ')' || c == ']' || c == '}') {
    if (open_.empty()) fail_at(line_, fmt::format("unexpected '{}'", c));
    if (open_.back() != c) fail_at(line_, fmt::format("unexpected '{}', expected '{}'", c, open_.back()));
    open_.pop_back();
  }
  after_dot_ = c == '.';
  return take(TokenKind::Operator, 1);
}

}  // namespace strata::text::jinja
