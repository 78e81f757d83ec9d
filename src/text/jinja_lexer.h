// Cuts a template into text, tags and the tokens inside them; white space control happens here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strata::text::jinja {

enum class TokenKind : uint8_t {
  Text,
  PrintBegin,
  PrintEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End
};

struct Token {
  TokenKind kind = TokenKind::End;
  uint32_t line = 1;
  std::string_view raw;  // as written
  std::string text;      // String: what it means
};

[[noreturn]] void fail_at(uint32_t line, const std::string& message);  // Error{Model}

class Lexer {
 public:
  // `source` has '\n' as its only line end (normalised) and outlives the lexer.
  explicit Lexer(std::string_view source) : source_(source) {}

  // '\r\n' and '\r' become '\n', and one newline at the end is dropped.
  static std::string normalised(std::string_view source);

  Token next();

 private:
  enum class Mode : uint8_t { Outside, Print, Block };

  Token outside();
  Token tag_begin();
  bool tag_end(Token& token);
  void skip_comment();
  Token inside();
  Token string_token();
  Token number_token();
  Token operator_token();
  Token take(TokenKind kind, size_t length);
  void advance(size_t length);  // and count lines
  void skip_spaces();
  std::string_view rest() const { return source_.substr(pos_); }
  bool sees(std::string_view text) const { return rest().starts_with(text); }

  std::string_view source_;
  size_t pos_ = 0;
  uint32_t line_ = 1;
  uint32_t tag_line_ = 1;
  Mode mode_ = Mode::Outside;
  bool line_starting_ = true;
  bool after_dot_ = false;
  std::string open_;  // brackets
};

}  // namespace strata::text::jinja
