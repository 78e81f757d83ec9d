// POST /v1/embeddings and /embedding of a running server.
#include <gtest/gtest.h>
#include <httplib.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/server_process.h"

namespace strata::test {
namespace {

using Json = nlohmann::ordered_json;

Json answer(const ServerProcess& server, const std::string& path, const Json& body, int status = 200) {
  httplib::Client client("127.0.0.1", server.port());
  client.set_read_timeout(60);
  const auto result = client.Post(path, body.dump(), "application/json");
  if (!result) throw std::runtime_error("no answer");
  EXPECT_EQ(result->status, status) << result->body;
  return Json::parse(result->body);
}

std::vector<float> vector_of(const Json& made, size_t index = 0) { return made["data"][index]["embedding"]; }

double product(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

std::vector<float> from_base64(const std::string& text) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t held = 0, bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    held = held << 6 | static_cast<uint32_t>(digits.find(c));
    if ((bits += 6) < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits & 255);
  }
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

TEST(Embeddings, HaveTheShapeOfTheApi) {
  const ServerProcess server({"--slots", "3", "--queue", "1"});
  const Json one = answer(server, "/v1/embeddings", {{"input", "list files"}, {"model", "any"}});
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], "strata-mini-q8_0");
  EXPECT_EQ(one["usage"], (Json{{"prompt_tokens", 2}, {"total_tokens", 2}}));
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  const std::vector<float> vector = vector_of(one);
  EXPECT_EQ(vector.size(), 320u);
  EXPECT_NEAR(product(vector, vector), 1, 1e-6);  // 320 products of f32 rounded once: 320 · 2^-24 at most

  const Json tokens = answer(server, "/tokenize", {{"content", "list files"}})["tokens"];
  EXPECT_EQ(vector_of(answer(server, "/v1/embeddings", {{"input", tokens}})), vector);
  const Json coded = answer(server, "/v1/embeddings", {{"input", "list files"}, {"encoding_format", "base64"}});
  EXPECT_EQ(from_base64(coded["data"][0]["embedding"]), vector);
  const Json native = answer(server, "/embedding", {{"content", "list files"}});
  EXPECT_EQ(native[0]["embedding"][0].get<std::vector<float>>(), vector);
  const Json raw = answer(server, "/embedding", {{"content", "list files"}, {"embd_normalize", -1}});
  EXPECT_GT(std::abs(product(raw[0]["embedding"][0], raw[0]["embedding"][0]) - 1), 0.01);

  EXPECT_EQ(answer(server, "/v1/embeddings", {{"input", ""}}, 400)["error"]["type"], "invalid_request_error");
  EXPECT_EQ(answer(server, "/v1/embeddings", {{"input", std::vector<int>(5000, 7)}}, 400)["error"]["type"],
            "exceed_context_size_error");
}

// More texts than slots and queue hold, beside requests that generate: each vector is that of its text alone.
TEST(Embeddings, ManyTextsInCompanyGiveTheBitsOfEachAlone) {
  const ServerProcess server({"--slots", "3", "--queue", "4", "-ub", "32"});
  std::vector<std::string> texts;
  for (int i = 0; i < 24; ++i) {
    texts.push_back("Text " + std::to_string(i) + ".");
    for (int j = 0; j < i * 3; ++j) texts.back() += " Line " + std::to_string(j) + " of it.";
  }
  std::thread other([&] {
    for (int i = 0; i < 3; ++i)
      answer(server, "/v1/completions", {{"prompt", "The kernel"}, {"max_tokens", 30}, {"ignore_eos", true}});
  });
  const Json together = answer(server, "/v1/embeddings", {{"input", texts}});
  other.join();
  ASSERT_EQ(together["data"].size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(together["data"][i]["index"], i);
    EXPECT_EQ(vector_of(together, i), vector_of(answer(server, "/v1/embeddings", {{"input", texts[i]}}))) << i;
  }
}

// What they are for: texts of one matter lie nearer to each other than to another's.
TEST(Embeddings, TextsOfOneMatterAreNear) {
  const ServerProcess server;
  const Json made = answer(
      server, "/v1/embeddings",
      {{"input",
        {"The grep command prints lines that match patterns.", "grep is used to print the lines that match a pattern.",
         "The weather in Rome was sunny and warm last summer."}}});
  const double near = product(vector_of(made, 0), vector_of(made, 1));
  EXPECT_GT(near, product(vector_of(made, 0), vector_of(made, 2)) + 0.05);
}

TEST(Embeddings, PoolingIsASetting) {
  const ServerProcess each({"--pooling", "none"});
  const Json rows = answer(each, "/embedding", {{"content", "list files"}});
  EXPECT_EQ(rows[0]["embedding"].size(), 2u);
  EXPECT_NE(
      answer(each, "/v1/embeddings", {{"input", "x"}}, 400)["error"]["message"].get<std::string>().find("/embedding"),
      std::string::npos);
  const ServerProcess last({"--pooling", "last"});
  const Json raw = answer(last, "/embedding", {{"content", "list files"}, {"embd_normalize", -1}});
  EXPECT_EQ(raw[0]["embedding"][0], rows[0]["embedding"][1]);
  const ServerProcess off({"--no-embeddings"});
  EXPECT_EQ(answer(off, "/v1/embeddings", {{"input", "x"}}, 501)["error"]["type"], "not_supported_error");
}

}  // namespace
}  // namespace strata::test
