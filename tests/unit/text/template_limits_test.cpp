// Hostile templates: one clear error that names the limit, soon, and without much memory.
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "text/jinja_json.h"
#include "text/template.h"

namespace strata::text {
namespace {

std::string outcome(const std::string& source, const TemplateLimits& limits = {}, std::string_view context = "{}") {
  try {
    const Template t(source, limits);
    return "no error, " + std::to_string(t.render(jinja::parse_json(context, "context"), 0).bytes.size()) + " bytes";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

struct Hostile {
  std::string source, limit;
};

std::vector<Hostile> hostile_templates() {
  const std::string doubling = "{% set ns = namespace(s='x') %}{% for i in range(100) %}";
  return {
      {"{% for i in range(1000000000) %}{% endfor %}", "'range items' of 100000"},
      {"{{ range(1000000000) | length }}", "'range items' of 100000"},
      {"{{ range(-9223372036854775807, 9223372036854775807) }}", "'range items' of 100000"},
      {doubling + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "'string bytes' of 16777216"},
      {doubling + "{% set ns.s = ns.s + ns.s %}{% endfor %}", "'string bytes' of 16777216"},
      {doubling + "{% set ns.s = ns.s.replace('x', 'xx') %}{% endfor %}", "limit '"},
      {doubling + "{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}", "'string bytes' of 16777216"},
      {doubling + "{% set ns.s = ns.s.split('') %}{% endfor %}", "empty separator"},
      {doubling + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | string }}", "'string bytes' of 16777216"},
      {doubling + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}", "'string bytes' of 16777216"},
      {doubling + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s == ns.s }}", "'steps' of 10000000"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "limit '"},
      {"{% set ns = namespace(s=[]) %}{% for i in range(1000) %}{% set ns.s = [ns.s] %}{% endfor %}",
       "'nesting' of 200"},
      {"{% set ns = namespace(s={}) %}{% for i in range(1000) %}{% set ns.s = {'a': ns.s} %}{% endfor %}",
       "'nesting' of 200"},
      {"{{ 'x' * 1000000000 }}", "'string bytes' of 16777216"},
      {"{{ 9223372036854775807 * 'xy' }}", "'string bytes' of 16777216"},
      {"{{ [1] * 1000000000 }}", "'range items' of 100000"},
      {"{{ ('x' * 16000000).replace('', 'yyyy') }}", "limit '"},
      {"{{ ('x' * 1000000).replace('x', 'y' * 1000000) }}", "'string bytes' of 16777216"},
      {"{{ range(100000) | join('y' * 1000000) }}", "'string bytes' of 16777216"},
      {"{{ ('x' * 16000000) | list | length }}", "limit '"},
      {"{{ ('x,' * 8000000).split(',') | length }}", "'memory bytes' of 268435456"},
      {"{{ ('x ' * 8000000).split() | length }}", "'memory bytes' of 268435456"},
      {"{{ [1] | tojson(indent=1000000000) }}", "'indent' of 100"},
      {"{{ [1] | tojson(indent='" + std::string(1000, ' ') + "') }}", "'indent' of 100"},
      {"{{ 9223372036854775807 + 1 }}", "limit of 64 bits for integers"},
      {"{{ -9223372036854775807 - 2 }}", "limit of 64 bits for integers"},
      {"{{ 3037000500 * 3037000500 }}", "limit of 64 bits for integers"},
      {"{{ 10 ** 1000000000 }}", "limit of 64 bits for integers"},
      {"{{ 99999999999999999999 }}", "limit of 64 bits for integers"},
      {"{{ '99999999999999999999' | int }}", "limit of 64 bits for integers"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "limit of 64 bits for integers"},
      {"{{ -(-9223372036854775807 - 1) }}", "limit of 64 bits for integers"},
      {"{{ 1e300 | int }}", "limit of 64 bits for integers"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "'recursion' of 200"},
      {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}", "'recursion' of 200"},
      {"{% macro m() %}" + repeated("{% if true %}", 150) + "{{ m() }}" + repeated("{% endif %}", 150) +
           "{% endmacro %}{{ m() }}",
       "'recursion' of 200"},
      {"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "'recursion' of 200"},
      {"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}",
       "'steps' of 10000000"},
      {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "'steps' of 10000000"},
      {"{% for a in range(100000) %}{% for b in range(100000) %}xxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
       "'output bytes' of 16777216"},
      {"{% macro m() %}{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}{% endmacro %}{{ m() | length }}",
       "'string bytes' of 16777216"},
      {repeated("(", 100'000), "no error, 100000 bytes"},
      {"{{ " + repeated("(", 100'000), "'nesting'"},
      {"{{ " + repeated("(", 250) + "1" + repeated(")", 250) + " }}", "'nesting' of 200"},
      {"{{ " + repeated("[", 100'000), "'nesting'"},
      {"{{ " + repeated("not ", 100'000) + "1 }}", "'nesting' of 200"},
      {"{{ " + repeated("- ", 100'000) + "1 }}", "'nesting' of 200"},
      {"{{ " + repeated("1 if 1 else ", 50'000) + "1 }}", "'nesting' of 200"},
      {"{{ x" + repeated(".a", 100'000) + " }}", "'nesting' of 200"},
      {"{{ x" + repeated("|trim", 100'000) + " }}", "'nesting' of 200"},
      {"{{ x" + repeated("()", 100'000) + " }}", "'nesting' of 200"},
      {"{{ x" + repeated("[0", 100'000), "'nesting'"},
      {repeated("{% if true %}", 50'000), "'nesting' of 200"},
      {repeated("{% for x in y %}", 50'000), "'nesting' of 200"},
      {repeated("{% if true %}x{% endif %}", 100'000), "limit 'source bytes' of 1048576"},
      {std::string(size_t{10} << 20, 'x'), "'source bytes' of 1048576"},
      {"{% if x", "is not closed"},
      {"{% if x %}", "'endif' is missing"},
      {repeated("{#", 500'000), "not closed"},
      {"{{ '" + std::string(1'000'000, '\\'), "not closed"},
      {"{% set ns = namespace() %}{% set ns.self = ns %}", "a namespace cannot hold a namespace"},
      {"{% set ns = namespace() %}{% for x in [ns] %}{% set ns.l = [loop] %}{% endfor %}",
       "a namespace cannot hold a namespace or a loop"},
      {"{% set ns = namespace() %}{{ namespace(x=[{'a': ns}]) }}", "a namespace cannot hold a namespace or a loop"},
      {"{{ strftime_now('%B' * 4000000) }}", "limit '"},
      {"{{ strftime_now('%999999999d') }}", "'%9' is not supported"},
      {"{{ ('a' * 8000000 ~ 'b') in ('a' * 16000000) }}", "no error"},
      {"{{ ('a' * 16000000).replace('a' * 8000000 ~ 'b', 'c') | length }}", "no error"},
      {"{{ (('a' * 1000000) ~ 'b').strip('ab' * 500) | length }}", "no error"},
  };
}

TEST(TemplateLimits, HostileTemplatesEndSoonWithAClearError) {
  TemplateLimits limits;
  limits.seconds = 60;  // so that with sanitizers too the other limits are met first
  for (const Hostile& hostile : hostile_templates()) {
    const auto started = std::chrono::steady_clock::now();
    const std::string got = outcome(hostile.source, limits);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    EXPECT_NE(got.find(hostile.limit), std::string::npos) << hostile.source.substr(0, 200) << "\n" << got;
    EXPECT_EQ(got.find('\n'), std::string::npos) << got;
    // Each takes under 0.2 s in a release build; the rest is for sanitizers and busy machines.
    EXPECT_LT(seconds, 30) << hostile.source.substr(0, 200);
  }
}

TEST(TemplateLimits, EachIsAParameter) {
  TemplateLimits limits;
  limits.source_bytes = 10;
  EXPECT_NE(outcome("12345678901", limits).find("'source bytes' of 10"), std::string::npos);
  EXPECT_EQ(outcome("1234567890", limits), "no error, 10 bytes");
  limits = {};
  limits.output_bytes = 10;
  EXPECT_NE(outcome("12345678901", limits).find("'output bytes' of 10"), std::string::npos);
  EXPECT_EQ(outcome("1234567890", limits), "no error, 10 bytes");
  limits = {};
  limits.string_bytes = 10;
  EXPECT_NE(outcome("{{ 'x' * 11 }}", limits).find("'string bytes' of 10"), std::string::npos);
  EXPECT_EQ(outcome("{{ 'x' * 10 }}", limits), "no error, 10 bytes");
  limits = {};
  limits.range_items = 3;
  EXPECT_NE(outcome("{{ range(4) | length }}", limits).find("'range items' of 3"), std::string::npos);
  EXPECT_EQ(outcome("{{ range(3) | length }}", limits), "no error, 1 bytes");
  limits = {};
  limits.steps = 100;
  EXPECT_NE(outcome("{% for i in range(100) %}{% endfor %}", limits).find("'steps' of 100"), std::string::npos);
  EXPECT_EQ(outcome("{% for i in range(20) %}{% endfor %}", limits), "no error, 0 bytes");
  limits = {};
  limits.nesting = 5;
  EXPECT_NE(outcome("{{ ((((((1)))))) }}", limits).find("'nesting' of 5"), std::string::npos);
  EXPECT_EQ(outcome("{{ ((1)) }}", limits), "no error, 1 bytes");
  limits = {};
  limits.recursion = 5;
  const std::string macro = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}";
  EXPECT_NE(outcome(macro + "{{ m(5) }}", limits).find("'recursion' of 5"), std::string::npos);
  EXPECT_EQ(outcome(macro + "{{ m(4) }}", limits), "no error, 0 bytes");
  limits = {};
  limits.memory_bytes = 20'000;
  EXPECT_NE(outcome("{{ range(1000) | length }}", limits).find("'memory bytes' of 20000"), std::string::npos);
  EXPECT_EQ(outcome("{% for i in range(200) %}{% set x = 'y' * 5000 %}{% endfor %}", limits), "no error, 0 bytes");
  limits = {};
  limits.seconds = 0;
  EXPECT_NE(outcome("{% for i in range(100000) %}{% endfor %}", limits).find("'time' of 0 s"), std::string::npos);
}

TEST(TemplateLimits, LegitimateDepthIsFine) {
  const std::string source = "{% macro m(n) %}{% if n > 0 %}[{{ m(n - 1) }}]{% endif %}{% endmacro %}{{ m(190) }}";
  EXPECT_EQ(outcome(source), "no error, 380 bytes");
  EXPECT_EQ(outcome("{{ " + repeated("1 + ", 10'000) + "1 }}"), "no error, 5 bytes");
  EXPECT_EQ(outcome("{{ " + repeated("'a' ~ ", 10'000) + "'' }}"), "no error, 10000 bytes");
  EXPECT_EQ(outcome("{% if 0 %}" + repeated("{% elif 0 %}", 10'000) + "{% endif %}"), "no error, 0 bytes");
}

// A conversation of 4 MiB goes through a template that copies each message several times.
TEST(TemplateLimits, LongConversationsAreFine) {
  std::string messages = "[";
  for (int i = 0; i < 400; ++i) {
    messages +=
        (i == 0 ? "" : ",") + std::string("{\"role\": \"user\", \"content\": \"") + std::string(10'000, 'x') + "\"}";
  }
  const std::string source =
      "{% for m in messages %}{% set c = m.content.split('</think>')[-1].lstrip('\\n') | trim %}"
      "{{ '<' + m.role + '>' + c + '</>' }}{% endfor %}";
  EXPECT_EQ(outcome(source, {}, "{\"messages\": " + messages + "]}"), "no error, 4003600 bytes");
}

}  // namespace
}  // namespace strata::text
