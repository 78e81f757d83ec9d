// Bytes of a reply to events. Stop strings are looked for in content alone, and what follows one is dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/reply_parser.h"
#include "text/stream.h"

namespace strata {

class ReplyStream {
 public:
  using Show = std::function<void(const text::ReplyEvent&)>;

  ReplyStream(const text::ReplyOptions& options, const std::vector<std::string>& stop, Show show)
      : parser_(options), stops_(stop), show_(std::move(show)) {}

  bool push(std::string_view bytes);  // false: a stop string was met
  text::ParsedReply finish();
  int32_t matched_stop() const { return stops_.matched(); }  // its number; -1: none

 private:
  void handle(const std::vector<text::ReplyEvent>& events);
  void content(const std::string& text);
  void other(const text::ReplyEvent& event);

  text::ReplyParser parser_;
  text::StopStrings stops_;
  Show show_;
  text::ParsedReply parts_;
  text::ParsedCall open_;
};

}  // namespace strata
