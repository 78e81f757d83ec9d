// From events to the answers of the APIs, whole or as server-sent events. No sockets: text out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/events.h"
#include "server/request.h"

namespace strata::server {

struct ReplyFacts {
  std::string id;                                  // of the answer
  std::string model;                               // as the answer names it
  int64_t created = 0;                             // Unix time
  std::function<std::string(int32_t)> token_text;  // bytes of a token, control tokens too
  std::vector<std::string> prompts;                // Completions with echo, Native: the text of each
};

// What a choice has said so far.
struct ChoiceText {
  struct Call {
    std::string id, name, arguments;
    bool complete = false;
  };
  std::string reasoning, content;
  std::vector<Call> calls;
  std::vector<std::string> failures;  // why calls are none
  std::vector<TokenScore> scores;
  bool over = false;
  Ending ending;

  size_t complete_calls() const;
};

// One object for one request. Failed events are not for it: see error_text() and error_event().
class ReplyWriter {
 public:
  ReplyWriter(const ServeRequest& request, ReplyFacts facts);  // the request outlives it
  virtual ~ReplyWriter() = default;
  ReplyWriter(const ReplyWriter&) = delete;
  ReplyWriter& operator=(const ReplyWriter&) = delete;

  std::string begin();             // streamed: before the first event
  std::string take(const Event&);  // streamed: what it says; not streamed: ""
  std::string end();               // streamed: behind the last event
  std::string whole();             // not streamed, when all choices are over
  bool over() const;               // all choices are

 protected:
  virtual std::string on_begin() { return {}; }
  // `event` is already part of choice().
  virtual std::string on_event(const Event& event) = 0;
  virtual std::string on_end() { return {}; }
  virtual std::string on_whole() = 0;

  const ChoiceText& choice(const Event& event) const { return choices_[static_cast<size_t>(event.choice)]; }
  Ending total() const;  // token counts and times of all choices

  const ServeRequest& request_;
  const ReplyFacts facts_;
  std::vector<ChoiceText> choices_;
};

std::unique_ptr<ReplyWriter> make_writer(const ServeRequest& request, ReplyFacts facts);
std::unique_ptr<ReplyWriter> make_chat_writer(const ServeRequest& request, ReplyFacts facts);
std::unique_ptr<ReplyWriter> make_completions_writer(const ServeRequest& request, ReplyFacts facts);
std::unique_ptr<ReplyWriter> make_native_writer(const ServeRequest& request, ReplyFacts facts);
std::unique_ptr<ReplyWriter> make_responses_writer(const ServeRequest& request, ReplyFacts facts);
std::unique_ptr<ReplyWriter> make_messages_writer(const ServeRequest& request, ReplyFacts facts);

// Errors. `anthropic`: in the shape of that API.
struct ErrorFacts {
  int status = 500;
  std::string type;  // "": the one of the status
  std::string message, where;
  int64_t prompt_tokens = 0, context = 0;  // of a prompt that is too long
};
std::string error_text(const ErrorFacts& error, bool anthropic);
std::string error_event(const ErrorFacts& error, Api api);  // in a stream that has begun
int status_of(ErrorKind kind);                              // of an error of the engine

std::string new_id(const char* prefix);  // "chatcmpl-" and 24 random characters

}  // namespace strata::server
