// POST /v1/completions, /tokenize, /detokenize
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "server/request_fields.h"

namespace strata::server {
namespace {

constexpr size_t kMaxPrompts = 64;

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

ServeRequest parse_completions_request(std::string_view body, const RequestDefaults& defaults) {
  const Json parsed = parse_object(body);
  const Fields fields(parsed, "");
  ServeRequest request;
  request.api = Api::Completions;
  request.generation = defaults.generation;
  request.model = fields.text("model").value_or("");
  read_stream(fields, request);
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) fields.refuse("prompt", "is missing");
  const bool several = prompt->is_array() && !is_tokens(*prompt);
  if (several && prompt->size() > kMaxPrompts) fields.refuse("prompt", fmt::format("over {} prompts", kMaxPrompts));
  if (several && prompt->empty()) fields.refuse("prompt", "is empty");
  if (several)
    for (const Json& one : *prompt) request.prompts.push_back(prompt_of(one, "prompt", defaults.vocabulary));
  else
    request.prompts.push_back(prompt_of(*prompt, "prompt", defaults.vocabulary));
  read_sampling(fields, defaults, request.generation);
  request.generation.max_tokens = 16;  // as the OpenAI API has it
  for (const char* name : {"n_predict", "max_tokens"})
    if (const auto limit = fields.integer(name, -1, kMaxTokens)) request.generation.max_tokens = *limit;
  if (const auto stop = fields.texts("stop", kMaxStops)) request.generation.stop = *stop;
  request.choices = fields.integer("n", 1, 64).value_or(1);
  if (const auto best = fields.integer("best_of", 1, 64); best && *best != request.choices)
    fields.refuse("best_of", "must be left out, or equal to n");
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty())
    fields.refuse("suffix", "is not supported: this server continues texts at their end");
  request.echo = fields.boolean("echo").value_or(false);
  if (const auto top = fields.integer("logprobs", 0, 20)) request.top_logprobs = static_cast<int>(*top);
  read_constraint(fields, request.generation);
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
