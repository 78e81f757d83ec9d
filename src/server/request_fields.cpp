#include "server/request_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <random>

namespace strata::server {
namespace {

constexpr size_t kMaxBiases = 4096;

void add_bias(const Json& value, const std::string& where, int32_t token, GenerateRequest& generation) {
  double bias = 0;
  if (value.is_boolean() && !value.get<bool>())
    bias = -1000;  // never
  else if (value.is_number())
    bias = value.get<double>();
  else
    throw Error(ErrorKind::Argument, "must be a number, or false", where);
  if (!(bias >= -1000 && bias <= 1000)) throw Error(ErrorKind::Argument, "must be -1000 to 1000", where);
  generation.sampler.logit_bias.emplace_back(token, static_cast<float>(bias));
}

int32_t token_of(std::string_view text, int64_t vocabulary, const std::string& where) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0 || id >= vocabulary)
    throw Error(ErrorKind::Argument, fmt::format("'{}' is no token of this model", text.substr(0, 40)), where);
  return static_cast<int32_t>(id);
}

// {"15": -100} as OpenAI writes it, or [[15, -100]] as llama.cpp also takes it.
void read_logit_bias(const Fields& fields, int64_t vocabulary, GenerateRequest& generation) {
  const Json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kMaxBiases) fields.refuse("logit_bias", fmt::format("has over {} entries", kMaxBiases));
  const std::string where = fields.place("logit_bias");
  if (bias->is_object()) {
    for (const auto& [key, value] : bias->items()) add_bias(value, where, token_of(key, vocabulary, where), generation);
  } else if (bias->is_array()) {
    for (const Json& pair : *bias) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer())
        fields.refuse("logit_bias", "entries must be [token, bias]");
      add_bias(pair[1], where, token_of(pair[0].dump(), vocabulary, where), generation);
    }
  } else {
    fields.refuse("logit_bias", "must be an object or a list of pairs");
  }
}

}  // namespace

const char* to_string(Api api) {
  switch (api) {
    case Api::Chat: return "chat";
    case Api::Completions: return "completions";
    case Api::Native: return "completion";
    case Api::Responses: return "responses";
    case Api::Messages: return "messages";
    case Api::Embeddings: return "embeddings";
  }
  return "";
}

void read_sampling(const Fields& fields, const RequestDefaults& defaults, GenerateRequest& generation) {
  SamplerOptions& sampler = generation.sampler;
  if (const auto value = fields.real("temperature", 0, 100)) sampler.temperature = *value;
  if (const auto value = fields.real("top_p", 0, 1)) sampler.top_p = *value;
  if (const auto value = fields.integer("top_k", -1, kMaxTokens)) sampler.top_k = std::max<int64_t>(*value, 0);
  if (const auto value = fields.real("min_p", 0, 1)) sampler.min_p = *value;
  for (const char* name : {"repeat_penalty", "repetition_penalty"})
    if (const auto value = fields.real(name, 0.01, 100)) sampler.repetition_penalty = *value;
  if (const auto value = fields.integer("repeat_last_n", -1, kMaxTokens)) sampler.penalty_window = *value;
  if (const auto value = fields.real("presence_penalty", -100, 100)) sampler.presence_penalty = *value;
  if (const auto value = fields.real("frequency_penalty", -100, 100)) sampler.frequency_penalty = *value;
  if (const auto value = fields.integer("seed", INT64_MIN / 2, INT64_MAX / 2))
    sampler.seed = *value == -1 ? std::random_device{}() : static_cast<uint64_t>(*value);
  if (const auto value = fields.boolean("ignore_eos")) generation.ignore_end = *value;
  if (const auto value = fields.integer("repeat_limit", 0, kMaxTokens)) generation.repeat_limit = *value;
  read_logit_bias(fields, defaults.vocabulary, generation);
}

void read_stream(const Fields& fields, ServeRequest& request) {
  request.stream = fields.boolean("stream").value_or(false);
  request.return_progress = fields.boolean("return_progress").value_or(false);
  if (const Json* options = fields.object("stream_options"))
    request.include_usage = Fields(*options, "stream_options").boolean("include_usage").value_or(false);
}

void set_schema(const Json& schema, GenerateRequest& generation) {
  generation.grammar = text::Grammar::from_json_schema(to_text(schema));
}

void read_constraint(const Fields& fields, GenerateRequest& generation) {
  int given = 0;
  if (const Json* format = fields.object("response_format")) {
    const Fields inner(*format, fields.place("response_format"));
    const std::string type = inner.text("type").value_or("");
    if (type == "json_schema") {
      const Json* named = inner.object("json_schema");
      const Json* schema = named != nullptr ? Fields(*named, inner.place("json_schema")).object("schema") : nullptr;
      if (schema == nullptr) schema = inner.object("schema");
      if (schema == nullptr) inner.refuse("json_schema", "needs a member \"schema\"");
      set_schema(*schema, generation), ++given;
    } else if (type == "json_object") {
      if (const Json* schema = inner.object("schema"))
        set_schema(*schema, generation);
      else
        generation.grammar = text::Grammar::json_object();
      ++given;
    } else if (type != "text") {
      inner.refuse("type", "must be text, json_object or json_schema");
    }
  }
  if (const Json* schema = fields.find("json_schema")) {
    if (!schema->is_object() && !schema->is_boolean()) fields.refuse("json_schema", "must be a schema");
    set_schema(*schema, generation), ++given;
  }
  if (const auto grammar = fields.text("grammar"); grammar && !grammar->empty()) {
    generation.grammar = text::Grammar::from_gbnf(*grammar);
    ++given;
  }
  if (given > 1) fields.refuse("grammar", "give one of response_format, json_schema and grammar");
}

void read_template_fields(const Fields& fields, ServeRequest& request) {
  if (const Json* kwargs = fields.object("chat_template_kwargs")) request.chat.kwargs = to_text(*kwargs);
  if (const auto effort = fields.text("reasoning_effort")) request.chat.reasoning_effort = *effort;
  if (const auto thinking = fields.boolean("enable_thinking")) request.chat.enable_thinking = *thinking;
  if (const auto format = fields.text("reasoning_format")) {
    if (*format == "none")
      request.reasoning = text::ReasoningFormat::None;
    else if (*format == "deepseek" || *format == "auto")
      request.reasoning = text::ReasoningFormat::Separate;
    else if (*format == "deepseek-legacy")
      request.reasoning = text::ReasoningFormat::Both;
    else
      fields.refuse("reasoning_format", "must be none, auto, deepseek or deepseek-legacy");
  }
}

void set_tools(const Json& tools, const std::string& where, ServeRequest& request) {
  if (tools.empty()) return;
  if (tools.size() > 1024) throw Error(ErrorKind::Argument, "has over 1024 entries", where);
  request.chat.tools = to_text(tools);
  text::parse_tool_schemas(request.chat.tools);  // refuses what is malformed
}

const Json* read_tool_choice(const Fields& fields, ServeRequest& request) {
  const Json* choice = fields.find("tool_choice");
  if (choice == nullptr || !choice->is_string()) return choice;
  using Kind = ToolChoice::Kind;
  const auto& name = choice->get_ref<const std::string&>();
  if (name != "auto" && name != "none" && name != "required")
    fields.refuse("tool_choice", "must be auto, none, required or a function");
  request.tool_choice.kind = name == "auto" ? Kind::Auto : name == "none" ? Kind::None : Kind::Required;
  return nullptr;
}

void check_tool_choice(const ServeRequest& request, const std::string& where) {
  const ToolChoice& choice = request.tool_choice;
  const bool needs = choice.kind == ToolChoice::Kind::Required || choice.kind == ToolChoice::Kind::Named;
  if (needs && request.chat.tools.empty()) throw Error(ErrorKind::Argument, "needs tools", where);
  if (needs && request.generation.grammar)
    throw Error(ErrorKind::Argument, "a call cannot be required together with a grammar or a schema", where);
  if (choice.kind != ToolChoice::Kind::Named) return;
  for (const text::ToolSchema& tool : text::parse_tool_schemas(request.chat.tools))
    if (tool.name == choice.name) return;
  throw Error(ErrorKind::Argument, fmt::format("no tool is named {}", choice.name.substr(0, 80)), where);
}

}  // namespace strata::server
