#include "cli/chat_settings.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/error.h"
#include "base/mapped_file.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxTools = size_t{4} << 20;

constexpr std::array kChat{
    SettingSpec{.name = "system",
                .flags = "-sys,--system",
                .type = SettingType::Text,
                .group = "Chat",
                .help = "system turn at the head of the conversation"},
    SettingSpec{.name = "think",
                .flags = "--think,--reasoning",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|on|off",
                .group = "Chat",
                .help = "thinking mode; auto leaves it to the template"},
    SettingSpec{.name = "reasoning_effort",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|none|minimal|low|medium|high|xhigh|max",
                .group = "Chat",
                .help = "how much the model thinks, where its template knows the word"},
    SettingSpec{.name = "chat_template_kwargs",
                .type = SettingType::Text,
                .group = "Chat",
                .help = "JSON object of further variables of the template"},
    SettingSpec{.name = "tools_file",
                .type = SettingType::Path,
                .group = "Chat",
                .help = "JSON array of tool definitions, as in the OpenAI API"},
    SettingSpec{.name = "show_thinking",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|on|off",
                .group = "Chat",
                .help = "print thoughts; auto: on a terminal"},
};

}  // namespace

std::span<const SettingSpec> chat_settings() { return kChat; }

std::vector<std::string_view> chat_setting_names() {
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : kChat) names.push_back(spec.name);
  return names;
}

text::ChatRequest chat_request(const Settings& settings) {
  text::ChatRequest request;
  if (const std::string& system = settings.get_text("system"); !system.empty())
    request.messages.push_back({.role = "system", .content = system});
  if (const std::string& think = settings.get_text("think"); think != "auto") request.enable_thinking = think == "on";
  if (const std::string& effort = settings.get_text("reasoning_effort"); effort != "auto")
    request.reasoning_effort = effort;
  request.kwargs = settings.get_text("chat_template_kwargs");
  if (const std::string& file = settings.get_text("tools_file"); !file.empty())
    request.tools = read_file(file, kMaxTools);
  return request;
}

ReplyPrinter::ReplyPrinter(const Settings& settings) : terminal_(::isatty(STDOUT_FILENO) != 0) {
  const std::string& wanted = settings.get_text("show_thinking");
  show_thinking_ = wanted == "auto" ? terminal_ : wanted == "on";
}

void ReplyPrinter::set_dim(bool dim) {
  if (terminal_ && dim != dim_) std::fputs(dim ? "\x1b[2m" : "\x1b[0m\n\n", stdout);
  if (!terminal_ && dim_ && !dim) std::fputs("\n", stdout);
  dim_ = dim;
}

void ReplyPrinter::show(const text::ReplyEvent& event) {
  using Kind = text::ReplyEvent::Kind;
  const bool thought = event.kind == Kind::Reasoning;
  if (thought && !show_thinking_) return;
  set_dim(thought);
  std::string line = event.text;
  if (event.kind == Kind::CallBegin) line = "[call " + event.text + " ";
  if (event.kind == Kind::CallEnd) line = "]\n";
  if (event.kind == Kind::CallFailed) line = "] (" + event.text + ")\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  if (std::fflush(stdout) != 0) throw Error(ErrorKind::File, "cannot write the output", "standard output");
}

}  // namespace strata::cli
