#include "server/reply.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/random.h"
#include "server/reply_json.h"

namespace strata::server {

size_t ChoiceText::complete_calls() const {
  return static_cast<size_t>(std::count_if(calls.begin(), calls.end(), [](const Call& call) { return call.complete; }));
}

ReplyWriter::ReplyWriter(const ServeRequest& request, ReplyFacts facts) : request_(request), facts_(std::move(facts)) {
  const size_t prompts = continues_text(request.api) ? request.prompts.size() : 1;
  choices_.resize(prompts * static_cast<size_t>(request.choices));
}

std::string ReplyWriter::begin() { return on_begin(); }

std::string ReplyWriter::take(const Event& event) {
  using Kind = text::ReplyEvent::Kind;
  ChoiceText& held = choices_[static_cast<size_t>(event.choice)];
  held.scores.insert(held.scores.end(), event.scores.begin(), event.scores.end());
  if (event.kind == Event::Kind::Finished) {
    held.over = true;
    held.ending = event.ending;
  }
  if (event.kind == Event::Kind::Reply) {
    const text::ReplyEvent& reply = event.reply;
    if (reply.kind == Kind::Content) held.content += reply.text;
    if (reply.kind == Kind::Reasoning) held.reasoning += reply.text;
    if (reply.kind == Kind::CallBegin) held.calls.push_back({new_id("call_"), reply.text, {}, false});
    if (reply.kind == Kind::Arguments && !held.calls.empty()) held.calls.back().arguments += reply.text;
    if (reply.kind == Kind::CallEnd && !held.calls.empty()) held.calls.back().complete = true;
    if (reply.kind == Kind::CallFailed) held.failures.push_back(reply.text);
  }
  return request_.stream ? on_event(event) : std::string();
}

std::string ReplyWriter::end() { return on_end(); }
std::string ReplyWriter::whole() { return on_whole(); }

bool ReplyWriter::over() const {
  return std::all_of(choices_.begin(), choices_.end(), [](const ChoiceText& one) { return one.over; });
}

Ending ReplyWriter::total() const {
  Ending sum = choices_.front().ending;
  for (size_t i = 1; i < choices_.size(); ++i) {
    const Ending& one = choices_[i].ending;
    // Choices of one prompt share it: it counts once.
    if (i % static_cast<size_t>(request_.choices) == 0) {
      sum.prompt_tokens += one.prompt_tokens;
      sum.cached_tokens += one.cached_tokens;
    }
    sum.output_tokens += one.output_tokens;
    sum.prompt_seconds = std::max(sum.prompt_seconds, one.prompt_seconds);
    sum.output_seconds = std::max(sum.output_seconds, one.output_seconds);
    for (size_t p = 0; p < sum.drafts.size(); ++p) {
      sum.drafts[p].tried += one.drafts[p].tried;
      sum.drafts[p].accepted += one.drafts[p].accepted;
    }
  }
  return sum;
}

std::unique_ptr<ReplyWriter> make_writer(const ServeRequest& request, ReplyFacts facts) {
  switch (request.api) {
    case Api::Chat: return make_chat_writer(request, std::move(facts));
    case Api::Completions: return make_completions_writer(request, std::move(facts));
    case Api::Native: return make_native_writer(request, std::move(facts));
    case Api::Responses: return make_responses_writer(request, std::move(facts));
    case Api::Messages: return make_messages_writer(request, std::move(facts));
    case Api::Embeddings: break;
  }
  return nullptr;
}

std::string sse(const Json& data) { return "data: " + to_text(data) + "\n\n"; }

std::string sse(const std::string& event, const Json& data) {
  return "event: " + event + "\ndata: " + to_text(data) + "\n\n";
}

Json timings_json(const Ending& ending) {
  const auto run = static_cast<double>(ending.prompt_tokens - ending.cached_tokens);
  const auto output = static_cast<double>(ending.output_tokens);
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
  const double later = std::max(output - 1, 0.0);  // tokens that output_seconds belongs to
  return {{"cache_n", ending.cached_tokens},
          {"prompt_n", ending.prompt_tokens - ending.cached_tokens},
          {"prompt_ms", ending.prompt_seconds * 1e3},
          {"prompt_per_token_ms", ratio(ending.prompt_seconds * 1e3, run)},
          {"prompt_per_second", ratio(run, ending.prompt_seconds)},
          {"predicted_n", ending.output_tokens},
          {"predicted_ms", ending.output_seconds * 1e3},
          {"predicted_per_token_ms", ratio(ending.output_seconds * 1e3, later)},
          {"predicted_per_second", ratio(later, ending.output_seconds)},
          {"queue_ms", ending.queue_seconds * 1e3},
          {"draft_n", ending.drafted()},
          {"draft_n_accepted", ending.accepted()}};
}

Json usage_json(const Ending& ending) {
  return {{"prompt_tokens", ending.prompt_tokens},
          {"completion_tokens", ending.output_tokens},
          {"total_tokens", ending.prompt_tokens + ending.output_tokens},
          {"prompt_tokens_details", {{"cached_tokens", ending.cached_tokens}}},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", ending.accepted()},
            {"rejected_prediction_tokens", ending.drafted() - ending.accepted()}}}};
}

const char* openai_reason(const ChoiceText& choice) {
  const FinishReason reason = choice.ending.reason;
  const bool cut = reason != FinishReason::EndOfText && reason != FinishReason::StopString;
  if (cut) return "length";
  return choice.complete_calls() > 0 ? "tool_calls" : "stop";
}

Json chat_scores(const std::vector<TokenScore>& scores, const ReplyFacts& facts) {
  const auto one = [&](int32_t token, float logprob) {
    const std::string text = facts.token_text(token);
    Json bytes = Json::array();
    for (const char c : text) bytes.push_back(static_cast<unsigned>(static_cast<unsigned char>(c)));
    return Json{{"id", token}, {"token", text}, {"logprob", logprob}, {"bytes", std::move(bytes)}};
  };
  Json content = Json::array();
  for (const TokenScore& score : scores) {
    Json entry = one(score.token, score.logprob);
    entry["top_logprobs"] = Json::array();
    for (const auto& [token, logprob] : score.top) entry["top_logprobs"].push_back(one(token, logprob));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Argument:
    case ErrorKind::Usage: return 400;
    case ErrorKind::Memory:
    case ErrorKind::Interrupted: return 503;
    default: return 500;
  }
}

namespace {

const char* openai_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

const char* anthropic_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

Json error_json(const ErrorFacts& error, bool anthropic) {
  if (anthropic)
    return {{"type", "error"}, {"error", {{"type", anthropic_type(error.status)}, {"message", error.message}}}};
  Json inner{{"code", error.status},
             {"message", error.message},
             {"type", error.type.empty() ? openai_type(error.status) : error.type},
             {"param", error.where.empty() ? Json() : Json(error.where)}};
  if (error.context > 0) inner.update({{"n_prompt_tokens", error.prompt_tokens}, {"n_ctx", error.context}});
  return {{"error", std::move(inner)}};
}

}  // namespace

std::string error_text(const ErrorFacts& error, bool anthropic) { return to_text(error_json(error, anthropic)); }

std::string error_event(const ErrorFacts& error, Api api) {
  const Json data = error_json(error, api == Api::Messages);
  if (api == Api::Messages) return sse("error", data);
  if (api == Api::Responses)
    return sse("error",
               {{"type", "error"}, {"code", data["error"]["type"]}, {"message", error.message}, {"param", nullptr}});
  return sse(data);
}

std::string new_id(const char* prefix) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::random_device source;
  Random random((uint64_t{source()} << 32) | source());
  std::string id = prefix;
  for (int i = 0; i < 24; ++i) id += kDigits[static_cast<size_t>(random.below(static_cast<int64_t>(kDigits.size())))];
  return id;
}

}  // namespace strata::server
