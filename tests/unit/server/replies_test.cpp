// Answers made from events, whole and streamed, without sockets.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/reply.h"
#include "server/tools.h"

namespace strata::server {
namespace {

using Json = nlohmann::ordered_json;
using Kind = text::ReplyEvent::Kind;

Event reply(Kind kind, const std::string& text, int32_t call = -1) {
  Event event;
  event.reply = {kind, call, text};
  return event;
}

Event finished(FinishReason reason, int32_t stop = -1) {
  Event event;
  event.kind = Event::Kind::Finished;
  event.ending.reason = reason;
  event.ending.stop = stop;
  event.ending.prompt_tokens = 10;
  event.ending.cached_tokens = 4;
  event.ending.output_tokens = 3;
  return event;
}

// Thoughts, text and a call.
std::vector<Event> events() {
  return {reply(Kind::Reasoning, "hm"),   reply(Kind::Content, "He"),          reply(Kind::Content, "llo"),
          reply(Kind::CallBegin, "f", 0), reply(Kind::Arguments, "{\"a\"", 0), reply(Kind::Arguments, ":1}", 0),
          reply(Kind::CallEnd, "", 0),    finished(FinishReason::EndOfText)};
}

struct Written {
  std::string text;        // of the stream
  std::vector<Json> data;  // of its events
  std::vector<std::string> names;
};

ServeRequest request_of(Api api, bool stream) {
  ServeRequest request;
  request.api = api;
  request.stream = stream;
  request.include_usage = true;
  request.generation.stop = {"END"};
  if (continues_text(api)) request.prompts.resize(1);
  return request;
}

ReplyFacts facts() {
  return {.id = "id",
          .model = "m",
          .created = 1,
          .token_text = [](int32_t id) { return std::to_string(id); },
          .prompts = {"before"}};
}

Written streamed(Api api, const std::vector<Event>& list) {
  const ServeRequest request = request_of(api, true);
  const auto writer = make_writer(request, facts());
  Written written;
  written.text = writer->begin();
  for (const Event& event : list) written.text += writer->take(event);
  EXPECT_TRUE(writer->over());
  written.text += writer->end();
  for (size_t start = 0; start < written.text.size();) {
    const size_t end = written.text.find('\n', start);
    const std::string line = written.text.substr(start, end - start);
    if (line.starts_with("event: ")) written.names.push_back(line.substr(7));
    if (line.starts_with("data: ") && line != "data: [DONE]") written.data.push_back(Json::parse(line.substr(6)));
    start = end + 1;
  }
  return written;
}

Json whole(Api api, const std::vector<Event>& list) {
  const ServeRequest request = request_of(api, false);
  const auto writer = make_writer(request, facts());
  for (const Event& event : list) EXPECT_EQ(writer->take(event), "");
  return Json::parse(writer->whole());
}

TEST(RepliesTest, ChatStreamsWhatTheWholeAnswerHolds) {
  const Json answer = whole(Api::Chat, events());
  const Json& message = answer["choices"][0]["message"];
  const Written written = streamed(Api::Chat, events());
  std::string content, reasoning, arguments, name, reason;
  for (const Json& chunk : written.data)
    for (const Json& choice : chunk["choices"]) {
      content += choice["delta"].value("content", "");
      reasoning += choice["delta"].value("reasoning_content", "");
      for (const Json& call : choice["delta"].value("tool_calls", Json::array())) {
        arguments += call["function"]["arguments"].get<std::string>();
        name += call["function"].value("name", "");
      }
      if (choice["finish_reason"].is_string()) reason = choice["finish_reason"];
    }
  EXPECT_EQ(content, message["content"]);
  EXPECT_EQ(reasoning, message["reasoning_content"]);
  EXPECT_EQ(arguments, message["tool_calls"][0]["function"]["arguments"]);
  EXPECT_EQ(name, "f");
  EXPECT_EQ(reason, "tool_calls");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(written.data.back()["usage"], answer["usage"]);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
  EXPECT_TRUE(written.text.ends_with("data: [DONE]\n\n"));
}

TEST(RepliesTest, AnthropicBlocksFollowOneAnother) {
  const Written written = streamed(Api::Messages, events());
  const std::vector<std::string> expected{
      "message_start",       "content_block_start", "content_block_delta", "content_block_stop",  "content_block_start",
      "content_block_delta", "content_block_delta", "content_block_stop",  "content_block_start", "content_block_delta",
      "content_block_delta", "content_block_stop",  "message_delta",       "message_stop"};
  EXPECT_EQ(written.names, expected);
  const Json answer = whole(Api::Messages, events());
  EXPECT_EQ(answer["content"][0]["type"], "thinking");
  EXPECT_EQ(answer["content"][1]["text"], "Hello");
  EXPECT_EQ(answer["content"][2]["input"], (Json{{"a", 1}}));
  EXPECT_EQ(answer["stop_reason"], "tool_use");
  EXPECT_EQ(answer["usage"]["input_tokens"], 6);
  EXPECT_EQ(answer["usage"]["cache_read_input_tokens"], 4);
}

TEST(RepliesTest, AStopStringIsNamedToAnthropicClients) {
  const Json answer = whole(Api::Messages, {reply(Kind::Content, "x"), finished(FinishReason::StopString, 0)});
  EXPECT_EQ(answer["stop_reason"], "stop_sequence");
  EXPECT_EQ(answer["stop_sequence"], "END");
}

TEST(RepliesTest, ResponsesNumberTheirEventsAndEndWithTheWhole) {
  const Written written = streamed(Api::Responses, events());
  for (size_t i = 0; i < written.data.size(); ++i) EXPECT_EQ(written.data[i]["sequence_number"], i);
  EXPECT_EQ(written.names.back(), "response.completed");
  const Json& last = written.data.back()["response"];
  ASSERT_EQ(last["output"].size(), 3u);
  EXPECT_EQ(last["output"][0]["type"], "reasoning");
  EXPECT_EQ(last["output"][1]["content"][0]["text"], "Hello");
  EXPECT_EQ(last["output"][2]["arguments"], "{\"a\":1}");
  Json answer = whole(Api::Responses, events());
  EXPECT_EQ(answer["output"].size(), 3u);
  EXPECT_EQ(answer["usage"], last["usage"]);
  EXPECT_EQ(streamed(Api::Responses, {finished(FinishReason::Length)}).names.back(), "response.incomplete");
}

TEST(RepliesTest, BytesThatAreNoTextDoNotEndTheAnswer) {
  const Json answer = whole(Api::Completions, {reply(Kind::Content,
                                                     "a\xff"
                                                     "b"),
                                               finished(FinishReason::Length)});
  EXPECT_EQ(answer["choices"][0]["text"],
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
}

TEST(RepliesTest, ACallThatFailedIsReportedAndNoCall) {
  const Json answer = whole(
      Api::Chat, {reply(Kind::CallBegin, "f", 0), reply(Kind::Arguments, "{", 0), reply(Kind::CallFailed, "cut off", 0),
                  reply(Kind::Content, "<tool_call>..."), finished(FinishReason::Length)});
  const Json& choice = answer["choices"][0];
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(choice["message"]["content"], "<tool_call>...");
  EXPECT_EQ(choice["failed_tool_calls"], Json::array({"cut off"}));
  EXPECT_EQ(choice["finish_reason"], "length");
}

TEST(RepliesTest, ErrorsHaveTheShapeOfTheirApi) {
  const ErrorFacts error{.status = 429, .type = {}, .message = "full", .where = {}};
  EXPECT_EQ(Json::parse(error_text(error, false))["error"]["type"], "rate_limit_error");
  EXPECT_EQ(Json::parse(error_text(error, false))["error"]["code"], 429);
  EXPECT_EQ(Json::parse(error_text(error, true))["type"], "error");
  EXPECT_TRUE(error_event(error, Api::Messages).starts_with("event: error\n"));
}

TEST(ChannelTest, JoinsTextAndGivesUpOnAReaderThatIsTooSlow) {
  Channel channel(4096);
  EXPECT_TRUE(channel.push(reply(Kind::Content, "a")));
  EXPECT_TRUE(channel.push(reply(Kind::Content, "b")));
  EXPECT_TRUE(channel.push(reply(Kind::Reasoning, "c")));
  EXPECT_EQ(channel.pop(std::chrono::milliseconds(0))->reply.text, "ab");
  EXPECT_EQ(channel.pop(std::chrono::milliseconds(0))->reply.text, "c");
  EXPECT_FALSE(channel.pop(std::chrono::milliseconds(1)));
  EXPECT_FALSE(channel.push(reply(Kind::Content, std::string(5000, 'x'))));
  EXPECT_TRUE(channel.push(finished(FinishReason::Length))) << "the end always fits";
}

ServeRequest tool_request(ToolChoice::Kind kind) {
  ServeRequest request;
  request.chat.tools =
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},
      "required":["a"],"additionalProperties":false,"$defs":{"n":{"type":"integer"}}}}},
      {"type":"function","function":{"name":"g","parameters":{"type":"object","not":{}}}}])";
  request.tool_choice.kind = kind;
  return request;
}

TEST(ToolGrammarTest, CallsAsJsonFollowTheSchemas) {
  GenerateRequest generation;
  constrain_calls(tool_request(ToolChoice::Kind::Required), CallForm::JsonObject, false, generation);
  const auto call = [](const std::string& object) { return "<tool_call>\n" + object + "\n</tool_call>"; };
  const std::string good = call(R"({"name": "f", "arguments": {"a": 12}})");
  EXPECT_TRUE(generation.grammar->matches(good));
  EXPECT_TRUE(generation.grammar->matches(good + "\n" + good));
  EXPECT_FALSE(generation.grammar->matches(call(R"({"name": "f", "arguments": {"a": "x"}})")));
  EXPECT_FALSE(generation.grammar->matches(call(R"({"name": "h", "arguments": {}})")));
  // What grammars cannot say leaves the arguments free.
  EXPECT_TRUE(generation.grammar->matches(call(R"({"name": "g", "arguments": {"x": [1]}})")));
}

TEST(ToolGrammarTest, CallsAsXmlHoldAnyTextButTheirEnd) {
  ServeRequest request;
  request.chat.tools =
      R"([{"type":"function","function":{"name":"w","parameters":{"type":"object","properties":{"text":{"type":"string"},
      "n":{"type":"integer"}},"required":["text"]}}}])";
  request.tool_choice.kind = ToolChoice::Kind::Required;
  GenerateRequest generation;
  constrain_calls(request, CallForm::Xml, false, generation);
  const auto call = [](const std::string& parameters) {
    return "<tool_call>\n<function=w>\n" + parameters + "</function>\n</tool_call>";
  };
  const std::string text = "<parameter=text>\na\n</par\n\n</parameter\n<b>\n</parameter>\n";
  EXPECT_TRUE(generation.grammar->matches(call(text)));
  EXPECT_TRUE(generation.grammar->matches(call(text + "<parameter=n>\n3\n</parameter>\n")));
  EXPECT_TRUE(generation.grammar->matches(call("<parameter=text>\n\n</parameter>\n")));
  EXPECT_FALSE(generation.grammar->matches(call("")));
  EXPECT_FALSE(generation.grammar->matches(call(text + "<parameter=n>\nx\n</parameter>\n")));
  EXPECT_FALSE(generation.grammar->matches(call("<parameter=text>\na\n</parameter>\nb\n</parameter>\n")));
}

TEST(ToolGrammarTest, OfferedCallsAreConstrainedFromTheirTagOn) {
  GenerateRequest generation;
  constrain_calls(tool_request(ToolChoice::Kind::Auto), CallForm::JsonObject, false, generation);
  EXPECT_EQ(generation.grammar_after, "<tool_call>");
  EXPECT_TRUE(generation.grammar_again);
  EXPECT_TRUE(generation.grammar->matches("\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"));
}

TEST(RepliesTest, TheNativeFormNamesWhyItEnded) {
  const std::vector<Event> list{reply(Kind::Content, "He"), reply(Kind::Content, "llo"),
                                finished(FinishReason::StopString, 0)};
  const Json answer = whole(Api::Native, list);
  EXPECT_EQ(answer["content"], "Hello");
  EXPECT_EQ(answer["stop"], true);
  EXPECT_EQ(answer["stop_type"], "word");
  EXPECT_EQ(answer["stopping_word"], "END");
  EXPECT_EQ(answer["tokens_predicted"], 3);
  EXPECT_EQ(answer["tokens_evaluated"], 10);
  EXPECT_EQ(answer["generation_settings"]["stop"][0], "END");
  const Written written = streamed(Api::Native, list);
  ASSERT_EQ(written.data.size(), 3u);
  EXPECT_EQ(written.data[1]["content"], "llo");
  EXPECT_EQ(written.data[1]["stop"], false);
  EXPECT_EQ(written.data[2]["content"], "");
  EXPECT_EQ(written.data[2]["stop_type"], "word");
  EXPECT_EQ(whole(Api::Native, {finished(FinishReason::Length)})["stop_type"], "limit");
  EXPECT_EQ(whole(Api::Native, {finished(FinishReason::EndOfText)})["stop_type"], "eos");
}

}  // namespace
}  // namespace strata::server
