// Answers of /v1/chat/completions.
#include <nlohmann/json.hpp>

#include "server/reply_json.h"

namespace strata::server {
namespace {

using Kind = text::ReplyEvent::Kind;

class ChatWriter : public ReplyWriter {
 public:
  using ReplyWriter::ReplyWriter;

 private:
  Json chunk(Json choices) const {
    return {{"id", facts_.id},
            {"object", "chat.completion.chunk"},
            {"created", facts_.created},
            {"model", facts_.model},
            {"choices", std::move(choices)}};
  }

  std::string delta(const Event& event, Json delta, const char* reason = nullptr) const {
    Json one{{"index", event.choice}, {"delta", std::move(delta)}};
    if (request_.top_logprobs >= 0) one["logprobs"] = chat_scores(event.scores, facts_);
    one["finish_reason"] = reason == nullptr ? Json() : Json(reason);
    if (reason != nullptr) add_details(one, choice(event));
    Json whole = chunk(Json::array({std::move(one)}));
    if (reason != nullptr) whole["timings"] = timings_json(event.ending);
    return sse(whole);
  }

  // What the reason of the API cannot say.
  static void add_details(Json& one, const ChoiceText& choice) {
    one["finish_detail"] = to_string(choice.ending.reason);
    if (choice.ending.ended_in_thinking) one["ended_in_thinking"] = true;
    if (!choice.failures.empty()) one["failed_tool_calls"] = choice.failures;
  }

  std::string on_begin() override {
    std::string text;
    for (size_t i = 0; i < choices_.size(); ++i) {
      Json one{{"index", i}, {"delta", {{"role", "assistant"}, {"content", ""}}}, {"finish_reason", nullptr}};
      text += sse(chunk(Json::array({std::move(one)})));
    }
    return text;
  }

  std::string on_event(const Event& event) override {
    if (event.kind == Event::Kind::Progress) return progress(event);
    if (event.kind == Event::Kind::Finished) return delta(event, Json::object(), openai_reason(choice(event)));
    const text::ReplyEvent& reply = event.reply;
    switch (reply.kind) {
      case Kind::Content: return delta(event, {{"content", reply.text}});
      case Kind::Reasoning: return delta(event, {{"reasoning_content", reply.text}});
      case Kind::CallBegin: {
        const ChoiceText::Call& call = choice(event).calls.back();
        return call_delta(event, {{"index", reply.call},
                                  {"id", call.id},
                                  {"type", "function"},
                                  {"function", {{"name", call.name}, {"arguments", ""}}}});
      }
      case Kind::Arguments:
        return call_delta(event, {{"index", reply.call}, {"function", {{"arguments", reply.text}}}});
      case Kind::CallEnd:
      case Kind::CallFailed: return {};
    }
    return {};
  }

  std::string call_delta(const Event& event, Json call) const {
    return delta(event, {{"tool_calls", Json::array({std::move(call)})}});
  }

  std::string progress(const Event& event) const {
    if (!request_.return_progress) return {};
    Json whole = chunk(Json::array());
    whole["prompt_progress"] = {
        {"total", event.total}, {"cache", event.cached}, {"processed", event.done}, {"time_ms", event.seconds * 1e3}};
    return sse(whole);
  }

  std::string on_end() override {
    std::string text;
    if (request_.include_usage) {
      Json whole = chunk(Json::array());
      whole["usage"] = usage_json(total());
      text = sse(whole);
    }
    return text + "data: [DONE]\n\n";
  }

  Json message(const ChoiceText& choice) const {
    Json message{{"role", "assistant"}};
    const bool only_calls = choice.content.empty() && choice.complete_calls() > 0;
    message["content"] = only_calls ? Json() : Json(choice.content);
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    for (const ChoiceText::Call& call : choice.calls)
      if (call.complete)
        message["tool_calls"].push_back({{"id", call.id},
                                         {"type", "function"},
                                         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    return message;
  }

  std::string on_whole() override {
    Json list = Json::array();
    for (const ChoiceText& one : choices_) {
      Json entry{{"index", list.size()}, {"message", message(one)}};
      entry["logprobs"] = request_.top_logprobs >= 0 ? chat_scores(one.scores, facts_) : Json();
      entry["finish_reason"] = openai_reason(one);
      add_details(entry, one);
      list.push_back(std::move(entry));
    }
    const Ending sum = total();
    return to_text({{"id", facts_.id},
                    {"object", "chat.completion"},
                    {"created", facts_.created},
                    {"model", facts_.model},
                    {"choices", std::move(list)},
                    {"usage", usage_json(sum)},
                    {"timings", timings_json(sum)}});
  }
};

}  // namespace

std::unique_ptr<ReplyWriter> make_chat_writer(const ServeRequest& request, ReplyFacts facts) {
  return std::make_unique<ChatWriter>(request, std::move(facts));
}

}  // namespace strata::server
