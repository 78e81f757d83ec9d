// What the server says about itself and its model.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "server/json.h"
#include "server/monitor.h"
#include "server/reply_json.h"
#include "server/server.h"
#include "server/web_assets.h"
#include "text/unicode.h"

namespace strata::server {
namespace {

const char* draft_name(DraftKind kind) {
  switch (kind) {
    case DraftKind::None: return "none";
    case DraftKind::Lookup: return "lookup";
    case DraftKind::Mtp: return "mtp";
    case DraftKind::Auto: return "auto";
  }
  return "";
}

const char* state_name(Generator::State state) {
  switch (state) {
    case Generator::State::Loading: return "loading";
    case Generator::State::Ready: return "ok";
    case Generator::State::Stopping: return "stopping";
    case Generator::State::Failed: return "failed";
  }
  return "";
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const text::Utf8Result c = text::decode_utf8(text);
    if (c.kind != text::Utf8Kind::Complete) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

Json capabilities_json(const text::ChatCapabilities& can) {
  return {{"supports_system_role", can.system_role},
          {"supports_tools", can.tools},
          {"supports_tool_calls", can.tool_calls},
          {"supports_parallel_tool_calls", can.tool_calls},
          {"supports_thinking", can.thinking},
          {"supports_thinking_switch", can.thinking_switch},
          {"supports_preserve_reasoning", can.preserve_thinking},
          {"reasoning_efforts", can.efforts}};
}

}  // namespace

HttpResponse Server::health(const HttpRequest&) {
  const Generator::State state = generator_->state();
  if (state == Generator::State::Ready) return {.body = to_text({{"status", "ok"}})};
  throw RequestError(503, "", state == Generator::State::Loading ? "Loading model" : "the server is stopping");
}

HttpResponse Server::models(const HttpRequest& request) {
  const ModelFacts& facts = model();
  const ModelSpec& spec = facts.engine->model().spec();
  const gguf::File& file = facts.engine->model().file();
  const auto created = std::chrono::duration_cast<std::chrono::seconds>(
      (std::chrono::system_clock::now() - (std::chrono::steady_clock::now() - start_)).time_since_epoch());
  const Json one{{"id", options_.model_name},
                 {"object", "model"},
                 {"created", created.count()},
                 {"owned_by", "strata"},
                 {"meta",
                  {{"n_vocab", spec.vocabulary},
                   {"n_ctx", facts.context},
                   {"n_ctx_train", spec.context},
                   {"n_embd", spec.hidden},
                   {"size", file.file_bytes()}}}};
  constexpr std::string_view kOne = "/v1/models/";
  if (!request.head.path.starts_with(kOne))
    return {.body = to_text({{"object", "list"}, {"data", Json::array({one})}})};
  if (request.head.path.substr(kOne.size()) != options_.model_name)
    throw RequestError(404, "", fmt::format("the only model here is {}", options_.model_name));
  return {.body = to_text(one)};
}

HttpResponse Server::props(const HttpRequest&) {
  const ModelFacts& facts = model();
  const text::Tokenizer& tokenizer = facts.engine->tokenizer();
  const auto token = [&](std::optional<int32_t> id) {
    return id ? std::string(tokenizer.bytes(*id, true)) : std::string();
  };
  return {.body = to_text({{"default_generation_settings",
                            {{"n_ctx", facts.context}, {"params", settings_json(facts.defaults.generation)}}},
                           {"total_slots", options_.generator.slots},
                           {"model_alias", options_.model_name},
                           {"model_path", facts.engine->model().file().path()},
                           {"modalities", {{"vision", false}, {"audio", false}}},
                           {"chat_template", facts.template_source},
                           {"chat_template_caps", capabilities_json(facts.chat->capabilities())},
                           {"bos_token", token(tokenizer.bos())},
                           {"eos_token", token(tokenizer.eos())},
                           {"build_info", options_.build}})};
}

HttpResponse Server::slots(const HttpRequest& request) {
  if (!options_.slots) throw RequestError(501, "", "this server does not show its slots (--no-slots-endpoint)");
  const EngineView view = generator_->view();
  const bool draft = model().defaults.generation.draft != DraftKind::None;
  Json list = Json::array();
  bool idle = false;
  for (const SlotView& slot : view.slots) {
    idle = idle || !slot.busy;
    Json one{{"id", list.size()}, {"n_ctx", slot.context}, {"speculative", draft}, {"is_processing", slot.busy}};
    if (slot.busy)
      one.update({{"id_task", slot.request},
                  {"state", slot.in_prompt ? "prompt" : "output"},
                  {"n_prompt_tokens", slot.prompt_tokens},
                  {"n_prompt_tokens_processed", slot.prompt_done},
                  {"n_prompt_tokens_cache", slot.cached_tokens},
                  {"n_past", slot.context_used},
                  {"params", {{"n_predict", slot.max_tokens}}},
                  {"next_token",
                   {{"has_next_token", true},
                    {"n_remain", slot.max_tokens < 0 ? int64_t{-1} : slot.max_tokens - slot.output_tokens},
                    {"n_decoded", slot.output_tokens}}}});
    list.push_back(std::move(one));
  }
  if (request.head.query_value("fail_on_no_slot") == "1" && !idle) throw RequestError(503, "", "no slot available");
  return {.body = to_text(list)};
}

HttpResponse Server::metrics_page(const HttpRequest&) {
  if (!options_.metrics) throw RequestError(501, "", "this server does not show its metrics (--no-metrics)");
  return {.type = "text/plain; version=0.0.4", .body = metrics_.prometheus(options_.model_name)};
}

const ArmEvidence& Server::evidence_of(const ArmChoice& choice) {
  const std::lock_guard lock(evidence_mutex_);
  const auto [found, is_new] = evidence_.try_emplace(choice.op + "/" + choice.ran);
  if (is_new && options_.evidence) found->second = options_.evidence(choice.op, choice.ran);
  return found->second;
}

HttpResponse Server::monitor(const HttpRequest&) {
  MonitorState state;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  state.time = std::chrono::duration<double>(now).count();
  state.uptime = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  state.status = state_name(generator_->state());
  state.name = options_.model_name;
  if (generator_->engine() == nullptr) return {.body = monitor_text(state)};
  const ModelFacts& facts = model();
  const EngineOptions& engine = facts.engine->options();
  const ModelSpec& spec = facts.engine->model().spec();
  const text::ChatCapabilities& can = facts.chat->capabilities();
  const GenerateRequest& defaults = facts.defaults.generation;
  state.model = MonitorModel{.name = options_.model_name,
                             .description = describe(spec),
                             .device = engine.device,
                             .file_bytes = facts.engine->model().file().file_bytes(),
                             .context = spec.context,
                             .request_context = facts.context,
                             .threads = engine.threads > 0 ? engine.threads : list_devices().front().cores,
                             .thinking = can.thinking_switch,
                             .tools = can.tools,
                             .micro_batch = engine.micro_batch,
                             .draft = draft_name(defaults.draft),
                             .draft_max = defaults.draft_max,
                             .prompt_cache_bytes = engine.prompt_cache_bytes};
  state.limits = options_.generator;
  state.engine = generator_->view();
  state.counts = metrics_.counts();
  state.gauges = metrics_.gauges();
  state.rates = metrics_.rates();
  for (const ArmChoice& choice : state.engine.arms) {
    if (choice.ran.empty()) continue;
    const ArmEvidence& held = evidence_of(choice);
    state.arms.push_back({choice.op, choice.ran, choice.requested, held.device_class, held.state, held.date,
                          held.utilisation, held.cases});
  }
  state.process_bytes = current_resident_bytes();
  state.peak_bytes = peak_resident_bytes();
  state.free_bytes = free_memory_bytes();
  return {.body = monitor_text(state)};
}

HttpResponse Server::tokenize(const HttpRequest& request) {
  const TokenizeRequest asked = parse_tokenize_request(request.body);
  const text::Tokenizer& tokenizer = model().engine->tokenizer();
  const std::vector<int32_t> ids =
      tokenizer.encode(asked.content, {.add_special = asked.add_special, .parse_special = asked.parse_special});
  if (!asked.with_pieces) return {.body = to_text({{"tokens", ids}})};
  Json list = Json::array();
  for (const int32_t id : ids) {
    const std::string piece(tokenizer.bytes(id, true));
    Json shown = piece;
    if (!is_utf8(piece)) shown = std::vector<unsigned>(piece.begin(), piece.end());
    if (shown.is_array())
      for (size_t i = 0; i < piece.size(); ++i) shown[i] = static_cast<unsigned>(static_cast<unsigned char>(piece[i]));
    list.push_back({{"id", id}, {"piece", std::move(shown)}});
  }
  return {.body = to_text({{"tokens", std::move(list)}})};
}

HttpResponse Server::detokenize(const HttpRequest& request) {
  const ModelFacts& facts = model();
  const std::vector<int32_t> ids = parse_detokenize_request(request.body, facts.defaults.vocabulary);
  return {.body = to_text({{"content", facts.engine->tokenizer().decode(ids, true)}})};
}

HttpResponse Server::asset(const HttpRequest& request) {
  const WebAsset* found = find_web_asset(request.head.path);
  HttpResponse response{.type = std::string(found->content_type)};
  response.headers = {{"Content-Security-Policy", std::string(kWebPolicy)},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"},
                      {"ETag", std::string(found->etag)}};
  if (request.head.value("if-none-match") == found->etag)
    response.status = 304;
  else
    response.body.assign(found->bytes.begin(), found->bytes.end());
  return response;
}

}  // namespace strata::server
