#include "text/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/chat_probe.h"
#include "text/jinja_json.h"

namespace strata::text {

using jinja::Value;
using Variables = std::vector<std::pair<MarkedText, Value>>;

namespace {

constexpr std::string_view kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

constexpr std::array<std::string_view, 5> kOwnVariables = {"messages", "tools", "add_generation_prompt", "bos_token",
                                                           "eos_token"};

[[noreturn]] void refuse(const std::string& message, const std::string& where) {
  throw Error(ErrorKind::Argument, message, where);
}

void put(Variables& variables, std::string_view name, Value value) {
  variables.emplace_back(MarkedText::plain(name), std::move(value));
}

Value tool_call_value(const ChatToolCall& call, const std::string& where) {
  const bool empty = call.arguments.find_first_not_of(" \t\r\n") == std::string::npos;
  Value arguments = empty ? Value::map({}) : jinja::parse_json(call.arguments, where + ".function.arguments");
  if (!arguments.is(Value::Kind::Map)) refuse("must be a JSON object", where + ".function.arguments");
  Variables function, entries;
  put(function, "name", Value::data(call.name));
  put(function, "arguments", std::move(arguments));
  if (!call.id.empty()) put(entries, "id", Value::data(call.id));
  put(entries, "type", Value::plain("function"));
  put(entries, "function", Value::map(std::move(function)));
  return Value::map(std::move(entries));
}

Value message_value(const ChatMessage& message, const std::string& where) {
  Variables entries;
  // Templates know no developer; most would leave such a message out without a word.
  put(entries, "role", Value::data(message.role == "developer" ? "system" : message.role));
  put(entries, "content", Value::data(message.content));
  if (message.reasoning_content) put(entries, "reasoning_content", Value::data(*message.reasoning_content));
  if (!message.tool_calls.empty()) {
    std::vector<Value> calls;
    for (size_t i = 0; i < message.tool_calls.size(); ++i) {
      calls.push_back(tool_call_value(message.tool_calls[i], fmt::format("{}.tool_calls[{}]", where, i)));
    }
    put(entries, "tool_calls", Value::list(std::move(calls)));
  }
  if (!message.name.empty()) put(entries, "name", Value::data(message.name));
  if (!message.tool_call_id.empty()) put(entries, "tool_call_id", Value::data(message.tool_call_id));
  return Value::map(std::move(entries));
}

Value tools_value(const std::string& json) {
  if (json.empty()) return Value::none();
  Value tools = jinja::parse_json(json, "tools");
  if (tools.is(Value::Kind::None)) return tools;
  if (!tools.is(Value::Kind::List)) refuse("must be a JSON array", "tools");
  for (size_t i = 0; i < tools.items().size(); ++i) {
    if (!tools.items()[i].is(Value::Kind::Map)) refuse("must be a JSON object", fmt::format("tools[{}]", i));
  }
  return tools.items().empty() ? Value::none() : tools;
}

void put_kwargs(Variables& variables, const std::string& json) {
  if (json.empty()) return;
  const std::string where = "chat_template_kwargs";
  const Value kwargs = jinja::parse_json(json, where);
  if (!kwargs.is(Value::Kind::Map)) refuse("must be a JSON object", where);
  for (const auto& [key, value] : kwargs.entries().entries()) {
    if (std::find(kOwnVariables.begin(), kOwnVariables.end(), key.bytes()) != kOwnVariables.end()) {
      refuse(fmt::format("'{}' cannot be set here", key.bytes()), where);
    }
    variables.emplace_back(key.text(), value);
  }
}

std::string without_spaces_at_end(const std::string& text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string::npos ? std::string() : text.substr(0, last + 1);
}

}  // namespace

ChatTemplate::ChatTemplate(Template source, std::string bos_text, std::string eos_text)
    : template_(std::move(source)), bos_(std::move(bos_text)), eos_(std::move(eos_text)) {}

ChatTemplate::ChatTemplate(std::string_view source, std::string bos_text, std::string eos_text,
                           const TemplateLimits& limits)
    : ChatTemplate(Template(source.empty() ? kChatMl : source, limits), std::move(bos_text), std::move(eos_text)) {
  if (source.empty()) note_ = "the model has no chat template: using ChatML, without tools and thinking";
  capabilities_ = probe_chat_template(source.empty() ? kChatMl : source, bos_, eos_, limits);
}

void ChatTemplate::apply_effort(const ChatRequest& request, Variables& variables) const {
  const std::string& effort = *request.reasoning_effort;
  const auto accepted = [&](std::string_view value) {
    return std::find(capabilities_.efforts.begin(), capabilities_.efforts.end(), value) != capabilities_.efforts.end();
  };
  const bool can_be_off = capabilities_.thinking_switch || !capabilities_.thinking;
  if (effort == "none" && can_be_off) {
    if (request.enable_thinking.value_or(false)) refuse("'none' contradicts enable_thinking", "reasoning_effort");
    return put(variables, "enable_thinking", Value::boolean(false));
  }
  std::string value = effort;
  if (effort == "minimal") value = "low";
  if (effort == "high" && !accepted("high")) value = "xhigh";
  if (effort == "max") value = accepted("xhigh") ? "xhigh" : "high";
  const bool known = std::find(kEfforts.begin(), kEfforts.end(), effort) != kEfforts.end();
  if (known && capabilities_.effort && accepted(value)) return put(variables, "reasoning_effort", Value::plain(value));

  std::string allowed = can_be_off ? "none" : "";
  for (const std::string& each : capabilities_.efforts) allowed += (allowed.empty() ? "" : ", ") + each;
  refuse(fmt::format("'{}' is not possible with this model's template; allowed: {}", effort.substr(0, 40),
                     allowed.empty() ? "nothing" : allowed),
         "reasoning_effort");
}

Value ChatTemplate::context_of(const ChatRequest& request) const {
  std::vector<Value> messages;
  messages.reserve(request.messages.size());
  for (size_t i = 0; i < request.messages.size(); ++i) {
    messages.push_back(message_value(request.messages[i], fmt::format("messages[{}]", i)));
  }
  Variables variables;
  put_kwargs(variables, request.kwargs);
  if (request.enable_thinking) put(variables, "enable_thinking", Value::boolean(*request.enable_thinking));
  if (request.reasoning_effort) apply_effort(request, variables);
  put(variables, "messages", Value::list(std::move(messages)));
  put(variables, "tools", tools_value(request.tools));
  put(variables, "add_generation_prompt", Value::boolean(request.add_generation_prompt));
  if (!bos_.empty()) put(variables, "bos_token", Value::plain(bos_));
  if (!eos_.empty()) put(variables, "eos_token", Value::plain(eos_));
  return Value::map(std::move(variables));
}

ChatPrompt ChatTemplate::render(const ChatRequest& request, std::optional<int64_t> now) const {
  ChatPrompt prompt;
  prompt.text = template_.render(context_of(request), now);
  if (request.add_generation_prompt) {
    // The template has written it, not the last message of the request.
    const std::string end = without_spaces_at_end(prompt.text.bytes);
    const bool data = !prompt.text.data.empty() && prompt.text.data.back().end >= end.size();
    prompt.starts_in_thinking = end.ends_with("<think>") && !data;
  }
  return prompt;
}

std::vector<int32_t> encode_marked(const MarkedText& text, const Tokenizer& tokenizer) {
  return tokenizer.encode(text.bytes, {}, text.data);
}

}  // namespace strata::text
