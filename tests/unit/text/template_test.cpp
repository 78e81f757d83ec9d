// The engine feature by feature; expected texts are written by hand from the semantics of Jinja2 and Python.
#include "text/template.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/jinja_json.h"

namespace strata::text {
namespace {

using jinja::Value;

std::string render(std::string_view source, std::string_view json = "{}") {
  return Template(source).render(jinja::parse_json(json, "context"), 0).bytes;
}

std::string error_of(std::string_view source, std::string_view json = "{}") {
  try {
    return "no error: " + render(source, json);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Template, TextAndVariables) {
  EXPECT_EQ(render("Hello {{ name }}!", R"({"name": "Ann"})"), "Hello Ann!");
  EXPECT_EQ(render("[{{ missing }}]"), "[]");
  EXPECT_EQ(render("{{ a.b[0]['c'] }}", R"({"a": {"b": [{"c": 5}]}})"), "5");
  EXPECT_EQ(render("{{ true }} {{ none }} {{ 1.0 }} {{ [1, 'a', none] }} {{ {'k': \"it's\"} }}"),
            "True None 1.0 [1, 'a', None] {'k': \"it's\"}");
  EXPECT_EQ(render(""), "");
}

TEST(Template, WhiteSpace) {
  EXPECT_EQ(render("a\n"), "a");
  EXPECT_EQ(render("a\n\n"), "a\n");
  EXPECT_EQ(render("  {% if true %}\n  x\n  {% endif %}\ny"), "  x\ny");  // trim_blocks and lstrip_blocks
  EXPECT_EQ(render("a {%- if true -%} b {%- endif -%} c"), "abc");
  EXPECT_EQ(render("a\n  {{ 1 }}\n  {{- 2 }}\nb"), "a\n  12\nb");
  EXPECT_EQ(render("a {# comment #} b{#- x -#} c"), "a  bc");
  EXPECT_EQ(render("x\n  {%+ if true +%}\ny{% endif %}"), "x\n  \ny");
  EXPECT_EQ(render("a\r\nb\rc"), "a\nb\nc");
}

TEST(Template, Expressions) {
  EXPECT_EQ(render("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 8 }}"), "3 -4 2 3.5 256");
  EXPECT_EQ(render("{{ 'a' ~ 1 ~ none }} {{ 'a' 'b' }} {{ 'ab' * 2 }} {{ [1] + [2] }}"), "a1None ab abab [1, 2]");
  EXPECT_EQ(render("{{ 1 < 2 < 3 }} {{ 'a' in 'cat' }} {{ 3 not in [1, 2] }} {{ 1 == 1.0 }}"), "True True True True");
  EXPECT_EQ(render("{{ 0 or 'x' }} {{ '' and 1 }} {{ not [] }} {{ 'y' if 1 else 'n' }}"), "x  True y");
  EXPECT_EQ(render("{{ 'hello'[1:3] }} {{ 'hello'[::-1] }} {{ [1, 2, 3][-1] }} {{ [1, 2, 3][1:] }}"),
            "el olleh 3 [2, 3]");
  EXPECT_EQ(render("{{ '\\u00e9\\u4e2d'[1] }} {{ '\\u00e9\\u4e2d' | length }}"), "\u4e2d 2");
}

TEST(Template, Loops) {
  EXPECT_EQ(
      render("{% for x in [5, 6] %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} "
             "{% endfor %}"),
      "10TrueFalse2 21FalseTrue2 ");
  EXPECT_EQ(render("{% for x in [1, 2, 3] if x != 2 %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}{% endfor %}"),
            "<1>31<3>");
  EXPECT_EQ(render("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}"), "a1b2");
  EXPECT_EQ(render("{% for x in [] %}x{% else %}none{% endfor %}"), "none");
}

TEST(Template, Scopes) {
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 9 %}{% endfor %}{{ x }}"), "111");
  EXPECT_EQ(render("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}"),
            "3");
  EXPECT_EQ(
      render("{% macro m(a, b='d') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{% set c = 5 %}{{ m(1) }} {{ m(1, b=2) }}"),
      "1d5 125");
  EXPECT_EQ(render("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}"), "3210");
}

TEST(Template, ToJsonWritesAsPython) {
  EXPECT_EQ(render("{{ x | tojson }}", "{\"x\": {\"b\": [1, 1.0, true, null], \"a\": \"\u00e9\\n\\u0001<\"}}"),
            "{\"b\": [1, 1.0, true, null], \"a\": \"\u00e9\\n\\u0001<\"}");
  EXPECT_EQ(render("{{ [1, {'a': []}] | tojson(indent=2) }}"), "[\n  1,\n  {\n    \"a\": []\n  }\n]");
}

TEST(Template, ErrorsNameConstructAndLine) {
  EXPECT_EQ(error_of("a\n{% include 'x' %}"), "template line 2: the statement 'include' is not supported");
  EXPECT_EQ(error_of("\n\n{{ x | title }}"), "template line 3: the filter 'title' is not supported");
  EXPECT_EQ(error_of("{{ x is odd }}"), "template line 1: the test 'odd' is not supported");
  EXPECT_EQ(error_of("{{ 'a'.title() }}"), "template line 1: the method 'title' of str is not supported");
  EXPECT_EQ(error_of("{{ [1].append(2) }}"), "template line 1: the method 'append' of list is not supported");
  EXPECT_EQ(error_of("{% for x in [1] %}\n{{ loop.cycle('a') }}{% endfor %}"),
            "template line 2: 'loop.cycle' is not supported");
  EXPECT_EQ(error_of("{% generation %}x{% endgeneration %}"),
            "template line 1: the statement 'generation' is not supported");
  EXPECT_EQ(error_of("{% raw %}x{% endraw %}"), "template line 1: the statement 'raw' is not supported");
  EXPECT_EQ(error_of("{% set x %}y{% endset %}"),
            "template line 1: 'set' with a block is not supported: write {% set name = value %}");
  EXPECT_EQ(error_of("{{ cycler('a') }}"), "template line 1: 'cycler' is undefined: it cannot be called");
  EXPECT_EQ(error_of("\n{{ x.y }}"), "template line 2: 'x' is undefined");
  EXPECT_EQ(error_of("{{ x.y.z }}", R"({"x": {}})"), "template line 1: a dict has no attribute 'y'");
  EXPECT_EQ(error_of("\n{{ 'a' + 1 }}"), "template line 2: '+' is not supported between str and int");
  EXPECT_EQ(error_of("{% if x %}\n\n"), "template line 1: 'endif' is missing for the block that begins here");
  EXPECT_EQ(error_of("\n{{ x"), "template line 2: a tag is not closed: '}}' is missing");
  EXPECT_EQ(error_of("{# x"), "template line 1: a comment is not closed: '#}' is missing");
  EXPECT_EQ(error_of("{{ 'x }}"), "template line 1: a string is not closed");
}

TEST(Template, UnderscoresAreOutOfReach) {
  EXPECT_NE(error_of("{{ x.__class__ }}").find("out of reach"), std::string::npos);
  EXPECT_NE(error_of("{{ 'a'['__class__'] }}").find("out of reach"), std::string::npos);
  EXPECT_NE(error_of("{% set ns = namespace() %}{% set ns._x = 1 %}").find("out of reach"), std::string::npos);
  EXPECT_EQ(render("{{ x['_key'] }}", R"({"x": {"_key": 1}})"), "1");  // a key of a mapping is data
}

TEST(Template, RaiseExceptionIsTheRequestsFault) {
  try {
    render("\n{{ raise_exception('no system message') }}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Argument);
    EXPECT_EQ(error.message(), "no system message");
    EXPECT_EQ(error.where(), "template line 2");
  }
}

TEST(Template, KnowsWhatItReads) {
  const Template t("{% set a = 1 %}{{ b.c if d is defined else a }}{# e #}{{ 'f' }}");
  for (const char* name : {"a", "b", "d"}) EXPECT_TRUE(t.mentions(name)) << name;
  for (const char* name : {"c", "e", "f", "loop", ""}) EXPECT_FALSE(t.mentions(name)) << name;
}

// [text] is data.
std::string marks(const MarkedText& text) {
  std::string shown;
  size_t pos = 0;
  for (const DataRange& range : text.data) {
    shown +=
        text.bytes.substr(pos, range.begin - pos) + "[" + text.bytes.substr(range.begin, range.end - range.begin) + "]";
    pos = range.end;
  }
  return shown + text.bytes.substr(pos);
}

std::string marked(std::string_view source) {
  const Value context =
      jinja::parse_json(R"({"d": "Data x", "pad": " p ", "list": ["a", "b"], "map": {"k": "v"}, "n": 5})", "c");
  return marks(Template(source).render(context));
}

TEST(Template, DataKeepsItsMark) {
  EXPECT_EQ(marked("a{{ d }}b{{ 'c' }}{{ n }}"), "a[Data x]bc5");
  EXPECT_EQ(marked("{{ 'a' + d + 'b' }} {{ 'a' ~ d ~ n }}"), "a[Data x]b a[Data x]5");
  EXPECT_EQ(marked("{{ d | upper }}{{ d.lower() }}{{ d | trim }}{{ pad.strip() }}{{ d[0] }}{{ d[::-1] }}{{ d[1:3] }}"),
            "[DATA Xdata xData xpDx ataDat]");
  EXPECT_EQ(marked("{{ d.split(' ') | join('-') }} {{ ('t' + d + 't').split(' ')[0] }} {{ list | join(d) }}"),
            "[Data]-[x] t[Data] [aData xb]");
  EXPECT_EQ(marked("{{ d.replace('x', 'y') }} {{ 'axb' | replace('x', d) }} {{ 'axb' | replace('x', 'q') }}"),
            "[Data ]y a[Data x]b aqb");
  EXPECT_EQ(marked("{{ map | tojson }} {{ map }} {{ list }} {{ {'t': 's'} | tojson }}"),
            "{\"[k]\": \"[v]\"} {'[k]': '[v]'} ['[a]', '[b]'] {\"t\": \"s\"}");
  EXPECT_EQ(marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(d) | upper }}{{ m('t') }}"), "<[DATA X]><t>");
  EXPECT_EQ(
      marked("{% for k, v in map | items %}{{ k }}{{ v }}{% endfor %}{% for c in 'é' ~ d[:2] %}{{ c }}.{% endfor %}"),
      "[kv]é.[D].[a].");
  EXPECT_EQ(marked("{{ d | string | safe | default('x') | list | first }}{{ d * 2 }}{{ [d, 't'] | sort | join }}"),
            "[DData xData xData x]t");
  EXPECT_EQ(marked("{% set ns = namespace(x=d) %}{% set ns.x = ns.x ~ '!' %}{{ ns.x }}"), "[Data x]!");
}

TEST(Template, MarkedTextParts) {
  MarkedText text = MarkedText::plain("ab");
  text.append_data("cd");
  text.append_data("ef");
  text.append("gh");
  text.append_data("");
  text.append_data("i");
  EXPECT_EQ(marks(text), "ab[cdef]gh[i]");
  EXPECT_EQ(marks(text.part(1, 4)), "b[cde]");
  EXPECT_EQ(marks(text.part(3, 2)), "[de]");
  EXPECT_EQ(marks(text.part(0, 2)), "ab");
  EXPECT_EQ(marks(text.part(6, 3)), "gh[i]");
  EXPECT_EQ(marks(text.part(9, 0)), "");
}

TEST(JinjaJson, ReadsValues) {
  const Value v = jinja::parse_json(
      R"({"a": 1, "b": [1.5, "x", null, true], "a": 2, "big": 18446744073709551616, "u": 18446744073709551615})", "w");
  EXPECT_EQ(jinja::to_json(v, {}).bytes,
            R"({"a": 2, "b": [1.5, "x", null, true], "big": 18446744073709551616, "u": 18446744073709551615})");
  for (const char* bad : {"", "{", "[1,]", "{\"a\" 1}", "\"\\ud800\"", "\"\xFF\"", "nan", "1e999", "[1] 2"}) {
    EXPECT_THROW(jinja::parse_json(bad, "w"), Error) << bad;
  }
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(jinja::to_json(jinja::parse_json(deep, "w"), {}).bytes, deep);
  try {
    jinja::parse_json(std::string(100'000, '['), "body");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "body: JSON nests deeper than 64 levels");
  }
}

}  // namespace
}  // namespace strata::text
