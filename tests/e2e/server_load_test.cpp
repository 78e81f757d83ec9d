// Many streaming clients at a time, of which some leave in the middle: every finished answer is the one that the same
// request gets alone, no slot is lost and memory does not grow. A few seconds with 8 clients; with TEST_ALL two
// minutes with 64.
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "support/server_process.h"

namespace strata::test {
namespace {

using Json = nlohmann::ordered_json;

// A few dozen requests of all kinds: of different lengths, with common beginnings, greedy and sampled, one with a
// schema.
Json request_of(int kind) {
  std::string text = "Topic " + std::to_string(kind % 5) + ". ";
  for (int i = 0; i < kind % 4 * 12; ++i) text += "Line " + std::to_string(i) + " of the text. ";
  Json body{{"messages", {{{"role", "user"}, {"content", text + "What does item " + std::to_string(kind) + " do?"}}}},
            {"max_tokens", 6 + kind % 3 * 10},
            {"stream", true},
            {"seed", kind},
            {"temperature", kind % 2 == 0 ? 0.0 : 0.8},
            {"stream_options", {{"include_usage", true}}}};
  if (kind % 7 == 3)
    body["json_schema"] = Json::parse(R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})");
  return body;
}

struct Answer {
  std::string text;
  bool finished = false;
};

// The text of a stream; leaves after `events` of them where that is not negative.
Answer ask(int port, const Json& body, int64_t events) {
  const std::string text = body.dump();
  const RawConnection connection(port);
  connection.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
                  std::to_string(text.size()) + "\r\n\r\n" + text);
  Answer answer;
  std::string received;
  if (events >= 0) {
    while (events-- >= 0) connection.receive("data: ", std::chrono::seconds(60));
    return answer;
  }
  received = connection.receive({}, std::chrono::seconds(300));
  for (size_t at = received.find("data: {"); at != std::string::npos; at = received.find("data: {", at + 1)) {
    const Json chunk = Json::parse(received.substr(at + 6, received.find('\n', at) - at - 6));
    if (chunk.contains("error")) return answer;
    for (const Json& choice : chunk["choices"]) answer.text += choice["delta"].value("content", "");
  }
  answer.finished = received.find("data: [DONE]") != std::string::npos;
  return answer;
}

Json state(const ServerProcess& server) {
  const std::string text = server.get("/monitor/state");
  return Json::parse(text.substr(text.find("\r\n\r\n") + 4));
}

TEST(ServerLoad, EveryFinishedAnswerIsTheOneGivenAlone) {
  const bool all = std::getenv("TEST_ALL") != nullptr;
  const int clients = all ? 64 : 8, kinds = all ? 40 : 8;
  const auto length = std::chrono::seconds(all ? 120 : 2);
  const ServerProcess server({"--slots", "8", "--queue", "128", "--draft", "auto", "--cache-ram", "64"});
  std::map<int, std::string> alone;
  for (int kind = 0; kind < kinds; ++kind) {
    const Answer answer = ask(server.port(), request_of(kind), -1);
    ASSERT_TRUE(answer.finished) << kind;
    alone[kind] = answer.text;
  }
  const int64_t memory = state(server)["memory"]["process_bytes"];
  std::atomic<int> finished{0}, left{0};
  std::mutex mutex;
  const auto end = std::chrono::steady_clock::now() + length;
  const auto work = [&](uint64_t seed) {
    Random random(seed);
    while (std::chrono::steady_clock::now() < end) {
      const int kind = static_cast<int>(random.below(kinds));
      const bool leaves = random.below(4) == 0;
      const Answer answer = ask(server.port(), request_of(kind), leaves ? random.below(6) : -1);
      if (leaves) {
        ++left;
        continue;
      }
      ++finished;
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(answer.finished) << kind;
      EXPECT_EQ(answer.text, alone[kind]) << kind;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) threads.emplace_back(work, static_cast<uint64_t>(i) + 1);
  for (std::thread& one : threads) one.join();
  Json after = state(server);
  const auto busy = [&] {
    for (const Json& slot : after["slots"])
      if (slot["state"] != "idle") return true;
    return after["queue"]["waiting"] != 0;
  };
  for (int i = 0; i < 200 && busy(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    after = state(server);
  }
  EXPECT_FALSE(busy()) << after.dump(2);
  const Json& counts = after["counts"];
  EXPECT_EQ(counts["failed"], 0);
  EXPECT_EQ(counts["requests"], counts["finished"].get<int64_t>() + counts["cancelled"].get<int64_t>());
  EXPECT_GE(finished, 1);
  // Kept sequences have a budget of 64 MiB; running ones and buffers of the system's allocator come on top.
  EXPECT_LT(after["memory"]["process_bytes"].get<int64_t>() - memory, int64_t{160} << 20);
  std::printf("%d answers, %d clients left, memory %+.1f MiB\n", finished.load(), left.load(),
              static_cast<double>(after["memory"]["process_bytes"].get<int64_t>() - memory) / 1048576);
}

}  // namespace
}  // namespace strata::test
