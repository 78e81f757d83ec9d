#include "server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "server/reply.h"
#include "server/web_assets.h"

namespace strata::server {
namespace {

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

// The shape of an error fits the API that was called.
bool is_anthropic(const HttpHead& head) {
  return head.path.starts_with("/v1/messages") || head.find("anthropic-version") != nullptr;
}

}  // namespace

Server::Server(ServerOptions options, Log& log)
    : options_(std::move(options)), log_(log), start_(std::chrono::steady_clock::now()) {}

Server::~Server() {
  if (generator_) generator_->stop(0);
}

const std::vector<Server::Known>& Server::routes() {
  static const std::vector<Known> known{
      {"POST", "/v1/chat/completions", &Server::chat, false},
      {"POST", "/chat/completions", &Server::chat, false},
      {"POST", "/v1/chat/completions/input_tokens", &Server::count_chat, false},
      {"POST", "/v1/completions", &Server::completions, false},
      {"POST", "/completion", &Server::native_completion, false},
      {"POST", "/completions", &Server::native_completion, false},
      {"POST", "/v1/responses", &Server::responses, false},
      {"POST", "/v1/responses/input_tokens", &Server::count_responses, false},
      {"POST", "/v1/messages", &Server::messages, false},
      {"POST", "/v1/messages/count_tokens", &Server::count_messages, false},
      {"POST", "/v1/embeddings", &Server::embeddings, false},
      {"POST", "/embedding", &Server::embeddings, false},
      {"POST", "/embeddings", &Server::embeddings, false},
      {"POST", "/tokenize", &Server::tokenize, false},
      {"POST", "/detokenize", &Server::detokenize, false},
      {"POST", "/apply-template", &Server::apply_template, false},
      {"GET", "/v1/models", &Server::models, false},
      {"GET", "/models", &Server::models, false},
      {"GET", "/props", &Server::props, false},
      {"GET", "/slots", &Server::slots, false},
      {"GET", "/metrics", &Server::metrics_page, false},
      {"GET", "/monitor/state", &Server::monitor, false},
      {"GET", "/health", &Server::health, true},
      {"GET", "/v1/health", &Server::health, true},
  };
  return known;
}

const Server::Known* Server::find(const HttpHead& head, bool& path_known) const {
  static const Known page{"GET", "/", &Server::asset, true}, one_model{"GET", "/v1/models/", &Server::models, false};
  path_known = false;
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  for (const Known& known : routes()) {
    if (head.path != known.path) continue;
    path_known = true;
    if (method == known.method) return &known;
  }
  if (path_known) return nullptr;
  const bool is_page = options_.page && find_web_asset(head.path) != nullptr;
  const bool is_model = head.path.starts_with(one_model.path);
  path_known = is_page || is_model;
  if (method != "GET" || !path_known) return nullptr;
  return is_page ? &page : &one_model;
}

bool Server::key_given(const HttpHead& head) const {
  if (options_.keys.empty()) return true;
  std::string given = head.value("x-api-key");
  const std::string bearer = head.value("authorization");
  if (given.empty() && (bearer.starts_with("Bearer ") || bearer.starts_with("bearer "))) given = bearer.substr(7);
  bool any = false;
  for (const std::string& key : options_.keys) any |= equal_in_constant_time(given, key);
  return any;
}

std::optional<HttpResponse> Server::forbidden(const HttpRequest& request, const Known* known) const {
  const HttpHead& head = request.head;
  if (const std::string* host = head.find("host"); host != nullptr && !host_allowed(*host, options_.hosts))
    return error(head, {403, "", "the header Host names another server: allow the name with --allowed-host"});
  const std::string* origin = head.find("origin");
  if (origin != nullptr && !origin_allowed(*origin, head.value("host"), options_.origins))
    return error(head, {403, "", "pages of other sites may not ask: allow them with --cors-origin"});
  if (head.method != "OPTIONS" && !(known != nullptr && known->open) && !key_given(head)) {
    HttpResponse response = error(head, {401, "", "the API key is missing or wrong"});
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  return std::nullopt;
}

void Server::add_cors(const HttpHead& head, HttpResponse& response) const {
  const std::string* origin = head.find("origin");
  if (options_.origins.empty() || origin == nullptr) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", *origin);
  response.headers.emplace_back("Vary", "Origin");
}

HttpResponse Server::preflight(const HttpHead& head) const {
  HttpResponse response{.status = 204, .type = "text/plain"};
  if (options_.origins.empty() || head.find("origin") == nullptr) {
    response.headers.emplace_back("Allow", "GET, HEAD, POST, OPTIONS");
    return response;
  }
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
  response.headers.emplace_back("Access-Control-Allow-Headers", "*, Authorization");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

HttpResponse Server::error(const HttpHead& head, const RequestError& error) const {
  HttpResponse response{.status = error.status};
  const std::string message =
      error.where().empty() ? error.message() : fmt::format("{}: {}", error.where(), error.message());
  response.body = error_text({.status = error.status,
                              .type = error.type,
                              .message = message,
                              .where = error.where(),
                              .prompt_tokens = error.prompt_tokens,
                              .context = error.context},
                             is_anthropic(head));
  if (error.retry_after > 0) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
  return response;
}

HttpResponse Server::refuse(const HttpHead& head, const HttpRefusal& refusal) {
  metrics_.refused();
  return error(head, {refusal.status, "", refusal.message});
}

HttpResponse Server::handle(const HttpRequest& request) {
  const HttpHead& head = request.head;
  HttpResponse response;
  try {
    bool path_known = false;
    const Known* known = find(head, path_known);
    if (auto refused = forbidden(request, known))
      response = std::move(*refused);
    else if (head.method == "OPTIONS")
      response = preflight(head);
    else if (known == nullptr && path_known)
      throw RequestError(405, "", fmt::format("{} does not answer {}", head.path.substr(0, 200), head.method));
    else if (known == nullptr)
      throw RequestError(404, "", fmt::format("there is nothing at {}", head.path.substr(0, 200)));
    else
      response = (this->*known->route)(request);
  } catch (const RequestError& refused) {
    response = error(head, refused);
  } catch (const Error& refused) {
    response = error(head, {status_of(refused.kind()), "", refused.message(), refused.where()});
  } catch (const std::bad_alloc&) {
    response = error(head, {503, "", "the system has no memory left"});
  } catch (const std::exception& defect) {
    log_.error(fmt::format("{} {}: {}", head.method, head.path, defect.what()));
    response = error(head, {500, "", "an internal error; the log of the server has more"});
  }
  if (response.status >= 400) metrics_.refused();
  log_.debug(fmt::format("{} {} {}", response.status, head.method, head.path));
  add_cors(head, response);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

void Server::set_pooling(ModelFacts& facts) const {
  const gguf::File& file = facts.engine->model().file();
  facts.end_token = file.get_bool("tokenizer.ggml.add_eos_token").value_or(false);
  if (!options_.embeddings) return;
  try {
    const std::optional<Pooling> own = file_pooling(file);
    facts.pooling = options_.pooling ? options_.pooling : own.value_or(Pooling::Mean);
  } catch (const Error& error) {
    facts.no_vectors = error.message();
  }
}

std::unique_ptr<Engine> Server::load() {
  std::unique_ptr<Engine> engine = options_.load();
  auto facts = std::make_unique<ModelFacts>();
  facts->engine = engine.get();
  const std::string own = engine->model().file().get_string("tokenizer.chat_template").value_or("");
  facts->template_source = options_.chat_template.empty() ? own : options_.chat_template;
  facts->chat = std::make_unique<text::ChatTemplate>(chat_template_of(*engine, facts->template_source));
  facts->form = call_form_of(facts->template_source);
  facts->defaults = options_.defaults;
  facts->defaults.vocabulary = engine->model().spec().vocabulary;
  facts->context =
      options_.defaults.generation.context > 0 ? options_.defaults.generation.context : engine->model().spec().context;
  set_pooling(*facts);
  if (!facts->chat->note().empty()) log_.info(facts->chat->note());
  facts_ = std::move(facts);
  return engine;
}

const ModelFacts& Server::model() const {
  if (generator_ == nullptr || generator_->engine() == nullptr) throw RequestError(503, "", "Loading model");
  return *facts_;
}

int Server::bind() {
  http_ = std::make_unique<HttpServer>(
      options_.http, [this](const HttpRequest& request) { return handle(request); },
      [this](const HttpHead& head, const HttpRefusal& refusal) { return refuse(head, refusal); });
  const int port = http_->bind(options_.host, options_.port);
  if (!is_loopback(options_.host) && options_.keys.empty())
    log_.warn(fmt::format("ANYONE who reaches {}:{} can use this server: give --api-key, or bind 127.0.0.1",
                          options_.host, port));
  if (std::find(options_.origins.begin(), options_.origins.end(), "*") != options_.origins.end() &&
      options_.keys.empty())
    log_.warn("ANY web page that a user of this machine opens can use this server: give --api-key, or name origins");
  generator_ = std::make_unique<Generator>(
      options_.generator, [this] { return load(); }, metrics_, log_);
  return port;
}

void Server::run(const std::atomic<bool>& interrupted) {
  std::thread listener([this] { http_->run(); });
  const auto pause = std::chrono::milliseconds(50);
  while (!interrupted && generator_->state() != Generator::State::Failed) std::this_thread::sleep_for(pause);
  if (interrupted) log_.info(fmt::format("stopping: requests in progress have {} seconds", options_.stop_seconds));
  generator_->stop(options_.stop_seconds);
  // Their last bytes are on the way to the clients.
  std::this_thread::sleep_for(2 * pause);
  http_->stop();
  listener.join();
  if (const std::exception_ptr failure = generator_->failure()) std::rethrow_exception(failure);
}

}  // namespace strata::server
