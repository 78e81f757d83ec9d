// A whole server in this process, with clients of every kind at a time: for ThreadSanitizer, which sees only this
// process, and for answers that do not depend on company.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "server/bench_client.h"
#include "server/server.h"

namespace strata::server {
namespace {

using Json = nlohmann::ordered_json;

class ServerThreads : public ::testing::Test {
 protected:
  ServerThreads() : server_(options(log_), log_), port_(server_.bind()), runner_([this] { server_.run(stopping_); }) {
    while (ask("GET", "/health").status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ~ServerThreads() override { stop(); }
  void stop() {
    stopping_ = true;
    if (runner_.joinable()) runner_.join();
  }

  // Without a socket. `left`: the client is gone after so many looks.
  HttpResponse ask(const std::string& method, const std::string& path, const Json& body = {}, int left = -1) {
    HttpRequest request;
    request.head.method = method;
    request.head.path = path;
    request.head.headers = {{"host", "localhost"}};
    if (!body.is_null()) request.body = body.dump();
    auto looks = std::make_shared<std::atomic<int>>(0);
    request.gone = [left, looks] { return left >= 0 && (*looks)++ >= left; };
    HttpResponse response = server_.handle(request);
    if (response.stream)
      response.stream([&](std::string_view piece) {
        response.body += piece;
        return true;
      });
    return response;
  }

  static ServerOptions options(Log& log) {
    ServerOptions options;
    options.port = 0;
    options.generator = {.slots = 3, .queue = 32};
    options.model_name = "mini";
    options.stop_seconds = 0;
    options.load = [&log] {
      EngineOptions engine;
      engine.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
      engine.threads = 2;
      engine.micro_batch = 32;
      engine.prompt_cache_bytes = uint64_t{16} << 20;
      return std::make_unique<Engine>(engine, log);
    };
    options.evidence = [](const std::string&, const std::string&) { return ArmEvidence{}; };
    return options;
  }

  Log log_{LogLevel::Error};
  std::atomic<bool> stopping_{false};
  Server server_;
  int port_;
  std::thread runner_;
};

Json completion(int kind) {
  return {{"prompt", "The Linux kernel, part " + std::to_string(kind)},
          {"max_tokens", 6},
          {"ignore_eos", true},
          {"temperature", kind % 2 == 0 ? 0.0 : 0.9},
          {"seed", kind},
          {"logprobs", 2}};
}

TEST_F(ServerThreads, ClientsOfEveryKindAtATime) {
  std::vector<Json> alone;
  for (int kind = 0; kind < 4; ++kind)
    alone.push_back(Json::parse(ask("POST", "/v1/completions", completion(kind)).body)["choices"]);
  const std::string vector = ask("POST", "/v1/embeddings", {{"input", "list files"}}).body;
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client)
    clients.emplace_back([&, client] {
      for (int round = 0; round < 3; ++round) {
        const int kind = (client + round) % 4;
        EXPECT_EQ(Json::parse(ask("POST", "/v1/completions", completion(kind)).body)["choices"],
                  alone[static_cast<size_t>(kind)]);
        EXPECT_EQ(ask("POST", "/v1/embeddings", {{"input", "list files"}}).body, vector);
        Json streamed = completion(kind);
        streamed["stream"] = true;
        streamed["grammar"] = "root ::= [a-z ]+";
        EXPECT_NE(ask("POST", "/v1/completions", streamed).body.find("[DONE]"), std::string::npos);
        streamed["max_tokens"] = 3000;
        ask("POST", "/v1/completions", streamed, 0);  // leaves
        EXPECT_EQ(measured_completion(port_, {100, 200, 300}, 5).status, 200);
      }
    });
  clients.emplace_back([&] {
    for (int round = 0; round < 40; ++round)
      for (const char* path : {"/monitor/state", "/metrics", "/slots", "/props", "/v1/models", "/"})
        EXPECT_EQ(ask("GET", path).status, 200) << path;
  });
  for (std::thread& client : clients) client.join();
}

TEST_F(ServerThreads, AStopAmidRequestsEndsThemAll) {
  std::vector<std::thread> clients;
  std::atomic<int> begun{0};
  for (int client = 0; client < 5; ++client)
    clients.emplace_back([&] {
      ++begun;
      ask("POST", "/v1/completions",
          {{"prompt", "x"}, {"max_tokens", 3000}, {"ignore_eos", true}, {"repeat_limit", 0}});
    });
  while (begun < 5) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop();
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace strata::server
