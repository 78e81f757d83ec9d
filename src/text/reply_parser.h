// Splits a reply into thoughts, content and tool calls while it is generated (docs/templates.md). What comes out is a
// function of the bytes, not of how they were cut: neighbouring deltas of the same kind aside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::text {

// How much of a JSON schema the parser needs: which kinds of JSON a parameter may be.
enum JsonKind : uint8_t {
  kJsonNull = 1,
  kJsonBool = 2,
  kJsonNumber = 4,
  kJsonString = 8,
  kJsonArray = 16,
  kJsonObject = 32,
  kJsonAny = 63,
};

struct ToolSchema {
  std::string name;
  std::vector<std::pair<std::string, uint8_t>> parameters;  // JsonKind bits
  uint8_t kinds_of(std::string_view parameter) const;       // kJsonAny when it is not listed
};

// The `tools` of a request: a JSON array in the form of the OpenAI API. Error{Argument} naming the tool and field.
std::vector<ToolSchema> parse_tool_schemas(std::string_view json);

enum class ReasoningFormat {
  None,      // thoughts stay in the content, tags and all
  Separate,  // thoughts are Reasoning
  Both,      // thoughts are Reasoning and also stay in the content
};

struct ReplyOptions {
  bool starts_in_thinking = false;  // ChatPrompt::starts_in_thinking
  ReasoningFormat reasoning = ReasoningFormat::Separate;
  bool parse_calls = true;  // the request has tools and tool_choice is not none
  std::vector<ToolSchema> tools;
};

struct ReplyEvent {
  enum class Kind : uint8_t {
    Reasoning,  // text: more of it
    Content,
    CallBegin,  // text: the name
    Arguments,  // text: more of the JSON object
    CallEnd,
    // A call that began but is malformed or cut off: text says why. Its raw text follows as Content; the arguments
    // sent so far are a prefix of a JSON object that never ends.
    CallFailed,
  };
  Kind kind;
  int32_t call = -1;  // index of the call
  std::string text;
  bool operator==(const ReplyEvent&) const = default;
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplyOptions options);
  ~ReplyParser();
  ReplyParser(ReplyParser&&) noexcept;
  ReplyParser& operator=(ReplyParser&&) noexcept;

  std::vector<ReplyEvent> push(std::string_view bytes);
  std::vector<ReplyEvent> finish();

  int32_t calls() const;     // complete ones
  bool in_thinking() const;  // after finish(): the reply ended inside its thoughts
  bool in_content() const;   // stop strings count only here

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole reply.
struct ParsedCall {
  std::string name, arguments;
  bool operator==(const ParsedCall&) const = default;
};
struct ParsedReply {
  std::string reasoning, content;
  std::vector<ParsedCall> calls;      // complete ones
  std::vector<std::string> failures;  // one line for each call that failed
  bool ended_in_thinking = false;
};
ParsedReply parse_reply(std::string_view text, const ReplyOptions& options);

}  // namespace strata::text
