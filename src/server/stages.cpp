#include "server/stages.h"

#include <algorithm>

namespace strata::server {
namespace {

StageTime* find(std::vector<StageTime>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const StageTime& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}

// An operator runs in several stages: prompt, decode, draft, verify.
std::vector<StageTime> operators_of(const ProfileReport& report) {
  std::vector<StageTime> list;
  for (const StageReport& stage : report.stages)
    for (const ProfilePart& part : stage.parts) {
      if (part.kind != PartKind::Operator || part.inside || stage.stage == Stage::Load) continue;
      const std::string name = part.arm.empty() ? part.name : part.name + " " + part.arm;
      StageTime* sum = find(list, name);
      if (sum == nullptr) sum = &list.emplace_back(StageTime{.name = name});
      sum->seconds += static_cast<double>(part.totals.known) * 1e-9;
      sum->calls += part.totals.calls;
    }
  return list;
}

std::vector<StageTime> difference(std::vector<StageTime> before, const std::vector<StageTime>& after) {
  std::vector<StageTime> list;
  for (StageTime one : after) {
    if (const StageTime* earlier = find(before, one.name)) one.seconds -= earlier->seconds, one.calls -= earlier->calls;
    if (one.calls > 0) list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

EngineTimes times_of(const Scheduler& scheduler, Profiler* profiler) {
  const Scheduler::Times& times = scheduler.times();
  const auto stage = [](const char* name, const Scheduler::Spent& spent) {
    return StageTime{name, spent.seconds, spent.calls};
  };
  EngineTimes made;
  made.stages = {stage("draft", times.prepare), stage("prompt pass", times.prompt_pass),
                 stage("output pass", times.output_pass), stage("choose", times.choose)};
  if (profiler != nullptr) made.operators = operators_of(profiler->report());
  return made;
}

EngineTimes between(const EngineTimes& before, const EngineTimes& after) {
  EngineTimes made{difference(before.stages, after.stages), difference(before.operators, after.operators)};
  std::stable_sort(made.operators.begin(), made.operators.end(),
                   [](const StageTime& a, const StageTime& b) { return a.seconds > b.seconds; });
  return made;
}

}  // namespace strata::server
