// strata chat: a conversation at the terminal.
#include "runtime/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/chat_settings.h"
#include "cli/commands.h"
#include "cli/line_input.h"
#include "cli/model_settings.h"
#include "cli/profile_settings.h"
#include "runtime/session.h"

namespace strata::cli {
namespace {

constexpr std::array kOwn{
    SettingSpec{.name = "chat_predict",
                .flags = "-n,--predict,--n-predict",
                .type = SettingType::Int,
                .default_text = "-1",
                .min = -1,
                .max = 16777216,
                .group = "Chat",
                .help = "tokens of a reply at most; -1: until it ends or the context is full",
                .persistent = false},
};

constexpr const char* kHelp =
    "/reset          forget the conversation, keep the system turn\n"
    "/system TEXT    begin anew with another system turn; without TEXT: with none\n"
    "/think on|off   thinking mode; auto leaves it to the template\n"
    "/save FILE      write the conversation as a JSON array of messages\n"
    "/quit           end (also Ctrl-D)\n"
    "Ctrl-C ends a reply; what was said so far stays in the conversation.\n";

EngineOptions chat_options(const Settings& settings, Profiler* profiler) {
  EngineOptions options = engine_options(settings, profiler);
  set_prompt_cache(settings, options);
  return options;
}

class Chat {
 public:
  Chat(CommandContext& context)
      : context_(context),
        profile_(context.settings, false),
        engine_(chat_options(context.settings, profile_.profiler()), context.log),
        template_(chat_template_of(engine_)),
        request_(chat_request(context.settings)),
        input_("> "),
        printer_(context.settings) {
    generation_.max_tokens = context.settings.get_int("chat_predict");
    generation_.context = context.settings.get_int("ctx_size");
    set_generation(context.settings, generation_);
  }

  int run() {
    context_.log.info(fmt::format("{} | {}", engine_.model().file().path(), describe(engine_.model().spec())));
    if (!template_.note().empty()) context_.log.info(template_.note());
    load();
    if (::isatty(STDIN_FILENO) != 0) fmt::print(stderr, "/help lists the commands, /quit ends\n");
    while (!quit_) {
      const auto line = input_.next();
      if (!line) break;
      if (line->empty()) continue;
      if (line->front() == '/')
        command(*line);
      else
        say(*line);
    }
    profile_.end();
    if (const std::string& path = context_.settings.get_text("session"); !path.empty() && session_.held.sequence) {
      session_.conversation = conversation();
      save_session(path, engine_, session_);
    }
    fmt::print(stderr, "{}", profile_.text());
    profile_.save(context_.log);
    if (context_.interrupted) throw Error(ErrorKind::Interrupted, "interrupted");
    return 0;
  }

 private:
  void say(const std::string& text) {
    request_.messages.push_back({.role = "user", .content = text});
    ChatCallbacks callbacks;
    callbacks.event = [this](const text::ReplyEvent& event) { printer_.show(event); };
    callbacks.interrupted = &context_.interrupted;
    try {
      const ChatReply reply =
          chat_reply(engine_, template_, request_, generation_, callbacks, keeps_session() ? &session_.held : nullptr);
      keep(reply);
      finish(reply);
    } catch (const Error& error) {  // one bad turn does not end the conversation
      request_.messages.pop_back();
      if (context_.interrupted) throw;
      context_.log.error(error.what());
    }
  }

  bool keeps_session() const { return !context_.settings.get_text("session").empty(); }

  // Goes on with the conversation of the session file, where there is one.
  void load() {
    const std::string& path = context_.settings.get_text("session");
    std::error_code ignored;
    if (!keeps_session() || !std::filesystem::exists(path, ignored)) return;
    session_ = load_session(path, engine_);
    if (session_.conversation.empty())
      throw Error(ErrorKind::Usage, "the session is no conversation: go on with strata generate", path);
    request_.messages = text::parse_chat_messages(session_.conversation);
    context_.log.info(
        fmt::format("{}: {} messages, {} tokens", path, request_.messages.size(), session_.held.tokens.size()));
  }

  void keep(const ChatReply& reply) {
    text::ChatMessage message{.role = "assistant", .content = reply.parts.content};
    if (!reply.parts.reasoning.empty()) message.reasoning_content = reply.parts.reasoning;
    for (const text::ParsedCall& call : reply.parts.calls)
      message.tool_calls.push_back({.id = {}, .name = call.name, .arguments = call.arguments});
    request_.messages.push_back(std::move(message));
  }

  void finish(const ChatReply& reply) {
    fmt::print("\n");
    std::fflush(stdout);
    const GenerateResult& result = reply.result;
    if (result.reason == FinishReason::Interrupted) context_.interrupted = false;  // Ctrl-C ended this reply alone
    if (reply.parts.ended_in_thinking) context_.log.warn("the reply ended inside its thoughts");
    for (const std::string& failure : reply.parts.failures) context_.log.warn("a tool call failed: " + failure);
    if (result.reason == FinishReason::Length)
      context_.log.warn("the reply was cut: its length or the context is used up");
    const double rate =
        result.output_seconds > 0 ? static_cast<double>(result.tokens.size()) / result.output_seconds : 0;
    context_.log.debug(fmt::format("prompt {} tokens, {} of them kept, in {:.2f} s, reply {} tokens at {:.1f} tokens/s",
                                   reply.prompt_tokens, result.cached_tokens, result.prompt_seconds,
                                   result.tokens.size(), rate));
  }

  void reset() {
    const bool has_system = !request_.messages.empty() && request_.messages.front().role == "system";
    request_.messages.resize(has_system ? 1 : 0);
  }

  void command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const size_t start = std::min(line.find_first_not_of(' ', space), line.size());
    const std::string rest = line.substr(start);
    if (name == "/quit" || name == "/exit")
      quit_ = true;
    else if (name == "/reset")
      reset();
    else if (name == "/system")
      set_system(rest);
    else if (name == "/think" && (rest == "on" || rest == "off" || rest == "auto"))
      request_.enable_thinking = rest == "auto" ? std::nullopt : std::optional<bool>(rest == "on");
    else if (name == "/save" && !rest.empty())
      save(rest);
    else if (name == "/help")
      std::fputs(kHelp, stderr);
    else
      context_.log.error(name == "/think" || name == "/save" ? name + " needs an argument; see /help"
                                                             : "there is no command " + name + "; see /help");
  }

  void set_system(const std::string& text) {
    request_.messages.clear();
    if (!text.empty()) request_.messages.push_back({.role = "system", .content = text});
  }

  std::string conversation() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const text::ChatMessage& message : request_.messages) {
      nlohmann::ordered_json one{{"role", message.role}, {"content", message.content}};
      if (message.reasoning_content) one["reasoning_content"] = *message.reasoning_content;
      for (const text::ChatToolCall& call : message.tool_calls)
        one["tool_calls"].push_back(
            {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      list.push_back(std::move(one));
    }
    return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

  void save(const std::string& path) {
    try {
      OutputFile file(path);
      const std::string text = conversation();
      file.write(text.data(), text.size());
      file.commit();
      context_.log.info(fmt::format("{}: {} messages", path, request_.messages.size()));
    } catch (const Error& error) {
      context_.log.error(error.what());
    }
  }

  CommandContext& context_;
  ProfileRun profile_;
  Engine engine_;
  text::ChatTemplate template_;
  text::ChatRequest request_;
  GenerateRequest generation_;
  Session session_;
  LineInput input_;
  ReplyPrinter printer_;
  bool quit_ = false;
};

int run(CommandContext& context) { return Chat(context).run(); }

}  // namespace

Command chat_command() {
  std::vector<std::string_view> settings = engine_setting_names();
  for (std::string_view name : sampler_setting_names()) settings.push_back(name);
  settings.push_back("session");
  for (std::string_view name : prompt_cache_setting_names()) settings.push_back(name);
  for (std::string_view name : chat_setting_names()) settings.push_back(name);
  for (std::string_view name : profile_setting_names()) settings.push_back(name);
  return {.name = "chat", .summary = "Talk with a model.", .own = kOwn, .settings = std::move(settings), .run = run};
}

}  // namespace strata::cli
