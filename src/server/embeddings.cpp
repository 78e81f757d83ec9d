// POST /v1/embeddings, and /embedding in llama.cpp's own form.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "server/json.h"
#include "server/reply.h"
#include "server/server.h"

namespace strata::server {

struct Server::Vectors {
  std::vector<std::vector<float>> list;
  int64_t tokens = 0;
};

namespace {

// Shortest texts that read back as the same numbers.
void write_numbers(std::string& text, std::span<const float> numbers) {
  text += '[';
  for (size_t i = 0; i < numbers.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : ",", numbers[i]);
  text += ']';
}

// Of their bytes, the lowest first.
void write_base64(std::string& text, std::span<const float> numbers) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static_assert(std::endian::native == std::endian::little);
  std::vector<uint8_t> bytes(numbers.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t left = std::min<size_t>(bytes.size() - at, 3);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < left ? bytes[at + i] : 0u);
    for (size_t i = 0; i < 4; ++i) text += i <= left ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
}

std::string openai_text(const std::vector<std::vector<float>>& list, bool base64) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    text += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":)", i == 0 ? "" : ",", i);
    if (base64) text += '"';
    base64 ? write_base64(text, list[i]) : write_numbers(text, list[i]);
    text += base64 ? "\"}" : "}";
  }
  return text + "]";
}

// A list of vectors for each text: one, or one for each token.
std::string native_text(const std::vector<std::vector<float>>& list, size_t width) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    text += fmt::format(R"({}{{"index":{},"embedding":[)", i == 0 ? "" : ",", i);
    for (size_t at = 0; at < list[i].size(); at += width) {
      if (at > 0) text += ',';
      write_numbers(text, std::span(list[i]).subspan(at, width));
    }
    text += "]}";
  }
  return text + "]";
}

}  // namespace

// Only the first texts of a request are refused when the queue is full; the others wait for a place.
std::shared_ptr<Ticket> Server::submit_when_free(const std::string& id, const std::vector<Choice>& choices,
                                                 Watch& client, bool first) {
  for (;;) try {
      return generator_->submit(id, Api::Embeddings, choices);
    } catch (const RequestError& refused) {
      if (first || refused.status != 429) throw;
      if (client.left()) throw RequestError(499, "", "the client has left");
      std::this_thread::sleep_for(kLook);
    }
}

// As many texts at a time as there are slots.
Server::Vectors Server::embed(const HttpRequest& http, const EmbeddingsRequest& request) {
  const ModelFacts& facts = model();
  const text::Tokenizer& tokenizer = facts.engine->tokenizer();
  std::vector<Choice> choices;
  for (const Prompt& input : request.inputs) {
    Choice choice{.generate = {}, .pooling = facts.pooling};
    choice.generate.embed = true;
    std::vector<int32_t>& tokens = choice.generate.prompt;
    tokens = input.tokens.empty() ? tokenizer.encode(input.text) : input.tokens;
    const bool ends = tokenizer.eos() && !tokens.empty() && tokens.back() == *tokenizer.eos();
    if (input.tokens.empty() && facts.end_token && tokenizer.eos() && !ends) tokens.push_back(*tokenizer.eos());
    check_length(tokens);
    choice.generate.context = static_cast<int64_t>(tokens.size());
    facts.engine->check(choice.generate);
    choices.push_back(std::move(choice));
  }
  Vectors made;
  made.list.resize(choices.size());
  Watch client(http.gone);
  const std::string id = new_id("embd-");
  const auto slots = static_cast<size_t>(options_.generator.slots);
  for (size_t first = 0; first < choices.size(); first += slots) {
    const auto from = choices.begin() + static_cast<std::ptrdiff_t>(first);
    const size_t count = std::min(slots, choices.size() - first);
    const auto ticket = submit_when_free(id, {from, from + static_cast<std::ptrdiff_t>(count)}, client, first == 0);
    for (size_t over = 0; over < count;) {
      std::optional<Event> event = ticket->channel.pop(kLook);
      const bool failed = event && event->kind == Event::Kind::Failed, left = client.left();
      if (failed || left) generator_->cancel(ticket);
      if (failed) throw RequestError(status_of(event->error), "", event->message);
      if (left) throw RequestError(499, "", "the client has left");
      if (!event || event->kind != Event::Kind::Finished) continue;
      made.list[first + static_cast<size_t>(event->choice)] = std::move(event->embedding);
      made.tokens += event->ending.prompt_tokens;
      ++over;
    }
  }
  return made;
}

HttpResponse Server::embeddings(const HttpRequest& request) {
  const ModelFacts& facts = model();
  const bool native = !request.head.path.starts_with("/v1/");
  const int64_t width = facts.engine->model().spec().hidden;
  const EmbeddingsRequest asked = parse_embeddings_request(request.body, facts.defaults.vocabulary, width, native);
  if (!facts.pooling) throw RequestError(501, "", facts.no_vectors);
  if (*facts.pooling == Pooling::None && !native)
    throw RequestError(400, "",
                       "this server gives a vector for each token (--pooling none), which this API has no place for: "
                       "ask /embedding, or start it with --pooling mean");
  Vectors vectors = embed(request, asked);
  if (asked.normalised && *facts.pooling != Pooling::None)
    for (std::vector<float>& one : vectors.list) normalise(one);
  if (native) return {.body = native_text(vectors.list, static_cast<size_t>(width))};
  const Json usage{{"prompt_tokens", vectors.tokens}, {"total_tokens", vectors.tokens}};
  return {.body =
              fmt::format(R"({{"object":"list","data":{},"model":{},"usage":{}}})",
                          openai_text(vectors.list, asked.base64), to_text(Json(options_.model_name)), to_text(usage))};
}

}  // namespace strata::server
