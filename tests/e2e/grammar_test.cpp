// strata generate under grammars and JSON schemas, with the default model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "support/json_validator.h"
#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const char* const kQuestion = "<|im_start|>user\nWhat does grep do?<|im_end|>\n<|im_start|>assistant\n";

nlohmann::json generated(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {STRATA_BINARY_DIR "/strata", "generate", "--json", "-p", kQuestion});
  const ProcessResult result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out, nullptr, false);
}

TEST(GenerateGrammar, SchemasGiveValidJson) {
  const std::vector<std::string> schemas = {
      R"({"type": "object", "properties": {"age": {"type": "integer", "minimum": 18, "maximum": 99}}, "required": ["age"], "additionalProperties": false})",
      R"({"enum": ["red", "green", 42, null]})",
      R"({"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 1, "maxItems": 2}, "minItems": 2, "maxItems": 3})",
      R"({"type": "object", "properties": {"when": {"type": "string", "format": "date"}, "word": {"type": "string", "maxLength": 12}, "ok": {"type": "boolean"}},
          "required": ["when", "word", "ok"], "additionalProperties": false})",
  };
  for (const std::string& text : schemas) {
    for (const char* temperature : {"0", "1.5"}) {
      const nlohmann::json result =
          generated({"--json-schema", text, "-n", "150", "--temp", temperature, "--seed", "3"});
      const std::string output = result["text"];
      EXPECT_EQ(result["finish_reason"], "end of text") << output;
      const nlohmann::json value = nlohmann::json::parse(output, nullptr, false), schema = nlohmann::json::parse(text);
      ASSERT_FALSE(value.is_discarded()) << output;
      EXPECT_EQ(invalid(value, schema, schema), "") << output;
      if (value.is_object() && value.contains("when")) {
        EXPECT_TRUE(std::regex_match(value["when"].get<std::string>(), std::regex("\\d{4}-[01]\\d-[0-3]\\d")))
            << output;
      }
    }
  }
}

TEST(GenerateGrammar, GbnfFromTextAndFile) {
  const TempFolder folder;
  const std::string text = "root ::= \"The \" [a-z]+ (\" \" [a-z]+){2,3} \".\"";
  const nlohmann::json result = generated({"--grammar", text, "-n", "60", "--stop", "zzz"});
  EXPECT_TRUE(std::regex_match(result["text"].get<std::string>(), std::regex("The [a-z]+( [a-z]+){2,3}\\.")))
      << result["text"];
  EXPECT_EQ(result["finish_reason"], "end of text");
  EXPECT_EQ(generated({"--grammar-file", folder.write("g.gbnf", text), "-n", "60"})["tokens"], result["tokens"]);
  const nlohmann::json schema =
      generated({"--json-schema-file", folder.write("s.json", R"({"const": [1, 2]})"), "-n", "60"});
  EXPECT_EQ(nlohmann::json::parse(schema["text"].get<std::string>()), nlohmann::json({1, 2}));
}

TEST(GenerateGrammar, ASeedGivesTheSameText) {
  const std::vector<std::string> arguments = {"--json-schema", "{}", "-n", "30", "--temp", "1", "--seed", "5"};
  EXPECT_EQ(generated(arguments)["tokens"], generated(arguments)["tokens"]);
}

// The end of the text is no token of its own when nothing else may come, and no reason to go on when it is ignored.
TEST(GenerateGrammar, ACompleteTextEnds) {
  for (const char* more : {"--echo", "--ignore-eos"}) {
    const nlohmann::json result = generated({"--grammar", "root ::= \"yes\"", "-n", "60", more});
    EXPECT_EQ(result["text"], "yes");
    EXPECT_EQ(result["finish_reason"], "end of text");
  }
  const nlohmann::json empty = generated({"--grammar", "root ::= \"\"", "-n", "60"});
  EXPECT_EQ(empty["text"], "");
  EXPECT_EQ(empty["predicted_n"], 0);
  EXPECT_EQ(empty["finish_reason"], "end of text");
}

void expect_error(std::vector<std::string> arguments, int exit_code, const std::string& part) {
  arguments.insert(arguments.begin(), {STRATA_BINARY_DIR "/strata", "generate", "-p", "a", "-n", "5"});
  const ProcessResult result = run(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(GenerateGrammar, Errors) {
  expect_error({"--grammar", "root ::= ("}, 1, "line 1, column 10");
  expect_error({"--json-schema", R"({"not": {}})"}, 1, "'not' is not supported");
  expect_error({"--json-schema", "{"}, 1, "parse error");
  expect_error({"--grammar", "root ::= <nothing>"}, 1, "no user-defined token <nothing>");
  expect_error({"--grammar-file", "/no/such/file"}, 1, "/no/such/file");
  expect_error({"--grammar", "root ::= \"a\"", "--json-schema", "{}"}, 2, "give one of --grammar");
}

}  // namespace
}  // namespace strata::test
