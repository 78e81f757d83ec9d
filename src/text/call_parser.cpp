#include "text/call_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace strata::text {

namespace {

constexpr size_t kMaxName = 256;
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kCallEnd = "</tool_call>";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

uint8_t kind_of_json(char first) {
  switch (first) {
    case '{': return kJsonObject;
    case '[': return kJsonArray;
    case '"': return kJsonString;
    case 't':
    case 'f': return kJsonBool;
    case 'n': return kJsonNull;
    default: return kJsonNumber;
  }
}

// Templates show booleans and None to the model as Python writes them, so models write them so too.
std::string_view python_literal(std::string_view text, uint8_t kinds) {
  if ((kinds & kJsonBool) != 0 && text == "True") return "true";
  if ((kinds & kJsonBool) != 0 && text == "False") return "false";
  if ((kinds & kJsonNull) != 0 && text == "None") return "null";
  return {};
}

std::string valid_utf8(std::string_view text) {
  Utf8Stream utf8(true);
  std::string valid = utf8.push(text);
  return valid + utf8.finish();
}

}  // namespace

CallParser::CallParser(const std::vector<ToolSchema>& tools, CallSink& sink, std::string opening,
                       const std::string& function)
    : tools_(tools), sink_(sink), raw_(std::move(opening)) {
  if (!function.empty()) start_function(function);
}

CallParser::Status CallParser::push(char c) {
  raw_ += c;
  switch (state_) {
    case State::Opened: return opened(c);
    case State::FunctionName: return function_name(c);
    case State::Body: return body(c);
    case State::Drop:
      if (c == '\n') state_ = State::Body;
      return Status::More;
    case State::ParameterName: return parameter_name(c);
    case State::ValueStart:
    case State::Value: return value(c);
    case State::Json: return json(c);
    case State::Broken: return broken(c);
  }
  return Status::More;
}

CallParser::Status CallParser::opened(char c) {
  if (tag_.empty() && is_space(c)) return Status::More;
  if (tag_.empty() && c == '{') {
    state_ = State::Json;
    return json(c);
  }
  tag_ += c;
  if (!kFunction.starts_with(tag_)) return Status::NotACall;
  if (tag_.size() == kFunction.size()) {
    tag_.clear();
    state_ = State::FunctionName;
  }
  return Status::More;
}

CallParser::Status CallParser::function_name(char c) {
  if (c == '>' && !name_.empty()) {
    start_function(valid_utf8(name_));
    return Status::More;
  }
  if (c == '>' || c == '\n' || c == '<' || name_.size() >= kMaxName) return break_off(c);
  name_ += c;
  return Status::More;
}

void CallParser::start_function(const std::string& name) {
  const auto known = std::find_if(tools_.begin(), tools_.end(), [&](const ToolSchema& t) { return t.name == name; });
  schema_ = known == tools_.end() ? nullptr : &*known;
  begun_ = true;
  sink_.begin(name);
  state_ = State::Body;
}

// Between the parameters: a tag, or a line that is dropped.
CallParser::Status CallParser::body(char c) {
  if (tag_.empty() && is_space(c)) return Status::More;
  tag_ += c;
  for (const std::string_view tag : {kParameter, kFunctionEnd, kCallEnd}) {
    if (!tag.starts_with(tag_)) continue;
    if (tag.size() != tag_.size()) return Status::More;
    tag_.clear();
    if (tag == kParameter) {
      name_.clear();
      state_ = State::ParameterName;
      return Status::More;
    }
    end_arguments();
    return Status::Done;
  }
  tag_.clear();
  state_ = c == '\n' ? State::Body : State::Drop;
  return Status::More;
}

CallParser::Status CallParser::parameter_name(char c) {
  if (c == '>' && !name_.empty()) {
    start_parameter();
  } else if (c == '\n') {
    state_ = State::Body;
  } else if (c == '>' || c == '=' || c == '<' || name_.size() >= kMaxName) {
    state_ = State::Drop;
  } else {
    name_ += c;
  }
  return Status::More;
}

void CallParser::start_parameter() {
  const std::string name = valid_utf8(name_);
  kinds_ = schema_ == nullptr ? uint8_t{kJsonAny} : schema_->kinds_of(name);
  std::string text = any_parameter_ ? ", \"" : "{\"";
  append_json_escaped(text, name);
  text += kinds_ == kJsonString ? "\": \"" : "\": ";
  sink_.arguments(text);
  any_parameter_ = true;
  buffered_.clear();
  state_ = State::ValueStart;
}

CallParser::Status CallParser::value(char c) {
  if (state_ == State::ValueStart) {
    // The newline after the tag is no part of the value, but may already begin the end of an empty one.
    state_ = State::Value;
    const bool block = c == '\n';
    terminator_ = block ? "\n</parameter>\n" : "</parameter>\n";
    first_virtual_ = block;
    matched_ = block ? 1 : 0;
    if (block) return Status::More;
  }
  if (c == terminator_[matched_]) {
    if (++matched_ == terminator_.size()) end_parameter();
    return Status::More;
  }
  // A new match can only begin at this byte: the first byte of the terminator comes again at its end at most.
  if (matched_ > 0) value_bytes(terminator_.substr(first_virtual_ ? 1 : 0, matched_ - (first_virtual_ ? 1 : 0)));
  first_virtual_ = false;
  matched_ = c == terminator_[0] ? 1 : 0;
  if (matched_ == 0) value_bytes(std::string_view(&c, 1));
  return Status::More;
}

void CallParser::value_bytes(std::string_view bytes) {
  if (kinds_ == kJsonString) {
    argument_string(utf8_.push(bytes));
  } else {
    buffered_ += bytes;
  }
}

void CallParser::argument_string(std::string_view text) {
  std::string escaped;
  append_json_escaped(escaped, text);
  if (!escaped.empty()) sink_.arguments(escaped);
}

void CallParser::end_parameter() {
  state_ = State::Body;
  if (kinds_ == kJsonString) {
    argument_string(utf8_.finish());
    return sink_.arguments("\"");
  }
  const std::string_view text = without_spaces(buffered_);
  if (!text.empty() && (kind_of_json(text[0]) & kinds_) != 0 && is_json(text)) return sink_.arguments(text);
  if ((kinds_ & kJsonString) == 0) {
    const std::string_view literal = python_literal(text, kinds_);
    if (!literal.empty()) return sink_.arguments(literal);
  }
  std::string quoted = "\"";
  append_json_escaped(quoted, valid_utf8(buffered_));
  sink_.arguments(quoted + "\"");
}

void CallParser::end_arguments() { sink_.arguments(any_parameter_ ? "}" : "{}"); }

CallParser::Status CallParser::json(char c) {
  const JsonScanner::Step step = scanner_.push(c);
  const size_t depth = scanner_.depth();
  switch (step) {
    case JsonScanner::Step::Bad: return break_off(c);
    case JsonScanner::Step::KeyBegin:
      if (depth == 1) {
        capture_ = true;
        part_.clear();
        return Status::More;
      }
      break;
    case JsonScanner::Step::KeyEnd:
      if (depth == 1) {
        capture_ = false;
        member_ = part_ == "name" ? Member::Name : part_ == "arguments" ? Member::Arguments : Member::Other;
        const bool again = (member_ == Member::Name && has_name_) || (member_ == Member::Arguments && has_arguments_);
        return again ? break_off(c) : Status::More;
      }
      break;
    case JsonScanner::Step::ValueBegin:
      if (member_ == Member::Name || member_ == Member::Arguments) {
        if (c == '"' && depth == 1) {
          capture_ = true;
          part_.clear();
          return Status::More;
        }
        if (c == '{' && depth == 2 && member_ == Member::Arguments) {
          stream_ = true;
        } else if (!stream_) {
          return break_off(c);
        }
      }
      break;
    case JsonScanner::Step::ValueEnd:
      if (depth <= 1) return json_value_end(c);
      break;
    default: break;
  }
  if (capture_) part_ += c;
  if (stream_) json_argument_byte(c);
  return Status::More;
}

CallParser::Status CallParser::json_value_end(char c) {
  if (scanner_.depth() == 0) {
    if (!has_name_) return break_off(c);
    if (!has_arguments_) sink_.arguments("{}");
    return Status::Done;
  }
  const Member member = std::exchange(member_, Member::None);
  capture_ = false;
  if (member == Member::Name) {
    name_ = valid_utf8(json_unescaped(part_));
    has_name_ = true;
    if (name_.empty()) return break_off(c);
    json_name_known();
  } else if (member == Member::Arguments && stream_) {
    json_argument_byte(c);
    stream_ = false;
    has_arguments_ = true;
  } else if (member == Member::Arguments) {
    const std::string text = valid_utf8(json_unescaped(part_));
    const std::string_view object = without_spaces(text);
    if (!object.empty() && (object[0] != '{' || !is_json(object))) return break_off(c);
    has_arguments_ = true;
    for (const char byte : object.empty() ? std::string_view("{}") : object) json_argument_byte(byte);
  }
  return Status::More;
}

void CallParser::json_name_known() {
  begun_ = true;
  sink_.begin(name_);
  if (!early_arguments_.empty()) sink_.arguments(early_arguments_);
}

void CallParser::json_argument_byte(char c) {
  const std::string text = utf8_.push(std::string_view(&c, 1));
  if (text.empty()) return;
  if (begun_) {
    sink_.arguments(text);
  } else {
    early_arguments_ += text;
  }
}

// The call is malformed: what is left of it is looked through for its closing tag, from this byte on.
CallParser::Status CallParser::break_off(char c) {
  state_ = State::Broken;
  tag_.clear();
  return broken(c);
}

CallParser::Status CallParser::broken(char c) {
  tag_ += c;
  if (!kCallEnd.starts_with(tag_)) tag_ = c == '<' ? "<" : "";
  return tag_.size() == kCallEnd.size() ? Status::Failed : Status::More;
}

}  // namespace strata::text
