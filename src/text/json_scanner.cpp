#include "text/json_scanner.h"

#include "text/unicode.h"

namespace strata::text {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

using Step = JsonScanner::Step;

Step JsonScanner::push(char c) {
  switch (state_) {
    case State::String:
    case State::Escape:
    case State::Hex: return string(c);
    case State::Literal:
      if (c != literal_.front()) return Step::Bad;
      literal_.remove_prefix(1);
      return literal_.empty() ? value_ended() : Step::Inside;
    case State::Minus:
    case State::Zero:
    case State::Integer:
    case State::Dot:
    case State::Fraction:
    case State::Exponent:
    case State::ExponentSign:
    case State::ExponentDigits: return number(c);
    default: break;
  }
  if (is_space(c)) return Step::Inside;
  switch (state_) {
    case State::Value: return value(c);
    case State::ArrayStart: return c == ']' ? close('[') : value(c);
    case State::ObjectStart:
      if (c == '}') return close('{');
      [[fallthrough]];
    case State::Key:
      if (c != '"') return Step::Bad;
      state_ = State::String;
      key_ = true;
      return Step::KeyBegin;
    case State::Colon:
      if (c != ':') return Step::Bad;
      state_ = State::Value;
      return Step::Inside;
    default: return after_value(c);
  }
}

bool JsonScanner::complete() const {
  return state_ == State::End || (open_.empty() && (state_ == State::Zero || state_ == State::Integer ||
                                                    state_ == State::Fraction || state_ == State::ExponentDigits));
}

Step JsonScanner::value(char c) {
  switch (c) {
    case '{': return open('{', State::ObjectStart);
    case '[': return open('[', State::ArrayStart);
    case '"':
      state_ = State::String;
      key_ = false;
      return Step::ValueBegin;
    case 't': literal_ = "rue"; break;
    case 'f': literal_ = "alse"; break;
    case 'n': literal_ = "ull"; break;
    case '-': state_ = State::Minus; return Step::ValueBegin;
    case '0': state_ = State::Zero; return Step::ValueBegin;
    default:
      if (!is_digit(c)) return Step::Bad;
      state_ = State::Integer;
      return Step::ValueBegin;
  }
  state_ = State::Literal;
  return Step::ValueBegin;
}

Step JsonScanner::after_value(char c) {
  if (open_.empty()) return Step::Bad;
  if (c == ',') {
    state_ = open_.back() == '{' ? State::Key : State::Value;
    return Step::Inside;
  }
  return c == '}' ? close('{') : c == ']' ? close('[') : Step::Bad;
}

Step JsonScanner::string(char c) {
  if (state_ == State::Hex) {
    if (hex_value(c) < 0) return Step::Bad;
    if (--hex_left_ == 0) state_ = State::String;
    return Step::Inside;
  }
  if (state_ == State::Escape) {
    state_ = State::String;
    if (c == 'u') {
      state_ = State::Hex;
      hex_left_ = 4;
    }
    return std::string_view("\"\\/bfnrtu").find(c) == std::string_view::npos ? Step::Bad : Step::Inside;
  }
  if (static_cast<uint8_t>(c) < 0x20) return Step::Bad;
  if (c == '\\') state_ = State::Escape;
  if (c != '"') return Step::Inside;
  if (!key_) return value_ended();
  state_ = State::Colon;
  return Step::KeyEnd;
}

Step JsonScanner::number(char c) {
  const bool fraction_may_follow = state_ == State::Zero || state_ == State::Integer;
  if (is_digit(c)) {
    switch (state_) {
      case State::Zero: return Step::Bad;
      case State::Minus: state_ = c == '0' ? State::Zero : State::Integer; break;
      case State::Dot: state_ = State::Fraction; break;
      case State::Exponent:
      case State::ExponentSign: state_ = State::ExponentDigits; break;
      default: break;
    }
    return Step::Inside;
  }
  if (c == '.' && fraction_may_follow) {
    state_ = State::Dot;
    return Step::Inside;
  }
  if ((c == 'e' || c == 'E') && (fraction_may_follow || state_ == State::Fraction)) {
    state_ = State::Exponent;
    return Step::Inside;
  }
  if ((c == '+' || c == '-') && state_ == State::Exponent) {
    state_ = State::ExponentSign;
    return Step::Inside;
  }
  if (!fraction_may_follow && state_ != State::Fraction && state_ != State::ExponentDigits) return Step::Bad;
  value_ended();
  return push(c);
}

Step JsonScanner::open(char bracket, State next) {
  if (open_.size() >= kMaxDepth) return Step::Bad;
  open_.push_back(bracket);
  state_ = next;
  return Step::ValueBegin;
}

Step JsonScanner::close(char bracket) {
  if (open_.empty() || open_.back() != bracket) return Step::Bad;
  open_.pop_back();
  return value_ended();
}

Step JsonScanner::value_ended() {
  state_ = open_.empty() ? State::End : State::Next;
  return Step::ValueEnd;
}

bool is_json(std::string_view text) {
  JsonScanner scanner;
  for (const char c : text)
    if (scanner.push(c) == Step::Bad) return false;
  while (!text.empty()) {
    const Utf8Result c = decode_utf8(text);
    if (c.kind != Utf8Kind::Complete) return false;
    text.remove_prefix(c.length);
  }
  return scanner.complete();
}

void append_json_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    if (const size_t i = kShort.find(c); i != std::string_view::npos) {
      out += '\\';
      out += kLetters[i];
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<uint8_t>(c) >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
}

namespace {

uint32_t hex4(std::string_view text) {
  uint32_t code = 0;
  for (const char c : text.substr(0, 4)) code = code * 16 + static_cast<uint32_t>(hex_value(c));
  return code;
}

}  // namespace

std::string json_unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
  std::string out;
  while (!text.empty()) {
    if (text[0] != '\\') {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    if (const size_t i = kLetters.find(text[1]); i != std::string_view::npos) {
      out += kBytes[i];
      text.remove_prefix(2);
      continue;
    }
    uint32_t code = hex4(text.substr(2));
    text.remove_prefix(6);
    if (code >= 0xD800 && code < 0xDC00 && text.starts_with("\\u")) {
      const uint32_t low = hex4(text.substr(2));
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        text.remove_prefix(6);
      }
    }
    append_utf8(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);  // half of a pair is no character
  }
  return out;
}

}  // namespace strata::text
