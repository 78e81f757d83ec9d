// strata generate: continue a text. strata profile: the same, to see where the time goes.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/chat_settings.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/profile_settings.h"
#include "cli/readable.h"
#include "measure/synthetic_depth.h"
#include "measure/token_trace.h"
#include "runtime/chat.h"
#include "runtime/plan.h"
#include "runtime/session.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxGrammarBytes = size_t{4} << 20;  // the grammar has its own, smaller limit
constexpr size_t kMaxPromptBytes = size_t{256} << 20;

enum class Product { Text, Profile };

constexpr std::array kOwn{
    SettingSpec{.name = "prompt",
                .flags = "-p,--prompt",
                .type = SettingType::Text,
                .group = "Generate",
                .help = "text to continue",
                .persistent = false},
    SettingSpec{.name = "file",
                .flags = "-f,--file",
                .type = SettingType::Path,
                .group = "Generate",
                .help = "file whose text to continue; - reads standard input",
                .persistent = false},
    SettingSpec{.name = "tokens",
                .type = SettingType::Text,
                .group = "Generate",
                .help = "token ids to continue, separated by commas, instead of text",
                .persistent = false},
    SettingSpec{.name = "predict",
                .flags = "-n,--predict,--n-predict",
                .type = SettingType::Int,
                .default_text = "128",
                .min = -1,
                .max = 16777216,
                .group = "Generate",
                .help = "tokens to generate; -1: until the end of the text or of the context"},
    SettingSpec{.name = "stop",
                .type = SettingType::Text,
                .group = "Generate",
                .help = "end before this string; may be given several times",
                .repeatable = true,
                .persistent = false},
    SettingSpec{.name = "grammar",
                .type = SettingType::Text,
                .group = "Generate",
                .help = "only texts of this GBNF grammar",
                .persistent = false},
    SettingSpec{.name = "grammar_file",
                .type = SettingType::Path,
                .group = "Generate",
                .help = "only texts of the GBNF grammar in this file",
                .persistent = false},
    SettingSpec{.name = "json_schema",
                .flags = "-j,--json-schema",
                .type = SettingType::Text,
                .group = "Generate",
                .help = "only JSON of this schema; {} is any JSON value",
                .persistent = false},
    SettingSpec{.name = "json_schema_file",
                .flags = "-jf,--json-schema-file",
                .type = SettingType::Path,
                .group = "Generate",
                .help = "only JSON of the schema in this file",
                .persistent = false},
    SettingSpec{.name = "special",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Generate",
                .help = "control tokens written in the prompt are read as such",
                .persistent = false},
    SettingSpec{.name = "chat",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Generate",
                .help = "the prompt is a user turn: answer it in the form of the model's chat template",
                .persistent = false},
    SettingSpec{.name = "echo",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Generate",
                .help = "print the prompt before its continuation",
                .persistent = false},
};

constexpr std::array kProfileOwn{
    SettingSpec{.name = "profile.depth",
                .flags = "--depth",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 16777215,
                .group = "Profile",
                .help = "begin behind so many positions of random cache contents; the end of the text is ignored then",
                .persistent = false},
};

std::string read_stdin() {
  std::string text;
  char chunk[65536];
  for (size_t got; (got = std::fread(chunk, 1, sizeof chunk, stdin)) > 0;) {
    text.append(chunk, got);
    if (text.size() > kMaxPromptBytes) throw Error(ErrorKind::Usage, "standard input holds over 256 MiB of prompt");
  }
  return text;
}

std::vector<int32_t> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string item = text.substr(start, end - start);
    size_t used = 0;
    long value = -1;
    try {
      value = std::stol(item, &used);
    } catch (const std::logic_error&) {
      used = 0;
    }
    if (used == 0 || item.find_first_not_of(" \t\n", used) != std::string::npos || value < 0 || value > INT32_MAX)
      throw Error(ErrorKind::Usage, "'" + item + "' is no token id", "--tokens");
    ids.push_back(static_cast<int32_t>(value));
    start = end + 1;
  }
  return ids;
}

// The text of --prompt or --file.
std::string read_prompt_text(const Settings& settings) {
  const std::string& file = settings.get_text("file");
  if (settings.origin("prompt") != SettingOrigin::Default) return settings.get_text("prompt");
  return file == "-" ? read_stdin() : read_file(file, kMaxPromptBytes);
}

// The prompt as ids behind those of the session, and as text when it was given as text.
std::vector<int32_t> read_request_prompt(const Settings& settings, const Engine& engine, std::vector<int32_t> ids,
                                         std::string& text) {
  const std::string& tokens = settings.get_text("tokens");
  std::vector<int32_t> added;
  if (!tokens.empty()) {
    added = parse_ids(tokens);
  } else if (settings.origin("prompt") != SettingOrigin::Default || !settings.get_text("file").empty()) {
    text = read_prompt_text(settings);
    added =
        engine.tokenizer().encode(text, {.add_special = ids.empty(), .parse_special = settings.get_bool("special")});
  }
  ids.insert(ids.end(), added.begin(), added.end());
  return ids;
}

std::optional<text::Grammar> read_grammar(const Settings& settings) {
  std::optional<text::Grammar> grammar;
  for (const char* name : {"grammar", "grammar_file", "json_schema", "json_schema_file"}) {
    if (settings.origin(name) == SettingOrigin::Default) continue;
    if (grammar)
      throw Error(ErrorKind::Usage, "give one of --grammar, --grammar-file, --json-schema and --json-schema-file");
    const std::string& value = settings.get_text(name);
    const std::string text = std::string_view(name).ends_with("_file") ? read_file(value, kMaxGrammarBytes) : value;
    grammar = name[0] == 'g' ? text::Grammar::from_gbnf(text) : text::Grammar::from_json_schema(text);
  }
  return grammar;
}

bool session_exists(const Settings& settings) {
  const std::string& path = settings.get_text("session");
  std::error_code ignored;
  return !path.empty() && std::filesystem::exists(path, ignored);
}

int64_t depth_of(const Settings& settings, Product product) {
  return product == Product::Profile ? settings.get_int("profile.depth") : 0;
}

void check_one_prompt(const Settings& settings, Product product) {
  int given = 0;
  for (const char* name : {"prompt", "file", "tokens"}) given += settings.origin(name) != SettingOrigin::Default;
  const bool deep = depth_of(settings, product) > 0, goes_on = deep || session_exists(settings);
  if (deep && (settings.get_bool("chat") || !settings.get_text("session").empty()))
    throw Error(ErrorKind::Usage, "--depth begins behind random contents: leave out --chat and --session");
  if (goes_on && given == 0) return;  // the session's text is continued
  if (given != 1) throw Error(ErrorKind::Usage, "give one of --prompt, --file and --tokens");
  if (settings.get_bool("chat") && !settings.get_text("tokens").empty())
    throw Error(ErrorKind::Usage, "--chat needs text: give it with -p or -f");
  if (settings.get_bool("chat") && !settings.get_text("session").empty())
    throw Error(ErrorKind::Usage, "--session keeps a plain text here; strata chat keeps a conversation");
}

std::string rate(double count, double seconds) {
  return seconds > 0 && count > 0 ? fmt::format("{:.1f} tokens/s", count / seconds) : std::string("-");
}

// "6 avx512, 12 portable": operators by arm; --log-level debug and --json name each.
std::string arms_text(const Queue& queue) {
  std::map<std::string, int> operators;
  for (const ArmChoice& choice : queue.arms())
    if (!choice.ran.empty()) ++operators[choice.ran];
  std::string text;
  for (const auto& [arm, count] : operators) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, arm);
  return text;
}

// "57 of 80 tokens held, by position 0.81 0.64 0.50"
std::string drafts_text(const GenerateResult& result) {
  int64_t tried = 0, accepted = 0;
  std::string positions;
  for (const DraftLength::Position& position : result.drafts) {
    if (position.tried == 0) break;
    tried += position.tried;
    accepted += position.accepted;
    positions += fmt::format(" {:.2f}", static_cast<double>(position.accepted) / static_cast<double>(position.tried));
  }
  return fmt::format("{} of {} tokens held, by position{}", accepted, tried, positions);
}

double prompt_tokens_run(const GenerateResult& result, size_t prompt_tokens) {
  return static_cast<double>(static_cast<int64_t>(prompt_tokens) - result.cached_tokens);
}

double mib(uint64_t bytes) { return static_cast<double>(bytes) / 1048576; }

void print_summary(const GenerateResult& result, size_t prompt_tokens, Engine& engine, Queue& queue) {
  const auto outputs = static_cast<double>(result.tokens.size());
  const std::string kept = result.cached_tokens > 0 ? fmt::format(" ({} of them kept)", result.cached_tokens) : "";
  fmt::print(stderr, "prompt: {} tokens{}, {} | output: {} tokens, {} | ended by {}\n", prompt_tokens, kept,
             rate(prompt_tokens_run(result, prompt_tokens), result.prompt_seconds), result.tokens.size(),
             rate(outputs - 1, result.output_seconds), to_string(result.reason));
  fmt::print(stderr, "peak memory: {:.1f} MiB (model file {:.1f} MiB) | threads: {} | arms: {}\n",
             mib(peak_resident_bytes()), mib(engine.model().file().file_bytes()), queue.pool().threads(),
             arms_text(queue));
  if (const FileTierStats file = engine.pool().file(); file.reserved > 0)
    fmt::print(stderr,
               "keys and values: {:.1f} MiB in a file, at most {:.1f} in memory | pages released: {}, read: {}\n",
               mib(file.peak_used), mib(file.peak_resident), file.released, file.read);
  if (result.drafts[0].tried > 0) fmt::print(stderr, "drafts: {}\n", drafts_text(result));
}

nlohmann::ordered_json json_result(const GenerateResult& result, const std::string& text, size_t prompt_tokens,
                                   double load_seconds, Engine& engine) {
  nlohmann::ordered_json arms = nlohmann::ordered_json::object();
  for (const ArmChoice& choice : engine.queue().arms())
    if (!choice.ran.empty()) arms[choice.op] = choice.ran;
  nlohmann::ordered_json drafts = nlohmann::ordered_json::array();
  for (const DraftLength::Position& position : result.drafts)
    if (position.tried > 0) drafts.push_back({{"tried", position.tried}, {"accepted", position.accepted}});
  auto per_second = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0.0; };
  const auto outputs = static_cast<double>(result.tokens.size());
  const FileTierStats file = engine.pool().file();
  const nlohmann::ordered_json kv_file{{"bytes", file.peak_used},
                                       {"resident_bytes", file.peak_resident},
                                       {"pages_released", file.released},
                                       {"pages_read", file.read}};
  return {{"model", engine.model().file().path()},
          {"text", readable(text)},
          {"tokens", result.tokens},
          {"finish_reason", to_string(result.reason)},
          {"load_ms", load_seconds * 1e3},
          {"prompt_n", prompt_tokens},
          {"cached_n", result.cached_tokens},
          {"prompt_ms", result.prompt_seconds * 1e3},
          {"prompt_per_second", per_second(prompt_tokens_run(result, prompt_tokens), result.prompt_seconds)},
          {"predicted_n", result.tokens.size()},
          {"predicted_ms", result.output_seconds * 1e3},
          {"predicted_per_second", per_second(std::max(0.0, outputs - 1), result.output_seconds)},
          {"peak_bytes", peak_resident_bytes()},
          {"threads", engine.queue().pool().threads()},
          {"kv_file", kv_file},
          {"drafts", drafts},
          {"arms", arms}};
}

class Generate {
 public:
  Generate(CommandContext& context, std::optional<text::Grammar> grammar, Product product)
      : context_(context),
        settings_(context.settings),
        json_(settings_.get_bool("json")),
        shows_text_(!json_ && product == Product::Text),
        product_(product),
        profile_(settings_, product == Product::Profile),
        start_(Clock::now()),
        engine_(engine_options(settings_, profile_.profiler()), context.log) {
    load_seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
    request_.max_tokens = settings_.get_int("predict");
    request_.context = settings_.get_int("ctx_size");
    set_generation(settings_, request_);
    request_.stop = settings_.get_texts("stop");
    request_.grammar = std::move(grammar);
  }

  int run() {
    context_.log.info(fmt::format("{} | {}", engine_.model().file().path(), describe(engine_.model().spec())));
    if (request_.context > engine_.model().spec().context)
      context_.log.warn(
          fmt::format("the context of {} is beyond the {} positions of the model: --rope-scaling extends them",
                      request_.context, engine_.model().spec().context));
    return settings_.get_bool("chat") ? run_chat() : run_text();
  }

 private:
  using Clock = std::chrono::steady_clock;

  int run_text() {
    std::string prompt, text;
    const std::string& session_path = settings_.get_text("session");
    Session session;
    if (session_exists(settings_)) session = load_session(session_path, engine_);
    if (!session.conversation.empty())
      throw Error(ErrorKind::Usage, "the session is a conversation: go on with strata chat", session_path);
    request_.prompt = read_request_prompt(settings_, engine_, session.held.tokens, prompt);
    if (const int64_t depth = depth_of(settings_, product_); depth > 0) go_deep(depth, session.held);
    request_.sampler.skip = static_cast<uint64_t>(session.sampled);
    GenerateCallbacks callbacks;
    callbacks.interrupted = &context_.interrupted;
    callbacks.prompt_progress = prompt_progress();
    callbacks.text = [&](std::string_view bytes) {
      if (shows_text_)
        print(bytes);
      else
        text += bytes;
      return true;
    };
    if (settings_.get_bool("echo") && shows_text_) print(prompt);
    const bool holds = session.held.sequence || !session_path.empty();
    const GenerateResult result = engine_.generate(request_, callbacks, holds ? &session.held : nullptr);
    profile_.end();
    session.sampled += static_cast<int64_t>(result.tokens.size());
    if (!session_path.empty()) save_session(session_path, engine_, session);
    return finish(result, request_.prompt.size(),
                  json_result(result, text, request_.prompt.size(), load_seconds_, engine_));
  }

  // Puts the prompt behind random tokens, and makes a sequence that holds random rows for them.
  void go_deep(int64_t depth, HeldSequence& held) {
    const ModelSpec& spec = engine_.model().spec();
    const EngineOptions& options = engine_.options();
    held.tokens = token_trace(spec.vocabulary, depth);
    request_.prompt.insert(request_.prompt.begin(), held.tokens.begin(), held.tokens.end());
    if (request_.prompt.size() == held.tokens.size()) request_.prompt.push_back(held.tokens.front());
    request_.ignore_end = true;
    if (request_.context == 0)
      request_.context = std::min(
          kMaxContext, static_cast<int64_t>(request_.prompt.size()) + std::max<int64_t>(request_.max_tokens, 0));
    const std::string refusal = engine_.memory_refusal(request_.context);
    if (!refusal.empty()) throw Error(ErrorKind::Memory, refusal);
    engine_.check(request_);
    held.sequence.emplace(spec, request_.context, options.caches, engine_.pool());
    const std::atomic<bool>& interrupted = context_.interrupted;
    fill_synthetic(engine_.queue(), *held.sequence, spec, depth, 1, [&](int64_t) { return !interrupted; });
    if (interrupted) throw Error(ErrorKind::Interrupted, "interrupted while the caches were filled");
  }

  int run_chat() {
    const text::ChatTemplate chat = chat_template_of(engine_);
    if (!chat.note().empty()) context_.log.info(chat.note());
    text::ChatRequest conversation = chat_request(settings_);
    conversation.messages.push_back({.role = "user", .content = read_prompt_text(settings_)});
    ReplyPrinter printer(settings_);
    ChatCallbacks callbacks;
    callbacks.interrupted = &context_.interrupted;
    callbacks.prompt_progress = prompt_progress();
    if (shows_text_) callbacks.event = [&](const text::ReplyEvent& event) { printer.show(event); };
    const ChatReply reply = chat_reply(engine_, chat, conversation, request_, callbacks);
    profile_.end();
    if (reply.parts.ended_in_thinking) context_.log.warn("the reply ended inside its thoughts");
    nlohmann::ordered_json document =
        json_result(reply.result, reply.parts.content, reply.prompt_tokens, load_seconds_, engine_);
    document["reasoning_content"] = readable(reply.parts.reasoning);
    document["tool_calls"] = nlohmann::ordered_json::array();
    for (const text::ParsedCall& call : reply.parts.calls)
      document["tool_calls"].push_back({{"name", readable(call.name)}, {"arguments", readable(call.arguments)}});
    return finish(reply.result, reply.prompt_tokens, document);
  }

  int finish(const GenerateResult& result, size_t prompt_tokens, nlohmann::ordered_json document) {
    const std::string tables = profile_.text();
    if (const std::string profile = profile_.json(); json_ && !profile.empty())
      document["profile"] = nlohmann::ordered_json::parse(profile);
    std::string out = product_ == Product::Profile ? tables : "\n";
    if (json_) out = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    print(out);
    if (!json_ && context_.log.enabled(LogLevel::Info)) print_summary(result, prompt_tokens, engine_, engine_.queue());
    if (!json_ && product_ == Product::Text) fmt::print(stderr, "{}", tables);
    profile_.save(context_.log);
    if (result.reason == FinishReason::MemoryFloor) return exit_code(ErrorKind::Memory);
    return result.reason == FinishReason::Interrupted ? exit_code(ErrorKind::Interrupted) : 0;
  }

  static void print(std::string_view bytes) {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    if (std::fflush(stdout) != 0) throw Error(ErrorKind::File, "cannot write the output", "standard output");
  }

  // A line that overwrites itself, on a terminal and for long prompts only.
  static std::function<void(int64_t, int64_t)> prompt_progress() {
    if (::isatty(STDERR_FILENO) == 0) return {};
    return [](int64_t done, int64_t total) {
      if (total <= 512) return;
      const std::string line = done < total ? fmt::format("prompt: {} of {} tokens", done, total) : std::string();
      fmt::print(stderr, "{:<40}\r", line);
    };
  }

  CommandContext& context_;
  const Settings& settings_;
  bool json_, shows_text_;
  Product product_;
  ProfileRun profile_;
  Clock::time_point start_;
  Engine engine_;
  double load_seconds_ = 0;
  GenerateRequest request_;
};

int run(CommandContext& context, Product product) {
  check_one_prompt(context.settings, product);
  std::optional<text::Grammar> grammar = read_grammar(context.settings);  // its errors come before the model is read
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "loading {} ...\r", model_path(context.settings));
  return Generate(context, std::move(grammar), product).run();
}

std::vector<std::string_view> shared_settings() {
  std::vector<std::string_view> names = engine_setting_names();
  for (std::string_view name : sampler_setting_names()) names.push_back(name);
  for (std::string_view name : chat_setting_names()) names.push_back(name);
  for (std::string_view name : profile_setting_names()) names.push_back(name);
  names.push_back("json");
  names.push_back("session");
  return names;
}

}  // namespace

Command generate_command() {
  return {.name = "generate",
          .summary = "Continue a text, or answer a question with --chat.",
          .own = kOwn,
          .settings = shared_settings(),
          .run = [](CommandContext& context) { return run(context, Product::Text); }};
}

Command profile_command() {
  std::vector<std::string_view> settings = shared_settings();
  std::erase(settings, "profile");
  for (const SettingSpec& spec : kOwn) settings.push_back(spec.name);
  return {.name = "profile",
          .summary = "Run as generate does and print where the time goes.",
          .own = kProfileOwn,
          .settings = std::move(settings),
          .run = [](CommandContext& context) { return run(context, Product::Profile); }};
}

}  // namespace strata::cli
