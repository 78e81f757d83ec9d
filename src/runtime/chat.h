// One reply of a model in a conversation: template, generation, and the reply split into thoughts, content and calls.
#pragma once

#include <functional>
#include <string>

#include "runtime/engine.h"
#include "text/chat.h"
#include "text/reply_parser.h"

namespace strata {

// The template of the model file, or ChatML where it has none. Error{Model} when the template cannot be read.
text::ChatTemplate chat_template_of(const Engine& engine);
text::ChatTemplate chat_template_of(const Engine& engine, const std::string& source);  // instead of the file's

// A conversation as the engine runs it: the prompt with the settings of `generation`, without its stop strings (they
// count in content only), and how to read the reply. Safe beside a running engine.
struct PreparedChat {
  GenerateRequest generate;
  text::ReplyOptions reply;
};
PreparedChat prepare_chat(const Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
                          const GenerateRequest& generation);

struct ChatReply {
  text::ParsedReply parts;
  GenerateResult result;
  size_t prompt_tokens = 0;
};

struct ChatCallbacks {
  std::function<void(const text::ReplyEvent&)> event;  // what is ready to be shown
  std::function<void(int64_t done, int64_t total)> prompt_progress;
  const std::atomic<bool>* interrupted = nullptr;
};

// Renders the request, generates with the settings of `generation` (its prompt is not used; its stop strings count in
// content only) and parses the reply. Error{Argument} when the template refuses the request.
ChatReply chat_reply(Engine& engine, const text::ChatTemplate& chat, const text::ChatRequest& request,
                     const GenerateRequest& generation, const ChatCallbacks& callbacks = {},
                     HeldSequence* held = nullptr);

}  // namespace strata
