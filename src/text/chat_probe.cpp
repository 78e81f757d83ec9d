// What a chat template can do: it is rendered with small conversations, and what comes out is looked at.
#include "text/chat_probe.h"

#include <algorithm>

#include "base/error.h"

namespace strata::text {

namespace {

constexpr std::string_view kMark = "strata-probe";

// A template that needs more for a conversation of three messages is not worth the wait at start.
TemplateLimits limits_of_probe(TemplateLimits limits) {
  limits.steps = std::min<uint64_t>(limits.steps, 500'000);
  limits.seconds = std::min(limits.seconds, 0.2);
  return limits;
}

ChatMessage message(std::string role, std::string content) {
  ChatMessage m;
  m.role = std::move(role);
  m.content = std::move(content);
  return m;
}

ChatRequest question() {
  ChatRequest request;
  request.messages = {message("user", "question")};
  return request;
}

// Nothing where the template raises or fails.
std::optional<std::string> rendered(const ChatTemplate& chat, const ChatRequest& request) {
  try {
    return chat.render(request, 0).text.bytes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool shows_mark(const ChatTemplate& chat, const ChatRequest& request) {
  const auto text = rendered(chat, request);
  return text && text->find(kMark) != std::string::npos;
}

bool shows_system(const ChatTemplate& chat) {
  ChatRequest request = question();
  request.messages.insert(request.messages.begin(), message("system", std::string(kMark)));
  return shows_mark(chat, request);
}

bool shows_tools(const ChatTemplate& chat) {
  ChatRequest request = question();
  request.tools = R"([{"type": "function", "function": {"name": "strata-probe", "description": "d", "parameters":
    {"type": "object", "properties": {"p": {"type": "string", "description": "d"}}, "required": ["p"]}}}])";
  return shows_mark(chat, request);
}

bool shows_tool_calls(const ChatTemplate& chat) {
  ChatRequest request = question();
  ChatMessage call = message("assistant", "");
  call.tool_calls = {{"call_0", std::string(kMark), R"({"p": "v"})"}};
  request.messages.push_back(call);
  request.messages.push_back(message("tool", "result"));
  request.messages.back().tool_call_id = "call_0";
  return shows_mark(chat, request);
}

bool thinking_changes(const ChatTemplate& chat) {
  ChatRequest request = question();
  request.enable_thinking = true;
  const auto on = rendered(chat, request);
  request.enable_thinking = false;
  return on != rendered(chat, request);
}

std::vector<std::string> accepted_efforts(const ChatTemplate& chat) {
  std::vector<std::string> accepted;
  for (const std::string_view effort : kEfforts) {
    ChatRequest request = question();
    request.kwargs = R"({"enable_thinking": true, "reasoning_effort": ")" + std::string(effort) + "\"}";
    if (rendered(chat, request)) accepted.emplace_back(effort);
  }
  return accepted;
}

}  // namespace

ChatCapabilities probe_chat_template(std::string_view source, const std::string& bos, const std::string& eos,
                                     const TemplateLimits& limits) {
  const ChatTemplate chat(Template(source, limits_of_probe(limits)), bos, eos);
  ChatCapabilities found;
  found.system_role = shows_system(chat);
  found.tools = shows_tools(chat);
  found.tool_calls = shows_tool_calls(chat);
  found.thinking_switch = thinking_changes(chat);
  found.thinking = found.thinking_switch || source.find("<think>") != std::string_view::npos;
  found.preserve_thinking = chat.template_.mentions("preserve_thinking");
  found.effort = chat.template_.mentions("reasoning_effort");
  if (found.effort) found.efforts = accepted_efforts(chat);
  return found;
}

}  // namespace strata::text
