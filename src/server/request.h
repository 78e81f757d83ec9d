// What a request asks for, whichever API it came by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/request.h"
#include "text/chat.h"
#include "text/reply_parser.h"

namespace strata::server {

// Native: llama.cpp's /completion.
enum class Api : uint8_t { Chat, Completions, Native, Responses, Messages, Embeddings };
inline bool continues_text(Api api) { return api == Api::Completions || api == Api::Native; }
const char* to_string(Api api);

// A request that is refused: `where` is the field that is wrong.
struct RequestError : Error {
  RequestError(int http_status, std::string error_type, const std::string& message, const std::string& where = {})
      : Error(ErrorKind::Argument, message, where), status(http_status), type(std::move(error_type)) {}
  int status;
  std::string type;                        // "" for the one that belongs to the status
  int retry_after = 0;                     // seconds; 0: not said
  int64_t prompt_tokens = 0, context = 0;  // where the prompt is too long
};

struct ToolChoice {
  enum class Kind : uint8_t { Auto, None, Required, Named };
  Kind kind = Kind::Auto;
  std::string name;  // Named
};

struct Prompt {
  std::string text;
  std::vector<int32_t> tokens;  // instead of the text
};

struct ServeRequest {
  Api api = Api::Chat;
  std::string model;  // as the client calls it; "" when it does not
  bool stream = false;
  bool include_usage = false;    // a last event with the usage
  bool return_progress = false;  // events while the prompt is read
  bool echo = false;             // Completions: the prompt before its continuation
  bool show_reasoning = true;
  bool parallel_calls = true;
  int64_t choices = 1;
  int top_logprobs = -1;        // alternatives shown beside each token; -1: no log-probabilities
  text::ChatRequest chat;       // where no text is continued
  std::vector<Prompt> prompts;  // where one is: one or more
  ToolChoice tool_choice;
  text::ReasoningFormat reasoning = text::ReasoningFormat::Separate;
  GenerateRequest generation;  // all but the prompt
};

// What holds where a request says nothing.
struct RequestDefaults {
  GenerateRequest generation;
  text::ChatRequest chat;
  text::ReasoningFormat reasoning = text::ReasoningFormat::Separate;
  int64_t vocabulary = 0;
};

// Error{Argument}, also as RequestError, naming the field.
ServeRequest parse_chat_request(std::string_view body, const RequestDefaults& defaults);
ServeRequest parse_completions_request(std::string_view body, const RequestDefaults& defaults);
ServeRequest parse_native_request(std::string_view body, const RequestDefaults& defaults);
ServeRequest parse_responses_request(std::string_view body, const RequestDefaults& defaults);
ServeRequest parse_messages_request(std::string_view body, const RequestDefaults& defaults);

struct EmbeddingsRequest {
  std::vector<Prompt> inputs;
  bool base64 = false, normalised = true;
};
// `native`: in llama.cpp's own form, where the text may be called content. `width`: of a vector.
EmbeddingsRequest parse_embeddings_request(std::string_view body, int64_t vocabulary, int64_t width, bool native);

struct TokenizeRequest {
  std::string content;
  bool add_special = false, parse_special = true, with_pieces = false;
};
TokenizeRequest parse_tokenize_request(std::string_view body);
std::vector<int32_t> parse_detokenize_request(std::string_view body, int64_t vocabulary);

}  // namespace strata::server
