// Replies for the reply parser: well-formed, odd and hostile.
#pragma once

#include <string>
#include <vector>

namespace strata::text {

inline constexpr const char* kReplyTools = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"},
    "note": {"type": ["string", "null"]}, "tags": {"type": "array"}, "extra": {}, "mode": {"enum": ["a", 1]}}}}},
  {"type": "function", "function": {"name": "stop"}}])";

inline std::vector<std::string> reply_corpus() {
  const std::string open = "<tool_call>\n<function=weather>\n", close = "</function>\n</tool_call>";
  const auto parameter = [](const std::string& name, const std::string& value) {
    return "<parameter=" + name + ">\n" + value + "\n</parameter>\n";
  };
  return {
      "",
      "plain",
      " \n spaces around \n ",
      "<think>\nthoughts\n</think>\n\nanswer",
      "thoughts of a prompt that opened them</think>answer",
      "<think></think>",
      "<think>\n\n</think>\n\nx",
      "<think>unfinished",
      "<think>unfinished </thi",
      "\n\n<think>a</think>b<think>c</think>d",
      "<thinking>no tag</thinking>",
      "a < b && c > d </x> <",
      "<think>a " + open + parameter("city", "Oslo") + close,
      open + close,
      open + parameter("city", "Oslo") + parameter("days", "3") + close,
      "Let me look.\n\n" + open + parameter("city", "Oslo") + close + "\n" + open + parameter("city", "Bergen") + close,
      "<tool_call><function=weather><parameter=city>Oslo</parameter>\n</function></tool_call>",
      open + parameter("city", "") + close,
      open + "<parameter=city>\n</parameter>\n" + close,
      open + parameter("city", "two\nlines\n\n") + close,
      open + parameter("city", "</parameter> inside\n</parameter> again </function></tool_call>") + close,
      open + parameter("city", "\"quoted\" \\ \t \x01 <b>") + close,
      open + parameter("city", "\u00E9\u4E2D\U0001F642 \xFF\xE2\x82") + close,
      open + parameter("days", "many") + parameter("exact", "True") + parameter("exact", "false") + close,
      open + parameter("note", "null") + parameter("note", "12") + parameter("note", "\"q\"") +
          parameter("note", "text") + close,
      open + parameter("tags", "[1, \"a\",\n {\"b\": null}]") + parameter("tags", "[1,") + close,
      open + parameter("extra", "{\"a\": 1}") + parameter("extra", "{broken") + parameter("unknown", "5") + close,
      open + parameter("mode", "a") + parameter("mode", "1") + parameter("mode", "true") + close,
      "<tool_call>\n<function=no_such>\n" + parameter("x", "1") + parameter("y", "z") + close,
      open + "<parameter=\nx\n</parameter>\n" + parameter("city", "Oslo") + close,
      open + "<parameter=tags: [1, 2]\n</parameter>\n" + parameter("city", "Oslo") + close,
      open + "<parameter=note=\nx\n</parameter>\n" + parameter("city", "Oslo") + close,
      open + "<parameter=>\nx\n</parameter>\njunk\n<junk>\n" + parameter("city", "Oslo") + close,
      open + parameter("city", "Oslo") + "</tool_call>",
      open + parameter("city", "Oslo") + "</function>",
      open + parameter("city", "Oslo") + "</function>\nno closing tag",
      open + parameter("city", "Oslo") + close + "\n\nafter the call\n",
      open + "<parameter=city>\nOslo is cut",
      open + "<parameter=city>\nOslo\n</parame",
      "<tool_call>\n<function=",
      "<tool_call>\n<function=a\nb>",
      "<tool_call>",
      "<tool_call>\n",
      "The <tool_call> tag is text. So is <tool_call>x</tool_call>",
      "<tool_call><tool_call>" + close,
      "<function=weather>\n" + parameter("city", "Oslo") + "</function>",
      "<function=weather>\n" + parameter("city", "Oslo") + "</function>\n</tool_call>",
      "text <function=weather>\n" + parameter("city", "Oslo") + close + " more",
      "<function=unknown>\n" + parameter("city", "Oslo") + "</function>",
      "<function=weath",
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>",
      "<tool_call>{\"arguments\": {\"a\": [1, {\"b\": \"}\"}], \"c\": \"</tool_call>\"}, \"name\": "
      "\"w\\u00e9\"}</tool_call>x",
      "<tool_call>\n{\"name\": \"stop\"}\n</tool_call>\n<tool_call>\n{\"name\": \"stop\", \"arguments\": "
      "{}}\n</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": \"{\\\"city\\\": \\\"\\ud83d\\ude42\\\"}\"}</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": \"\", \"x\": [1, 2.5e3, true]}</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": \"no object\"}</tool_call>after",
      "<tool_call>{\"name\": \"weather\", \"arguments\": [1]}</tool_call>",
      "<tool_call>{\"name\": 5, \"arguments\": {}}</tool_call>",
      "<tool_call>{\"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}\n</tool_call>\nnext "
      "<tool_call>{\"name\": \"stop\"}</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Os\xE2\x82lo\xFF",
      "<tool_call>{\"name\": \"weather\", \"name\": \"stop\"}</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": {}}}</tool_call>",
      "<tool_call>" + std::string(300, '[') + "</tool_call>",
      "<tool_call>{\"name\": \"weather\", \"arguments\": {\"a\":" + std::string(300, '[') + "</tool_call>z",
      "<tool_call>\n<function=" + std::string(300, 'n') + ">\n</tool_call>",
      "<|im_end|></tool_call></function></parameter>",
      std::string("a\0b</think>\0", 12),
  };
}

}  // namespace strata::text
