// Answers of /completion, llama.cpp's own API.
#include <nlohmann/json.hpp>

#include "server/reply_json.h"

namespace strata::server {

Json settings_json(const GenerateRequest& request) {
  const SamplerOptions& sampler = request.sampler;
  return {{"n_predict", request.max_tokens},
          {"seed", sampler.seed},
          {"temperature", sampler.temperature},
          {"top_k", sampler.top_k},
          {"top_p", sampler.top_p},
          {"min_p", sampler.min_p},
          {"repeat_last_n", sampler.penalty_window},
          {"repeat_penalty", sampler.repetition_penalty},
          {"presence_penalty", sampler.presence_penalty},
          {"frequency_penalty", sampler.frequency_penalty},
          {"ignore_eos", request.ignore_end},
          {"repeat_limit", request.repeat_limit}};
}

namespace {

const char* stop_type(FinishReason reason) {
  switch (reason) {
    case FinishReason::EndOfText: return "eos";
    case FinishReason::StopString: return "word";
    default: return "limit";
  }
}

class NativeWriter : public ReplyWriter {
 public:
  using ReplyWriter::ReplyWriter;

 private:
  Json piece(size_t index, const std::string& text, const std::vector<TokenScore>& scores, bool last) const {
    Json tokens = Json::array();
    for (const TokenScore& score : scores) tokens.push_back(score.token);
    Json one{{"index", index}, {"content", text}, {"tokens", std::move(tokens)}, {"stop", last}};
    if (request_.top_logprobs > 0 && !scores.empty())
      one["completion_probabilities"] = chat_scores(scores, facts_)["content"];
    return one;
  }

  Json ended(size_t index, const std::string& text, const std::vector<TokenScore>& scores) const {
    const ChoiceText& choice = choices_[index];
    const Ending& ending = choice.ending;
    const std::vector<std::string>& stops = request_.generation.stop;
    const auto stop = static_cast<size_t>(ending.stop);
    Json one = piece(index, text, scores, true);
    one.update({{"model", facts_.model},
                {"tokens_predicted", ending.output_tokens},
                {"tokens_evaluated", ending.prompt_tokens},
                {"tokens_cached", ending.cached_tokens},
                {"generation_settings", settings_json(request_.generation)},
                {"prompt", facts_.prompts[index / static_cast<size_t>(request_.choices)]},
                {"has_new_line", choice.content.find('\n') != std::string::npos},
                {"truncated", false},
                {"stop_type", stop_type(ending.reason)},
                {"stopping_word", ending.stop >= 0 && stop < stops.size() ? stops[stop] : std::string()},
                {"finish_detail", to_string(ending.reason)},
                {"timings", timings_json(ending)}});
    one["generation_settings"]["stop"] = stops;
    return one;
  }

  std::string on_event(const Event& event) override {
    const auto index = static_cast<size_t>(event.choice);
    if (event.kind == Event::Kind::Finished) return sse(ended(index, "", event.scores));
    if (event.kind == Event::Kind::Reply) return sse(piece(index, event.reply.text, event.scores, false));
    if (!request_.return_progress) return {};
    Json one = piece(index, "", {}, false);
    one["prompt_progress"] = {
        {"total", event.total}, {"cache", event.cached}, {"processed", event.done}, {"time_ms", event.seconds * 1e3}};
    return sse(one);
  }

  std::string on_whole() override {
    Json list = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) list.push_back(ended(i, choices_[i].content, choices_[i].scores));
    return to_text(list.size() == 1 ? list[0] : list);
  }
};

}  // namespace

std::unique_ptr<ReplyWriter> make_native_writer(const ServeRequest& request, ReplyFacts facts) {
  return std::make_unique<NativeWriter>(request, std::move(facts));
}

}  // namespace strata::server
