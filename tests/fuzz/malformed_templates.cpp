// Chat templates meant to exhaust time, memory or stack, and some that do not parse. A model file that brings one still
// answers plain prompts.
#include "fuzz/malformed.h"

namespace strata::test {
namespace {

std::string repeated(const std::string& part, size_t count) {
  std::string text;
  text.reserve(part.size() * count);
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

std::vector<HostileTemplate> hostile_templates() {
  return {
      {"empty", ""},
      {"10 MB of text", std::string(10u << 20, 'x')},
      {"10 MB of tags", repeated("{{ 'a' }}", (10u << 20) / 9)},
      {"unclosed output", "{{ messages"},
      {"unclosed statement", "{% for m in messages"},
      {"unclosed comment", "{# never ends"},
      {"unclosed string", "{{ 'abc }}"},
      {"unclosed block", "{% if true %}{% for m in messages %}x"},
      {"stray end", "{% endfor %}{% endif %}"},
      {"unknown tag", "{% import 'os' as os %}{{ os.system('id') }}"},
      {"unknown filter", "{{ 'a' | popen }}"},
      {"attributes of the engine", "{{ ''.__class__.__mro__[1].__subclasses__() }}"},
      {"NUL and invalid UTF-8", std::string("{{ '\0\xff\xfe' }}\0", 13)},
      {"100000 parentheses", "{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}"},
      {"100000 brackets", "{{ " + std::string(100000, '[') + std::string(100000, ']') + " }}"},
      {"100000 braces", "{{ " + repeated("{'a':", 100000) + "1" + std::string(100000, '}') + " }}"},
      {"100000 nots", "{{ " + repeated("not ", 100000) + "true }}"},
      {"100000 minuses", "{{ " + std::string(100000, '-') + "1 }}"},
      {"100000 filters", "{{ 'a'" + repeated(" | trim", 100000) + " }}"},
      {"100000 subscripts", "{{ a" + repeated("[0]", 100000) + " }}"},
      {"100000 attributes", "{{ a" + repeated(".b", 100000) + " }}"},
      {"100000 additions", "{{ 1" + repeated(" + 1", 100000) + " }}"},
      {"100000 ternaries", "{{ " + repeated("1 if true else ", 100000) + "2 }}"},
      {"ifs nested 20000 deep", repeated("{% if true %}", 20000) + repeated("{% endif %}", 20000)},
      {"loops nested 1000 deep", repeated("{% for a in range(2) %}", 1000) + repeated("{% endfor %}", 1000)},
      {"range of 10^9", "{% for i in range(1000000000) %}x{% endfor %}"},
      {"range of 10^9 without output", "{% for i in range(1000000000) %}{% endfor %}"},
      {"range of 2^63", "{% for i in range(9223372036854775807) %}x{% endfor %}"},
      {"list of a range of 10^9", "{{ range(1000000000) | list | length }}"},
      {"range of step 0", "{% for i in range(0, 10, 0) %}x{% endfor %}"},
      {"loops in loops",
       "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% "
       "endfor %}"},
      {"string doubling",
       "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}"},
      {"string times 10^9", "{{ 'x' * 1000000000 }}"},
      {"list doubling",
       "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"},
      {"list that holds itself",
       "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}"},
      {"replace that grows",
       "{% set ns = namespace(s='a') %}{% for i in range(40) %}{% set ns.s = ns.s | replace('a', 'aa') %}{% endfor "
       "%}{{ ns.s }}"},
      {"join that grows",
       "{% set ns = namespace(s='a') %}{% for i in range(40) %}{% set ns.s = [ns.s, ns.s, ns.s] | join(ns.s) %}{% "
       "endfor %}"},
      {"indent of 10^9", "{{ 'a\nb' | indent(1000000000) }}"},
      {"tojson of a doubled list",
       "{% set ns = namespace(l=['\\u0000']) %}{% for i in range(40) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
       "ns.l | tojson }}"},
      {"macro that calls itself", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
      {"macros that call each other",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"},
      {"macro that forks",
       "{% macro m(n) %}{% if n > 0 %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(1000) }}"},
      {"recursive loop", "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}"},
      {"template that includes itself", "{% include 'self' %}"},
      {"division by zero", "{{ 1 // 0 }}{{ 1 % 0 }}"},
      {"smallest integer", "{{ -9223372036854775808 // -1 }}{{ 9223372036854775807 + 1 }}"},
      {"power", "{{ 9 ** 9 ** 9 }}"},
      {"slice of extremes", "{{ messages[-9223372036854775808:9223372036854775807:-1] }}{{ 'abc'[::0] }}"},
      {"split by nothing", "{{ 'abc'.split('') }}"},
      {"sort of mixed types", "{{ [1, 'a', none, [1], {}] | sort }}"},
  };
}

MalformedCases template_cases() {
  MalformedCases cases;
  for (const HostileTemplate& hostile : hostile_templates())
    cases.push_back(image_case(
        "template/" + hostile.name,
        [source = hostile.source] {
          ModelImage image = base_image("qwen3");
          image.set("tokenizer.chat_template", gguf::Value::of_string(source));
          return image;
        },
        Expected::Survives));
  cases.push_back(image_case(
      "template/of a number",
      [] {
        ModelImage image = base_image("qwen3");
        image.set("tokenizer.chat_template", gguf::Value::of_u32(1));
        return image;
      },
      Expected::Survives));
  return cases;
}

}  // namespace strata::test
