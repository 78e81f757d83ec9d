#include "runtime/reply_stream.h"

namespace strata {

using Kind = text::ReplyEvent::Kind;

bool ReplyStream::push(std::string_view bytes) {
  handle(parser_.push(bytes));
  return !stops_.stopped();
}

text::ParsedReply ReplyStream::finish() {
  if (!stops_.stopped()) handle(parser_.finish());
  if (!stops_.stopped()) content(stops_.finish());
  parts_.ended_in_thinking = parser_.in_thinking();
  return std::move(parts_);
}

void ReplyStream::handle(const std::vector<text::ReplyEvent>& events) {
  for (const text::ReplyEvent& event : events) {
    if (stops_.stopped()) return;
    if (event.kind == Kind::Content)
      content(stops_.push(event.text));
    else
      other(event);
  }
}

void ReplyStream::content(const std::string& text) {
  if (text.empty()) return;
  parts_.content += text;
  if (show_) show_({Kind::Content, -1, text});
}

void ReplyStream::other(const text::ReplyEvent& event) {
  if (event.kind == Kind::Reasoning) parts_.reasoning += event.text;
  if (event.kind == Kind::CallBegin) open_ = {event.text, {}};
  if (event.kind == Kind::Arguments) open_.arguments += event.text;
  if (event.kind == Kind::CallEnd) parts_.calls.push_back(std::move(open_));
  if (event.kind == Kind::CallFailed) parts_.failures.push_back(event.text);
  if (show_) show_(event);
}

}  // namespace strata
