// Answers of /v1/responses: items of reasoning, message and function call, one after another.
#include <nlohmann/json.hpp>

#include "server/reply_json.h"

namespace strata::server {
namespace {

using Kind = text::ReplyEvent::Kind;

class ResponsesWriter : public ReplyWriter {
 public:
  using ReplyWriter::ReplyWriter;

 private:
  enum class Item : uint8_t { None, Reasoning, Message, Call };

  static Json usage(const Ending& ending) {
    return {{"input_tokens", ending.prompt_tokens},
            {"input_tokens_details", {{"cached_tokens", ending.cached_tokens}}},
            {"output_tokens", ending.output_tokens},
            {"output_tokens_details", {{"reasoning_tokens", 0}}},
            {"total_tokens", ending.prompt_tokens + ending.output_tokens}};
  }

  Json response(const char* status, Json output) const {
    return {{"id", facts_.id},
            {"object", "response"},
            {"created_at", facts_.created},
            {"status", status},
            {"error", nullptr},
            {"incomplete_details", nullptr},
            {"instructions", nullptr},
            {"metadata", Json::object()},
            {"model", facts_.model},
            {"output", std::move(output)},
            {"parallel_tool_calls", request_.parallel_calls},
            {"temperature", request_.generation.sampler.temperature},
            {"tool_choice", "auto"},
            {"tools", Json::array()},
            {"top_p", request_.generation.sampler.top_p},
            {"store", false},
            {"usage", nullptr}};
  }

  Json final_response(Json output) const {
    const ChoiceText& one = choices_.front();
    const bool cut = std::string(openai_reason(one)) == "length";
    Json whole = response(cut ? "incomplete" : "completed", std::move(output));
    if (cut) whole["incomplete_details"] = {{"reason", "max_output_tokens"}};
    whole["usage"] = usage(total());
    whole["timings"] = timings_json(total());
    whole["finish_detail"] = to_string(one.ending.reason);
    return whole;
  }

  static Json text_part(const std::string& text) {
    return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
  }

  Json item(Item kind, const std::string& id, const std::string& text, const ChoiceText::Call* call,
            const char* status) const {
    if (kind == Item::Reasoning)
      return {{"id", id},
              {"type", "reasoning"},
              {"summary", Json::array()},
              {"content", text.empty() ? Json::array() : Json::array({{{"type", "reasoning_text"}, {"text", text}}})},
              {"status", status}};
    if (kind == Item::Message)
      return {{"id", id},
              {"type", "message"},
              {"role", "assistant"},
              {"status", status},
              {"content", status == std::string("in_progress") ? Json::array() : Json::array({text_part(text)})}};
    return {{"id", id},           {"type", "function_call"}, {"status", status}, {"call_id", call->id},
            {"name", call->name}, {"arguments", text}};
  }

  std::string send(const char* type, Json data) {
    Json whole{{"type", type}, {"sequence_number", sequence_++}};
    whole.update(data);
    return sse(type, whole);
  }

  std::string on_begin() override {
    const Json begun = response("in_progress", Json::array());
    std::string text = send("response.created", {{"response", begun}});
    return text + send("response.in_progress", {{"response", begun}});
  }

  Json place() const { return {{"item_id", id_}, {"output_index", output_.size()}, {"content_index", 0}}; }

  std::string send_at(const char* type, Json data) {
    Json whole = place();
    if (open_ == Item::Call) whole.erase("content_index");
    whole.update(data);
    return send(type, std::move(whole));
  }

  const ChoiceText::Call* call() const { return open_ == Item::Call ? &choices_.front().calls.back() : nullptr; }

  std::string open(Item kind) {
    std::string text = close();
    open_ = kind;
    text_.clear();
    id_ = new_id(kind == Item::Message ? "msg_" : kind == Item::Call ? "fc_" : "rs_");
    text += send("response.output_item.added",
                 {{"output_index", output_.size()}, {"item", item(kind, id_, "", call(), "in_progress")}});
    if (kind == Item::Message) text += send_at("response.content_part.added", {{"part", text_part("")}});
    return text;
  }

  std::string close(const char* status = "completed") {
    if (open_ == Item::None) return {};
    std::string text;
    if (open_ == Item::Message) {
      text = send_at("response.output_text.done", {{"text", text_}, {"logprobs", Json::array()}});
      text += send_at("response.content_part.done", {{"part", text_part(text_)}});
    } else if (open_ == Item::Reasoning) {
      text = send_at("response.reasoning_text.done", {{"text", text_}});
    } else {
      text = send_at("response.function_call_arguments.done", {{"name", call()->name}, {"arguments", text_}});
    }
    Json done = item(open_, id_, text_, call(), status);
    text += send("response.output_item.done", {{"output_index", output_.size()}, {"item", done}});
    output_.push_back(std::move(done));
    open_ = Item::None;
    return text;
  }

  std::string add(Item kind, const char* event, const std::string& more) {
    std::string text = open_ == kind ? std::string() : open(kind);
    text_ += more;
    Json data{{"delta", more}};
    if (kind == Item::Message) data["logprobs"] = Json::array();
    return text + send_at(event, std::move(data));
  }

  std::string on_event(const Event& event) override {
    if (event.kind != Event::Kind::Reply) return {};
    const std::string& more = event.reply.text;
    switch (event.reply.kind) {
      case Kind::Content: return add(Item::Message, "response.output_text.delta", more);
      case Kind::Reasoning: return add(Item::Reasoning, "response.reasoning_text.delta", more);
      case Kind::CallBegin: return open(Item::Call);
      case Kind::Arguments: return add(Item::Call, "response.function_call_arguments.delta", more);
      case Kind::CallEnd: return close();
      case Kind::CallFailed: return close("incomplete");
    }
    return {};
  }

  std::string on_end() override {
    std::string text = close();
    Json whole = final_response(output_);
    const std::string type = "response." + whole["status"].get<std::string>();
    return text + send(type.c_str(), {{"response", std::move(whole)}});
  }

  std::string on_whole() override {
    const ChoiceText& one = choices_.front();
    Json output = Json::array();
    if (!one.reasoning.empty())
      output.push_back(item(Item::Reasoning, new_id("rs_"), one.reasoning, nullptr, "completed"));
    if (!one.content.empty() || one.complete_calls() == 0)
      output.push_back(item(Item::Message, new_id("msg_"), one.content, nullptr, "completed"));
    for (const ChoiceText::Call& made : one.calls)
      if (made.complete) output.push_back(item(Item::Call, new_id("fc_"), made.arguments, &made, "completed"));
    return to_text(final_response(std::move(output)));
  }

  Item open_ = Item::None;
  std::string id_, text_;
  Json output_ = Json::array();
  int sequence_ = 0;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_responses_writer(const ServeRequest& request, ReplyFacts facts) {
  return std::make_unique<ResponsesWriter>(request, std::move(facts));
}

}  // namespace strata::server
