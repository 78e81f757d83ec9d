// POST /v1/completions, /completion, /v1/embeddings, /tokenize, /detokenize
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/request_fields.h"

namespace strata::server {
namespace {

bool is_tokens(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const Json& item) { return item.is_number(); });
}

std::vector<int32_t> tokens_of(const Json& list, const std::string& where, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& item : list) {
    const int64_t id = item.is_number_integer() ? item.get<int64_t>() : -1;
    if (id < 0 || id >= vocabulary)
      throw Error(ErrorKind::Argument, fmt::format("{} is no token of this model", item.dump().substr(0, 40)), where);
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

Prompt prompt_of(const Json& value, const std::string& where, int64_t vocabulary) {
  if (value.is_string()) return {value.get<std::string>(), {}};
  if (is_tokens(value)) return {{}, tokens_of(value, where, vocabulary)};
  throw Error(ErrorKind::Argument, "must be a string, token ids, or a list of those", where);
}

}  // namespace

std::vector<Prompt> read_prompts(const Fields& fields, const char* name, size_t most, int64_t vocabulary) {
  const Json* value = fields.find(name);
  if (value == nullptr) fields.refuse(name, "is missing");
  const std::string where = fields.place(name);
  if (!value->is_array() || is_tokens(*value)) return {prompt_of(*value, where, vocabulary)};
  if (value->empty()) fields.refuse(name, "is empty");
  if (value->size() > most) fields.refuse(name, fmt::format("has {} texts, at most {}", value->size(), most));
  std::vector<Prompt> prompts;
  for (const Json& one : *value) prompts.push_back(prompt_of(one, where, vocabulary));
  return prompts;
}

namespace {

// What both forms have.
ServeRequest begin_request(const Fields& fields, const RequestDefaults& defaults, Api api) {
  ServeRequest request;
  request.api = api;
  request.generation = defaults.generation;
  if (api == Api::Completions) request.generation.max_tokens = 16;  // as the OpenAI API has it
  request.model = fields.text("model").value_or("");
  read_stream(fields, request);
  request.prompts = read_prompts(fields, "prompt", kMaxPrompts, defaults.vocabulary);
  read_sampling(fields, defaults, request.generation);
  for (const char* name : {"n_predict", "max_tokens"})
    if (const auto limit = fields.integer(name, -1, kMaxTokens)) request.generation.max_tokens = *limit;
  if (const auto stop = fields.texts("stop", kMaxStops)) request.generation.stop = *stop;
  request.choices = fields.integer("n", 1, 64).value_or(1);
  read_constraint(fields, request.generation);
  return request;
}

}  // namespace

ServeRequest parse_completions_request(std::string_view body, const RequestDefaults& defaults) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  ServeRequest request = begin_request(fields, defaults, Api::Completions);
  if (const auto best = fields.integer("best_of", 1, 64); best && *best != request.choices)
    fields.refuse("best_of", "must be left out, or equal to n");
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty())
    fields.refuse("suffix", "is not supported: this server continues texts at their end");
  request.echo = fields.boolean("echo").value_or(false);
  if (const auto top = fields.integer("logprobs", 0, 20)) request.top_logprobs = static_cast<int>(*top);
  return request;
}

ServeRequest parse_native_request(std::string_view body, const RequestDefaults& defaults) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  ServeRequest request = begin_request(fields, defaults, Api::Native);
  if (fields.boolean("return_tokens").value_or(false)) request.top_logprobs = 0;  // scores name their tokens
  if (const auto top = fields.integer("n_probs", 0, 100); top && *top > 0)
    request.top_logprobs = static_cast<int>(*top);
  return request;
}

EmbeddingsRequest parse_embeddings_request(std::string_view body, int64_t vocabulary, int64_t width, bool native) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  EmbeddingsRequest request;
  const char* name = native && fields.find("input") == nullptr ? "content" : "input";
  request.inputs = read_prompts(fields, name, kMaxInputs, vocabulary);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "must be float or base64");
  request.base64 = format == "base64";
  if (const auto wanted = fields.integer("dimensions", 1, kMaxTokens); wanted && *wanted != width)
    fields.refuse("dimensions", fmt::format("vectors of this model have {} numbers, and a part of one means nothing: "
                                            "leave it out",
                                            width));
  const auto norm = fields.integer("embd_normalize", -1, 2).value_or(2);
  if (norm != -1 && norm != 2) fields.refuse("embd_normalize", "must be 2, to length 1, or -1, as they are");
  request.normalised = norm == 2;
  return request;
}

TokenizeRequest parse_tokenize_request(std::string_view body) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  TokenizeRequest request;
  const auto content = fields.text("content");
  if (!content) fields.refuse("content", "is missing");
  request.content = *content;
  request.add_special = fields.boolean("add_special").value_or(false);
  request.parse_special = fields.boolean("parse_special").value_or(true);
  request.with_pieces = fields.boolean("with_pieces").value_or(false);
  return request;
}

std::vector<int32_t> parse_detokenize_request(std::string_view body, int64_t vocabulary) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  const Json* tokens = fields.array("tokens");
  if (tokens == nullptr) fields.refuse("tokens", "is missing");
  return tokens_of(*tokens, "tokens", vocabulary);
}

}  // namespace strata::server
