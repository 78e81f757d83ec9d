// What Jinja2, set up as Hugging Face does, makes of templates (tests/fixtures/templates/README.md) is what the engine
// makes of them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/chat.h"
#include "text/jinja_json.h"
#include "text/template.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kRecordedAt = 1741107969;  // 2025-03-04 17:06:09 UTC

std::string template_file(const std::string& name) { return fixture("templates/" + name); }

class RecordedTemplates : public ::testing::Test {
 protected:
  // strftime_now shows local time.
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

// The text, or how it failed: "raises: ...", "fails".
template <typename Render>
std::string outcome(Render render) {
  try {
    return "text: " + render();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Argument && error.where().starts_with("template line")) {
      return "raises: " + error.message();
    }
    return "fails";
  }
}

std::string recorded_outcome(const Json& recorded) {
  if (recorded.contains("text")) return "text: " + recorded["text"].get<std::string>();
  if (recorded.contains("raises")) return "raises: " + recorded["raises"].get<std::string>();
  return "fails";
}

TEST_F(RecordedTemplates, Snippets) {
  const Json recorded = Json::parse(template_file("snippets.json"));
  const jinja::Value context = jinja::parse_json(recorded["context"].dump(), "context");
  size_t checked = 0;
  for (const Json& snippet : recorded["snippets"]) {
    const std::string source = snippet["source"];
    const auto render = [&] { return Template(source).render(context, kRecordedAt).bytes; };
    EXPECT_EQ(outcome(render), recorded_outcome(snippet)) << source;
    ++checked;
  }
  EXPECT_GT(checked, 200u);
}

ChatRequest request_of(const Json& json) {
  ChatRequest request;
  request.messages = parse_chat_messages(json["messages"].dump());
  if (json.contains("tools")) request.tools = json["tools"].dump();
  request.add_generation_prompt = json.value("add_generation_prompt", true);
  if (json.contains("kwargs")) request.kwargs = json["kwargs"].dump();
  return request;
}

TEST_F(RecordedTemplates, Conversations) {
  const Json conversations = Json::parse(template_file("conversations.json"));
  const Json recorded = Json::parse(template_file("recorded.json"));
  size_t checked = 0;
  for (const auto& [name, results] : recorded.items()) {
    const bool llama = name == "llama3", hermes = name == "hermes";
    const ChatTemplate chat(template_file(name + ".jinja"),
                            llama    ? "<|begin_of_text|>"
                            : hermes ? "<s>"
                                     : "",
                            llama    ? "<|eot_id|>"
                            : hermes ? "</s>"
                                     : "");
    for (const auto& [conversation, result] : results.items()) {
      const ChatRequest request = request_of(conversations[conversation]);
      const auto render = [&] { return chat.render(request, kRecordedAt).text.bytes; };
      EXPECT_EQ(outcome(render), recorded_outcome(result)) << name << " " << conversation;
      ++checked;
    }
  }
  EXPECT_GE(checked, 350u);
}

}  // namespace
}  // namespace strata::text
