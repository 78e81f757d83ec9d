// Requests that generate text: from what was asked to choices for the engine, and from its events to the answer.
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "server/json.h"
#include "server/reply.h"
#include "server/server.h"
#include "server/watch.h"

namespace strata::server {

struct Server::Session {
  ServeRequest request;
  std::unique_ptr<ReplyWriter> writer;
  std::shared_ptr<Ticket> ticket;
  std::function<bool()> gone;
};

HttpResponse Server::chat(const HttpRequest& request) {
  return generate(request, parse_chat_request(request.body, model().defaults));
}
HttpResponse Server::completions(const HttpRequest& request) {
  return generate(request, parse_completions_request(request.body, model().defaults));
}
HttpResponse Server::native_completion(const HttpRequest& request) {
  return generate(request, parse_native_request(request.body, model().defaults));
}
HttpResponse Server::responses(const HttpRequest& request) {
  return generate(request, parse_responses_request(request.body, model().defaults));
}
HttpResponse Server::messages(const HttpRequest& request) {
  return generate(request, parse_messages_request(request.body, model().defaults));
}

HttpResponse Server::count_chat(const HttpRequest& request) {
  const PreparedChat chat = prepare(parse_chat_request(request.body, model().defaults));
  return {.body = to_text({{"object", "response.input_tokens"}, {"input_tokens", chat.generate.prompt.size()}})};
}
HttpResponse Server::count_responses(const HttpRequest& request) {
  const PreparedChat chat = prepare(parse_responses_request(request.body, model().defaults));
  return {.body = to_text({{"object", "response.input_tokens"}, {"input_tokens", chat.generate.prompt.size()}})};
}
HttpResponse Server::count_messages(const HttpRequest& request) {
  const PreparedChat chat = prepare(parse_messages_request(request.body, model().defaults));
  return {.body = to_text({{"input_tokens", chat.generate.prompt.size()}})};
}

HttpResponse Server::apply_template(const HttpRequest& request) {
  const PreparedChat chat = prepare(parse_chat_request(request.body, model().defaults));
  return {.body = to_text({{"prompt", model().engine->tokenizer().decode(chat.generate.prompt, true)}})};
}

PreparedChat Server::prepare(const ServeRequest& request) const {
  const ModelFacts& facts = model();
  const text::ChatCapabilities& can = facts.chat->capabilities();
  text::ChatRequest chat = request.chat;
  const std::string tools = request.tool_choice.kind == ToolChoice::Kind::None ? std::string() : chat.tools;
  chat.tools = tools;
  if (!tools.empty() && !can.tools) {
    describe_tools(chat);
    chat.tools.clear();
  }
  if (!can.tool_calls) write_out_calls(chat.messages);
  PreparedChat prepared = prepare_chat(*facts.engine, *facts.chat, chat, request.generation);
  prepared.reply.parse_calls = !tools.empty();
  if (!tools.empty()) prepared.reply.tools = text::parse_tool_schemas(tools);
  prepared.reply.reasoning = request.reasoning;
  constrain_calls(request, facts.form, prepared.reply.starts_in_thinking, prepared.generate);
  if (request.generation.grammar && prepared.reply.starts_in_thinking) prepared.generate.grammar_after = "</think>";
  return prepared;
}

void Server::check_length(const std::vector<int32_t>& prompt) const {
  const auto tokens = static_cast<int64_t>(prompt.size());
  const int64_t context = model().context;
  if (tokens == 0) throw RequestError(400, "", "the prompt is empty: give text to continue");
  if (tokens < context) return;
  RequestError error(400, "exceed_context_size_error",
                     fmt::format("the request has {} tokens, the context {}: shorten it", tokens, context));
  error.prompt_tokens = tokens;
  error.context = context;
  throw error;
}

std::vector<Choice> Server::choices_of(const ServeRequest& request) const {
  const ModelFacts& facts = model();
  std::vector<Choice> choices;
  const auto add = [&](const Choice& choice) {
    check_length(choice.generate.prompt);
    facts.engine->check(choice.generate);
    Sampler(choice.generate.sampler);  // refuses what is out of range
    text::StopStrings(choice.generate.stop);
    for (int64_t i = 0; i < request.choices; ++i) {
      choices.push_back(choice);
      choices.back().generate.sampler.seed += static_cast<uint64_t>(i);
    }
  };
  Choice choice{.generate = request.generation, .top_logprobs = request.top_logprobs};
  if (!continues_text(request.api)) {
    PreparedChat prepared = prepare(request);
    choice.generate = std::move(prepared.generate);
    choice.reply = std::move(prepared.reply);
    choice.stop = request.generation.stop;
    choice.one_call = !request.parallel_calls;
    text::StopStrings{choice.stop};
    add(choice);
    return choices;
  }
  for (const Prompt& prompt : request.prompts) {
    choice.generate.prompt = prompt.tokens.empty() ? facts.engine->tokenizer().encode(prompt.text) : prompt.tokens;
    add(choice);
  }
  return choices;
}

HttpResponse Server::generate(const HttpRequest& http, ServeRequest request) {
  const ModelFacts& facts = model();
  auto session = std::make_shared<Session>();
  session->request = std::move(request);
  const Api api = session->request.api;
  std::vector<Choice> choices = choices_of(session->request);
  ReplyFacts reply;
  reply.id = new_id(api == Api::Chat        ? "chatcmpl-"
                    : continues_text(api)   ? "cmpl-"
                    : api == Api::Responses ? "resp_"
                                            : "msg_");
  reply.model = options_.model_name;
  reply.created = static_cast<int64_t>(std::time(nullptr));
  const text::Tokenizer& tokenizer = facts.engine->tokenizer();
  reply.token_text = [&tokenizer](int32_t token) { return std::string(tokenizer.bytes(token, true)); };
  if (session->request.echo || api == Api::Native)
    for (const Prompt& prompt : session->request.prompts)
      reply.prompts.push_back(prompt.tokens.empty() ? prompt.text : tokenizer.decode(prompt.tokens, true));
  session->gone = http.gone;
  session->ticket = generator_->submit(reply.id, api, std::move(choices));
  session->writer = make_writer(session->request, std::move(reply));
  if (!session->request.stream) return collect(*session);
  HttpResponse response{.type = "text/event-stream"};
  response.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  response.stream = [this, session](const HttpResponse::Write& write) { stream(*session, write); };
  return response;
}

namespace {

ErrorFacts facts_of(const Event& failed) {
  return {.status = status_of(failed.error), .type = {}, .message = failed.message, .where = {}};
}

}  // namespace

void Server::stream(Session& session, const HttpResponse::Write& write) {
  using Clock = std::chrono::steady_clock;
  const auto ping = std::chrono::duration<double>(options_.ping_seconds);
  Clock::time_point last = Clock::now();
  Watch client(session.gone);
  bool open = write(session.writer->begin());
  while (open && !session.writer->over()) {
    const std::optional<Event> event = session.ticket->channel.pop(kLook);
    std::string text;
    if (event && event->kind == Event::Kind::Failed) {
      write(error_event(facts_of(*event), session.request.api));
      break;
    }
    if (event)
      text = session.writer->take(*event);
    else if (Clock::now() - last >= ping)
      text = ": keep-alive\n\n";
    if (!text.empty()) last = Clock::now();
    open = (text.empty() || write(text)) && !client.left();
  }
  if (open && session.writer->over())
    write(session.writer->end());
  else
    generator_->cancel(session.ticket);
}

HttpResponse Server::collect(Session& session) {
  Watch client(session.gone);
  while (!session.writer->over()) {
    const std::optional<Event> event = session.ticket->channel.pop(kLook);
    const bool failed = event && event->kind == Event::Kind::Failed;
    if (event && !failed) session.writer->take(*event);
    if (!failed && !client.left()) continue;
    generator_->cancel(session.ticket);
    if (failed) throw RequestError(status_of(event->error), "", event->message);
    throw RequestError(499, "", "the client has left");
  }
  return {.body = session.writer->whole()};
}

}  // namespace strata::server
