#include "runtime/chat.h"

#include "text/stream.h"

namespace strata {
namespace {

using Kind = text::ReplyEvent::Kind;

// Reply bytes to events: stop strings are looked for in content alone, and what follows one is dropped.
class ReplyStream {
 public:
  ReplyStream(const text::ReplyOptions& options, const std::vector<std::string>& stop,
              const std::function<void(const text::ReplyEvent&)>& show)
      : parser_(options), stops_(stop), show_(show) {}

  bool push(std::string_view bytes) {  // false: a stop string was met
    handle(parser_.push(bytes));
    return !stops_.stopped();
  }

  text::ParsedReply finish() {
    if (!stops_.stopped()) handle(parser_.finish());
    if (!stops_.stopped()) content(stops_.finish());
    parts_.ended_in_thinking = parser_.in_thinking();
    return std::move(parts_);
  }

 private:
  void handle(const std::vector<text::ReplyEvent>& events) {
    for (const text::ReplyEvent& event : events) {
      if (stops_.stopped()) return;
      if (event.kind == Kind::Content)
        content(stops_.push(event.text));
      else
        other(event);
    }
  }

  void content(const std::string& text) {
    if (text.empty()) return;
    parts_.content += text;
    if (show_) show_({Kind::Content, -1, text});
  }

  void other(const text::ReplyEvent& event) {
    if (event.kind == Kind::Reasoning) parts_.reasoning += event.text;
    if (event.kind == Kind::CallBegin) open_ = {event.text, {}};
    if (event.kind == Kind::Arguments) open_.arguments += event.text;
    if (event.kind == Kind::CallEnd) parts_.calls.push_back(std::move(open_));
    if (event.kind == Kind::CallFailed) parts_.failures.push_back(event.text);
    if (show_) show_(event);
  }

  text::ReplyParser parser_;
  text::StopStrings stops_;
  const std::function<void(const text::ReplyEvent&)>& show_;
  text::ParsedReply parts_;
  text::ParsedCall open_;
};

std::string token_text(const text::Tokenizer& tokenizer, std::optional<int32_t> id) {
  return id ? std::string(tokenizer.bytes(*id, true)) : std::string();
}

// Tokens that the prompt shares with every conversation of the same system turn and tools: with one that a user begins
// in two different ways.
int64_t system_turn_tokens(Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
                           std::span<const int32_t> prompt) {
  text::ChatRequest other = request;
  std::erase_if(other.messages, [](const text::ChatMessage& m) { return m.role != "system" && m.role != "developer"; });
  int64_t shared = static_cast<int64_t>(prompt.size());
  for (const char* text : {"0", "A"}) {
    other.messages.push_back({.role = "user", .content = text});
    try {
      const std::vector<int32_t> tokens = text::encode_marked(chat.render(other).text, engine.tokenizer());
      shared = std::min(shared, common_prefix(tokens, prompt));
    } catch (const Error&) {
      return 0;  // the template has its own idea of a conversation: nothing is known to be shared
    }
    other.messages.pop_back();
  }
  return shared;
}

}  // namespace

text::ChatTemplate chat_template_of(const Engine& engine) {
  const text::Tokenizer& tokenizer = engine.tokenizer();
  const std::string source = engine.model().file().get_string("tokenizer.chat_template").value_or("");
  return {source, token_text(tokenizer, tokenizer.bos()), token_text(tokenizer, tokenizer.eos())};
}

ChatReply chat_reply(Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
                     const GenerateRequest& generation, const ChatCallbacks& callbacks, HeldSequence* held) {
  const text::ChatPrompt prompt = chat.render(request);
  GenerateRequest generate = generation;
  generate.prompt = text::encode_marked(prompt.text, engine.tokenizer());
  generate.stop.clear();
  if (engine.prompt_cache() != nullptr)
    generate.shared_prefix = system_turn_tokens(engine, chat, request, generate.prompt);

  text::ReplyOptions options;
  options.starts_in_thinking = prompt.starts_in_thinking;
  options.parse_calls = !request.tools.empty();
  if (options.parse_calls) options.tools = text::parse_tool_schemas(request.tools);
  ReplyStream stream(options, generation.stop, callbacks.event);

  GenerateCallbacks engine_callbacks;
  engine_callbacks.text = [&](std::string_view bytes) { return stream.push(bytes); };
  engine_callbacks.prompt_progress = callbacks.prompt_progress;
  engine_callbacks.interrupted = callbacks.interrupted;
  ChatReply reply;
  reply.prompt_tokens = generate.prompt.size();
  reply.result = engine.generate(generate, engine_callbacks, held);
  reply.parts = stream.finish();
  return reply;
}

}  // namespace strata
