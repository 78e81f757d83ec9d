#include "server/monitor.h"

#include <nlohmann/json.hpp>

#include "server/json.h"

namespace strata::server {
namespace {

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json positive(double value) { return value > 0 ? Json(value) : Json(); }

Json slots_json(const std::vector<SlotView>& slots) {
  Json list = Json::array();
  for (const SlotView& slot : slots) {
    Json one{{"id", list.size()}, {"state", !slot.busy ? "idle" : slot.in_prompt ? "prompt" : "output"}};
    if (slot.busy)
      one.update({{"request", slot.request},
                  {"api", slot.api},
                  {"prompt_tokens", slot.prompt_tokens},
                  {"cached_tokens", slot.cached_tokens},
                  {"prompt_done", slot.prompt_done},
                  {"output_tokens", slot.output_tokens},
                  {"max_tokens", slot.max_tokens < 0 ? Json() : Json(slot.max_tokens)},
                  {"context_used", slot.context_used},
                  {"context", slot.context},
                  {"age_s", slot.age_seconds},
                  {"output_per_second", positive(slot.output_per_second)},
                  {"draft_tokens", slot.draft_tokens},
                  {"draft_accepted", slot.draft_accepted}});
    list.push_back(std::move(one));
  }
  return list;
}

Json drafts_json(const Counts& counts) {
  Json positions = Json::array();
  for (const DraftLength::Position& position : counts.drafts)
    if (position.tried > 0) positions.push_back({{"tried", position.tried}, {"accepted", position.accepted}});
  return {{"windows", counts.windows},
          {"tokens", counts.drafted},
          {"accepted", counts.accepted},
          {"positions", std::move(positions)}};
}

Json tier(const char* name, const std::string& place, uint64_t used, uint64_t limit) {
  return {{"name", name}, {"place", place}, {"used_bytes", used}, {"limit_bytes", limit > 0 ? Json(limit) : Json()}};
}

Json memory_json(const MonitorState& state) {
  const MonitorModel& model = *state.model;
  const bool host = model.device == "cpu";
  const FileTierStats& file = state.engine.file;
  return {{"process_bytes", state.process_bytes},
          {"peak_bytes", state.peak_bytes},
          {"free_bytes", state.free_bytes},
          {"tiers",
           {tier("weights", host ? "file" : model.device, model.file_bytes, 0),
            tier("sequences", host ? "memory" : model.device, state.gauges.sequence_bytes, state.gauges.sequence_limit),
            tier("kv file", "file", file.used, 0)}}};
}

Json arms_json(const std::vector<MonitorArm>& arms) {
  Json list = Json::array();
  for (const MonitorArm& arm : arms)
    list.push_back({{"operator", arm.op},
                    {"arm", arm.arm},
                    {"class", arm.device_class},
                    {"requested", arm.requested.empty() ? Json() : Json(arm.requested)},
                    {"evidence", known(arm.state)},
                    {"of_bound", known(arm.utilisation)},
                    {"cases", known(arm.cases)},
                    {"date", known(arm.date)}});
  return list;
}

Json times_json(const std::vector<StageTime>& list) {
  Json made = Json::array();
  for (const StageTime& one : list)
    made.push_back({{"name", one.name}, {"ms", one.seconds * 1e3}, {"calls", one.calls}});
  return made;
}

Json last_json(const MonitorState& state) {
  if (!state.engine.last) return nullptr;
  const LastRequest& last = *state.engine.last;
  const Ending& ending = last.ending;
  Json spans = Json::array();
  double start = 0;
  for (const auto& [name, seconds] :
       {std::pair("queue", ending.queue_seconds), std::pair("prompt", ending.prompt_seconds),
        std::pair("output", ending.output_seconds)}) {
    spans.push_back({{"name", name}, {"start_ms", start * 1e3}, {"ms", seconds * 1e3}});
    start += seconds;
  }
  return {{"request", last.request},
          {"api", last.api},
          {"finish_reason", to_string(ending.reason)},
          {"prompt_tokens", ending.prompt_tokens},
          {"cached_tokens", ending.cached_tokens},
          {"output_tokens", ending.output_tokens},
          {"total_ms", start * 1e3},
          {"spans", std::move(spans)},
          {"stages", times_json(last.times.stages)},
          {"operators", times_json(last.times.operators)}};
}

Json counts_json(const MonitorState& state) {
  const Counts& counts = state.counts;
  return {{"requests", counts.requests},
          {"finished", counts.finished},
          {"failed", counts.failed},
          {"cancelled", counts.cancelled},
          {"refused", counts.refused},
          {"prompt_tokens", counts.prompt_tokens},
          {"output_tokens", counts.output_tokens},
          {"steps", state.gauges.steps},
          {"broken_logits", state.gauges.broken_logits}};
}

}  // namespace

std::string monitor_text(const MonitorState& state) {
  Json whole{{"time", state.time}, {"uptime_s", state.uptime}, {"status", state.status}};
  if (!state.model) {
    whole["model"] = {{"name", state.name}};
    return to_text(whole);
  }
  const MonitorModel& model = *state.model;
  whole["model"] = {{"name", state.name},
                    {"description", model.description},
                    {"file_bytes", model.file_bytes},
                    {"context", model.context},
                    {"device", model.device},
                    {"threads", model.threads},
                    {"chat", true},
                    {"thinking", model.thinking},
                    {"tools", model.tools}};
  whole["limits"] = {{"slots", state.limits.slots},
                     {"queue", state.limits.queue},
                     {"context", model.request_context},
                     {"micro_batch", model.micro_batch},
                     {"draft", model.draft},
                     {"draft_max", model.draft_max},
                     {"prompt_cache", model.prompt_cache_bytes > 0}};
  whole["rates"] = {{"step_s", 1},
                    {"end", state.rates.end},
                    {"prompt", state.rates.prompt},
                    {"output", state.rates.output},
                    {"running", state.rates.running},
                    {"waiting", state.rates.waiting}};
  whole["slots"] = slots_json(state.engine.slots);
  whole["queue"] = {{"waiting", state.gauges.waiting},
                    {"limit", state.limits.queue},
                    {"oldest_s", positive(state.engine.oldest_waiting)}};
  whole["cache"] = nullptr;
  if (model.prompt_cache_bytes > 0)
    whole["cache"] = {{"sequences", state.gauges.cached_sequences},
                      {"queried_tokens", state.counts.queried_tokens},
                      {"hit_tokens", state.counts.hit_tokens},
                      {"used_bytes", state.gauges.sequence_bytes},
                      {"budget_bytes", model.prompt_cache_bytes}};
  whole["drafts"] = drafts_json(state.counts);
  whole["memory"] = memory_json(state);
  whole["arms"] = arms_json(state.arms);
  whole["counts"] = counts_json(state);
  whole["last"] = last_json(state);
  return to_text(whole);
}

}  // namespace strata::server
