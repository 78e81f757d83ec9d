#include "server/events.h"

namespace strata::server {
namespace {

size_t size_of(const Event& event) {
  size_t bytes = sizeof(Event) + event.reply.text.size() + event.message.size();
  for (const TokenScore& score : event.scores) bytes += sizeof(TokenScore) + score.top.size() * sizeof(score.top[0]);
  return bytes;
}

}  // namespace

int64_t Ending::drafted() const {
  int64_t sum = 0;
  for (const DraftLength::Position& position : drafts) sum += position.tried;
  return sum;
}

int64_t Ending::accepted() const {
  int64_t sum = 0;
  for (const DraftLength::Position& position : drafts) sum += position.accepted;
  return sum;
}

// Text that goes on in the same way, or a newer progress.
bool Channel::join(Event& event) {
  if (events_.empty()) return false;
  Event& last = events_.back();
  if (last.kind != event.kind || last.choice != event.choice) return false;
  if (event.kind == Event::Kind::Progress) {
    last = std::move(event);
    return true;
  }
  using Kind = text::ReplyEvent::Kind;
  const Kind kind = event.reply.kind;
  const bool text = kind == Kind::Content || kind == Kind::Reasoning || kind == Kind::Arguments;
  if (event.kind != Event::Kind::Reply || !text || last.reply.kind != kind || last.reply.call != event.reply.call)
    return false;
  bytes_ += size_of(event) - sizeof(Event);
  last.reply.text += event.reply.text;
  for (TokenScore& score : event.scores) last.scores.push_back(std::move(score));
  return true;
}

bool Channel::push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    const bool ends = event.kind == Event::Kind::Finished || event.kind == Event::Kind::Failed;
    if (!ends && bytes_ + size_of(event) > limit_) return false;
    if (!join(event)) {
      bytes_ += size_of(event);
      events_.push_back(std::move(event));
    }
  }
  filled_.notify_one();
  return true;
}

std::optional<Event> Channel::pop(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (!filled_.wait_for(lock, wait, [this] { return !events_.empty(); })) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= std::min(bytes_, size_of(event));
  return event;
}

}  // namespace strata::server
