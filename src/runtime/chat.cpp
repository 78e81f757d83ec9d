#include "runtime/chat.h"

#include "runtime/reply_stream.h"

namespace strata {
namespace {

std::string token_text(const text::Tokenizer& tokenizer, std::optional<int32_t> id) {
  return id ? std::string(tokenizer.bytes(*id, true)) : std::string();
}

// Tokens that the prompt shares with every conversation of the same system turn and tools: with one that a user begins
// in two different ways.
int64_t system_turn_tokens(const Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
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
  return chat_template_of(engine, engine.model().file().get_string("tokenizer.chat_template").value_or(""));
}

text::ChatTemplate chat_template_of(const Engine& engine, const std::string& source) {
  const text::Tokenizer& tokenizer = engine.tokenizer();
  return {source, token_text(tokenizer, tokenizer.bos()), token_text(tokenizer, tokenizer.eos())};
}

PreparedChat prepare_chat(const Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
                          const GenerateRequest& generation) {
  const text::ChatPrompt prompt = chat.render(request);
  PreparedChat prepared{generation, {}};
  prepared.generate.prompt = text::encode_marked(prompt.text, engine.tokenizer());
  prepared.generate.stop.clear();
  if (engine.prompt_cache() != nullptr)
    prepared.generate.shared_prefix = system_turn_tokens(engine, chat, request, prepared.generate.prompt);
  prepared.reply.starts_in_thinking = prompt.starts_in_thinking;
  prepared.reply.parse_calls = !request.tools.empty();
  if (prepared.reply.parse_calls) prepared.reply.tools = text::parse_tool_schemas(request.tools);
  return prepared;
}

ChatReply chat_reply(Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
                     const GenerateRequest& generation, const ChatCallbacks& callbacks, HeldSequence* held) {
  const PreparedChat prepared = prepare_chat(engine, chat, request, generation);
  ReplyStream stream(prepared.reply, generation.stop, callbacks.event);
  GenerateCallbacks engine_callbacks;
  engine_callbacks.text = [&](std::string_view bytes) { return stream.push(bytes); };
  engine_callbacks.prompt_progress = callbacks.prompt_progress;
  engine_callbacks.interrupted = callbacks.interrupted;
  ChatReply reply;
  reply.prompt_tokens = prepared.generate.prompt.size();
  reply.result = engine.generate(prepared.generate, engine_callbacks, held);
  reply.parts = stream.finish();
  return reply;
}

}  // namespace strata
