// Messages of a request as the OpenAI API writes them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/chat.h"
#include "text/jinja_json.h"

namespace strata::text {

using jinja::Value;
using Kind = Value::Kind;

namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

[[noreturn]] void refuse(const std::string& message, const std::string& where) {
  throw Error(ErrorKind::Argument, message, where);
}

const Value* find(const Value& object, std::string_view key) {
  const Value* found = object.entries().find(key);
  return found == nullptr || found->is(Kind::None) ? nullptr : found;
}

std::string text_field(const Value& object, std::string_view key, const std::string& where) {
  const Value* found = find(object, key);
  if (found == nullptr) return {};
  if (!found->is(Kind::String)) refuse("must be a string", fmt::format("{}.{}", where, key));
  return found->bytes();
}

std::string content_of(const Value& message, const std::string& where) {
  const Value* content = find(message, "content");
  if (content == nullptr) return {};
  if (content->is(Kind::String)) return content->bytes();
  if (!content->is(Kind::List)) refuse("must be a string or a list of parts", where + ".content");
  std::string text;
  for (size_t i = 0; i < content->items().size(); ++i) {
    const Value& part = content->items()[i];
    const std::string part_where = fmt::format("{}.content[{}]", where, i);
    if (!part.is(Kind::Map)) refuse("must be an object", part_where);
    const std::string type = text_field(part, "type", part_where);
    if (type != "text") {
      refuse(fmt::format("type '{}' is not supported: messages are text", type.substr(0, 40)), part_where);
    }
    text += text_field(part, "text", part_where);
  }
  return text;
}

ChatToolCall tool_call_of(const Value& call, const std::string& where) {
  if (!call.is(Kind::Map)) refuse("must be an object", where);
  const Value* function = find(call, "function");
  if (function == nullptr || !function->is(Kind::Map)) refuse("must be an object", where + ".function");
  ChatToolCall made;
  made.id = text_field(call, "id", where);
  made.name = text_field(*function, "name", where + ".function");
  if (made.name.empty()) refuse("is missing", where + ".function.name");
  if (const Value* arguments = find(*function, "arguments")) {
    made.arguments = arguments->is(Kind::String) ? arguments->bytes() : jinja::to_json(*arguments, {}).bytes;
  }
  return made;
}

ChatMessage message_of(const Value& message, const std::string& where) {
  if (!message.is(Kind::Map)) refuse("must be an object", where);
  ChatMessage made;
  made.role = text_field(message, "role", where);
  if (std::find(kRoles.begin(), kRoles.end(), made.role) == kRoles.end()) {
    refuse(fmt::format("'{}' is not one of system, developer, user, assistant, tool", made.role.substr(0, 40)),
           where + ".role");
  }
  made.content = content_of(message, where);
  if (find(message, "reasoning_content") != nullptr) {
    made.reasoning_content = text_field(message, "reasoning_content", where);
  }
  made.name = text_field(message, "name", where);
  made.tool_call_id = text_field(message, "tool_call_id", where);
  if (const Value* calls = find(message, "tool_calls")) {
    if (!calls->is(Kind::List)) refuse("must be a list", where + ".tool_calls");
    for (size_t i = 0; i < calls->items().size(); ++i) {
      made.tool_calls.push_back(tool_call_of(calls->items()[i], fmt::format("{}.tool_calls[{}]", where, i)));
    }
  }
  return made;
}

}  // namespace

std::vector<ChatMessage> parse_chat_messages(std::string_view json) {
  const Value list = jinja::parse_json(json, "messages");
  if (!list.is(Kind::List)) refuse("must be a list", "messages");
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < list.items().size(); ++i) {
    messages.push_back(message_of(list.items()[i], fmt::format("messages[{}]", i)));
  }
  return messages;
}

}  // namespace strata::text
