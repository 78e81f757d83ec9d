// Heads and bodies of HTTP requests: what is taken, and what is refused with which status.
#include "server/http_head.h"

#include <gtest/gtest.h>

namespace strata::server {
namespace {

HttpRefusal parse(const std::string& text, HttpHead* head = nullptr, const HttpLimits& limits = {}) {
  HttpHead own;
  return parse_head(text, limits, head == nullptr ? own : *head);
}

int status_of(const std::string& text) { return parse(text).status; }

TEST(HttpHeadTest, ARequestAsClientsSendIt) {
  HttpHead head;
  const std::string text =
      "POST /v1/chat/completions?x=1&fail_on_no_slot=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer k\r\n"
      "content-LENGTH:  12 \r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(parse(text, &head).status, 0);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/chat/completions");
  EXPECT_EQ(head.query_value("fail_on_no_slot"), "1");
  EXPECT_EQ(head.query_value("y"), "");
  EXPECT_EQ(head.value("authorization"), "Bearer k");
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_TRUE(head.keep_alive);
}

TEST(HttpHeadTest, WhatTwoReadersCouldUnderstandDifferentlyIsRefused) {
  const std::string host = "Host: a\r\n";
  const auto get = [&](const std::string& headers) { return "GET / HTTP/1.1\r\n" + headers + "\r\n"; };
  EXPECT_EQ(status_of(get(host)), 0);
  EXPECT_EQ(status_of(get("")), 400);
  EXPECT_EQ(status_of(get(host + host)), 400);
  EXPECT_EQ(status_of(get(host + "Content-Length: 1\r\nContent-Length: 2\r\n")), 400);
  EXPECT_EQ(status_of(get(host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(status_of(get(host + "Content-Length: +1\r\n")), 400);
  EXPECT_EQ(status_of(get(host + "Content-Length: 1, 1\r\n")), 400);
  EXPECT_EQ(status_of(get(host + "Content-Length: 99999999999999999999\r\n")), 413);
  EXPECT_EQ(status_of(get(host + "Transfer-Encoding: gzip, chunked\r\n")), 400);
  EXPECT_EQ(status_of(get(host + "Content-Encoding: gzip\r\n")), 415);
  EXPECT_EQ(status_of(get(host + "Expect: more\r\n")), 417);
  EXPECT_EQ(status_of(get(host + "X : y\r\n")), 400);
  EXPECT_EQ(status_of(get(host + " folded\r\n")), 400);
  EXPECT_EQ(status_of(get(host + "X: a\x01\r\n")), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
  EXPECT_EQ(status_of("GET /\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  std::string many = host;
  for (int i = 0; i < 200; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(get(many)), 431);
}

TEST(HttpHeadTest, ChunksCutAnywhereGiveTheSameBody) {
  const std::string text = "4\r\nWiki\r\n5;x=y\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\nnext";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ChunkedBody chunks(100);
    std::string body, rest;
    for (const std::string& part : {text.substr(0, cut), text.substr(cut)}) {
      std::string_view in = part;
      ASSERT_TRUE(chunks.push(in, body)) << cut;
      rest += in;
    }
    EXPECT_TRUE(chunks.done());
    EXPECT_EQ(body, "Wikipedia in\r\n\r\nchunks.");
    EXPECT_EQ(rest, "next");
  }
}

int chunk_status(const std::string& text) {
  ChunkedBody chunks(100);
  std::string body;
  std::string_view in = text;
  return chunks.push(in, body) ? 0 : chunks.refusal().status;
}

TEST(HttpHeadTest, BadChunksAreRefused) {
  EXPECT_EQ(chunk_status("x\r\n"), 400);
  EXPECT_EQ(chunk_status("\r\n"), 400);
  EXPECT_EQ(chunk_status("-1\r\n"), 400);
  EXPECT_EQ(chunk_status("4\nWiki"), 400);
  EXPECT_EQ(chunk_status("4\r\nWikipedia\r\n"), 400);
  EXPECT_EQ(chunk_status("65\r\n"), 413);
  EXPECT_EQ(chunk_status("ffffffffffffffff\r\n"), 413);
  EXPECT_EQ(chunk_status(std::string(2000, '0')), 400);
}

TEST(HttpHeadTest, AddressesAreThisServerAndNamesHaveToBeKnown) {
  for (const char* host : {"127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "192.168.1.7:80"})
    EXPECT_TRUE(host_allowed(host, {})) << host;
  for (const char* host : {"example.org", "localhost.example.org", "127.0.0.1.example.org", "", ":8080"})
    EXPECT_FALSE(host_allowed(host, {})) << host;
  EXPECT_TRUE(host_allowed("Example.org:8080", {"example.org"}));
  EXPECT_TRUE(host_allowed("anything", {"*"}));
}

TEST(HttpHeadTest, PagesOfOtherSitesHaveToBeAllowed) {
  EXPECT_TRUE(origin_allowed("http://127.0.0.1:8080", "127.0.0.1:8080", {}));
  EXPECT_FALSE(origin_allowed("http://127.0.0.1:9", "127.0.0.1:8080", {}));
  EXPECT_FALSE(origin_allowed("null", "127.0.0.1:8080", {}));
  EXPECT_TRUE(origin_allowed("https://a.example", "127.0.0.1:8080", {"https://a.example"}));
}

TEST(HttpHeadTest, KeysCompareAsAWhole) {
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  for (const char* wrong : {"", "secre", "secret1", "Secret", "secreT"})
    EXPECT_FALSE(equal_in_constant_time(wrong, "secret")) << wrong;
}

}  // namespace
}  // namespace strata::server
