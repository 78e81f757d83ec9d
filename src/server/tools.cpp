#include "server/tools.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/json.h"

namespace strata::server {
namespace {

struct Tool {
  std::string name;
  Json parameters;
  bool strict = false;
};

std::vector<Tool> tools_of(const ServeRequest& request) {
  std::vector<Tool> tools;
  for (const Json& one : Json::parse(request.chat.tools)) {
    const Json& function = one.at("function");
    Tool tool{function.at("name").get<std::string>(), {{"type", "object"}}, false};
    if (request.tool_choice.kind == ToolChoice::Kind::Named && tool.name != request.tool_choice.name) continue;
    if (const auto found = function.find("parameters"); found != function.end() && found->is_object())
      tool.parameters = *found;
    if (const auto found = function.find("strict"); found != function.end())
      tool.strict = found->is_boolean() && *found;
    tools.push_back(std::move(tool));
  }
  return tools;
}

// References inside a tool's schema are meant from its own root, wherever it stands.
void move_references(Json& schema, const std::string& root) {
  if (schema.is_object())
    for (auto& [key, value] : schema.items()) {
      if (key == "$ref" && value.is_string() && value.get_ref<const std::string&>().starts_with("#"))
        value = root + value.get<std::string>().substr(1);
      else
        move_references(value, root);
    }
  else if (schema.is_array())
    for (Json& item : schema) move_references(item, root);
}

bool can_be_said(const Json& schema) {
  try {
    text::Grammar::from_json_schema(to_text(schema));
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string call_schema(std::vector<Tool> tools) {
  Json any = Json::array();
  for (Tool& tool : tools) {
    if (!tool.strict && !can_be_said(tool.parameters)) tool.parameters = {{"type", "object"}};
    move_references(tool.parameters, fmt::format("#/anyOf/{}/properties/arguments", any.size()));
    any.push_back({{"type", "object"},
                   {"properties", {{"name", {{"const", tool.name}}}, {"arguments", std::move(tool.parameters)}}},
                   {"required", {"name", "arguments"}},
                   {"additionalProperties", false}});
  }
  return to_text({{"anyOf", std::move(any)}});
}

std::string gbnf_text(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      made += std::string("\\") + c;
    else if (c == '\n')
      made += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      made += fmt::format("\\x{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      made += c;
  }
  return made + "\"";
}

// Lines, of which none but the first begins with </parameter>.
std::string raw_text_rules() {
  constexpr std::string_view kEnd = "</parameter>";
  std::string safe;
  for (size_t i = kEnd.size(); i-- > 0;) {
    const std::string next =
        i + 1 == kEnd.size() ? std::string() : fmt::format(" | {} ({})", gbnf_text(kEnd.substr(i, 1)), safe);
    safe = fmt::format("\"\" | [^{}\\n] line{}", kEnd[i], next);
  }
  return fmt::format("line ::= [^\\n]*\nsafe ::= {}\nraw ::= line (\"\\n\" safe)*\n", safe);
}

constexpr std::string_view kJsonRules =
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "ws ::= [ \\n]{0,8}\n"
    "object ::= \"{\" ws (member (\",\" ws member)*)? ws \"}\"\n"
    "member ::= string \":\" \" \"? value\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? ws \"]\"\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\"\n"
    "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,30}) (\".\" [0-9]{1,30})? ([eE] [-+]? [0-9]{1,3})?\n";

// Parameters in the order of the schema; those that are not required may be left out.
std::string xml_grammar(const ServeRequest& request, std::string_view before, bool several) {
  std::string functions, rules;
  const std::vector<text::ToolSchema> schemas = text::parse_tool_schemas(request.chat.tools);
  size_t index = 0;
  for (const Tool& tool : tools_of(request)) {
    std::string body = gbnf_text("<function=" + tool.name + ">\n");
    const Json required = tool.parameters.value("required", Json::array());
    for (const text::ToolSchema& schema : schemas) {
      if (schema.name != tool.name) continue;
      for (const auto& [name, kinds] : schema.parameters) {
        const bool needed =
            required.is_array() && std::find(required.begin(), required.end(), Json(name)) != required.end();
        const char* value = (kinds & text::kJsonString) != 0 ? "raw" : "value";
        body += fmt::format(" ({} {} {}){}", gbnf_text("<parameter=" + name + ">\n"), value,
                            gbnf_text("\n</parameter>\n"), needed ? "" : "?");
      }
      break;
    }
    functions += fmt::format("{}f{}", index == 0 ? "" : " | ", index);
    rules += fmt::format("f{} ::= {} \"</function>\"\n", index++, body);
  }
  const std::string one = fmt::format("({}) \"\\n</tool_call>\"", functions);
  std::string root = fmt::format("root ::= {} {}", gbnf_text(before), one);
  if (several) root += fmt::format(" ({} {})*", gbnf_text("\n<tool_call>\n"), one);
  return root + "\n" + rules + raw_text_rules() + std::string(kJsonRules);
}

}  // namespace

CallForm call_form_of(const std::string& template_source) {
  return template_source.find("<function=") != std::string::npos ? CallForm::Xml : CallForm::JsonObject;
}

void describe_tools(text::ChatRequest& request) {
  std::string text =
      "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
      "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
  for (const Json& tool : Json::parse(request.tools)) text += "\n" + to_text(tool);
  text +=
      "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
      "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
      "<args-json-object>}\n</tool_call>";
  std::vector<text::ChatMessage>& messages = request.messages;
  const bool has_system =
      !messages.empty() && (messages.front().role == "system" || messages.front().role == "developer");
  if (has_system)
    messages.front().content += "\n\n" + text;
  else
    messages.insert(messages.begin(), {.role = "system", .content = text});
}

void write_out_calls(std::vector<text::ChatMessage>& messages) {
  for (text::ChatMessage& message : messages) {
    for (const text::ChatToolCall& call : std::exchange(message.tool_calls, {})) {
      const Json arguments = Json::parse(call.arguments.empty() ? "{}" : call.arguments, nullptr, false);
      if (!message.content.empty()) message.content += "\n";
      message.content +=
          "<tool_call>\n" +
          to_text({{"name", call.name}, {"arguments", arguments.is_discarded() ? Json(call.arguments) : arguments}}) +
          "\n</tool_call>";
    }
    if (message.role != "tool") continue;
    message.role = "user";
    message.content = "<tool_response>\n" + message.content + "\n</tool_response>";
  }
}

void constrain_calls(const ServeRequest& request, CallForm form, bool starts_in_thinking, GenerateRequest& generation) {
  using Kind = ToolChoice::Kind;
  const Kind kind = request.tool_choice.kind;
  if (request.chat.tools.empty() || kind == Kind::None || generation.grammar) return;
  const bool needed = kind == Kind::Required || kind == Kind::Named;
  const std::string before = needed ? "<tool_call>\n" : "\n";
  const bool several = needed && request.parallel_calls;
  if (form == CallForm::JsonObject)
    generation.grammar =
        text::Grammar::enclosed_json(call_schema(tools_of(request)), before, "\n</tool_call>", several);
  else
    generation.grammar = text::Grammar::from_gbnf(xml_grammar(request, before, several));
  generation.grammar_again = !needed;
  if (!needed)
    generation.grammar_after = "<tool_call>";
  else if (starts_in_thinking)
    generation.grammar_after = "</think>";
}

}  // namespace strata::server
