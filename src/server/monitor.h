// GET /monitor/state, whose fields docs/server.md lists.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/generator.h"
#include "server/metrics.h"

namespace strata::server {

struct MonitorModel {
  std::string name, description, device;
  uint64_t file_bytes = 0;
  int64_t context = 0, request_context = 0;  // trained for; of a request here, at most
  int threads = 0;
  bool thinking = false, tools = false;
  int64_t micro_batch = 0;
  std::string draft;
  int draft_max = 0;
  uint64_t prompt_cache_bytes = 0;  // 0: there is none
};

struct MonitorArm {
  std::string op, arm, requested, device_class;
  std::optional<std::string> state, date;
  std::optional<double> utilisation;
  std::optional<int> cases;
};

struct MonitorState {
  double time = 0, uptime = 0;
  std::string status, name;
  std::optional<MonitorModel> model;  // none while it is loaded
  GeneratorOptions limits;
  EngineView engine;
  Counts counts;
  Gauges gauges;
  Rates rates;
  std::vector<MonitorArm> arms;
  uint64_t process_bytes = 0, peak_bytes = 0, free_bytes = 0;
};

std::string monitor_text(const MonitorState& state);

}  // namespace strata::server
