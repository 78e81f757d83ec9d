#include "text/reply_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_matcher.h"
#include "text/call_parser.h"

namespace strata::text {

namespace {

constexpr std::string_view kThink = "<think>";
constexpr std::string_view kThinkEnd = "</think>";
constexpr std::string_view kCall = "<tool_call>";
constexpr std::string_view kCallEnd = "</tool_call>";
constexpr size_t kMaxName = 256;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

struct ReplyParser::Impl final : CallSink {
  using Kind = ReplyEvent::Kind;
  enum class State : uint8_t { Start, Thinking, Content, Call, AfterCall };

  explicit Impl(ReplyOptions given);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void push(char c);
  void finish();
  void begin(const std::string& name) override;
  void arguments(std::string_view text) override;

  void start(char c);
  void text(char c);
  void release(size_t length);
  void found_tag(int32_t number, size_t length);
  void call(char c);
  void fail_call(const char* why);
  void after_call(char c);
  void enter_text(State next, bool skip);
  void again(const std::string& bytes);
  void emit(Kind kind, int32_t index, std::string_view bytes);
  void echo(std::string_view bytes);  // thoughts that stay in the content too

  ReplyOptions options;
  ByteMatcher thinking_tags, content_tags;
  std::vector<std::string> functions;  // by number of the tag, from 1; 0 is <tool_call>
  State state = State::Start;
  bool skip_spaces = false;
  std::string pending;  // white space, then what may become a tag
  size_t spaces = 0;    // length of that white space
  uint32_t match = 0;   // state of the matcher
  std::optional<CallParser> parser;
  bool call_begun = false;
  int32_t begun = 0, complete = 0;
  std::vector<ReplyEvent> events;
};

ReplyParser::Impl::Impl(ReplyOptions given) : options(std::move(given)) {
  static_cast<void>(thinking_tags.add(kThinkEnd, 0));
  functions.emplace_back();
  if (options.parse_calls) {
    static_cast<void>(thinking_tags.add(kCall, 1));
    static_cast<void>(content_tags.add(kCall, 0));
    for (const ToolSchema& tool : options.tools) {
      if (tool.name.empty() || tool.name.size() > kMaxName || tool.name.find_first_of("<>\n") != std::string::npos)
        continue;
      if (!content_tags.add("<function=" + tool.name + ">", static_cast<int32_t>(functions.size()))) break;
      functions.push_back(tool.name);
    }
  }
  thinking_tags.build();
  content_tags.build();
  if (options.reasoning == ReasoningFormat::None) state = State::Content;
}

void ReplyParser::Impl::emit(Kind kind, int32_t index, std::string_view bytes) {
  const bool delta = kind == Kind::Reasoning || kind == Kind::Content || kind == Kind::Arguments;
  if (delta && bytes.empty()) return;
  if (delta && !events.empty() && events.back().kind == kind && events.back().call == index) {
    events.back().text += bytes;
  } else {
    events.push_back({kind, index, std::string(bytes)});
  }
}

void ReplyParser::Impl::echo(std::string_view bytes) {
  if (options.reasoning == ReasoningFormat::Both) emit(Kind::Content, -1, bytes);
}

void ReplyParser::Impl::enter_text(State next, bool skip) {
  state = next;
  skip_spaces = skip;
  pending.clear();
  spaces = 0;
  match = 0;
}

void ReplyParser::Impl::again(const std::string& bytes) {
  for (const char c : bytes) push(c);
}

void ReplyParser::Impl::push(char c) {
  switch (state) {
    case State::Start: return start(c);
    case State::Thinking:
    case State::Content: return text(c);
    case State::Call: return call(c);
    case State::AfterCall: return after_call(c);
  }
}

// White space, then <think> or something else.
void ReplyParser::Impl::start(char c) {
  pending += c;
  if (spaces + 1 == pending.size() && is_space(c)) {
    ++spaces;
    return;
  }
  const std::string_view tag = std::string_view(pending).substr(spaces);
  if (tag == kThink) {
    echo(pending);
    return enter_text(State::Thinking, true);
  }
  if (kThink.starts_with(tag)) return;
  const std::string held = pending;
  // Inside thoughts, white space at the beginning is next to the tag in the prompt.
  enter_text(options.starts_in_thinking ? State::Thinking : State::Content, options.starts_in_thinking);
  again(held);
}

void ReplyParser::Impl::text(char c) {
  if (skip_spaces && is_space(c)) {
    if (state == State::Thinking) echo(std::string_view(&c, 1));
    return;
  }
  skip_spaces = false;
  const ByteMatcher& tags = state == State::Thinking ? thinking_tags : content_tags;
  pending += c;
  match = tags.step(match, static_cast<uint8_t>(c));
  if (tags.match(match) >= 0) return found_tag(tags.match(match), tags.match_length(match));
  // What can be no tag is released up to its last byte that is no white space.
  const size_t decided = pending.size() - tags.suffix_length(match);
  size_t end = decided;
  while (end > spaces && is_space(pending[end - 1])) --end;
  if (end > spaces) {
    release(end);
    spaces = decided - end;
  } else {
    spaces = decided;
  }
}

void ReplyParser::Impl::release(size_t length) {
  const std::string_view bytes = std::string_view(pending).substr(0, length);
  if (state == State::Thinking) {
    emit(Kind::Reasoning, -1, bytes);
    echo(bytes);
  } else {
    emit(Kind::Content, -1, bytes);
  }
  pending.erase(0, length);
}

void ReplyParser::Impl::found_tag(int32_t number, size_t length) {
  // Between the white space and the tag may stand text that was held as the beginning of another tag.
  size_t end = pending.size() - length;
  while (end > 0 && is_space(pending[end - 1])) --end;
  release(end);
  const bool thinking = state == State::Thinking;
  if (thinking && number == 0) {
    echo(pending);
    return enter_text(State::Content, true);
  }
  const std::string& function = functions[thinking ? 0 : static_cast<size_t>(number)];
  const std::string opening = pending.substr(pending.size() - length);
  enter_text(State::Call, false);
  call_begun = false;
  parser.emplace(options.tools, *this, opening, function);
}

void ReplyParser::Impl::begin(const std::string& name) {
  call_begun = true;
  emit(Kind::CallBegin, begun++, name);
}

void ReplyParser::Impl::arguments(std::string_view bytes) { emit(Kind::Arguments, begun - 1, bytes); }

void ReplyParser::Impl::call(char c) {
  switch (parser->push(c)) {
    case CallParser::Status::More: return;
    case CallParser::Status::Done:
      emit(Kind::CallEnd, begun - 1, "");
      ++complete;
      parser.reset();
      return enter_text(State::AfterCall, false);
    case CallParser::Status::Failed: fail_call("malformed"); return enter_text(State::Content, false);
    case CallParser::Status::NotACall: break;
  }
  const std::string rest = parser->rest();
  const std::string raw = parser->raw().substr(0, parser->raw().size() - rest.size());
  parser.reset();
  emit(Kind::Content, -1, raw);
  enter_text(State::Content, false);
  again(rest);
}

void ReplyParser::Impl::fail_call(const char* why) {
  emit(Kind::CallFailed, call_begun ? begun - 1 : -1, why);
  emit(Kind::Content, -1, parser->raw());
  parser.reset();
}

// White space and the closing tag, which may be missing.
void ReplyParser::Impl::after_call(char c) {
  if (pending.empty() && is_space(c)) return;
  pending += c;
  if (pending == kCallEnd) return enter_text(State::Content, true);
  if (kCallEnd.starts_with(pending)) return;
  const std::string held = pending;
  enter_text(State::Content, true);
  again(held);
}

void ReplyParser::Impl::finish() {
  switch (state) {
    case State::Start: {
      const std::string held = pending;
      enter_text(options.starts_in_thinking ? State::Thinking : State::Content, options.starts_in_thinking);
      again(held);
      release(pending.size());
      break;
    }
    case State::Thinking:
    case State::Content: release(pending.size()); break;
    case State::Call:
      fail_call("unfinished");
      enter_text(State::Content, false);
      break;
    case State::AfterCall: enter_text(State::Content, false); break;  // a cut closing tag is no content
  }
  spaces = 0;
  match = 0;
}

ReplyParser::ReplyParser(ReplyOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ReplyParser::~ReplyParser() = default;
ReplyParser::ReplyParser(ReplyParser&&) noexcept = default;
ReplyParser& ReplyParser::operator=(ReplyParser&&) noexcept = default;

std::vector<ReplyEvent> ReplyParser::push(std::string_view bytes) {
  for (const char c : bytes) impl_->push(c);
  return std::exchange(impl_->events, {});
}

std::vector<ReplyEvent> ReplyParser::finish() {
  impl_->finish();
  return std::exchange(impl_->events, {});
}

int32_t ReplyParser::calls() const { return impl_->complete; }
bool ReplyParser::in_thinking() const {
  const bool undecided = impl_->state == Impl::State::Start && impl_->options.starts_in_thinking;
  return undecided || impl_->state == Impl::State::Thinking;
}
bool ReplyParser::in_content() const { return !in_thinking() && impl_->state != Impl::State::Call; }

ParsedReply parse_reply(std::string_view text, const ReplyOptions& options) {
  ReplyParser parser(options);
  std::vector<ReplyEvent> events = parser.push(text);
  for (ReplyEvent& event : parser.finish()) events.push_back(std::move(event));
  ParsedReply reply;
  ParsedCall call;
  for (const ReplyEvent& event : events) {
    switch (event.kind) {
      case ReplyEvent::Kind::Reasoning: reply.reasoning += event.text; break;
      case ReplyEvent::Kind::Content: reply.content += event.text; break;
      case ReplyEvent::Kind::CallBegin: call = {event.text, {}}; break;
      case ReplyEvent::Kind::Arguments: call.arguments += event.text; break;
      case ReplyEvent::Kind::CallEnd: reply.calls.push_back(call); break;
      case ReplyEvent::Kind::CallFailed: reply.failures.push_back(event.text + " tool call"); break;
    }
  }
  reply.ended_in_thinking = parser.in_thinking();
  return reply;
}

}  // namespace strata::text
