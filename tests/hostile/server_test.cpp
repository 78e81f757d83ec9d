// Hostile requests from a generator: wrong types and ranges, nesting, encodings, slow bodies, pipelines, malformed
// heads. Each is answered by a 4xx with a reason, and the server goes on as if nothing had been. 2,000 requests; with
// TEST_ALL 100,000.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "support/server_process.h"

namespace strata::test {
namespace {

using Json = nlohmann::ordered_json;

struct Hostile {
  std::string what, path, body;
  std::string raw;  // instead: all bytes of the request
};

const char* const kPaths[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"};

Json valid_body(const std::string& path) {
  if (path == "/v1/completions") return {{"prompt", "a"}, {"max_tokens", 1}};
  if (path == "/v1/responses") return {{"input", "a"}, {"max_output_tokens", 1}};
  return {{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"max_tokens", 1}};
}

template <class List>
const auto& pick(const List& list, Random& random) {
  return list[static_cast<size_t>(random.below(static_cast<int64_t>(std::size(list))))];
}

std::string repeated(const std::string& text, int64_t count) {
  std::string made;
  for (int64_t i = 0; i < count; ++i) made += text;
  return made;
}

// A field that every API checks, with a value of another type or out of range.
Hostile wrong_field(Random& random) {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> fields{
      {"temperature", {"\"hot\"", "-1", "1e400", "[]", "true", "101"}},
      {"top_p", {"2", "-0.1", "\"\"", "{}"}},
      {"min_p", {"1.5", "[1]"}},
      {"top_k", {"-2", "1.5", "1e300", "\"40\""}},
      {"seed", {"1.5", "\"x\"", "1e30", "[]"}},
      {"stream", {"1", "\"true\"", "[]"}},
      {"repeat_penalty", {"0", "-1", "\"x\""}},
      {"presence_penalty", {"1e9", "{}"}},
      {"frequency_penalty", {"-1e9", "[]"}},
      {"logit_bias", {"7", "{\"x\":1}", "{\"1\":\"y\"}", "{\"99999999\":1}", "[[1]]", "{\"-1\":2}"}},
      {"stream_options", {"7", "[]", "{\"include_usage\":3}"}},
      {"repeat_limit", {"-1", "\"\""}},
      {"model", {"7", "[]", "{}"}},
      {"ignore_eos", {"0", "\"no\""}},
  };
  const std::string path = pick(kPaths, random);
  const auto& [name, values] = pick(fields, random);
  const std::string value = pick(values, random);
  std::string body = valid_body(path).dump();
  body.insert(1, std::string("\"") + name + "\":" + value + ",");
  return {std::string(name) + " = " + value, path, body, {}};
}

Hostile wrong_shape(Random& random) {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> bodies{
      {"/v1/chat/completions",
       {"{}",
        "[]",
        "7",
        "null",
        "\"x\"",
        "{\"messages\":{}}",
        "{\"messages\":[]}",
        "{\"messages\":[1]}",
        R"({"messages":[{"role":"nobody","content":"x"}]})",
        R"({"messages":[{"role":"user","content":7}]})",
        R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]})",
        R"({"messages":[{"role":"user","content":"x"}],"tools":[7]})",
        R"({"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":7}}]})",
        R"({"messages":[{"role":"user","content":"x"}],"tool_choice":"sometimes"})",
        R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema"}})",
        R"({"messages":[{"role":"user","content":"x"}],"response_format":7})",
        R"({"messages":[{"role":"user","content":"x"}],"n":100})",
        R"({"messages":[{"role":"user","content":"x"}],"stop":[1,2]})",
        R"({"messages":[{"role":"user","content":"x"}],"max_tokens":-9})",
        R"({"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":[]})"}},
      {"/v1/completions",
       {"{}", "{\"prompt\":null}", "{\"prompt\":[]}", "{\"prompt\":[[]]}", "{\"prompt\":[99999999]}",
        "{\"prompt\":[-1]}", "{\"prompt\":{}}", R"({"prompt":"x","suffix":"y"})", R"({"prompt":"x","best_of":3})",
        R"({"prompt":"x","logprobs":100})", R"({"prompt":"x","n":0})", R"({"prompt":""})"}},
      {"/completion", {"{}", "{\"prompt\":7}", R"({"prompt":"x","n_predict":-9})", R"({"prompt":"x","n_probs":1e9})"}},
      {"/v1/responses",
       {"{}", "{\"input\":7}", "{\"input\":[]}", "{\"input\":[7]}", R"({"input":[{"type":"web_search_call"}]})",
        R"({"input":"x","previous_response_id":"resp_1"})", R"({"input":"x","tools":[{"type":"web_search"}]})",
        R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://x/"}]}]})"}},
      {"/v1/messages",
       {"{}", "{\"messages\":7}", R"({"messages":[{"role":"tool","content":"x"}]})",
        R"({"messages":[{"role":"user"}]})", R"({"max_tokens":0,"messages":[{"role":"user","content":"x"}]})",
        R"({"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"x"}}]}]})",
        R"({"messages":[{"role":"user","content":"x"}],"thinking":{"type":"maybe"}})",
        R"({"messages":[{"role":"user","content":"x"}],"tools":[{"type":"bash_20250124","name":"bash"}]})"}},
      {"/v1/embeddings",
       {"{}", "{\"input\":7}", "{\"input\":[]}", "{\"input\":[[]]}", "{\"input\":[99999999]}", "{\"input\":\"\"}",
        R"({"input":"x","encoding_format":"int8"})", R"({"input":"x","dimensions":-1})"}},
      {"/tokenize", {"{}", "{\"content\":7}", "[]", ""}},
      {"/detokenize",
       {"{}", "{\"tokens\":[99999999]}", "{\"tokens\":[-1]}", "{\"tokens\":\"x\"}", "{\"tokens\":[1.5]}"}},
      {"/apply-template", {"{}", "{\"messages\":[7]}"}},
      {"/v1/messages/count_tokens", {"{}", "{\"messages\":\"\"}"}},
  };
  const auto& [path, list] = pick(bodies, random);
  const std::string body = pick(list, random);
  return {"shape " + body.substr(0, 60), path, body, {}};
}

Hostile nested(Random& random) {
  const std::string path = pick(kPaths, random);
  std::string body = valid_body(path).dump();
  const int64_t depth = 200 + random.below(60000);
  const auto with = [&](const std::string& field) { return "{" + field + "," + body.substr(1); };
  switch (random.below(7)) {
    case 0: return {"deep arrays", path, repeated("[", depth), {}};
    case 1: return {"deep objects", path, repeated("{\"a\":", depth) + "1" + repeated("}", depth), {}};
    case 2: return {"a deep field", path, with("\"x\":" + repeated("[", depth) + repeated("]", depth)), {}};
    case 3:
      return {
          "a deep grammar",
          "/v1/completions",
          R"({"prompt":"a","grammar":"root ::= )" + repeated("(", depth) + "\\\"a\\\"" + repeated(")", depth) + "\"}",
          {}};
    case 4:
      return {"a deep schema",
              "/v1/completions",
              R"({"prompt":"a","json_schema":)" + repeated("{\"items\":", depth) + "{}" + repeated("}", depth) + "}",
              {}};
    case 5:
      return {"a deep pattern",
              "/v1/completions",
              R"({"prompt":"a","json_schema":{"type":"string","pattern":"^)" + repeated("(", 101 + depth % 1900) + "a" +
                  repeated(")", 101 + depth % 1900) + "$\"}}",
              {}};
    default: {
      static const char* const bad[] = {"^+[a-z]$", "^{2}x$", "[", "a{2001}", "(?<=x)y"};
      return {"a bad pattern",
              "/v1/completions",
              R"({"prompt":"a","json_schema":{"type":"string","pattern":")" + std::string(pick(bad, random)) + "\"}}",
              {}};
    }
  }
}

Hostile encoded(Random& random) {
  const std::string path = pick(kPaths, random);
  std::string body = valid_body(path).dump();
  const auto in_text = [&](const std::string& bytes) {
    const size_t at = body.rfind("\"a\"");
    body.replace(at, 3, "\"" + bytes + "\"");
    return body;
  };
  static const char* const bytes[] = {
      "\xff", "\xc3",    "\xe2\x82",       "\xf0\x9f\x98", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80",
      "\x80", "\\ud800", "\\udc00\\ud800", "\\u12",        "\\x41",    "\x01"};
  switch (random.below(4)) {
    case 0: return {"bytes that are no UTF-8", path, in_text(pick(bytes, random)), {}};
    case 1:
      return {
          "a cut body", path, body.substr(0, static_cast<size_t>(random.below(static_cast<int64_t>(body.size())))), {}};
    case 2: {
      std::string wide;
      for (const char c : body) wide += std::string(1, c) + std::string(1, '\0');
      return {"UTF-16", path, wide, {}};
    }
    default: {
      std::string noise;
      for (int64_t i = random.below(300); i >= 0; --i) noise += static_cast<char>(random.below(256));
      return {"noise", path, "[" + noise, {}};
    }
  }
}

std::string head(const std::string& line, const std::string& headers = {}) {
  return line + "\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
}

Hostile malformed_head(Random& random) {
  const std::string post = "POST /v1/completions HTTP/1.1";
  const std::vector<std::pair<const char*, std::string>> list{
      {"no version", head("GET /")},
      {"another version", head("GET / HTTP/3.0")},
      {"another method", head("DELETE /v1/models HTTP/1.1")},
      {"a method that is none", head("G(T / HTTP/1.1")},
      {"a path above", head("GET /../../etc/passwd HTTP/1.1")},
      {"an encoded path above", head("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1")},
      {"an absolute path", head("GET http://evil/ HTTP/1.1")},
      {"a long path", head("GET /" + repeated("a", 9000 + random.below(20000)) + " HTTP/1.1")},
      {"a long header", head("GET / HTTP/1.1", "X: " + repeated("a", 70000) + "\r\n")},
      {"many headers", head("GET / HTTP/1.1", repeated("X: y\r\n", 101 + random.below(500)))},
      {"two lengths", head(post, "Content-Length: 2\r\nContent-Length: 3\r\n") + "{}"},
      {"length and chunks", head(post, "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n") + "{}"},
      {"a negative length", head(post, "Content-Length: -1\r\n")},
      {"a huge length", head(post, "Content-Length: 99999999999999999999999\r\n")},
      {"a body that is too large", head(post, "Content-Length: 1099511627776\r\n")},
      {"a bad chunk", head(post, "Transfer-Encoding: chunked\r\n") + "zz\r\n{}\r\n0\r\n\r\n"},
      {"a huge chunk", head(post, "Transfer-Encoding: chunked\r\n") + "fffffffffffffff\r\n{}"},
      {"an unknown coding", head(post, "Transfer-Encoding: gzip\r\n") + "{}"},
      {"a compressed body", head(post, "Content-Encoding: gzip\r\nContent-Length: 2\r\n") + "{}"},
      {"no host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n"},
      {"another host", "GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"},
      {"a folded header", head("GET / HTTP/1.1", "X: a\r\n b\r\n")},
      {"a header without a name", head("GET / HTTP/1.1", ": a\r\n")},
      {"control characters", head("GET / HTTP/1.1", std::string("X: a\0b\r\n", 8))},
      {"lines without CR", "GET / HTTP/1.1\nHost: localhost\n\n\r\n\r\n"},
      {"an unknown expectation", head(post, "Expect: 200-ok\r\n")},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 \r\n\r\n", 17)},
      {"a strange page asks", head("GET /health HTTP/1.1", "Origin: https://evil.example\r\n")},
  };
  const auto& [what, raw] = pick(list, random);
  return {what, {}, {}, raw};
}

Hostile make(uint64_t number) {
  Random random(number);
  switch (random.below(10)) {
    case 0:
    case 1:
    case 2: return wrong_field(random);
    case 3:
    case 4:
    case 5: return wrong_shape(random);
    case 6: return nested(random);
    case 7:
    case 8: return encoded(random);
    default: return malformed_head(random);
  }
}

// Empty when the answer is a 4xx with a reason.
std::string fault_of(int status, const std::string& body) {
  if (status < 400 || status > 499) return "status " + std::to_string(status) + ": " + body.substr(0, 200);
  const Json answer = Json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("error")) return "no error in " + body.substr(0, 200);
  const Json message = answer["error"].value("message", Json());
  return message.is_string() && message.get<std::string>().size() > 5 ? "" : "no reason in " + body.substr(0, 200);
}

std::string fault_of_raw(const std::string& text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return "no answer: " + text.substr(0, 100);
  return fault_of(std::atoi(text.c_str() + 9), text.substr(end + 4));
}

class HostileServer : public ::testing::Test {
 protected:
  static int64_t resident(const ServerProcess& server) {
    return Json::parse(body_of(server.get("/monitor/state")))["memory"]["process_bytes"];
  }
  static std::string body_of(const std::string& text) { return text.substr(text.find("\r\n\r\n") + 4); }
  static std::string answer(const ServerProcess& server) {
    httplib::Client client("127.0.0.1", server.port());
    const auto result = client.Post("/v1/completions", R"({"prompt":"The kernel","max_tokens":8})", "application/json");
    return result ? Json::parse(result->body)["choices"][0]["text"].get<std::string>() : "no answer";
  }
};

TEST_F(HostileServer, EveryHostileRequestGetsAReason) {
  const uint64_t count = std::getenv("TEST_ALL") != nullptr ? 100'000 : 2'000;
  const ServerProcess server({"--max-body", "1", "--log-level", "warn"});
  const std::string before = answer(server);
  const int64_t memory = resident(server);
  std::atomic<uint64_t> next{0};
  std::atomic<int> faults{0};
  std::mutex mutex;
  const auto attack = [&] {
    httplib::Client client("127.0.0.1", server.port());
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);
    client.set_read_timeout(30);
    for (uint64_t number; (number = next++) < count && faults < 20;) {
      const Hostile one = make(number);
      std::string fault;
      if (one.raw.empty()) {
        const auto result = client.Post(one.path, one.body, "application/json");
        fault = result ? fault_of(result->status, result->body) : "no answer";
      } else {
        fault = fault_of_raw(server.raw(one.raw));
      }
      if (fault.empty()) continue;
      ++faults;
      const std::lock_guard lock(mutex);
      ADD_FAILURE() << "request " << number << ", " << one.what << ", " << one.path << ": " << fault;
    }
  };
  std::vector<std::thread> attackers;
  for (int i = 0; i < 4; ++i) attackers.emplace_back(attack);
  for (std::thread& one : attackers) one.join();
  EXPECT_EQ(answer(server), before);
  // A grammar may take some memory while it is compiled; what is kept does not grow with the number of requests.
  EXPECT_LT(resident(server) - memory, int64_t{200} << 20);
}

TEST_F(HostileServer, SlowRequestsEndAndOthersDoNotWait) {
  const ServerProcess server({"--timeout", "1"});
  const std::string begun = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"pro";
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(std::make_unique<RawConnection>(server.port()));
    slow.back()->send(begun);
  }
  EXPECT_NE(answer(server), "no answer");
  for (const auto& one : slow) EXPECT_EQ(fault_of_raw(one->receive()), "");
}

TEST_F(HostileServer, PipelinedRequestsAreAnsweredInOrder) {
  const ServerProcess server;
  const std::string body = R"({"content":"list files"})";
  const std::string post =
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body;
  const std::string bad = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n{";
  const std::string text =
      server.raw(post + bad + post + "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + "BAD\r\n\r\n" + post);
  std::vector<int> statuses;
  for (size_t at = text.find("HTTP/1.1 "); at != std::string::npos; at = text.find("HTTP/1.1 ", at + 1))
    statuses.push_back(std::atoi(text.c_str() + at + 9));
  EXPECT_EQ(statuses, (std::vector<int>{200, 400, 200, 200, 400})) << text;  // nothing behind what cannot be read
}

// Bodies in pieces that cut characters, by chunks and by packets, are the same bodies.
TEST_F(HostileServer, CharactersMayBeCutAnywhere) {
  const ServerProcess server;
  const std::string body = R"({"content":"gr)"
                           "\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"
                           R"("})";
  std::string first;
  for (size_t cut = 1; cut < body.size(); ++cut) {
    const RawConnection connection(server.port());
    std::string chunks =
        "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const std::string& part : {body.substr(0, cut), body.substr(cut)}) {
      char size[16];
      std::snprintf(size, sizeof size, "%zx\r\n", part.size());
      connection.send(chunks + size + part + "\r\n");
      chunks.clear();
    }
    connection.send("0\r\n\r\n");
    const std::string made = body_of(connection.receive());
    if (first.empty()) first = made;
    EXPECT_EQ(made, first) << cut;
  }
  EXPECT_NE(first.find("tokens"), std::string::npos) << first;
}

}  // namespace
}  // namespace strata::test
