// JSON schemas against texts, and the errors that name keywords.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "support/json_validator.h"
#include "text/grammar.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

struct Case {
  std::string schema;
  std::vector<std::string> accepted, refused;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.schema);
    const Grammar grammar = Grammar::from_json_schema(one.schema);
    for (const std::string& text : one.accepted) {
      EXPECT_TRUE(grammar.matches(text)) << text;
      EXPECT_TRUE(nlohmann::json::accept(text)) << text;
    }
    for (const std::string& text : one.refused) EXPECT_FALSE(grammar.matches(text)) << text;
  }
}

TEST(JsonSchema, AnyValue) {
  check({
      {"{}",
       {"null", "true", "1", "-0.5e+10", "\"\"", "[]", "{}", "[ 1, [2], {\"a\": null} ]", "{\"a\":1,\"b\":[]}", "{ }",
        "[\n  1,\n  2\n]"},
       {"",      "nul", "01",       "1.", ".5", "+1",         "[1,]",   "{\"a\"}", "{a:1}",       "'a'",
        "[1 2]", "NaN", "\"\x01\"", " 1", "1 ", "{\"a\" :1}", "[1 ,2]", "[  1]",   "{\"a\":\n1}", "{\"a\":1,}"}},
      {"true", {"1", "{}"}, {"", "x"}},
      {R"({"type": "object"})", {"{}", "{\"a\": {\"b\": []}}", "{\n\t\"a\": 1\n}"}, {"[]", "1", "{\"a\": 1, }"}},
      {R"({"title": "t", "description": "d", "default": 1, "$schema": "s", "examples": [1]})", {"1", "[]"}, {"x"}},
  });
  EXPECT_TRUE(Grammar::json_object().matches("{\"a\": [1, \"b\"]}"));
  EXPECT_FALSE(Grammar::json_object().matches("[]"));
}

TEST(JsonSchema, Strings) {
  check({
      {R"({"type": "string"})",
       {"\"\"", "\"é 日本 😀\"", R"("\"\\\/\b\f\n\r\t")", R"("\u00e9\uD83D\uDE00\uFFFF")", "\"\x7F\""},
       {"\"", "\"\n\"", "\"\xFF\"", "\"\xED\xA0\x80\"", "\"\xC0\x80\"", R"("\x")", R"("\u12")", R"("\uD83D")",
        R"("\uDE00")", "\"a\"b\""}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {"\"ab\"", "\"日本語\"", R"("\n\u0041")", R"("\uD83D\uDE00é")", "\"😀😀😀\""},
       {"\"\"", "\"a\"", "\"abcd\"", R"("\uD83D\uDE00")"}},
      {R"({"maxLength": 100, "type": "string"})",
       {"\"" + std::string(100, 'x') + "\""},
       {"\"" + std::string(101, 'x') + "\""}},
      {R"({"minLength": 90, "type": "string"})",
       {"\"" + std::string(90, 'x') + "\""},
       {"\"" + std::string(89, 'x') + "\""}},
      {R"({"type": "string", "maxLength": 0})", {"\"\""}, {"\"a\""}},
  });
}

TEST(JsonSchema, Patterns) {
  const auto pattern = [](const std::string& text) {
    return nlohmann::json{{"type", "string"}, {"pattern", text}}.dump();
  };
  check({
      {pattern("^[a-c]+$"), {"\"a\"", "\"abc\""}, {"\"\"", "\"d\"", "\"ab d\""}},
      {pattern("b"), {"\"b\"", "\"abc\"", "\"\\u0041b\""}, {"\"\"", "\"ac\""}},
      {pattern("^a"), {"\"a\"", "\"abc\""}, {"\"ba\"", "\"\""}},
      {pattern("a$"), {"\"a\"", "\"cba\""}, {"\"ab\"", "\"\""}},
      {pattern("^a|b$"), {"\"ax\"", "\"xb\"", "\"a\""}, {"\"xa\"", "\"bx\""}},
      {pattern("^(foo|ba(r|z))$"), {"\"foo\"", "\"bar\"", "\"baz\""}, {"\"ba\"", "\"foobar\""}},
      {pattern("^\\d{3}-\\d{4}$"), {"\"555-1234\""}, {"\"5551234\"", "\"555-123\""}},
      {pattern("^\\w+\\s\\w*$"), {"\"ab_9 \"", "\"a b\"", R"("a\tb")"}, {"\"ab\"", "\"é a\""}},
      {pattern("^\\W\\S\\D$"), {"\"!éx\"", "\" xx\""}, {"\"axx\"", "\"! x\"", "\"!x1\""}},
      {pattern("^.$"), {"\"a\"", "\"é\"", R"("\"")", R"("\\")", R"("\t")"}, {"\"\"", R"("\n")", "\"ab\""}},
      {pattern("^\"\\\\\\n$"), {R"("\"\\\n")"}, {R"("")", R"("\"\\n")"}},
      {pattern("^[^a-z]$"), {"\"A\"", R"("\u0001")", R"("\"")", "\"日\""}, {"\"a\"", "\"\""}},
      {pattern("^[\\d\\-x]{2,}$"), {"\"1-\"", "\"xxx\""}, {"\"1\"", "\"1a\""}},
      {pattern("^(?:ab?)*?c{0,2}$"), {"\"\"", "\"aab\"", "\"abcc\""}, {"\"b\"", "\"ccc\""}},
      {pattern("^(?<year>\\d+)$"), {"\"2024\""}, {"\"\""}},
      {pattern("^\\u00e9\\x41\\u{1F600}\\.$"), {"\"éA😀.\""}, {"\"éA😀x\""}},
      {pattern("^$"), {"\"\""}, {"\"a\""}},
      {pattern(""), {"\"\"", "\"a\""}, {"a"}},
      {R"j({"type": "string", "pattern": "^[a-z]{2,4}$", "minLength": 1, "maxLength": 10})j", {"\"ab\""}, {"\"a\""}},
  });
}

TEST(JsonSchema, Formats) {
  check({
      {R"({"type": "string", "format": "date"})",
       {"\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\"", "\"0001-01-01\"", "\"2023-04-30\""},
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-13-01\"", "\"2023-00-10\"", "\"2023-1-1\"",
        "\"0000-01-01\"", "\"2023-01-32\""}},
      {R"({"type": "string", "format": "time"})",
       {"\"23:59:59Z\"", "\"00:00:00.123+02:00\""},
       {"\"24:00:00Z\"", "\"12:00:00\"", "\"12:60:00Z\""}},
      {R"({"type": "string", "format": "date-time"})",
       {"\"2024-05-06T07:08:09Z\"", "\"2024-05-06T07:08:09.5-03:30\""},
       {"\"2024-05-06\"", "\"2024-05-06 07:08:09Z\"", "\"2024-02-30T07:08:09Z\""}},
      {R"({"type": "string", "format": "uuid"})",
       {"\"123e4567-e89b-12d3-a456-426614174000\"", "\"123E4567-E89B-12D3-A456-426614174000\""},
       {"\"123e4567e89b12d3a456426614174000\"", "\"g23e4567-e89b-12d3-a456-426614174000\""}},
  });
}

TEST(JsonSchema, Numbers) {
  check({
      {R"({"type": "number"})",
       {"0", "-0", "1.5", "-12.25e-3", "1E5", "12345678901234567890"},
       {"01", "1.", "-", "1e", "1e999", "0x1", "--1"}},
      {R"({"type": "integer"})", {"0", "-1", "12345678901234567890"}, {"1.0", "1e3", "-0", "00", ""}},
      {R"({"type": "integer", "minimum": 5})", {"5", "9", "10", "99", "1000000"}, {"4", "0", "-5", "05"}},
      {R"({"type": "integer", "maximum": -7})", {"-7", "-10", "-99999"}, {"-6", "0", "7"}},
      {R"({"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 3})", {"-2", "0", "2"}, {"-3", "3", "10"}},
      {R"({"type": "integer", "minimum": 1.5, "maximum": 3.5})", {"2", "3"}, {"1", "4"}},
      {R"({"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 3.0})", {"2"}, {"1", "3"}},
      {R"({"type": "integer", "minimum": 0, "maximum": 0})", {"0"}, {"1", "-1", "00"}},
  });
}

// Every bound of a grid against every number near it.
TEST(JsonSchema, IntegerBounds) {
  const std::vector<int> bounds = {-1234, -1000, -999, -101, -100, -99, -10, -9,  -1,   0,   1,
                                   7,     9,     10,   19,   99,   100, 105, 999, 1000, 1234};
  for (size_t i = 0; i < bounds.size(); ++i) {
    for (size_t k = i; k < bounds.size(); ++k) {
      const nlohmann::json schema = {{"type", "integer"}, {"minimum", bounds[i]}, {"maximum", bounds[k]}};
      const Grammar grammar = Grammar::from_json_schema(schema.dump());
      for (int n = -1300; n<1300; n += n> - 20 && n < 120 ? 1 : 7) {
        ASSERT_EQ(grammar.matches(std::to_string(n)), n >= bounds[i] && n <= bounds[k]) << schema << n;
      }
      for (const int n : bounds)
        ASSERT_EQ(grammar.matches(std::to_string(n)), n >= bounds[i] && n <= bounds[k]) << schema << n;
    }
  }
}

TEST(JsonSchema, Values) {
  check({
      {R"({"const": "a\"b"})", {R"("a\"b")"}, {R"("ab")", "\"\""}},
      {R"({"const": {"a": [1, null], "b": {}}})",
       {R"({"a":[1,null],"b":{}})", R"({ "a": [ 1, null ], "b": { } })"},
       {R"({"b":{},"a":[1,null]})", "{}"}},
      {R"({"enum": ["red", "green", 3, null, true, [], 1.5]})",
       {"\"red\"", "\"green\"", "3", "null", "true", "[]", "1.5"},
       {"\"r\"", "red", "false", "33"}},
      {R"({"type": "string", "enum": ["a", 1]})", {"\"a\""}, {"1"}},
      {R"({"type": ["integer", "null"]})", {"1", "null"}, {"1.5", "\"\""}},
      {R"({"type": ["string", "integer"], "maxLength": 2, "minimum": 5})", {"\"ab\"", "5"}, {"\"abc\"", "4"}},
      {R"({"type": "boolean"})", {"true", "false"}, {"True", "1"}},
      {R"({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 0, "maximum": 9}]})",
       {"null", "7"},
       {"10", "\"\""}},
      {R"({"oneOf": [{"const": 1}, {"const": "x"}, false]})", {"1", "\"x\""}, {"2"}},
  });
}

TEST(JsonSchema, Objects) {
  check({
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "required": ["a", "b"], "additionalProperties": false})",
       {R"({"a":1,"b":true})", "{\n  \"a\": 1,\n  \"b\": false\n}", R"({ "a": 1, "b": true })"},
       {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"a":1,"b":true,"c":1})", R"({"a":1"b":true})",
        R"({"a":"1","b":true})"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}, "additionalProperties": false})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"c":1})", R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})",
        R"({"b":1,"c":1})"},
       {R"({"c":1,"a":1})", R"({"a":1,"a":1})", R"({"d":1})", R"({,"a":1})"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}, "required": ["b"], "additionalProperties": false})",
       {R"({"b":1})", R"({"a":1,"b":1})", R"({"b":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
       {"{}", R"({"a":1})", R"({"a":1,"c":1})"}},
      {R"({"type": "object", "properties": {"ab": {"type": "integer"}}})",
       {"{}", R"({"ab":1})", R"({"ab":1,"x":"y"})", R"({"x":[]})", R"({"a":0,"abc":0})", R"({"":0})", R"({"\n\"":0})",
        R"({"é":0})"},
       {R"({"ab":"x"})", R"({"x":1,"ab":"y"})", R"({"\u0061b":"x"})"}},
      {R"({"type": "object", "properties": {"é\n": {"type": "integer"}, "é": {"type": "null"}}, "additionalProperties": {"type": "boolean"}})",
       {R"({"é\n":1})", R"({"é":null})", R"({"è":true})", R"({"é\t":true})", R"({"éa":true})"},
       {R"({"é\n":true})", R"({"é":true})", R"({"è":1})"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"a":1,"b":2})"},
       {R"({"a":"b"})"}},
      {R"({"type": "object", "additionalProperties": false})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"type": "object", "required": ["x"]})", {R"({"x":1})", R"({"x":1,"y":2})"}, {"{}", R"({"y":1})"}},
      {R"({"properties": {"a": true}})", {"{}", R"({"a":[1]})"}, {"[]"}},
      {R"({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"properties": {"b": {"type": "null"}}}}})",
       {R"({"a":1})", R"({"a":1,"b":null})", R"({"a":1,"c":0})"},
       {"{}", R"({"b":null})", R"({"a":1,"b":1})"}},
      {R"({"allOf": [{"type": "string"}], "title": "one"})", {"\"a\""}, {"1"}},
  });
}

TEST(JsonSchema, Arrays) {
  check({
      {R"({"type": "array", "items": {"type": "integer"}})",
       {"[]", "[1]", "[1,2, 3]", "[ ]", "[\n1\n]"},
       {"[\"a\"]", "[1,]", "[", "1"}},
      {R"({"type": "array", "items": {"const": 0}, "minItems": 2, "maxItems": 3})",
       {"[0,0]", "[0,0,0]"},
       {"[]", "[0]", "[0,0,0,0]"}},
      {R"({"type": "array", "items": {"const": 0}, "minItems": 1})", {"[0]", "[0,0]"}, {"[]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 100}})",
       {"[]", "[\"" + std::string(100, 'a') + "\"]"},
       {"[\"" + std::string(101, 'a') + "\"]"}},
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false, "minItems": 2})",
       {"[1,\"a\"]"},
       {"[]", "[1]", "[\"a\",1]", "[1,\"a\",2]"}},
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]})",
       {"[]", "[1]", "[1,\"a\"]", "[1,\"a\",null,{}]"},
       {"[null]", "[1,2]"}},
      {R"({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2, "maxItems": 3})",
       {"[1,2]", "[1,2,2]"},
       {"[1]", "[1,2,2,2]", "[2,2]"}},
      {R"({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}, "maxItems": 1}})",
       {"[[],[true]]"},
       {"[[true,true]]", "[true]"}},
  });
}

TEST(JsonSchema, References) {
  check({
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"}}})", {"1"}, {"\"\""}},
      {R"({"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["v"], "additionalProperties": false})",
       {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
       {"{}", R"({"v":1,"next":{}})", R"({"v":1,"next":null})"}},
      {R"({"$defs": {"tree": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]}}, "$ref": "#/$defs/tree"})",
       {"1", "[]", "[1,[2,[3]]]"},
       {"[\"a\"]", "null"}},
      {R"({"definitions": {"a/b~c d": {"type": "null"}}, "$ref": "#/definitions/a~1b~0c%20d"})", {"null"}, {"1"}},
      {R"({"properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}})",
       {R"({"a":1,"b":2})"},
       {R"({"a":1,"b":"2"})"}},
      {R"({"anyOf": [{"type": "null"}, {"$ref": "#/anyOf/0"}]})", {"null"}, {"1"}},
  });
}

TEST(JsonSchema, ErrorsNameTheKeyword) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"not": {}})", "'not'"},
      {R"({"if": {}, "then": {}})", "'if'"},
      {R"({"type": "array", "contains": {}})", "'contains'"},
      {R"({"type": "array", "uniqueItems": true})", "'uniqueItems'"},
      {R"({"type": "object", "patternProperties": {}})", "'patternProperties'"},
      {R"({"type": "object", "minProperties": 1})", "'minProperties'"},
      {R"({"type": "integer", "multipleOf": 2})", "'multipleOf'"},
      {R"({"type": "number", "minimum": 2})", "'minimum' is supported for integers only"},
      {R"({"properties": {"a/b": {"dependentRequired": {}}}})",
       "schema #/properties/a~1b: keyword 'dependentRequired'"},
      {R"({"type": "string", "format": "email"})", "'email' is not supported"},
      {R"({"type": "string", "format": "date", "maxLength": 5})", "'maxLength'"},
      {R"j({"type": "string", "pattern": "a", "maxLength": 5})j", "'maxLength'"},
      {R"({"type": "string", "maxLength": 2001})", "'maxLength': 2001 is above the limit of 2000"},
      {R"({"type": "array", "minItems": 1e9})", "'minItems'"},
      {R"({"type": "string", "minLength": -1})", "'minLength'"},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", "'minLength' is above 'maxLength'"},
      {R"({"type": "integer", "minimum": 3, "maximum": 2})", "no integer"},
      {R"({"type": "integer", "minimum": 1e30})", "'minimum'"},
      {R"({"type": "integer", "exclusiveMinimum": true})", "'exclusiveMinimum'"},
      {R"({"type": "date"})", "type 'date' is unknown"},
      {R"({"type": []})", "'type'"},
      {R"({"enum": []})", "'enum' leaves no value"},
      {R"({"enum": [1], "minimum": 0})", "'minimum' is not supported beside 'enum'"},
      {R"({"$ref": "#/x"})", "leads nowhere"},
      {R"({"$ref": "other.json"})", "not local"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})", "circle"},
      {R"({"$ref": "#/$defs/a", "type": "object", "$defs": {"a": {}}})", "'type' is not supported beside '$ref'"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}})",
       "left recursion"},
      {R"({"allOf": [{"type": "string"}, {"minLength": 1}]})", "allOf"},
      {R"({"allOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"a": {"type": "integer"}}}]})",
       "property 'a'"},
      {R"({"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]})",
       "'additionalProperties'"},
      {R"({"anyOf": [{}], "oneOf": [{}]})", "'oneOf'"},
      {R"({"type": "object", "required": ["a"], "additionalProperties": false})", "required but not allowed"},
      {R"({"properties": []})", "'properties'"},
      {"false", "no text matches"},
      {"[]", "an object or a boolean"},
      {"{", "parse error"},
      {"\"\xFF\"", "parse error"},
      {R"j({"type": "string", "pattern": "^+[a-z]$"})j", "nothing to repeat"},
      {R"j({"type": "string", "pattern": "^{2}x$"})j", "nothing to repeat"},
      {R"j({"type": "string", "pattern": "a**"})j", "nothing to repeat"},
      {R"j({"type": "string", "pattern": "(a"})j", "not closed"},
      {R"j({"type": "string", "pattern": "a)"})j", "')' without '('"},
      {R"j({"type": "string", "pattern": "[a"})j", "not closed"},
      {R"j({"type": "string", "pattern": "[z-a]"})j", "range"},
      {R"j({"type": "string", "pattern": "(?=a)"})j", "look-around"},
      {R"j({"type": "string", "pattern": "(?<!a)"})j", "look-around"},
      {R"j({"type": "string", "pattern": "(a)\\1"})j", "\\1 is not supported"},
      {R"j({"type": "string", "pattern": "\\bword\\b"})j", "\\b is not supported"},
      {R"j({"type": "string", "pattern": "\\p{L}"})j", "\\p is not supported"},
      {R"j({"type": "string", "pattern": "a^b"})j", "anchor"},
      {R"j({"type": "string", "pattern": "a{2001}"})j", "limit of 2000"},
      {R"j({"type": "string", "pattern": "(a{1000}){3}"})j", "product of nested repetitions"},
      {R"j({"type": "string", "pattern": "a\\"})j", "backslash"},
  };
  for (const auto& [schema, part] : cases) {
    try {
      Grammar::from_json_schema(schema);
      ADD_FAILURE() << schema;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Argument) << schema;
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << schema << "\n" << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

// Random texts of a schema, made of single bytes, parse and are valid. Endings are favoured so that they come to one.
TEST(JsonSchema, WhatIsGeneratedIsValid) {
  const Tokenizer tokenizer(byte_vocabulary());
  const TokenTrie trie(tokenizer);
  const std::vector<std::string> schemas = {
      R"({"type": "object"})",
      R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 2, "maxLength": 9}, "age": {"type": "integer", "minimum": -5, "maximum": 130},
          "kind": {"enum": ["a", "b", 3]}, "opt": {"type": ["null", "boolean"]}}, "required": ["age", "kind"]})",
      R"({"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3}, "maxItems": 4})",
      R"({"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}})",
      R"({"$defs": {"n": {"type": "object", "properties": {"v": {"const": [1, {"a": "b"}]}, "c": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "required": ["v"],
          "additionalProperties": false}}, "$ref": "#/$defs/n"})",
      R"({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer", "exclusiveMaximum": 0}], "minItems": 1})",
      R"({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 10}, {"type": "null"}]})",
  };
  std::mt19937 random(11);
  int finished = 0;
  for (const std::string& schema : schemas) {
    const Grammar grammar = Grammar::from_json_schema(schema);
    const nlohmann::json parsed = nlohmann::json::parse(schema);
    for (int round = 0; round < 60; ++round) {
      GrammarState state(grammar, trie);
      TokenMask mask;
      std::string text;
      while (!state.finished() && text.size() < 3000 && !(state.accepting() && random() % 4 == 0)) {
        state.allowed_tokens(mask);
        std::vector<int32_t> all, closing;
        for (int32_t id = 0; id < 256; ++id) {
          if (mask.test(id)) all.push_back(id);
          if (mask.test(id) && std::string("\"]}").find(static_cast<char>(id)) != std::string::npos)
            closing.push_back(id);
        }
        ASSERT_FALSE(all.empty()) << schema << text;
        const auto& choices = !closing.empty() && random() % 3 == 0 ? closing : all;
        const int32_t id = choices[random() % choices.size()];
        ASSERT_TRUE(state.accept(id));
        text += static_cast<char>(id);
      }
      if (!state.accepting()) continue;
      ++finished;
      const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << schema << text;
      EXPECT_EQ(test::invalid(value, parsed, parsed), "") << schema << "\n" << text;
    }
  }
  EXPECT_GT(finished, 300);
}

}  // namespace
}  // namespace strata::text
