// strata bench serve: a server under load, as other serving benchmarks print it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "measure/disturbance.h"
#include "measure/token_trace.h"
#include "server/bench_client.h"
#include "server/server.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;
using server::MeasuredAnswer;

constexpr std::array kOwn{
    SettingSpec{.name = "bench_serve.clients",
                .flags = "--clients,--max-concurrency",
                .type = SettingType::Ints,
                .default_text = "1,8",
                .min = 1,
                .max = 1024,
                .group = "Serving",
                .help = "clients that stream at a time, a measurement for each number",
                .repeatable = true,
                .persistent = false},
    SettingSpec{.name = "bench_serve.requests",
                .flags = "--requests,--num-prompts",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 1000000,
                .group = "Serving",
                .help = "requests of a measurement; 0: four for each client",
                .persistent = false},
    SettingSpec{.name = "bench_serve.prompt",
                .flags = "-p,--n-prompt,--random-input-len",
                .type = SettingType::Int,
                .default_text = "128",
                .min = 1,
                .max = 1048576,
                .group = "Serving",
                .help = "tokens of a prompt, all prompts different",
                .persistent = false},
    SettingSpec{.name = "bench_serve.output",
                .flags = "-n,--n-gen,--random-output-len",
                .type = SettingType::Int,
                .default_text = "64",
                .min = 2,
                .max = 1048576,
                .group = "Serving",
                .help = "tokens of an answer",
                .persistent = false},
};

struct Level {
  int64_t clients = 0;
  double seconds = 0;
  double cpu_seconds = 0;  // processor time of the program without its clients
  std::vector<MeasuredAnswer> answers;
};

constexpr int kPairs = 9;

// What a token costs with the server and its HTTP around the engine, beyond what it costs without: medians of pairs
// of the same request, one after the other.
struct Overhead {
  double cpu = 0, wall = 0;  // seconds a token
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// The smallest value that the share of the values does not exceed.
double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values[at];
}

class BenchServe {
 public:
  explicit BenchServe(CommandContext& context)
      : context_(context),
        prompt_(context.settings.get_int("bench_serve.prompt")),
        output_(context.settings.get_int("bench_serve.output")) {
    EngineOptions options = engine_options(context.settings);
    set_prompt_cache(context.settings, options);
    engine_ = std::make_unique<Engine>(options, context.log);
    vocabulary_ = engine_->model().spec().vocabulary;
  }

  int run() {
    const double alone = engine_rate();
    start();
    const std::optional<Overhead> overhead = measure_overhead();
    std::vector<Level> levels;
    for (const int64_t clients : context_.settings.get_ints("bench_serve.clients")) levels.push_back(measure(clients));
    const Json cached = cached_prefix();
    Json results = Json::array();
    for (const Level& level : levels) results.push_back(result_of(level));
    stop();
    if (context_.settings.get_bool("json"))
      fmt::print("{}\n", Json{{"engine_output_per_second", alone},
                              {"overhead_per_token", json_of(overhead)},
                              {"levels", results},
                              {"cached_prefix", cached}}
                             .dump(2));
    else
      print(alone, overhead, results, cached);
    return 0;
  }

 private:
  std::vector<int32_t> next_prompt() { return token_trace(vocabulary_, prompt_, 1000 + next_seed_++); }

  GenerateResult generate_alone(Engine& engine) {
    GenerateRequest request;
    set_generation(context_.settings, request);
    request.prompt = next_prompt();
    request.max_tokens = output_;
    request.ignore_end = true;
    return engine.generate(request);
  }

  // A second engine beside the server's, where that takes no memory of a device: outputs in turns, one without the
  // server and one through it.
  std::optional<Overhead> measure_overhead() {
    EngineOptions options = engine_options(context_.settings);
    if (options.device != "cpu") return std::nullopt;
    Engine engine(options, context_.log);
    std::vector<double> cpu, wall;
    for (int i = 0; i < kPairs && !context_.interrupted; ++i) {
      const double begin = read_load().own;
      const GenerateResult alone = generate_alone(engine);
      const double middle = read_load().own;
      const MeasuredAnswer served = server::measured_completion(port_, next_prompt(), output_);
      const double end = read_load().own;
      const auto tokens = static_cast<double>(output_);
      cpu.push_back((end - middle - served.client_cpu - (middle - begin)) / tokens);
      wall.push_back(served.per_token() - alone.output_seconds / (tokens - 1));
    }
    return Overhead{percentile(cpu, 0.5), percentile(wall, 0.5)};
  }

  static Json json_of(const std::optional<Overhead>& overhead) {
    if (!overhead) return nullptr;
    return {{"cpu_us", overhead->cpu * 1e6}, {"wall_us", overhead->wall * 1e6}};
  }

  // One output without a server, tokens a second: what one client could get at best.
  double engine_rate() {
    std::vector<double> rates;
    for (int i = 0; i < 3; ++i) {
      const GenerateResult result = generate_alone(*engine_);
      if (result.output_seconds > 0)
        rates.push_back(static_cast<double>(result.tokens.size() - 1) / result.output_seconds);
    }
    return percentile(rates, 0.5);
  }

  void start() {
    const auto clients = context_.settings.get_ints("bench_serve.clients");
    server::ServerOptions options;
    options.port = 0;
    options.generator.slots = static_cast<int>(*std::max_element(clients.begin(), clients.end()));
    set_generation(context_.settings, options.defaults.generation);
    options.load = [this] { return std::move(engine_); };
    options.stop_seconds = 0;
    server_ = std::make_unique<server::Server>(std::move(options), context_.log);
    port_ = server_->bind();
    runner_ = std::thread([this] { server_->run(stopping_); });
    while (server::measured_completion(port_, {0}, 1).status == 503)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  void stop() {
    stopping_ = true;
    runner_.join();
  }

  Level measure(int64_t clients) {
    const int64_t wanted = context_.settings.get_int("bench_serve.requests");
    const int64_t requests = wanted > 0 ? wanted : clients * 4;
    std::vector<std::vector<int32_t>> prompts;
    for (int64_t i = 0; i < requests; ++i) prompts.push_back(next_prompt());
    Level level{.clients = clients, .seconds = 0, .answers = std::vector<MeasuredAnswer>(prompts.size())};
    std::atomic<size_t> next{0};
    const double cpu = read_load().own;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < clients; ++i)
      threads.emplace_back([&] {
        for (size_t at; (at = next++) < prompts.size() && !context_.interrupted;)
          level.answers[at] = server::measured_completion(port_, prompts[at], output_);
      });
    for (std::thread& thread : threads) thread.join();
    level.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    level.cpu_seconds = read_load().own - cpu;
    for (const MeasuredAnswer& answer : level.answers) level.cpu_seconds -= answer.client_cpu;
    if (context_.interrupted) {
      stop();
      throw Error(ErrorKind::Interrupted, "interrupted");
    }
    return level;
  }

  // A prompt of 1,000 tokens, and again.
  Json cached_prefix() {
    const std::vector<int32_t> prompt = token_trace(vocabulary_, 1000, 77);
    const MeasuredAnswer first = server::measured_completion(port_, prompt, 4);
    const MeasuredAnswer second = server::measured_completion(port_, prompt, 4);
    if (first.status != 200) return nullptr;
    return {{"prompt_tokens", second.prompt_tokens},
            {"cached_tokens", second.cached_tokens},
            {"first_ttft_ms", first.first * 1e3},
            {"second_ttft_ms", second.first * 1e3}};
  }

  static Json spread(const std::vector<double>& seconds) {
    return {{"mean_ms", mean(seconds) * 1e3},
            {"p50_ms", percentile(seconds, 0.5) * 1e3},
            {"p90_ms", percentile(seconds, 0.9) * 1e3},
            {"p99_ms", percentile(seconds, 0.99) * 1e3}};
  }

  static Json result_of(const Level& level) {
    int64_t finished = 0, prompt = 0, output = 0;
    std::vector<double> first, per_token, gaps, whole;
    for (const MeasuredAnswer& answer : level.answers) {
      if (answer.status != 200) continue;
      ++finished;
      prompt += answer.prompt_tokens;
      output += answer.output_tokens;
      first.push_back(answer.first);
      whole.push_back(answer.whole);
      per_token.push_back(answer.per_token());
      gaps.insert(gaps.end(), answer.gaps.begin(), answer.gaps.end());
    }
    return {{"clients", level.clients},
            {"requests", level.answers.size()},
            {"finished", finished},
            {"seconds", level.seconds},
            {"requests_per_second", static_cast<double>(finished) / level.seconds},
            {"prompt_tokens", prompt},
            {"output_tokens", output},
            {"prompt_per_second", static_cast<double>(prompt) / level.seconds},
            {"output_per_second", static_cast<double>(output) / level.seconds},
            {"cpu_ms_per_output_token", level.cpu_seconds * 1e3 / static_cast<double>(std::max<int64_t>(output, 1))},
            {"ttft", spread(first)},
            {"tpot", spread(per_token)},
            {"itl", spread(gaps)},
            {"e2el", spread(whole)}};
  }

  static void print_spread(const char* name, const Json& spread) {
    fmt::print("{:<34}", name);
    for (const char* part : {"mean_ms", "p50_ms", "p90_ms", "p99_ms"})
      fmt::print("{:>12.2f}", spread[part].get<double>());
    fmt::print("\n");
  }

  void print(double alone, const std::optional<Overhead>& overhead, const Json& results, const Json& cached) const {
    fmt::print("prompts of {} tokens, answers of {}; the engine alone: {:.1f} output tokens/s\n", prompt_, output_,
               alone);
    if (overhead)  // 20 tokens/s: 50 ms a token
      fmt::print("the server adds {:.0f} us of processor time a token, {:.0f} us of waiting: {:.2f} % at 20 tokens/s\n",
                 overhead->cpu * 1e6, overhead->wall * 1e6, std::max(overhead->cpu, overhead->wall) / 0.05 * 100);
    const double base = results[0]["output_per_second"];
    for (const Json& result : results) {
      fmt::print("\n{:=^82}\n", fmt::format(" {} clients ", result["clients"].get<int64_t>()));
      fmt::print("{:<34}{:>12} of {}\n", "finished requests", result["finished"].get<int64_t>(),
                 result["requests"].get<int64_t>());
      fmt::print("{:<34}{:>12.2f}\n", "duration (s)", result["seconds"].get<double>());
      fmt::print("{:<34}{:>12.2f}\n", "requests/s", result["requests_per_second"].get<double>());
      fmt::print("{:<34}{:>12.2f}\n", "prompt tokens/s", result["prompt_per_second"].get<double>());
      fmt::print("{:<34}{:>12.2f}   {:.2f} x the first\n", "output tokens/s", result["output_per_second"].get<double>(),
                 result["output_per_second"].get<double>() / base);
      fmt::print("{:<34}{:>12.3f}\n", "processor ms per output token", result["cpu_ms_per_output_token"].get<double>());
      fmt::print("{:<34}{:>12}{:>12}{:>12}{:>12}\n", "", "mean", "p50", "p90", "p99");
      print_spread("time to first token (ms)", result["ttft"]);
      print_spread("time per output token (ms)", result["tpot"]);
      print_spread("inter-token latency (ms)", result["itl"]);
      print_spread("end-to-end latency (ms)", result["e2el"]);
    }
    if (!cached.is_null())
      fmt::print("\na prompt of {} tokens: {:.1f} ms to the first token, and {:.1f} ms when {} of them are kept\n",
                 cached["prompt_tokens"].get<int64_t>(), cached["first_ttft_ms"].get<double>(),
                 cached["second_ttft_ms"].get<double>(), cached["cached_tokens"].get<int64_t>());
  }

  CommandContext& context_;
  const int64_t prompt_, output_;
  int64_t vocabulary_ = 0;
  uint64_t next_seed_ = 0;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<server::Server> server_;
  std::atomic<bool> stopping_{false};
  std::thread runner_;
  int port_ = 0;
};

int run(CommandContext& context) { return BenchServe(context).run(); }

}  // namespace

Command bench_serve_command() {
  std::vector<std::string_view> settings = engine_setting_names();
  for (std::string_view name : prompt_cache_setting_names()) settings.push_back(name);
  for (std::string_view name : sampler_setting_names()) settings.push_back(name);
  settings.push_back("json");
  return {.name = "bench-serve",
          .summary = "Measure a server with many clients (also: bench serve).",
          .own = kOwn,
          .settings = std::move(settings),
          .run = run};
}

}  // namespace strata::cli
