// Answers of /v1/messages: blocks of thinking, text and tool use, one after another.
#include <nlohmann/json.hpp>

#include "server/reply_json.h"

namespace strata::server {
namespace {

using Kind = text::ReplyEvent::Kind;

// The arguments of a complete call, which are an object.
Json input_of(const std::string& arguments) {
  const Json parsed = Json::parse(arguments, nullptr, false);
  return parsed.is_object() ? parsed : Json::object();
}

class MessagesWriter : public ReplyWriter {
 public:
  using ReplyWriter::ReplyWriter;

 private:
  enum class Block : uint8_t { None, Thinking, Text, Tool };

  static Json usage(const Ending& ending) {
    return {{"input_tokens", ending.prompt_tokens - ending.cached_tokens},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", ending.cached_tokens},
            {"output_tokens", ending.output_tokens}};
  }

  Json message(Json content) const {
    return {{"id", facts_.id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", facts_.model},
            {"content", std::move(content)},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
  }

  Json stop_reason() const {
    const ChoiceText& one = choices_.front();
    if (one.ending.stop >= 0) return "stop_sequence";
    const std::string reason = openai_reason(one);
    return reason == "tool_calls" ? "tool_use" : reason == "length" ? "max_tokens" : "end_turn";
  }

  Json stop_sequence() const {
    const int32_t stop = choices_.front().ending.stop;
    return stop < 0 ? Json() : Json(request_.generation.stop[static_cast<size_t>(stop)]);
  }

  std::string on_begin() override {
    Json begun = message(Json::array());
    begun["usage"] = usage({});
    return sse("message_start", {{"type", "message_start"}, {"message", std::move(begun)}});
  }

  std::string close() {
    if (open_ == Block::None) return {};
    open_ = Block::None;
    return sse("content_block_stop", {{"type", "content_block_stop"}, {"index", index_++}});
  }

  std::string open(Block block, Json content) {
    std::string text = close();
    open_ = block;
    return text + sse("content_block_start",
                      {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(content)}});
  }

  std::string delta(Json delta) const {
    return sse("content_block_delta",
               {{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
  }

  std::string on_event(const Event& event) override {
    if (event.kind == Event::Kind::Progress) return sse("ping", {{"type", "ping"}});
    if (event.kind != Event::Kind::Reply) return {};
    const text::ReplyEvent& reply = event.reply;
    std::string text;
    switch (reply.kind) {
      case Kind::Content:
        if (open_ != Block::Text) text = open(Block::Text, {{"type", "text"}, {"text", ""}});
        return text + delta({{"type", "text_delta"}, {"text", reply.text}});
      case Kind::Reasoning:
        if (!request_.show_reasoning) return {};
        if (open_ != Block::Thinking)
          text = open(Block::Thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        return text + delta({{"type", "thinking_delta"}, {"thinking", reply.text}});
      case Kind::CallBegin: {
        const ChoiceText::Call& call = choice(event).calls.back();
        return open(Block::Tool,
                    {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", Json::object()}});
      }
      case Kind::Arguments: return delta({{"type", "input_json_delta"}, {"partial_json", reply.text}});
      case Kind::CallEnd:
      case Kind::CallFailed: return close();
    }
    return {};
  }

  std::string on_end() override {
    const Ending sum = total();
    std::string text = close();
    text += sse("message_delta", {{"type", "message_delta"},
                                  {"delta", {{"stop_reason", stop_reason()}, {"stop_sequence", stop_sequence()}}},
                                  {"usage", usage(sum)},
                                  {"timings", timings_json(sum)}});
    return text + sse("message_stop", {{"type", "message_stop"}});
  }

  std::string on_whole() override {
    const ChoiceText& one = choices_.front();
    Json content = Json::array();
    if (request_.show_reasoning && !one.reasoning.empty())
      content.push_back({{"type", "thinking"}, {"thinking", one.reasoning}, {"signature", ""}});
    if (!one.content.empty()) content.push_back({{"type", "text"}, {"text", one.content}});
    for (const ChoiceText::Call& call : one.calls)
      if (call.complete)
        content.push_back(
            {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call.arguments)}});
    Json whole = message(std::move(content));
    whole["stop_reason"] = stop_reason();
    whole["stop_sequence"] = stop_sequence();
    whole["usage"] = usage(total());
    whole["timings"] = timings_json(total());
    return to_text(whole);
  }

  Block open_ = Block::None;
  int index_ = 0;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_messages_writer(const ServeRequest& request, ReplyFacts facts) {
  return std::make_unique<MessagesWriter>(request, std::move(facts));
}

}  // namespace strata::server
