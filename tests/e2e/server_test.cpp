// strata serve from outside: what clients of the APIs send and read.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/process.h"
#include "support/server_process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

class ServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess({"--slots", "3", "--queue", "4", "--draft", "auto"}); }
  static void TearDownTestSuite() {
    server_->send(SIGTERM);
    EXPECT_EQ(server_->wait().exit_code, 0);
    delete server_;
    server_ = nullptr;
  }

  static httplib::Client client() {
    httplib::Client made("127.0.0.1", server_->port());
    made.set_read_timeout(60);
    made.set_tcp_nodelay(true);
    return made;
  }
  static httplib::Result post(const std::string& path, const Json& body) {
    return client().Post(path, body.dump(), "application/json");
  }
  static Json answer(const std::string& path, const Json& body, int status = 200) {
    const httplib::Result result = post(path, body);
    EXPECT_TRUE(result) << path;
    if (!result) return {};
    EXPECT_EQ(result->status, status) << result->body;
    return Json::parse(result->body);
  }
  static Json get(const std::string& path) { return Json::parse(client().Get(path)->body); }
  static Json chat(Json more = Json::object(), const std::string& text = "What does ls do?") {
    Json body{{"messages", {{{"role", "user"}, {"content", text}}}}};
    body.update(more);
    return body;
  }
  // The JSON of each event of a stream.
  static std::vector<Json> stream(const std::string& path, Json body) {
    body["stream"] = true;
    const httplib::Result result = post(path, body);
    EXPECT_TRUE(result);
    EXPECT_EQ(result->get_header_value("Content-Type"), "text/event-stream");
    std::vector<Json> list;
    for (size_t at = result->body.find("data: "); at != std::string::npos; at = result->body.find("data: ", at + 1)) {
      const std::string line = result->body.substr(at + 6, result->body.find('\n', at) - at - 6);
      if (line != "[DONE]") list.push_back(Json::parse(line));
    }
    return list;
  }
  // Waits until no slot is busy; how long that took.
  static milliseconds until_idle() {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) {
      bool busy = get("/monitor/state")["queue"]["waiting"] != 0;  // first: what waits now may have a slot then
      for (const Json& slot : get("/slots")) busy = busy || slot["is_processing"].get<bool>();
      if (!busy) break;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  }

  static ServerProcess* server_;
};
ServerProcess* ServerTest::server_ = nullptr;

// Seconds of processor time that a process has taken, over all its threads.
double processor_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Between requests no thread spins: those that compute have just worked, and sleep.
TEST_F(ServerTest, AnIdleServerTakesNoProcessorTime) {
  answer("/completion", {{"prompt", "The ls command"}, {"n_predict", 8}});
  until_idle();
  std::this_thread::sleep_for(milliseconds(100));
  const double before = processor_seconds(server_->pid());
  EXPECT_GT(before, 0.0);
  std::this_thread::sleep_for(milliseconds(600));
  // One spinning thread would take 0.6 s on a free processor, 0.1 s and more on one shared by six programs. Ticks are
  // 10 ms; waking up now and then takes one of them at most.
  EXPECT_LT(processor_seconds(server_->pid()) - before, 0.05);
}

const std::string kLs = "The ls command is used to list directory contents.";

TEST_F(ServerTest, EveryApiGivesTheSameText) {
  EXPECT_EQ(answer("/v1/chat/completions", chat())["choices"][0]["message"]["content"], kLs);
  EXPECT_EQ(answer("/v1/messages", chat({{"max_tokens", 50}}))["content"][0]["text"], kLs);
  EXPECT_EQ(answer("/v1/responses", {{"input", "What does ls do?"}})["output"][0]["content"][0]["text"], kLs);
  const Json prompt = answer("/apply-template", chat())["prompt"];
  EXPECT_EQ(answer("/v1/completions", {{"prompt", prompt}, {"max_tokens", 50}})["choices"][0]["text"], kLs);
}

TEST_F(ServerTest, StreamsHoldTheSameText) {
  std::string text;
  for (const Json& chunk : stream("/v1/chat/completions", chat()))
    for (const Json& choice : chunk["choices"]) text += choice["delta"].value("content", "");
  EXPECT_EQ(text, kLs);
  text.clear();
  for (const Json& event : stream("/v1/messages", chat({{"max_tokens", 50}})))
    if (event["type"] == "content_block_delta") text += event["delta"]["text"];
  EXPECT_EQ(text, kLs);
  const auto events = stream("/v1/responses", {{"input", "What does ls do?"}});
  EXPECT_EQ(events.back()["response"]["output"][0]["content"][0]["text"], kLs);
}

TEST_F(ServerTest, StopStringsLengthsAndUsage) {
  const Json stopped = answer("/v1/chat/completions", chat({{"stop", " is used"}}));
  EXPECT_EQ(stopped["choices"][0]["message"]["content"], "The ls command");
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  const Json cut = answer("/v1/chat/completions", chat({{"max_tokens", 3}}));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(cut["usage"]["completion_tokens"], 3);
  const Json anthropic = answer("/v1/messages", chat({{"max_tokens", 50}, {"stop_sequences", {" is used"}}}));
  EXPECT_EQ(anthropic["stop_sequence"], " is used");
}

TEST_F(ServerTest, LlamaCppsOwnCompletion) {
  const Json body{{"prompt", "The Linux kernel"}, {"n_predict", 6}, {"ignore_eos", true}, {"return_tokens", true}};
  const Json made = answer("/completion", body);
  EXPECT_EQ(made["content"],
            answer("/v1/completions", {{"prompt", "The Linux kernel"}, {"max_tokens", 6}})["choices"][0]["text"]);
  EXPECT_EQ(made["stop_type"], "limit");
  EXPECT_EQ(made["prompt"], "The Linux kernel");
  EXPECT_EQ(made["tokens"].size(), 6u);
  EXPECT_EQ(answer("/detokenize", {{"tokens", made["tokens"]}})["content"], made["content"]);
  std::string text;
  const auto events = stream("/completion", body);
  for (const Json& event : events) text += event["content"];
  EXPECT_EQ(text, made["content"]);
  EXPECT_EQ(events.back()["stop"], true);
  const std::string word = text.substr(text.size() / 2, 3);
  const Json stopped =
      answer("/completion", {{"prompt", "The Linux kernel"}, {"n_predict", 6}, {"stop", {"@@", word}}});
  EXPECT_EQ(stopped["stop_type"], "word");
  EXPECT_EQ(stopped["stopping_word"], word);
  const Json scored = answer("/completion", {{"prompt", "The"}, {"n_predict", 2}, {"n_probs", 2}});
  ASSERT_EQ(scored["completion_probabilities"].size(), 2u);
  EXPECT_EQ(scored["completion_probabilities"][0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(answer("/completion", {{"prompt", {"a", "b"}}, {"n_predict", 1}}).size(), 2u);
}

// The first token of a prompt whose beginning of 1,000 tokens is kept costs one piece of a prompt.
TEST_F(ServerTest, AKeptBeginningIsNotReadAgain) {
  std::vector<int> prompt;
  for (int i = 0; i < 1000; ++i) prompt.push_back(i * 37 % 900 + 20);
  const auto ask = [&](size_t length) {
    std::vector<int> tokens(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(length));
    return answer("/v1/completions", {{"prompt", tokens}, {"max_tokens", 2}, {"ignore_eos", true}});
  };
  until_idle();
  ask(1000);
  const Json again = ask(1000);
  EXPECT_LE(again["timings"]["prompt_n"], 64);  // kCheckpointStep
  for (int i = 0; i < 30; ++i) prompt.push_back(i + 20);
  until_idle();
  const Json longer = ask(1030);
  EXPECT_LE(longer["timings"]["prompt_n"], 64 + 30);
  EXPECT_GE(longer["timings"]["cache_n"], 1000 - 64);
  for (const Json& stage : get("/monitor/state")["last"]["stages"]) {
    if (stage["name"] == "prompt pass") {
      EXPECT_EQ(stage["calls"], 1);
    }
  }
}

TEST_F(ServerTest, SamplingIsRepeatableAndChoicesDiffer) {
  const Json body{{"prompt", "The Linux kernel"}, {"max_tokens", 12}, {"temperature", 0.9}, {"seed", 5}, {"n", 3}};
  const Json first = answer("/v1/completions", body), second = answer("/v1/completions", body);
  EXPECT_EQ(first["choices"], second["choices"]);
  EXPECT_NE(first["choices"][0]["text"], first["choices"][1]["text"]);
  Json alone = body;
  alone["n"] = 1;
  EXPECT_EQ(answer("/v1/completions", alone)["choices"][0]["text"], first["choices"][0]["text"]);
}

// Choices of a long prompt go on from one reading of it, and say what each would say alone.
TEST_F(ServerTest, ChoicesOfALongPromptReadItOnce) {
  std::string prompt;
  for (int i = 0; i < 40; ++i) prompt += "Line " + std::to_string(i) + " of a long text. ";
  const Json body{{"prompt", prompt}, {"max_tokens", 8}, {"temperature", 0.9}, {"seed", 5}, {"n", 3}};
  const Json before = get("/monitor/state")["counts"];
  const Json made = answer("/v1/completions", body);
  const int64_t run =
      get("/monitor/state")["counts"]["prompt_tokens"].get<int64_t>() - before["prompt_tokens"].get<int64_t>();
  EXPECT_LT(run, made["usage"]["prompt_tokens"].get<int64_t>() + 2 * 64 + 1);
  for (int i = 0; i < 3; ++i) {
    Json alone = body;
    alone["n"] = 1;
    alone["seed"] = 5 + i;
    EXPECT_EQ(answer("/v1/completions", alone)["choices"][0]["text"], made["choices"][static_cast<size_t>(i)]["text"]);
  }
}

TEST_F(ServerTest, ALongPromptIsFoundAgain) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "Fact " + std::to_string(i * 7) + ". ";
  const Json first = answer("/v1/chat/completions", chat({{"max_tokens", 4}}, text));
  const Json second = answer("/v1/chat/completions", chat({{"max_tokens", 4}}, text));
  EXPECT_EQ(first["choices"][0]["message"], second["choices"][0]["message"]);
  const int64_t prompt = second["usage"]["prompt_tokens"];
  EXPECT_GE(second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>(), (prompt - 1) / 64 * 64);
  EXPECT_EQ(second["timings"]["cache_n"], second["usage"]["prompt_tokens_details"]["cached_tokens"]);
}

TEST_F(ServerTest, LogProbabilitiesAreThoseOfTheChosenTokens) {
  const Json made = answer("/v1/chat/completions", chat({{"logprobs", true}, {"top_logprobs", 3}, {"max_tokens", 4}}));
  const Json& scores = made["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(scores.size(), 4u);
  std::string text;
  for (const Json& score : scores) {
    text += score["token"];
    ASSERT_EQ(score["top_logprobs"].size(), 3u);
    EXPECT_EQ(score["top_logprobs"][0]["token"], score["token"]);  // greedy
    EXPECT_LE(score["logprob"], 0.0);
    EXPECT_GT(score["logprob"], score["top_logprobs"][1]["logprob"]);
  }
  EXPECT_EQ(text, made["choices"][0]["message"]["content"]);
}

TEST_F(ServerTest, ABiasBansAToken) {
  const Json id = answer("/tokenize", {{"content", "The"}})["tokens"][0];
  const Json made = answer("/v1/chat/completions", chat({{"logit_bias", {{id.dump(), -100}}}, {"max_tokens", 1}}));
  EXPECT_NE(made["choices"][0]["message"]["content"], "The");
}

TEST_F(ServerTest, SchemasAndGrammarsBindTheAnswer) {
  const Json schema = Json::parse(R"({"type":"object","properties":{"n":{"type":"integer","minimum":3,"maximum":5}},
                                      "required":["n"],"additionalProperties":false})");
  const Json format{{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  const Json made = answer("/v1/chat/completions", chat({{"response_format", format}}));
  const int n = Json::parse(made["choices"][0]["message"]["content"].get<std::string>())["n"];
  EXPECT_TRUE(n >= 3 && n <= 5);
  const Json text = answer("/v1/completions", {{"prompt", "x"}, {"grammar", "root ::= \"a\" | \"bc\""}});
  const std::string said = text["choices"][0]["text"];
  EXPECT_TRUE(said == "a" || said == "bc") << said;
  const Json object{{"text", {{"format", {{"type", "json_schema"}, {"name", "x"}, {"schema", schema}}}}},
                    {"input", "x"}};
  EXPECT_NE(answer("/v1/responses", object)["output"][0]["content"][0]["text"].get<std::string>().find("\"n\""),
            std::string::npos);
}

const Json kTools = Json::parse(R"([{"type":"function","function":{"name":"get_weather","description":"Weather.",
  "parameters":{"type":"object","properties":{"city":{"type":"string","enum":["Paris","Rome"]},"days":{"type":"integer"}},
  "required":["city","days"],"additionalProperties":false}}}])");

TEST_F(ServerTest, RequiredCallsStreamArgumentsThatGrowToTheWhole) {
  const Json body = chat({{"tools", kTools}, {"tool_choice", "required"}, {"parallel_tool_calls", false}});
  const Json whole = answer("/v1/chat/completions", body);
  ASSERT_EQ(whole["choices"][0]["finish_reason"], "tool_calls") << whole.dump();
  const Json& call = whole["choices"][0]["message"]["tool_calls"][0]["function"];
  const Json arguments = Json::parse(call["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["city"] == "Paris" || arguments["city"] == "Rome");
  EXPECT_TRUE(arguments["days"].is_number_integer());
  std::string streamed;
  for (const Json& chunk : stream("/v1/chat/completions", body))
    for (const Json& choice : chunk["choices"])
      for (const Json& delta : choice["delta"].value("tool_calls", Json::array()))
        streamed += delta["function"]["arguments"].get<std::string>();
  EXPECT_EQ(streamed, call["arguments"]);
}

TEST_F(ServerTest, AConversationWithResultsOfToolsGoesOn) {
  const Json body = Json::parse(R"({"max_tokens":10,"messages":[{"role":"user","content":"Weather?"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get_weather",
    "arguments":"{\"city\":\"Rome\",\"days\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"sunny"}]})");
  const Json made = answer("/apply-template", body);
  EXPECT_NE(made["prompt"].get<std::string>().find("sunny"), std::string::npos);
  EXPECT_NE(made["prompt"].get<std::string>().find("get_weather"), std::string::npos);
  answer("/v1/chat/completions", body);
}

TEST_F(ServerTest, ErrorsHaveTheShapeOfTheApi) {
  const Json openai = answer("/v1/chat/completions", chat({{"temperature", "hot"}}), 400)["error"];
  EXPECT_EQ(openai["type"], "invalid_request_error");
  EXPECT_EQ(openai["param"], "temperature");
  const Json anthropic = answer("/v1/messages", {{"messages", 1}}, 400);
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "invalid_request_error");
  const Json longer = answer("/v1/completions", {{"prompt", std::vector<int>(5000, 7)}}, 400)["error"];
  EXPECT_EQ(longer["type"], "exceed_context_size_error");
  EXPECT_EQ(longer["n_ctx"], 4096);
  const Json cut = answer("/v1/embeddings", {{"input", "x"}, {"dimensions", 8}}, 400)["error"];
  EXPECT_EQ(cut["param"], "dimensions");
  EXPECT_EQ(client().Get("/nothing")->status, 404);
  EXPECT_EQ(client().Get("/v1/completions")->status, 405);
}

TEST_F(ServerTest, SaysWhatItIs) {
  EXPECT_EQ(get("/health")["status"], "ok");
  EXPECT_EQ(get("/v1/models")["data"][0]["id"], "strata-mini-q8_0");
  EXPECT_EQ(get("/v1/models/strata-mini-q8_0")["id"], "strata-mini-q8_0");
  EXPECT_EQ(get("/props")["total_slots"], 3);
  EXPECT_EQ(get("/slots").size(), 3u);
  const auto page = client().Get("/");
  EXPECT_EQ(page->status, 200);
  EXPECT_NE(page->get_header_value("Content-Security-Policy").find("default-src 'none'"), std::string::npos);
  const Json tokens = answer("/tokenize", {{"content", "list files"}})["tokens"];
  EXPECT_EQ(answer("/detokenize", {{"tokens", tokens}})["content"], "list files");
  EXPECT_EQ(answer("/v1/messages/count_tokens", chat())["input_tokens"], 13);
}

// The name of every series that dashboards of the two engines read.
TEST_F(ServerTest, MetricsHaveTheNamesOfOtherEngines) {
  answer("/v1/chat/completions", chat());
  const std::string text = client().Get("/metrics")->body;
  for (const char* name :
       {"llamacpp:prompt_tokens_total ", "llamacpp:tokens_predicted_total ", "llamacpp:requests_processing ",
        "llamacpp:spec_decode_num_drafts_total ",
        "vllm:generation_tokens_total{engine=\"0\",model_name=\"strata-mini-q8_0\"} ",
        "vllm:time_to_first_token_seconds_bucket{", "vllm:inter_token_latency_seconds_count{",
        "vllm:request_success_total{engine=\"0\",model_name=\"strata-mini-q8_0\",finished_reason=\"stop\"} ",
        "vllm:prefix_cache_hits_total{", "strata:requests_total "})
    EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST_F(ServerTest, TheMonitorHasItsFields) {
  answer("/v1/chat/completions", chat());
  const Json state = get("/monitor/state");
  for (const char* name : {"time", "uptime_s", "status", "model", "limits", "rates", "slots", "queue", "cache",
                           "drafts", "memory", "arms", "counts", "last"})
    EXPECT_TRUE(state.contains(name)) << name;
  const Json& last = state["last"];
  EXPECT_EQ(last["spans"].size(), 3u);
  // The engine's stages lie within the request: their sum is no more than its time.
  double sum = 0;
  std::set<std::string> stages;
  for (const Json& stage : last["stages"]) {
    stages.insert(stage["name"].get<std::string>());
    sum += stage["ms"].get<double>();
    EXPECT_GT(stage["calls"], 0);
  }
  EXPECT_EQ(stages.count("prompt pass") + stages.count("output pass") + stages.count("choose"), 3u) << last.dump();
  EXPECT_LE(sum, last["total_ms"].get<double>() * 1.05 + 1);  // clocks are read at slightly different places
  EXPECT_EQ(last["operators"].size(), 0u);                    // not without --profile
  bool matmul = false;
  for (const Json& arm : state["arms"]) matmul = matmul || arm["operator"] == "matmul";
  EXPECT_TRUE(matmul);
}

TEST(ServerAlone, AProfileShowsOperatorsAndPrintsItsTables) {
  ServerProcess server({"--profile"});
  httplib::Client client("127.0.0.1", server.port());
  ASSERT_TRUE(client.Post("/v1/completions", R"({"prompt":"The kernel","max_tokens":4})", "application/json"));
  const Json state = Json::parse(client.Get("/monitor/state")->body);
  ASSERT_GT(state["last"]["operators"].size(), 5u);
  double before = 1e300;
  bool matmul = false;
  for (const Json& one : state["last"]["operators"]) {
    matmul = matmul || one["name"].get<std::string>().starts_with("matmul ");
    EXPECT_LE(one["ms"].get<double>(), before);
    before = one["ms"];
  }
  EXPECT_TRUE(matmul);
  server.send(SIGTERM);
  EXPECT_NE(server.wait().err.find("sum of parts"), std::string::npos);
}

// A client that leaves frees its slot, whether its request is read, answered or still waits.
TEST_F(ServerTest, AClientThatLeavesFreesItsSlot) {
  until_idle();
  const auto endless = [](bool streams) {
    const std::string body = Json{
        {"prompt", "The Linux kernel"},
        {"max_tokens", -1},
        {"ignore_eos", true},
        {"repeat_limit", 0},
        {"stream", streams}}.dump();
    return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };
  std::vector<std::unique_ptr<RawConnection>> clients;
  for (int i = 0; i < 5; ++i) {  // three run, two wait
    clients.push_back(std::make_unique<RawConnection>(server_->port()));
    clients.back()->send(endless(i % 2 == 0));
  }
  for (int i = 0; i < 400 && get("/monitor/state")["queue"]["waiting"] != 2; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(get("/monitor/state")["queue"]["waiting"], 2);
  clients.clear();
  EXPECT_LT(until_idle(), milliseconds(1500));
  EXPECT_EQ(get("/monitor/state")["queue"]["waiting"], 0);
  EXPECT_EQ(answer("/v1/chat/completions", chat())["choices"][0]["message"]["content"], kLs);
}

// In the middle of its prompt: within the step under way, here 64 of 4,000 tokens.
TEST(ServerAlone, AClientThatLeavesWhileItsPromptIsReadFreesItsSlot) {
  const ServerProcess server({"--slots", "1", "-ub", "64"});
  httplib::Client client("127.0.0.1", server.port());
  const auto state = [&] { return Json::parse(client.Get("/monitor/state")->body); };
  for (const char* path : {"/v1/completions", "/v1/embeddings"}) {
    std::vector<int> tokens(4000);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * 37 % 900 + 20);
    const std::string body = Json{{"prompt", tokens}, {"input", tokens}, {"max_tokens", 5}}.dump();
    auto left = std::make_unique<RawConnection>(server.port());
    left->send(std::string("POST ") + path +
               " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    Json slot;
    for (int i = 0; i < 2000; ++i) {
      slot = state()["slots"][0];
      if (slot["state"] == "prompt" && slot["prompt_done"] > 0) break;
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_EQ(slot["state"], "prompt") << path;
    const int64_t before = state()["counts"]["cancelled"];
    left.reset();
    Json after;
    for (int i = 0; i < 400 && (after = state())["slots"][0]["state"] != "idle"; ++i)
      std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(after["counts"]["cancelled"], before + 1) << path;
    EXPECT_LT(after["counts"]["prompt_tokens"], 4000) << path;  // of both together: most was never read
  }
}

TEST_F(ServerTest, AFullQueueSaysWhenToTryAgain) {
  until_idle();
  const Json body{{"prompt", "x"}, {"max_tokens", 60}, {"ignore_eos", true}, {"repeat_limit", 0}};
  std::vector<std::thread> clients;
  std::atomic<int> done{0}, refused{0};
  for (int i = 0; i < 12; ++i)
    clients.emplace_back([&] {
      const httplib::Result result = post("/v1/completions", body);
      if (result && result->status == 200) ++done;
      if (result && result->status == 429 && result->has_header("Retry-After")) ++refused;
    });
  for (std::thread& one : clients) one.join();
  EXPECT_EQ(done + refused, 12);
  EXPECT_GE(done, 7);  // three slots and four places
  EXPECT_GE(refused, 1);
}

TEST(ServerAlone, KeysHostsAndOriginsAreChecked) {
  const ServerProcess server({"--api-key", "one", "--api-key", "two", "--cors-origin", "https://a.example"});
  const auto status = [&](const std::string& headers, const std::string& path = "/v1/models") {
    const std::string text =
        server.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
    return text.substr(9, 3);
  };
  EXPECT_EQ(status(""), "401");
  EXPECT_EQ(status("Authorization: Bearer one\r\n"), "200");
  EXPECT_EQ(status("x-api-key: two\r\n"), "200");
  EXPECT_EQ(status("Authorization: Bearer on\r\n"), "401");
  EXPECT_EQ(status("", "/health"), "200");
  EXPECT_EQ(status("", "/"), "200");
  EXPECT_EQ(status("", "/monitor/state"), "401");
  EXPECT_EQ(status("x-api-key: two\r\nOrigin: https://b.example\r\n"), "403");
  EXPECT_NE(
      server.raw("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: https://a.example\r\n\r\n")
          .find("Access-Control-Allow-Origin: https://a.example"),
      std::string::npos);
  EXPECT_EQ(server.raw("GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").substr(9, 3), "403");
}

// What the flag sets holds where a request does not say otherwise.
TEST(ServerAlone, IgnoreEosIsASettingAndAField) {
  const ServerProcess server({"--ignore-eos", "-n", "30"});
  httplib::Client client("127.0.0.1", server.port());
  const auto tokens = [&](const std::string& more) {
    const auto result =
        client.Post("/v1/chat/completions",
                    R"({"messages":[{"role":"user","content":"What does ls do?"}])" + more + "}", "application/json");
    return result ? Json::parse(result->body)["usage"]["completion_tokens"].get<int>() : -1;
  };
  EXPECT_EQ(tokens(""), 30);
  EXPECT_LT(tokens(R"(,"ignore_eos":false)"), 30);
}

TEST(ServerAlone, AnOpenServerWithoutAKeyWarnsLoudly) {
  ServerProcess server({"--host", "0.0.0.0"});
  EXPECT_NE(server.err().find("ANYONE who reaches 0.0.0.0:"), std::string::npos) << server.err();
}

TEST(ServerAlone, SaysThatItLoadsAndStopsGracefully) {
  ServerProcess server({"--stop-timeout", "20"}, false);
  const std::string first = server.get("/health");
  EXPECT_TRUE(first.find(" 503 ") != std::string::npos || first.find(" 200 ") != std::string::npos);
  EXPECT_TRUE(first.find(" 200 ") != std::string::npos || first.find("Loading model") != std::string::npos);
  while (server.get("/health").find(" 200 ") == std::string::npos) std::this_thread::sleep_for(milliseconds(10));
  std::string body;
  std::thread client([&] {
    httplib::Client made("127.0.0.1", server.port());
    const auto result =
        made.Post("/v1/completions", R"({"prompt":"The kernel","max_tokens":60,"ignore_eos":true,"repeat_limit":0})",
                  "application/json");
    if (result) body = result->body;
  });
  while (server.get("/slots").find("\"is_processing\":true") == std::string::npos)
    std::this_thread::sleep_for(milliseconds(2));
  server.send(SIGTERM);
  client.join();
  EXPECT_NE(body.find("\"completion_tokens\":60"), std::string::npos) << body;
  EXPECT_EQ(server.wait().exit_code, 0);
}

TEST(ServerAlone, RequestsThatOutliveTheTimeToStopEndWithAnError) {
  ServerProcess server({"--stop-timeout", "0"});
  const RawConnection client(server.port());
  const std::string body = R"({"prompt":"x","max_tokens":-1,"ignore_eos":true,"repeat_limit":0,"stream":true})";
  client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  client.receive("data: ");
  server.send(SIGINT);
  EXPECT_NE(client.receive("stopping").find("the server is stopping"), std::string::npos);
  EXPECT_EQ(server.wait().exit_code, 0);
}

TEST(ServerAlone, AModelThatCannotBeLoadedEndsTheProgram) {
  const ProcessResult result = run({STRATA_BINARY_DIR "/strata", "serve", "--port", "0", "-m", "/no/such/file.gguf"},
                                   {}, {}, std::chrono::seconds(20));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(ServerAlone, AUsedPortIsAUsageError) {
  const ServerProcess first({}, false);
  const ProcessResult second = run({STRATA_BINARY_DIR "/strata", "serve", "--port", std::to_string(first.port())}, {},
                                   {}, std::chrono::seconds(20));
  EXPECT_EQ(second.exit_code, 2) << second.err;
}

// Comments keep a stream alive while a prompt is read.
TEST(ServerAlone, ALongPromptSendsSignsOfLife) {
  const ServerProcess server({"--sse-ping-interval", "0.02", "-ub", "3500"});
  httplib::Client client("127.0.0.1", server.port());
  const Json body{
      {"prompt", std::vector<int>(3500, 500)}, {"max_tokens", 1}, {"stream", true}, {"return_progress", true}};
  const auto result = client.Post("/v1/completions", body.dump(), "application/json");
  ASSERT_TRUE(result);
  EXPECT_NE(result->body.find(": keep-alive\n\n"), std::string::npos);
  EXPECT_NE(result->body.find("\"prompt_progress\""), std::string::npos);
}

}  // namespace
}  // namespace strata::test
