// Answers of /v1/completions.
#include <nlohmann/json.hpp>

#include "server/reply_json.h"

namespace strata::server {
namespace {

class CompletionsWriter : public ReplyWriter {
 public:
  using ReplyWriter::ReplyWriter;

 private:
  Json whole_json(Json choices) const {
    return {{"id", facts_.id},
            {"object", "text_completion"},
            {"created", facts_.created},
            {"model", facts_.model},
            {"choices", std::move(choices)}};
  }

  Json scores(const std::vector<TokenScore>& list, size_t offset) const {
    Json tokens = Json::array(), logprobs = Json::array(), top = Json::array(), offsets = Json::array();
    for (const TokenScore& score : list) {
      const std::string text = facts_.token_text(score.token);
      tokens.push_back(text);
      logprobs.push_back(score.logprob);
      Json others = Json::object();
      for (const auto& [token, logprob] : score.top) others[facts_.token_text(token)] = logprob;
      top.push_back(std::move(others));
      offsets.push_back(offset);
      offset += text.size();
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(logprobs)},
            {"top_logprobs", std::move(top)},
            {"text_offset", std::move(offsets)}};
  }

  std::string echoed(size_t index) const {
    if (!request_.echo) return {};
    return facts_.prompts[index / static_cast<size_t>(request_.choices)];
  }

  Json choice_json(size_t index, const std::string& text, const std::vector<TokenScore>& list,
                   const char* reason) const {
    Json one{{"index", index}, {"text", text}};
    one["logprobs"] = request_.top_logprobs >= 0 ? scores(list, 0) : Json();
    one["finish_reason"] = reason == nullptr ? Json() : Json(reason);
    if (reason != nullptr) one["finish_detail"] = to_string(choices_[index].ending.reason);
    return one;
  }

  std::string on_begin() override {
    std::string text;
    for (size_t i = 0; request_.echo && i < choices_.size(); ++i)
      text += sse(whole_json(Json::array({choice_json(i, echoed(i), {}, nullptr)})));
    return text;
  }

  std::string on_event(const Event& event) override {
    const auto index = static_cast<size_t>(event.choice);
    if (event.kind == Event::Kind::Progress) {
      if (!request_.return_progress) return {};
      Json whole = whole_json(Json::array());
      whole["prompt_progress"] = {
          {"total", event.total}, {"cache", event.cached}, {"processed", event.done}, {"time_ms", event.seconds * 1e3}};
      return sse(whole);
    }
    const bool ends = event.kind == Event::Kind::Finished;
    Json whole = whole_json(Json::array({choice_json(index, ends ? std::string() : event.reply.text, event.scores,
                                                     ends ? openai_reason(choice(event)) : nullptr)}));
    if (ends) whole["timings"] = timings_json(event.ending);
    return sse(whole);
  }

  std::string on_end() override {
    std::string text;
    if (request_.include_usage) {
      Json whole = whole_json(Json::array());
      whole["usage"] = usage_json(total());
      text = sse(whole);
    }
    return text + "data: [DONE]\n\n";
  }

  std::string on_whole() override {
    Json list = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i)
      list.push_back(choice_json(i, echoed(i) + choices_[i].content, choices_[i].scores, openai_reason(choices_[i])));
    Json whole = whole_json(std::move(list));
    const Ending sum = total();
    whole["usage"] = usage_json(sum);
    whole["timings"] = timings_json(sum);
    return to_text(whole);
  }
};

}  // namespace

std::unique_ptr<ReplyWriter> make_completions_writer(const ServeRequest& request, ReplyFacts facts) {
  return std::make_unique<CompletionsWriter>(request, std::move(facts));
}

}  // namespace strata::server
