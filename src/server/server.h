// The server: which request goes where, who may ask, and what is known about the model.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "runtime/chat.h"
#include "server/generator.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/request.h"
#include "server/tools.h"
#include "server/watch.h"

namespace strata::server {

// The state of an arm's parity record.
struct ArmEvidence {
  std::string device_class;
  std::optional<std::string> state;  // none: no records are at hand
  std::optional<double> utilisation;
  std::optional<int> cases;
  std::optional<std::string> date;
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                          // 0: any
  std::vector<std::string> keys;            // any of them opens; none: no key is needed
  std::vector<std::string> hosts, origins;  // further names of this server; pages of other sites that may ask
  HttpLimits http;
  GeneratorOptions generator;
  RequestDefaults defaults;
  std::string model_name;
  std::string chat_template;  // instead of the file's; "": the file's
  std::string build;
  double ping_seconds = 30;  // between signs of life in a stream
  double stop_seconds = 30;  // for requests in progress when the server is to end
  bool slots = true, metrics = true, page = true, embeddings = true;
  std::optional<Pooling> pooling;  // none: the file's, else the mean
  Generator::Load load;
  std::function<ArmEvidence(const std::string& op, const std::string& arm)> evidence;  // may be empty
};

// What does not change once the model is loaded.
struct ModelFacts {
  const Engine* engine = nullptr;
  std::string template_source;
  std::unique_ptr<text::ChatTemplate> chat;
  CallForm form = CallForm::JsonObject;
  RequestDefaults defaults;
  int64_t context = 0;                                                           // positions of a request at most
  std::optional<Pooling> pooling;                                                // none: there are no embeddings
  std::string no_vectors = "this server gives no embeddings (--no-embeddings)";  // why
  bool end_token = false;                                                        // behind texts to embed
};

class Server {
 public:
  Server(ServerOptions options, Log& log);
  ~Server();

  int bind();  // gives the port; the model begins to load. Error{Usage}
  // Until `interrupted`; then requests in progress end within the time for that. The errors of loading.
  void run(const std::atomic<bool>& interrupted);

  // One request, without sockets.
  HttpResponse handle(const HttpRequest& request);
  HttpResponse refuse(const HttpHead& head, const HttpRefusal& refusal);

 private:
  using Route = HttpResponse (Server::*)(const HttpRequest&);
  struct Known {
    const char* method;
    const char* path;
    Route route;
    bool open;  // without a key
  };
  static const std::vector<Known>& routes();
  const Known* find(const HttpHead& head, bool& path_known) const;
  std::optional<HttpResponse> forbidden(const HttpRequest& request, const Known* known) const;
  HttpResponse preflight(const HttpHead& head) const;
  void add_cors(const HttpHead& head, HttpResponse& response) const;
  HttpResponse error(const HttpHead& head, const RequestError& error) const;
  bool key_given(const HttpHead& head) const;

  std::unique_ptr<Engine> load();
  void set_pooling(ModelFacts& facts) const;
  const ModelFacts& model() const;  // RequestError 503 while it is not loaded

  // generate.cpp
  struct Session;
  HttpResponse chat(const HttpRequest& request);
  HttpResponse completions(const HttpRequest& request);
  HttpResponse native_completion(const HttpRequest& request);
  HttpResponse responses(const HttpRequest& request);
  HttpResponse messages(const HttpRequest& request);
  HttpResponse count_chat(const HttpRequest& request);
  HttpResponse count_responses(const HttpRequest& request);
  HttpResponse count_messages(const HttpRequest& request);
  HttpResponse apply_template(const HttpRequest& request);
  HttpResponse generate(const HttpRequest& http, ServeRequest request);
  std::vector<Choice> choices_of(const ServeRequest& request) const;
  PreparedChat prepare(const ServeRequest& request) const;
  void check_length(const std::vector<int32_t>& prompt) const;
  void stream(Session& session, const HttpResponse::Write& write);
  HttpResponse collect(Session& session);

  // embeddings.cpp
  struct Vectors;
  HttpResponse embeddings(const HttpRequest& request);
  Vectors embed(const HttpRequest& http, const EmbeddingsRequest& request);
  std::shared_ptr<Ticket> submit_when_free(const std::string& id, const std::vector<Choice>& choices, Watch& client,
                                           bool first);

  // info.cpp
  HttpResponse health(const HttpRequest& request);
  HttpResponse models(const HttpRequest& request);
  HttpResponse props(const HttpRequest& request);
  HttpResponse slots(const HttpRequest& request);
  HttpResponse metrics_page(const HttpRequest& request);
  HttpResponse monitor(const HttpRequest& request);
  HttpResponse tokenize(const HttpRequest& request);
  HttpResponse detokenize(const HttpRequest& request);
  HttpResponse asset(const HttpRequest& request);
  const ArmEvidence& evidence_of(const ArmChoice& choice);

  const ServerOptions options_;
  Log& log_;
  Metrics metrics_;
  std::unique_ptr<ModelFacts> facts_;  // written once, before the generator says that it is ready
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<HttpServer> http_;
  std::chrono::steady_clock::time_point start_;
  std::mutex evidence_mutex_;
  std::map<std::string, ArmEvidence> evidence_;  // by operator and arm
};

}  // namespace strata::server
