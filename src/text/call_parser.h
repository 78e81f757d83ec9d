// Reads one tool call byte by byte, from after its opening tag: XML or JSON, whichever comes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_scanner.h"
#include "text/reply_parser.h"
#include "text/stream.h"

namespace strata::text {

// What a call says while it is read.
class CallSink {
 public:
  virtual void begin(const std::string& name) = 0;
  virtual void arguments(std::string_view text) = 0;  // more of the JSON object

 protected:
  ~CallSink() = default;
};

class CallParser {
 public:
  enum class Status : uint8_t {
    More,
    Done,      // the call is complete; its closing tag may still follow
    NotACall,  // after the opening tag comes something else; rest() is to be read again as content
    Failed,    // malformed, and the closing tag has come
  };

  // `opening` is the tag that was read: "<tool_call>", or "<function=NAME>" with `function` set to NAME.
  CallParser(const std::vector<ToolSchema>& tools, CallSink& sink, std::string opening, const std::string& function);

  Status push(char c);
  const std::string& raw() const { return raw_; }  // everything from the opening tag on
  std::string rest() const { return tag_; }        // NotACall: the last bytes of raw()

 private:
  enum class State : uint8_t {
    Opened,
    FunctionName,
    Body,
    Drop,
    ParameterName,
    ValueStart,
    Value,
    Json,
    Broken,
  };

  Status opened(char c);
  Status function_name(char c);
  Status body(char c);
  Status parameter_name(char c);
  Status value(char c);
  Status json(char c);
  Status broken(char c);
  Status break_off(char c);

  void start_function(const std::string& name);
  void start_parameter();
  void value_bytes(std::string_view bytes);
  void end_parameter();
  void end_arguments();
  void argument_string(std::string_view text);

  Status json_value_end(char c);
  void json_name_known();
  void json_argument_byte(char c);

  const std::vector<ToolSchema>& tools_;
  CallSink& sink_;
  const ToolSchema* schema_ = nullptr;  // null: a function that the request does not list
  State state_ = State::Opened;
  std::string raw_;
  std::string tag_;  // what may still become a tag
  std::string name_;

  // XML.
  bool any_parameter_ = false;
  uint8_t kinds_ = kJsonAny;
  std::string_view terminator_;
  size_t matched_ = 0;          // bytes of the terminator
  bool first_virtual_ = false;  // the first matched byte is the newline before the value
  std::string buffered_;
  Utf8Stream utf8_{true};

  // JSON.
  enum class Member : uint8_t { None, Name, Arguments, Other };
  JsonScanner scanner_;
  Member member_ = Member::None;
  std::string part_;  // of a key or string of the outer object
  bool capture_ = false;
  bool stream_ = false;  // inside the arguments object
  bool begun_ = false;
  bool has_name_ = false, has_arguments_ = false;
  std::string early_arguments_;  // come before the name
};

}  // namespace strata::text
