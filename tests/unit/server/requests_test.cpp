// Requests of the four APIs as one structure, and what is refused with the name of the field.
#include <gtest/gtest.h>

#include "server/json.h"
#include "server/request.h"

namespace strata::server {
namespace {

RequestDefaults defaults() {
  RequestDefaults made;
  made.vocabulary = 100;
  return made;
}

ServeRequest chat(const std::string& more) {
  return parse_chat_request(R"({"messages":[{"role":"user","content":"hi"}])" + more + "}", defaults());
}

// "where: message" of the error.
template <class Parse>
std::string refusal(Parse&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Argument);
    return error.where() + ": " + error.message();
  }
  return "accepted";
}

std::string chat_refusal(const std::string& more) {
  return refusal([&] { chat(more); });
}

TEST(RequestsTest, AChatAsTheOpenAiClientSendsIt) {
  const ServeRequest request = chat(
      R"(,"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":1,"n":3,
      "seed":7,"max_completion_tokens":12,"stop":["a","b"],"presence_penalty":1,"frequency_penalty":0.5,
      "logit_bias":{"5":-100},"logprobs":true,"top_logprobs":4,"user":"me","store":false,"metadata":{},
      "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
      "tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false,
      "reasoning_effort":"low","service_tier":"auto")");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.choices, 3);
  EXPECT_EQ(request.generation.max_tokens, 12);
  EXPECT_EQ(request.generation.sampler.seed, 7u);
  EXPECT_EQ(request.generation.sampler.temperature, 0.5);
  EXPECT_EQ(request.generation.stop, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(request.generation.sampler.logit_bias.size(), 1u);
  EXPECT_EQ(request.generation.sampler.logit_bias[0], (std::pair<int32_t, float>{5, -100.0f}));
  EXPECT_EQ(request.top_logprobs, 4);
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::Named);
  EXPECT_EQ(request.tool_choice.name, "f");
  EXPECT_FALSE(request.parallel_calls);
  EXPECT_EQ(request.chat.reasoning_effort, "low");
}

TEST(RequestsTest, WrongFieldsAreNamed) {
  EXPECT_EQ(chat_refusal(R"(,"temperature":"hot")"), "temperature: must be a number");
  EXPECT_EQ(chat_refusal(R"(,"temperature":-1)"), "temperature: must be 0 to 100");
  EXPECT_EQ(chat_refusal(R"(,"max_tokens":1.5)"), "max_tokens: must be a whole number");
  EXPECT_EQ(chat_refusal(R"(,"max_tokens":1e300)"), "max_tokens: must be -1 to 16777216");
  EXPECT_EQ(chat_refusal(R"(,"max_tokens":18446744073709551615)"), "max_tokens: must be -1 to 16777216");
  EXPECT_EQ(chat_refusal(R"(,"n":0)"), "n: must be 1 to 64");
  EXPECT_EQ(chat_refusal(R"(,"stream":"yes")"), "stream: must be true or false");
  EXPECT_EQ(chat_refusal(R"(,"stop":[1])"), "stop: must be a string or a list of strings");
  EXPECT_EQ(chat_refusal(R"(,"logit_bias":{"100":1})"), "logit_bias: '100' is no token of this model");
  EXPECT_EQ(chat_refusal(R"(,"logit_bias":{"1":"x"})"), "logit_bias: must be a number, or false");
  EXPECT_EQ(chat_refusal(R"(,"tool_choice":"required")"), "tool_choice: needs tools");
  EXPECT_EQ(chat_refusal(R"(,"tools":[{"type":"function"}])"), "tools[0].function: must be an object");
  EXPECT_EQ(chat_refusal(R"(,"top_logprobs":3)"), "top_logprobs: needs logprobs to be true");
  EXPECT_EQ(chat_refusal(R"(,"functions":[])"), "functions: is the old form: use tools and tool_choice");
  EXPECT_EQ(chat_refusal(R"(,"response_format":{"type":"xml"})"),
            "response_format.type: must be text, json_object or json_schema");
  EXPECT_EQ(chat_refusal(R"(,"grammar":"root ::= \"a\"","json_schema":{})"),
            "grammar: give one of response_format, json_schema and grammar");
  EXPECT_EQ(refusal([] { parse_chat_request("{}", defaults()); }), "messages: is missing");
  EXPECT_EQ(refusal([] { parse_chat_request(R"({"messages":[]})", defaults()); }), "messages: is empty");
  EXPECT_EQ(refusal([] { parse_chat_request("[]", defaults()); }), ": the body must be a JSON object");
  EXPECT_EQ(refusal([] { parse_chat_request("", defaults()); }), ": the body is empty: send a JSON object");
  EXPECT_EQ(chat_refusal(""), "accepted");
}

// Bodies that are no JSON in UTF-8, and ones that nest deep: refused in time that does not grow with the depth.
TEST(RequestsTest, HostileTextIsRefused) {
  for (const std::string& body :
       {std::string("{"), std::string("{\"a\":\xff}"), std::string("{\"messages\":\"\xc3\"}"), std::string("\0", 1),
        std::string(R"({"a":"\ud800"})"), std::string(60000, '['), std::string(R"({"a":)") + std::string(60000, '{')})
    EXPECT_NE(refusal([&] { parse_chat_request(body, defaults()); }), "accepted") << body.substr(0, 20);
  const std::string parentheses = "root ::= " + std::string(60000, '(') + "\\\"a\\\"" + std::string(60000, ')');
  EXPECT_NE(chat_refusal(",\"grammar\":\"" + parentheses + "\""), "accepted");
  for (const char* pattern : {"^+[a-z]$", "^{2}x$"})
    EXPECT_NE(chat_refusal(std::string(R"(,"json_schema":{"type":"string","pattern":")") + pattern + "\"}"),
              "accepted");
}

TEST(RequestsTest, CompletionsTakeTextTokensAndLists) {
  const auto parse = [](const std::string& prompt) {
    return parse_completions_request("{\"prompt\":" + prompt + "}", defaults());
  };
  EXPECT_EQ(parse("\"a\"").prompts.size(), 1u);
  EXPECT_EQ(parse("[1,2]").prompts.at(0).tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(parse("[\"a\",\"b\",[3]]").prompts.size(), 3u);
  EXPECT_EQ(parse("\"a\"").generation.max_tokens, 16);
  for (const char* wrong : {"null", "[]", "[100]", "[-1]", "[1.5]", "[[]]", "[true]", "{}", "[[\"a\"]]"})
    EXPECT_NE(refusal([&] { parse(wrong); }), "accepted") << wrong;
}

TEST(RequestsTest, MessagesOfTheAnthropicApiBecomeOurs) {
  const ServeRequest request = parse_messages_request(
      R"({"model":"claude","max_tokens":9,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
      "stop_sequences":["X"],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],
      "tool_choice":{"type":"any","disable_parallel_tool_use":true},"messages":[
      {"role":"user","content":"hi"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"ok"},
        {"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"42"}]}]}]})",
      defaults());
  const auto& messages = request.chat.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[0].content, "Be brief.");
  EXPECT_EQ(messages[2].reasoning_content, "hm");
  EXPECT_EQ(messages[2].tool_calls.at(0).arguments, "{\"a\":1}");
  EXPECT_EQ(messages[3].role, "tool");
  EXPECT_EQ(messages[3].content, "42");
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::Required);
  EXPECT_FALSE(request.parallel_calls);
  EXPECT_EQ(request.generation.stop, std::vector<std::string>{"X"});
}

TEST(RequestsTest, ItemsOfTheResponsesApiBecomeMessages) {
  const ServeRequest request = parse_responses_request(
      R"({"instructions":"Be brief.","max_output_tokens":9,"reasoning":{"effort":"low"},"input":[
      {"role":"user","content":[{"type":"input_text","text":"hi"}]},
      {"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]},
      {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"c","output":"42"}]})",
      defaults());
  const auto& messages = request.chat.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2].reasoning_content, "hm");
  EXPECT_EQ(messages[2].content, "ok");
  EXPECT_EQ(messages[2].tool_calls.at(0).name, "f");
  EXPECT_EQ(messages[3].role, "tool");
  EXPECT_EQ(request.chat.reasoning_effort, "low");
  EXPECT_NE(refusal([] { parse_responses_request(R"({"input":"a","previous_response_id":"x"})", defaults()); }),
            "accepted");
}

TEST(RequestsTest, TheNativeFormOfACompletion) {
  const auto native = [](const std::string& more) {
    return parse_native_request(R"({"prompt":"a")" + more + "}", defaults());
  };
  const ServeRequest plain = native("");
  EXPECT_EQ(plain.api, Api::Native);
  EXPECT_EQ(plain.generation.max_tokens, -1);  // what the server's default is
  EXPECT_EQ(plain.top_logprobs, -1);
  const ServeRequest full = native(R"(,"n_predict":7,"ignore_eos":true,"n_probs":3,"stop":["x"],"cache_prompt":true,
      "id_slot":-1,"repeat_penalty":1.1,"repeat_last_n":64,"grammar":"root ::= \"a\"","return_tokens":true)");
  EXPECT_EQ(full.generation.max_tokens, 7);
  EXPECT_TRUE(full.generation.ignore_end);
  EXPECT_EQ(full.top_logprobs, 3);
  EXPECT_TRUE(full.generation.grammar.has_value());
  EXPECT_EQ(native(R"(,"return_tokens":true)").top_logprobs, 0);
  EXPECT_EQ(refusal([&] { native(R"(,"n_probs":-1)"); }), "n_probs: must be 0 to 100");
}

EmbeddingsRequest embeddings(const std::string& body, bool native = false) {
  return parse_embeddings_request(body, 100, 8, native);
}

TEST(RequestsTest, TextsToEmbed) {
  EXPECT_EQ(embeddings(R"({"input":"a","model":"m","user":"u"})").inputs.size(), 1u);
  const EmbeddingsRequest several = embeddings(R"({"input":["a",[1,2]],"encoding_format":"base64","dimensions":8})");
  ASSERT_EQ(several.inputs.size(), 2u);
  EXPECT_EQ(several.inputs[0].text, "a");
  EXPECT_EQ(several.inputs[1].tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(several.base64 && several.normalised);
  EXPECT_EQ(embeddings(R"({"input":[1,2]})").inputs.size(), 1u);
  EXPECT_FALSE(embeddings(R"({"content":"a","embd_normalize":-1})", true).normalised);
}

TEST(RequestsTest, TextsToEmbedAreRefusedByField) {
  const auto refused = [](const std::string& body) { return refusal([&] { embeddings(body); }); };
  EXPECT_EQ(refused("{}"), "input: is missing");
  EXPECT_EQ(refused(R"({"content":"a"})"), "input: is missing");
  EXPECT_EQ(refused(R"({"input":[]})"), "input: is empty");
  EXPECT_EQ(refused(R"({"input":{}})"), "input: must be a string, token ids, or a list of those");
  EXPECT_EQ(refused(R"({"input":[100]})"), "input: 100 is no token of this model");
  EXPECT_EQ(refused(R"({"input":"a","encoding_format":"int8"})"), "encoding_format: must be float or base64");
  EXPECT_NE(refused(R"({"input":"a","dimensions":4})").find("dimensions: vectors of this model have 8 numbers"),
            std::string::npos);
  EXPECT_NE(refused(R"({"input":"a","embd_normalize":1})").find("embd_normalize: must be 2"), std::string::npos);
  std::string many = R"({"input":["a")";
  for (int i = 0; i < 2048; ++i) many += ",\"a\"";
  EXPECT_EQ(refused(many + "]}"), "input: has 2049 texts, at most 2048");
}

}  // namespace
}  // namespace strata::server
