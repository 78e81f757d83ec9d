// strata serve: a model over HTTP.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/chat_settings.h"
#include "cli/commands.h"
#include "cli/evidence_settings.h"
#include "cli/model_settings.h"
#include "cli/profile_settings.h"
#include "cli/version.h"
#include "evidence/record.h"
#include "ops/registry.h"
#include "server/server.h"

namespace strata::cli {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;  // of keys, of a template
constexpr int64_t kRepeatLimit = 256;         // where the setting says nothing

constexpr std::array kOwn{
    SettingSpec{.name = "host",
                .type = SettingType::Text,
                .default_text = "127.0.0.1",
                .group = "Server",
                .help = "address to listen at; others than the loopback ones need a key"},
    SettingSpec{.name = "port",
                .type = SettingType::Int,
                .default_text = "8080",
                .min = 0,
                .max = 65535,
                .group = "Server",
                .help = "port to listen at; 0: any free one, which is printed"},
    SettingSpec{.name = "api_key",
                .type = SettingType::Text,
                .group = "Server",
                .help = "key that clients have to send; any of several opens",
                .repeatable = true},
    SettingSpec{
        .name = "api_key_file", .type = SettingType::Path, .group = "Server", .help = "file with one key a line"},
    SettingSpec{.name = "alias",
                .flags = "-a,--alias",
                .type = SettingType::Text,
                .group = "Server",
                .help = "name of the model in answers; not set: that of its file"},
    SettingSpec{.name = "parallel",
                .flags = "-np,--parallel,--slots",
                .type = SettingType::Int,
                .default_text = "4",
                .min = 1,
                .max = 1024,
                .group = "Server",
                .help = "requests that run at a time; others wait"},
    SettingSpec{.name = "queue",
                .type = SettingType::Int,
                .default_text = "64",
                .min = 0,
                .max = 65536,
                .group = "Server",
                .help = "requests that wait at most; further ones are answered with 429"},
    SettingSpec{.name = "server_predict",
                .flags = "-n,--predict,--n-predict",
                .type = SettingType::Int,
                .default_text = "-1",
                .min = -1,
                .max = 16777216,
                .group = "Server",
                .help = "tokens of an answer where the request does not say; -1: until it ends or the context is full"},
    SettingSpec{.name = "chat_template",
                .type = SettingType::Text,
                .group = "Server",
                .help = "text of a chat template instead of the model file's"},
    SettingSpec{.name = "chat_template_file",
                .type = SettingType::Path,
                .group = "Server",
                .help = "chat template instead of the model file's"},
    SettingSpec{.name = "reasoning_format",
                .type = SettingType::Choice,
                .default_text = "deepseek",
                .choices = "none|auto|deepseek|deepseek-legacy",
                .group = "Server",
                .help = "thoughts: in the content, in reasoning_content (auto, deepseek), or in both"},
    SettingSpec{.name = "timeout",
                .type = SettingType::Int,
                .default_text = "60",
                .min = 1,
                .max = 86400,
                .group = "Server",
                .help = "seconds that a request may take to arrive, and an answer to be taken without progress"},
    SettingSpec{.name = "stop_timeout",
                .type = SettingType::Int,
                .default_text = "30",
                .min = 0,
                .max = 86400,
                .group = "Server",
                .help = "seconds that requests in progress have when the server is to end"},
    SettingSpec{.name = "sse_ping_interval",
                .type = SettingType::Real,
                .default_text = "30",
                .min = 0.01,
                .max = 86400,
                .group = "Server",
                .help = "seconds between comments in a stream that has nothing else to say"},
    SettingSpec{.name = "connections",
                .flags = "--threads-http,--connections",
                .type = SettingType::Int,
                .default_text = "512",
                .min = 1,
                .max = 16384,
                .group = "Server",
                .help = "connections at a time; further ones are answered with 503"},
    SettingSpec{.name = "max_body",
                .type = SettingType::Int,
                .default_text = "64",
                .min = 1,
                .max = 1024,
                .group = "Server",
                .help = "MiB of a request at most"},
    SettingSpec{.name = "allowed_host",
                .type = SettingType::Text,
                .group = "Server",
                .help = "further name of this server in the header Host; addresses and localhost are always allowed; "
                        "*: any",
                .repeatable = true},
    SettingSpec{.name = "cors_origin",
                .type = SettingType::Text,
                .group = "Server",
                .help = "origin of web pages that may ask, as https://example.org; *: any",
                .repeatable = true},
    SettingSpec{.name = "metrics",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Server",
                .help = "answer GET /metrics"},
    SettingSpec{.name = "slots_endpoint",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Server",
                .help = "answer GET /slots"},
    SettingSpec{.name = "embeddings",
                .flags = "--embeddings,--embedding",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Server",
                .help = "answer POST /v1/embeddings"},
    SettingSpec{.name = "pooling",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|none|mean|cls|last",
                .group = "Server",
                .help = "how hidden states of a text become its embedding; auto: as the model file says, else mean"},
    SettingSpec{.name = "page",
                .flags = "--page,--webui",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = "Server",
                .help = "answer GET / with a page"},
};

std::vector<std::string> read_keys(const Settings& settings) {
  std::vector<std::string> keys = settings.get_texts("api_key");
  if (const std::string& path = settings.get_text("api_key_file"); !path.empty()) {
    const std::string text = read_file(path, kMaxFile);
    for (size_t start = 0; start < text.size();) {
      const size_t end = std::min(text.find('\n', start), text.size());
      std::string line = text.substr(start, end - start);
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty()) keys.push_back(std::move(line));
      start = end + 1;
    }
    if (keys.empty()) throw Error(ErrorKind::Usage, "holds no key", path);
  }
  for (const std::string& key : keys)
    if (key.empty()) throw Error(ErrorKind::Usage, "a key must not be empty", "--api-key");
  return keys;
}

// What a request starts from.
server::RequestDefaults defaults_of(const Settings& settings) {
  server::RequestDefaults defaults;
  set_generation(settings, defaults.generation);
  defaults.generation.max_tokens = settings.get_int("server_predict");
  defaults.generation.context = settings.get_int("ctx_size");
  if (settings.origin("repeat_limit") == SettingOrigin::Default) defaults.generation.repeat_limit = kRepeatLimit;
  defaults.chat = chat_request(settings);
  const std::string& format = settings.get_text("reasoning_format");
  defaults.reasoning = format == "none"              ? text::ReasoningFormat::None
                       : format == "deepseek-legacy" ? text::ReasoningFormat::Both
                                                     : text::ReasoningFormat::Separate;
  return defaults;
}

std::string name_of(const Settings& settings, const std::string& path) {
  if (const std::string& alias = settings.get_text("alias"); !alias.empty()) return alias;
  return std::filesystem::path(path).stem().string();
}

server::ArmEvidence evidence_of(const std::string& folder, const std::string& op, const std::string& arm) {
  server::ArmEvidence made;
  const OperatorEvidence* evidence = find_operator(op);
  if (evidence == nullptr) return made;
  for (const ArmInfo& info : evidence->arms) {
    if (info.name != arm) continue;
    made.device_class = info.device_class;
    if (!std::filesystem::exists(folder)) return made;
    const auto record = read_record(folder, op, arm, info.device_class);
    made.state = record_state(record, evidence->source_folder(), info.image);
    if (!record) return made;
    made.utilisation = record->utilisation;
    made.cases = record->cases;
    made.date = record->date;
  }
  return made;
}

std::optional<Pooling> pooling_of(const std::string& name) {
  if (name == "auto") return std::nullopt;
  return name == "none"   ? Pooling::None
         : name == "mean" ? Pooling::Mean
         : name == "cls"  ? Pooling::First
                          : Pooling::Last;
}

server::ServerOptions server_options(CommandContext& context, Profiler* profiler) {
  const Settings& settings = context.settings;
  server::ServerOptions options;
  options.host = settings.get_text("host");
  options.port = static_cast<int>(settings.get_int("port"));
  options.keys = read_keys(settings);
  options.hosts = settings.get_texts("allowed_host");
  options.hosts.push_back(options.host);
  options.origins = settings.get_texts("cors_origin");
  options.http.body_bytes = static_cast<uint64_t>(settings.get_int("max_body")) << 20;
  options.http.body_seconds = options.http.write_seconds = static_cast<double>(settings.get_int("timeout"));
  options.http.connections = static_cast<int>(settings.get_int("connections"));
  options.generator.slots = static_cast<int>(settings.get_int("parallel"));
  options.generator.queue = static_cast<int>(settings.get_int("queue"));
  options.defaults = defaults_of(settings);
  const std::string model = model_path(settings);
  options.model_name = name_of(settings, model);
  options.chat_template = settings.get_text("chat_template");
  if (const std::string& path = settings.get_text("chat_template_file"); !path.empty())
    options.chat_template = read_file(path, kMaxFile);
  options.build = fmt::format("strata {}", version_text());
  options.ping_seconds = settings.get_real("sse_ping_interval");
  options.stop_seconds = static_cast<double>(settings.get_int("stop_timeout"));
  options.slots = settings.get_bool("slots_endpoint");
  options.metrics = settings.get_bool("metrics");
  options.page = settings.get_bool("page");
  options.embeddings = settings.get_bool("embeddings");
  options.pooling = pooling_of(settings.get_text("pooling"));
  EngineOptions engine = engine_options(settings, profiler);
  set_prompt_cache(settings, engine);
  options.load = [engine, &log = context.log] {
    auto made = std::make_unique<Engine>(engine, log);
    log.info(fmt::format("{} | {}", made->model().file().path(), describe(made->model().spec())));
    return made;
  };
  options.evidence = [folder = records_folder(settings)](const std::string& op, const std::string& arm) {
    return evidence_of(folder, op, arm);
  };
  return options;
}

int run(CommandContext& context) {
  ProfileRun profile(context.settings, false);  // outlives the engine
  server::ServerOptions options = server_options(context, profile.profiler());
  const std::string host = options.host;
  server::Server server(std::move(options), context.log);
  const int port = server.bind();
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  fmt::print("http://{}:{}\n", shown, port);
  std::fflush(stdout);
  server.run(context.interrupted);
  profile.end();
  fmt::print(stderr, "{}", profile.text());
  profile.save(context.log);
  return 0;
}

}  // namespace

Command serve_command() {
  std::vector<std::string_view> settings = engine_setting_names();
  for (std::string_view name : sampler_setting_names()) settings.push_back(name);
  for (std::string_view name : prompt_cache_setting_names()) settings.push_back(name);
  for (std::string_view name : profile_setting_names()) settings.push_back(name);
  for (std::string_view name : {"system", "think", "reasoning_effort", "chat_template_kwargs", "records"})
    settings.push_back(name);
  return {.name = "serve",
          .summary = "Answer over HTTP: the OpenAI and Anthropic APIs, and a page.",
          .own = kOwn,
          .settings = std::move(settings),
          .run = run};
}

}  // namespace strata::cli
