// Checks JSON byte by byte: what has been pushed is at every moment a prefix of a JSON text. Invalid UTF-8 inside
// strings is not its concern. Also the escapes of JSON strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::text {

class JsonScanner {
 public:
  static constexpr size_t kMaxDepth = 200;

  enum class Step : uint8_t {
    Inside,
    KeyBegin,    // the quote that opens a key
    KeyEnd,      // the quote that closes it
    ValueBegin,  // the first byte of a value
    ValueEnd,    // the last byte of a string, object, array or literal; numbers have no last byte of their own
    Bad,         // no JSON text begins like this, or it nests too deep; the scanner is of no use any more
  };
  Step push(char c);
  bool complete() const;                         // a whole value has been pushed
  size_t depth() const { return open_.size(); }  // objects and arrays around the next byte

 private:
  enum class State : uint8_t {
    Value,
    ObjectStart,
    Key,
    Colon,
    ArrayStart,
    Next,
    End,
    String,
    Escape,
    Hex,
    Literal,
    Minus,
    Zero,
    Integer,
    Dot,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
  };
  Step value(char c);
  Step after_value(char c);
  Step string(char c);
  Step number(char c);
  Step open(char bracket, State next);
  Step close(char bracket);
  Step value_ended();

  State state_ = State::Value;
  bool key_ = false;  // the string being read is a key
  int hex_left_ = 0;
  std::string_view literal_;  // what is left of true, false, null
  std::vector<char> open_;
};

bool is_json(std::string_view text);  // a whole JSON text in valid UTF-8, white space around it allowed

void append_json_escaped(std::string& out, std::string_view text);  // without quotes; `text` is valid UTF-8
std::string json_unescaped(std::string_view text);  // of what stands between the quotes of a valid string

}  // namespace strata::text
