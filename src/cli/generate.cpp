// strata generate: continue a text.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "text/stream.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxGrammarBytes = size_t{4} << 20;  // the grammar has its own, smaller limit
constexpr size_t kMaxPromptBytes = size_t{256} << 20;

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
    SettingSpec{.name = "ignore_eos",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Generate",
                .help = "go on past the end of the text",
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
    SettingSpec{.name = "echo",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Generate",
                .help = "print the prompt before its continuation",
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

// The prompt as ids, and as text when it was given as text.
std::vector<int32_t> read_request_prompt(const Settings& settings, const Engine& engine, std::string& text) {
  const std::string &prompt = settings.get_text("prompt"), &file = settings.get_text("file");
  const std::string& tokens = settings.get_text("tokens");
  auto is_set = [&](const char* name) { return settings.origin(name) != SettingOrigin::Default; };
  const int given = is_set("prompt") + is_set("file") + is_set("tokens");
  if (given != 1) throw Error(ErrorKind::Usage, "give one of --prompt, --file and --tokens");
  if (!tokens.empty()) return parse_ids(tokens);
  text = is_set("prompt") ? prompt : (file == "-" ? read_stdin() : read_file(file, kMaxPromptBytes));
  return engine.tokenizer().encode(text, {.add_special = true, .parse_special = settings.get_bool("special")});
}

std::optional<text::Grammar> read_grammar(const Settings& settings) {
  std::optional<text::Grammar> grammar;
  for (const char* name : {"grammar", "grammar_file", "json_schema", "json_schema_file"}) {
    if (settings.origin(name) == SettingOrigin::Default) continue;
    if (grammar) throw Error(ErrorKind::Usage, "give one of --grammar, --grammar-file, --json-schema and --json-schema-file");
    const std::string& value = settings.get_text(name);
    const std::string text = std::string_view(name).ends_with("_file") ? read_file(value, kMaxGrammarBytes) : value;
    grammar = name[0] == 'g' ? text::Grammar::from_gbnf(text) : text::Grammar::from_json_schema(text);
  }
  return grammar;
}

std::string rate(double count, double seconds) {
  return seconds > 0 && count > 0 ? fmt::format("{:.1f} tokens/s", count / seconds) : std::string("-");
}

std::string arms_text(const Queue& queue) {
  std::map<std::string, std::string> operators_of;
  for (const ArmChoice& choice : queue.arms())
    if (!choice.ran.empty()) operators_of[choice.ran] += (operators_of[choice.ran].empty() ? "" : " ") + choice.op;
  if (operators_of.size() == 1) return fmt::format("{} ({} operators)", operators_of.begin()->first, queue.arms().size());
  std::string text;
  for (const auto& [arm, operators] : operators_of) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", arm, operators);
  return text;
}

void print_summary(const GenerateResult& result, size_t prompt_tokens, const Engine& engine, Queue& queue) {
  const auto outputs = static_cast<double>(result.tokens.size());
  fmt::print(stderr, "prompt: {} tokens, {} | output: {} tokens, {} | ended by {}\n", prompt_tokens,
             rate(static_cast<double>(prompt_tokens), result.prompt_seconds), result.tokens.size(),
             rate(outputs - 1, result.output_seconds), to_string(result.reason));
  fmt::print(stderr, "peak memory: {:.1f} MiB (model file {:.1f} MiB) | threads: {} | arms: {}\n",
             static_cast<double>(peak_resident_bytes()) / 1048576,
             static_cast<double>(engine.model().file().file_bytes()) / 1048576, queue.pool().threads(), arms_text(queue));
}

nlohmann::ordered_json json_result(const GenerateResult& result, const std::string& text, size_t prompt_tokens,
                                   double load_seconds, Engine& engine) {
  nlohmann::ordered_json arms = nlohmann::ordered_json::object();
  for (const ArmChoice& choice : engine.queue().arms())
    if (!choice.ran.empty()) arms[choice.op] = choice.ran;
  auto per_second = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0.0; };
  const auto outputs = static_cast<double>(result.tokens.size());
  return {{"model", engine.model().file().path()},
          {"text", text},
          {"tokens", result.tokens},
          {"finish_reason", to_string(result.reason)},
          {"load_ms", load_seconds * 1e3},
          {"prompt_n", prompt_tokens},
          {"prompt_ms", result.prompt_seconds * 1e3},
          {"prompt_per_second", per_second(static_cast<double>(prompt_tokens), result.prompt_seconds)},
          {"predicted_n", result.tokens.size()},
          {"predicted_ms", result.output_seconds * 1e3},
          {"predicted_per_second", per_second(std::max(0.0, outputs - 1), result.output_seconds)},
          {"peak_bytes", peak_resident_bytes()},
          {"threads", engine.queue().pool().threads()},
          {"arms", arms}};
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const bool json = settings.get_bool("json"), terminal = ::isatty(STDERR_FILENO) != 0;
  std::optional<text::Grammar> grammar = read_grammar(settings);  // its errors come before the model is read
  const auto start = std::chrono::steady_clock::now();
  if (terminal) fmt::print(stderr, "loading {} ...\r", model_path(settings));
  Engine engine(engine_options(settings), context.log);
  context.log.info(fmt::format("{} | {}{}", engine.model().file().path(), describe(engine.model().spec()),
                               terminal ? "        " : ""));
  const double load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  GenerateRequest request;
  std::string prompt_text;
  request.prompt = read_request_prompt(settings, engine, prompt_text);
  request.max_tokens = settings.get_int("predict");
  request.context = settings.get_int("ctx_size");
  request.sampler = sampler_options(settings);
  request.stop = settings.get_texts("stop");
  request.ignore_end = settings.get_bool("ignore_eos");
  request.grammar = std::move(grammar);
  if (request.context > engine.model().spec().context)
    context.log.warn(fmt::format("the context of {} is beyond the {} positions the model was trained for",
                                 request.context, engine.model().spec().context));

  GenerateCallbacks callbacks;
  callbacks.interrupted = &context.interrupted;
  std::string text;
  callbacks.text = [&](std::string_view bytes) {
    if (json) {
      text += bytes;
      return;
    }
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    if (std::fflush(stdout) != 0) throw Error(ErrorKind::File, "cannot write the output", "standard output");
  };
  if (terminal)
    callbacks.prompt_progress = [](int64_t done, int64_t total) {
      if (total <= 512) return;
      const std::string line = done < total ? fmt::format("prompt: {} of {} tokens", done, total) : std::string();
      fmt::print(stderr, "{:<40}\r", line);
    };
  if (settings.get_bool("echo") && !json) callbacks.text(prompt_text);

  const GenerateResult result = engine.generate(request, callbacks);
  if (json) {
    text::Utf8Stream clean(true);
    const std::string shown = clean.push(text) + clean.finish();
    fmt::print("{}\n", json_result(result, shown, request.prompt.size(), load_seconds, engine).dump(
                           2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("\n");
    std::fflush(stdout);
    if (context.log.enabled(LogLevel::Info)) print_summary(result, request.prompt.size(), engine, engine.queue());
  }
  return result.reason == FinishReason::Interrupted ? exit_code(ErrorKind::Interrupted) : 0;
}

}  // namespace

Command generate_command() {
  std::vector<std::string_view> settings = engine_setting_names();
  for (std::string_view name : sampler_setting_names()) settings.push_back(name);
  settings.push_back("json");
  return {.name = "generate",
          .summary = "Continue a text with a model.",
          .own = kOwn,
          .settings = std::move(settings),
          .run = run};
}

}  // namespace strata::cli
