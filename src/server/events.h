// What comes back from the engine for a request, and the bounded channel that it comes through.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/request.h"
#include "text/reply_parser.h"

namespace strata::server {

// A chosen token and its log-probability, before penalties and grammar.
struct TokenScore {
  int32_t token = 0;
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;  // the most likely first
};

struct Ending {
  FinishReason reason = FinishReason::Length;
  int32_t stop = -1;  // number of the stop string that was met
  bool ended_in_thinking = false;
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  double queue_seconds = 0, prompt_seconds = 0, output_seconds = 0;  // output: after the first token
  std::array<DraftLength::Position, kMaxDrafts> drafts{};

  int64_t drafted() const;  // draft tokens that were tried
  int64_t accepted() const;
};

struct Event {
  enum class Kind : uint8_t { Progress, Reply, Finished, Failed };
  Kind kind = Kind::Reply;
  int choice = 0;
  text::ReplyEvent reply = {};              // Reply
  std::vector<TokenScore> scores = {};      // Reply, Finished: tokens since the event before
  int64_t done = 0, total = 0, cached = 0;  // Progress: tokens of the prompt
  double seconds = 0;
  Ending ending = {};                     // Finished
  std::vector<float> embedding = {};      // Finished, where vectors were asked for
  ErrorKind error = ErrorKind::Argument;  // Failed
  std::string message = {};
};

// One writer, one reader. What the reader has not taken yet is joined where that changes nothing.
class Channel {
 public:
  explicit Channel(size_t limit_bytes = size_t{16} << 20) : limit_(limit_bytes) {}

  bool push(Event event);  // false: the reader is too far behind, and the event is dropped
  std::optional<Event> pop(std::chrono::milliseconds wait);  // none: nothing came in time

 private:
  bool join(Event& event);
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Event> events_;
  const size_t limit_;
  size_t bytes_ = 0;
};

}  // namespace strata::server
