// POST /v1/responses, without state: previous responses come with the request.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/request_fields.h"

namespace strata::server {
namespace {

std::string text_of(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) throw Error(ErrorKind::Argument, "must be a string or a list of parts", where);
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", where, i);
    const Fields part(content[i], place);
    const std::string type = part.text("type").value_or("");
    if (type != "input_text" && type != "output_text" && type != "text" && type != "reasoning_text" &&
        type != "summary_text")
      throw Error(ErrorKind::Argument, fmt::format("type '{}' is not supported: messages are text", type.substr(0, 40)),
                  place);
    text += part.text("text").value_or("");
  }
  return text;
}

// Items of `input` in order. Reasoning, the text and the calls of one answer are items of their own there; the template
// has one message for them.
class Reader {
 public:
  explicit Reader(std::vector<text::ChatMessage>& messages) : messages_(messages) {}

  void add(const Json& item, const std::string& where) {
    const Fields fields(item, where);
    const std::string type = fields.text("type").value_or("message");
    if (type == "message")
      message(fields, where);
    else if (type == "function_call")
      answer().tool_calls.push_back({fields.text("call_id").value_or(""), fields.text("name").value_or(""),
                                     fields.text("arguments").value_or("{}")});
    else if (type == "function_call_output")
      result(fields, where);
    else if (type == "reasoning")
      reasoning(fields, where);
    else
      fields.refuse("type", fmt::format("'{}' is not supported", type.substr(0, 40)));
  }

 private:
  text::ChatMessage& answer() {
    if (messages_.empty() || messages_.back().role != "assistant") messages_.push_back({.role = "assistant"});
    return messages_.back();
  }

  void message(const Fields& fields, const std::string& where) {
    const std::string role = fields.text("role").value_or("");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer")
      fields.refuse("role", "must be user, assistant, system or developer");
    const Json* content = fields.find("content");
    if (content == nullptr) fields.refuse("content", "is missing");
    const std::string text = text_of(*content, where + ".content");
    if (role == "assistant")
      answer().content += text;
    else
      messages_.push_back({.role = role, .content = text});
  }

  void result(const Fields& fields, const std::string& where) {
    const Json* output = fields.find("output");
    messages_.push_back({.role = "tool",
                         .content = output == nullptr ? "" : text_of(*output, where + ".output"),
                         .tool_call_id = fields.text("call_id").value_or("")});
  }

  void reasoning(const Fields& fields, const std::string& where) {
    std::string text;
    for (const char* name : {"content", "summary"})
      if (const Json* parts = fields.find(name); parts != nullptr && text.empty())
        text = text_of(*parts, where + "." + name);
    if (!text.empty()) answer().reasoning_content = answer().reasoning_content.value_or("") + text;
  }

  std::vector<text::ChatMessage>& messages_;
};

Json chat_tools(const Json& tools) {
  Json list = Json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const Fields fields(tools[i], fmt::format("tools[{}]", i));
    if (fields.text("type").value_or("") != "function") fields.refuse("type", "only functions are supported");
    Json function{{"name", fields.text("name").value_or("")}};
    if (const auto text = fields.text("description")) function["description"] = *text;
    if (const Json* schema = fields.object("parameters")) function["parameters"] = *schema;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return list;
}

void read_function_choice(const Fields& fields, ServeRequest& request) {
  const Json* choice = read_tool_choice(fields, request);
  if (choice == nullptr) return;
  const auto name = Fields(*choice, "tool_choice").text("name");
  if (!name) fields.refuse("tool_choice", "needs a name");
  request.tool_choice = {ToolChoice::Kind::Named, *name};
}

void read_format(const Fields& fields, GenerateRequest& generation) {
  const Json* text = fields.object("text");
  const Json* format = text == nullptr ? nullptr : Fields(*text, "text").object("format");
  if (format == nullptr) return;
  const Fields inner(*format, "text.format");
  const std::string type = inner.text("type").value_or("text");
  if (type == "json_schema") {
    const Json* schema = inner.object("schema");
    if (schema == nullptr) inner.refuse("schema", "is missing");
    set_schema(*schema, generation);
  } else if (type == "json_object") {
    generation.grammar = text::Grammar::json_object();
  } else if (type != "text") {
    inner.refuse("type", "must be text, json_object or json_schema");
  }
}

}  // namespace

ServeRequest parse_responses_request(std::string_view body, const RequestDefaults& defaults) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  ServeRequest request;
  request.api = Api::Responses;
  request.generation = defaults.generation;
  request.chat = defaults.chat;
  request.model = fields.text("model").value_or("");
  for (const char* stateful : {"previous_response_id", "conversation"})
    if (fields.find(stateful) != nullptr)
      fields.refuse(stateful, "this server keeps no conversations: send all items in input");
  read_stream(fields, request);
  if (const auto instructions = fields.text("instructions")) {
    request.chat.messages.clear();
    request.chat.messages.push_back({.role = "system", .content = *instructions});
  }
  const Json* input = fields.find("input");
  if (input == nullptr) fields.refuse("input", "is missing");
  if (input->is_string()) {
    request.chat.messages.push_back({.role = "user", .content = input->get<std::string>()});
  } else {
    if (!input->is_array()) fields.refuse("input", "must be a string or a list of items");
    if (input->empty()) fields.refuse("input", "is empty");
    Reader reader(request.chat.messages);
    for (size_t i = 0; i < input->size(); ++i) reader.add((*input)[i], fmt::format("input[{}]", i));
  }
  read_sampling(fields, defaults, request.generation);
  if (const auto limit = fields.integer("max_output_tokens", 1, kMaxTokens)) request.generation.max_tokens = *limit;
  if (const auto top = fields.integer("top_logprobs", 0, 20); top && *top > 0)
    request.top_logprobs = static_cast<int>(*top);
  read_template_fields(fields, request);
  if (const Json* reasoning = fields.object("reasoning"))
    if (const auto effort = Fields(*reasoning, "reasoning").text("effort")) request.chat.reasoning_effort = *effort;
  read_format(fields, request.generation);
  if (const Json* tools = fields.array("tools")) set_tools(chat_tools(*tools), "tools", request);
  request.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  read_function_choice(fields, request);
  check_tool_choice(request, "tool_choice");
  return request;
}

}  // namespace strata::server
