// From a conversation to the prompt of a model: the chat template of the model file, or ChatML where there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template.h"
#include "text/tokenizer.h"

namespace strata::text {

struct ChatToolCall {
  std::string id;  // may be empty
  std::string name;
  std::string arguments;  // JSON text of an object; empty means {}
};

struct ChatMessage {
  std::string role = {};  // system, developer, user, assistant, tool
  std::string content = {};
  std::optional<std::string> reasoning_content = {};
  std::vector<ChatToolCall> tool_calls = {};
  std::string name = {};          // may be empty
  std::string tool_call_id = {};  // may be empty
};

struct ChatRequest {
  std::vector<ChatMessage> messages;
  std::string tools;  // JSON array as in the OpenAI API; empty: none
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;          // wins over the key in `kwargs`
  std::optional<std::string> reasoning_effort;  // none, minimal, low, medium, high, xhigh, max (docs/templates.md)
  std::string kwargs;                           // JSON object: chat_template_kwargs; empty: none
};

// Messages of an OpenAI request: a JSON array. Content may be a string, null, or a list of text parts, which are
// joined. Error{Argument} naming message and field; images, audio and files are refused.
std::vector<ChatMessage> parse_chat_messages(std::string_view json);

struct ChatCapabilities {
  bool system_role = false;
  bool tools = false;                // tool definitions reach the prompt
  bool tool_calls = false;           // calls of the history do
  bool thinking_switch = false;      // enable_thinking changes the prompt
  bool thinking = false;             // the template knows <think> at all
  bool preserve_thinking = false;    // the template reads preserve_thinking
  bool effort = false;               // the template reads reasoning_effort
  std::vector<std::string> efforts;  // values of reasoning_effort that it accepts
};

struct ChatPrompt {
  MarkedText text;
  bool starts_in_thinking = false;  // the generation prompt ends with <think>: the reply begins inside
};

class ChatTemplate {
 public:
  // An empty source means the built-in ChatML. Error{Model} for a template that cannot be read.
  ChatTemplate(std::string_view source, std::string bos_text, std::string eos_text, const TemplateLimits& limits = {});

  // Error{Argument} when the request is at fault or the template raises, Error{Model} when the template fails.
  ChatPrompt render(const ChatRequest& request, std::optional<int64_t> now = std::nullopt) const;

  const ChatCapabilities& capabilities() const { return capabilities_; }
  const std::string& note() const { return note_; }  // for the log; empty when there is nothing to say

 private:
  friend ChatCapabilities probe_chat_template(std::string_view, const std::string&, const std::string&,
                                              const TemplateLimits&);
  ChatTemplate(Template source, std::string bos_text, std::string eos_text);  // without a look at its capabilities
  jinja::Value context_of(const ChatRequest& request) const;
  void apply_effort(const ChatRequest& request, std::vector<std::pair<MarkedText, jinja::Value>>& variables) const;

  Template template_;
  std::string bos_, eos_;
  ChatCapabilities capabilities_;
  std::string note_;
};

// Ids of a rendered prompt. Control tokens count only where no byte of them is data; BOS is added where the vocabulary
// asks for it and the template has not written it.
std::vector<int32_t> encode_marked(const MarkedText& text, const Tokenizer& tokenizer);

}  // namespace strata::text
