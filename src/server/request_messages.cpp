// POST /v1/messages and /v1/messages/count_tokens: the Anthropic API.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/request_fields.h"

namespace strata::server {
namespace {

// The text of a string or of a list of text blocks.
std::string text_of(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw Error(ErrorKind::Argument, "must be a string or a list of blocks", where);
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", where, i);
    const Fields block(content[i], place);
    const std::string type = block.text("type").value_or("");
    if (type != "text")
      throw Error(ErrorKind::Argument, fmt::format("type '{}' is not supported here", type.substr(0, 40)), place);
    if (!text.empty()) text += "\n";
    text += block.text("text").value_or("");
  }
  return text;
}

// One message of the API becomes one or more of ours: tool results are messages of their own.
class Reader {
 public:
  explicit Reader(std::vector<text::ChatMessage>& messages) : messages_(messages) {}

  void add(const Json& message, const std::string& where) {
    const Fields fields(message, where);
    const std::string role = fields.text("role").value_or("");
    if (role != "user" && role != "assistant" && role != "system")
      fields.refuse("role", "must be user, assistant or system");
    const Json* content = fields.find("content");
    if (content == nullptr) fields.refuse("content", "is missing");
    made_ = {.role = role};
    if (content->is_string()) {
      made_.content = content->get<std::string>();
    } else {
      if (!content->is_array()) fields.refuse("content", "must be a string or a list of blocks");
      for (size_t i = 0; i < content->size(); ++i) block((*content)[i], fmt::format("{}.content[{}]", where, i));
    }
    const bool empty = made_.content.empty() && made_.tool_calls.empty() && !made_.reasoning_content;
    if (!empty || !results_) messages_.push_back(std::move(made_));
    results_ = false;
  }

 private:
  void block(const Json& value, const std::string& where) {
    const Fields fields(value, where);
    const std::string type = fields.text("type").value_or("");
    if (type == "text") {
      made_.content += fields.text("text").value_or("");
    } else if (type == "thinking") {
      made_.reasoning_content = made_.reasoning_content.value_or("") + fields.text("thinking").value_or("");
    } else if (type == "redacted_thinking") {
      // nothing in it can be read
    } else if (type == "tool_use") {
      const Json* input = fields.object("input");
      made_.tool_calls.push_back({fields.text("id").value_or(""), fields.text("name").value_or(""),
                                  input == nullptr ? "{}" : to_text(*input)});
      if (made_.tool_calls.back().name.empty()) fields.refuse("name", "is missing");
    } else if (type == "tool_result") {
      const Json* content = fields.find("content");
      messages_.push_back({.role = "tool",
                           .content = content == nullptr ? "" : text_of(*content, where + ".content"),
                           .tool_call_id = fields.text("tool_use_id").value_or("")});
      results_ = true;
    } else {
      throw Error(ErrorKind::Argument, fmt::format("type '{}' is not supported: messages are text", type.substr(0, 40)),
                  where);
    }
  }

  std::vector<text::ChatMessage>& messages_;
  text::ChatMessage made_;
  bool results_ = false;
};

Json openai_tools(const Json& tools) {
  Json list = Json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const Fields fields(tools[i], fmt::format("tools[{}]", i));
    if (const auto type = fields.text("type"); type && *type != "custom")
      fields.refuse("type", "only tools of the client are supported");
    Json function{{"name", fields.text("name").value_or("")}};
    if (const auto text = fields.text("description")) function["description"] = *text;
    const Json* schema = fields.object("input_schema");
    function["parameters"] = schema == nullptr ? Json{{"type", "object"}} : *schema;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

void read_choice_object(const Fields& fields, ServeRequest& request) {
  const Json* choice = fields.object("tool_choice");
  if (choice == nullptr) return;
  const Fields inner(*choice, "tool_choice");
  const std::string type = inner.text("type").value_or("");
  using Kind = ToolChoice::Kind;
  if (type == "tool")
    request.tool_choice = {Kind::Named, inner.text("name").value_or("")};
  else if (type == "auto" || type == "any" || type == "none")
    request.tool_choice.kind = type == "auto" ? Kind::Auto : type == "any" ? Kind::Required : Kind::None;
  else
    inner.refuse("type", "must be auto, any, tool or none");
  request.parallel_calls = !inner.boolean("disable_parallel_tool_use").value_or(false);
}

void read_thinking(const Fields& fields, ServeRequest& request) {
  request.show_reasoning = false;
  const Json* thinking = fields.object("thinking");
  if (thinking == nullptr) return;
  const Fields inner(*thinking, "thinking");
  const std::string type = inner.text("type").value_or("");
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    inner.refuse("type", "must be enabled, adaptive or disabled");
  inner.integer("budget_tokens", 1, kMaxTokens);
  request.show_reasoning = type != "disabled";
  request.chat.enable_thinking = type != "disabled";
}

}  // namespace

ServeRequest parse_messages_request(std::string_view body, const RequestDefaults& defaults) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  ServeRequest request;
  request.api = Api::Messages;
  request.generation = defaults.generation;
  request.chat = defaults.chat;
  request.model = fields.text("model").value_or("");
  read_stream(fields, request);
  if (const Json* system = fields.find("system")) {
    request.chat.messages.clear();
    if (const std::string text = text_of(*system, "system"); !text.empty())
      request.chat.messages.push_back({.role = "system", .content = text});
  }
  const Json* messages = fields.array("messages");
  if (messages == nullptr) fields.refuse("messages", "is missing");
  if (messages->empty()) fields.refuse("messages", "is empty");
  Reader reader(request.chat.messages);
  for (size_t i = 0; i < messages->size(); ++i) reader.add((*messages)[i], fmt::format("messages[{}]", i));
  read_sampling(fields, defaults, request.generation);
  if (const auto limit = fields.integer("max_tokens", 1, kMaxTokens)) request.generation.max_tokens = *limit;
  if (const auto stop = fields.texts("stop_sequences", kMaxStops)) request.generation.stop = *stop;
  read_template_fields(fields, request);
  read_thinking(fields, request);
  read_constraint(fields, request.generation);
  if (const Json* tools = fields.array("tools")) set_tools(openai_tools(*tools), "tools", request);
  read_choice_object(fields, request);
  check_tool_choice(request, "tool_choice");
  return request;
}

}  // namespace strata::server
