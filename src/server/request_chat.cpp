// POST /v1/chat/completions
#include <nlohmann/json.hpp>

#include "server/request_fields.h"

namespace strata::server {
namespace {

void read_function_choice(const Fields& fields, ServeRequest& request) {
  const Json* choice = read_tool_choice(fields, request);
  if (choice == nullptr) return;
  const Fields inner(*choice, "tool_choice");
  const Json* function = inner.object("function");
  if (function == nullptr) inner.refuse("function", "is missing");
  const auto name = Fields(*function, "tool_choice.function").text("name");
  if (!name) inner.refuse("function", "needs a name");
  request.tool_choice = {ToolChoice::Kind::Named, *name};
}

void read_logprobs(const Fields& fields, ServeRequest& request) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !wanted && *top > 0) fields.refuse("top_logprobs", "needs logprobs to be true");
  if (wanted) request.top_logprobs = static_cast<int>(top.value_or(0));
}

}  // namespace

ServeRequest parse_chat_request(std::string_view body, const RequestDefaults& defaults) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  ServeRequest request;
  request.api = Api::Chat;
  request.generation = defaults.generation;
  request.chat = defaults.chat;
  request.reasoning = defaults.reasoning;
  request.model = fields.text("model").value_or("");
  read_stream(fields, request);
  const Json* messages = fields.array("messages");
  if (messages == nullptr) fields.refuse("messages", "is missing");
  if (messages->empty()) fields.refuse("messages", "is empty");
  const auto own = text::parse_chat_messages(to_text(*messages));
  const bool own_system = own.front().role == "system" || own.front().role == "developer";
  if (own_system) request.chat.messages.clear();
  request.chat.messages.insert(request.chat.messages.end(), own.begin(), own.end());
  if (const auto add = fields.boolean("add_generation_prompt")) request.chat.add_generation_prompt = *add;
  read_sampling(fields, defaults, request.generation);
  for (const char* name : {"n_predict", "max_tokens", "max_completion_tokens"})
    if (const auto limit = fields.integer(name, -1, kMaxTokens)) request.generation.max_tokens = *limit;
  if (const auto stop = fields.texts("stop", kMaxStops)) request.generation.stop = *stop;
  request.choices = fields.integer("n", 1, 64).value_or(1);
  read_logprobs(fields, request);
  read_template_fields(fields, request);
  read_constraint(fields, request.generation);
  if (const Json* tools = fields.array("tools")) set_tools(*tools, "tools", request);
  for (const char* old : {"functions", "function_call"})
    if (fields.find(old) != nullptr) fields.refuse(old, "is the old form: use tools and tool_choice");
  request.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  read_function_choice(fields, request);
  check_tool_choice(request, "tool_choice");
  return request;
}

}  // namespace strata::server
