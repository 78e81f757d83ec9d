// What a needle test prints: table, csv, json and heat map.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/settings_text.h"
#include "evidence/ab_gates.h"
#include "evidence/svg_plot.h"
#include "measure/needle.h"

namespace strata {
namespace {

using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr size_t kMostListed = 20;  // wrong answers in the table

std::string verdict_text(NeedleVerdict verdict) {
  switch (verdict) {
    case NeedleVerdict::Pass: return "PASS";
    case NeedleVerdict::Fail: return "FAIL";
    case NeedleVerdict::Incomplete: break;
  }
  return "INCOMPLETE";
}

std::string cell_text(const NeedleCell& cell, const NeedlePlan& plan) {
  return complete(cell, plan) ? fmt::format("{}/{}", cell.passed, cell.asked) : std::string("-");
}

const NeedleCell& cell_of(const NeedleResult& result, const NeedlePlan& plan, size_t length, size_t depth) {
  return result.cells[length * plan.depths.size() + depth];
}

std::string joined(const std::vector<std::string>& texts) { return fmt::format("{}", fmt::join(texts, " ")); }

std::string wrong_line(const NeedleCell& cell, const NeedleAnswer& wrong) {
  return fmt::format("{} at {} %, sample {}: expected {}, answer {}{}\n", length_text(cell.length), cell.depth,
                     wrong.sample + 1, joined(wrong.expected), quoted_text(wrong.text),
                     wrong.thinking ? ", still thinking: a longer answer (-n) or --think off" : "");
}

ordered_json named(const NamedValues& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

ordered_json cell_json(const NeedleCell& cell, const NeedlePlan& plan) {
  ordered_json wrong = ordered_json::array();
  for (const NeedleAnswer& one : cell.wrong)
    wrong.push_back({{"sample", one.sample},
                     {"marker", one.marker},
                     {"expected", one.expected},
                     {"answer", one.text},
                     {"ended_in_thinking", one.thinking}});
  return {{"length", cell.length}, {"depth", cell.depth},   {"complete", complete(cell, plan)},
          {"asked", cell.asked},   {"passed", cell.passed}, {"wrong", wrong}};
}

}  // namespace

std::string needle_table(const NeedleResult& result, const NeedlePlan& plan) {
  constexpr int kWidth = 9;
  std::string text = fmt::format("{:>7} |", "depth");
  for (const int64_t length : plan.lengths) text += fmt::format("{:>{}}", length_text(length), kWidth);
  text += fmt::format("\n{:->8}+{:->{}}\n", "", "", plan.lengths.size() * kWidth);
  for (size_t depth = 0; depth < plan.depths.size(); ++depth) {
    text += fmt::format("{:>5} % |", plan.depths[depth]);
    for (size_t length = 0; length < plan.lengths.size(); ++length)
      text += fmt::format("{:>{}}", cell_text(cell_of(result, plan, length, depth), plan), kWidth);
    text += "\n";
  }
  size_t listed = 0, wrong = 0;
  std::string list;
  int64_t passed = 0, asked = 0;
  for (const NeedleCell& cell : result.cells) {
    passed += cell.passed;
    asked += cell.asked;
    wrong += static_cast<size_t>(cell.asked - cell.passed);
    for (const NeedleAnswer& one : cell.wrong)
      if (listed++ < kMostListed) list += wrong_line(cell, one);
  }
  if (!list.empty()) text += "\nwrong answers:\n" + list;
  if (wrong > kMostListed) text += fmt::format("... and {} more (-o json lists them)\n", wrong - kMostListed);
  return text + fmt::format("\n{}: {} of {} answers are right{}\n", verdict_text(needle_verdict(result, plan)), passed,
                            asked, plan.control ? "; a control: none may be, for other keys were expected" : "");
}

std::string needle_csv(const NeedleResult& result, const NeedlePlan& plan) {
  std::string text = "length,depth,markers,asked,passed,rate,complete\n";
  for (const NeedleCell& cell : result.cells)
    text += fmt::format("{},{},{},{},{},{:.4f},{}\n", cell.length, cell.depth, plan.markers, cell.asked, cell.passed,
                        cell.rate(), complete(cell, plan) ? 1 : 0);
  return text;
}

std::string needle_json(const NeedleResult& result, const NeedlePlan& plan, const NamedValues& facts,
                        const NamedValues& settings) {
  ordered_json cells = ordered_json::array();
  for (const NeedleCell& cell : result.cells) cells.push_back(cell_json(cell, plan));
  const ordered_json document{{"kind", "strata needle"},
                              {"schema", kSchema},
                              {"verdict", verdict_text(needle_verdict(result, plan))},
                              {"facts", named(facts)},
                              {"settings", named(settings)},
                              {"lengths", plan.lengths},
                              {"depths", plan.depths},
                              {"markers", plan.markers},
                              {"ask", plan.ask_all ? "all" : "each"},
                              {"samples", plan.samples},
                              {"answer_tokens", plan.answer_tokens()},
                              {"seed", plan.seed},
                              {"pass", plan.pass},
                              {"control", plan.control},
                              {"interrupted", result.interrupted},
                              {"prompts", result.prompts},
                              {"prompt_tokens", result.prompt_tokens},
                              {"cached_tokens", result.cached_tokens},
                              {"drafted", result.drafted},
                              {"accepted", result.accepted},
                              {"seconds", result.seconds},
                              {"cells", cells}};
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string needle_svg(const NeedleResult& result, const NeedlePlan& plan, const std::string& model,
                       const std::string& subtitle) {
  HeatMap map{.title = plan.markers == 1 ? "Pass key: " + model
                                         : fmt::format("{} pass keys, asked {}: {}", plan.markers,
                                                       plan.ask_all ? "together" : "one by one", model),
              .subtitle = subtitle,
              .x_label = "prompt (tokens)",
              .y_label = "depth of the key (%)",
              .value_label = "right answers (%)",
              .low = 0,
              .high = 100};
  for (const int64_t length : plan.lengths) map.columns.push_back(length_text(length));
  for (size_t depth = 0; depth < plan.depths.size(); ++depth) {
    map.rows.push_back(std::to_string(plan.depths[depth]));
    for (size_t length = 0; length < plan.lengths.size(); ++length) {
      const NeedleCell& cell = cell_of(result, plan, length, depth);
      map.values.push_back(complete(cell, plan) ? 100 * cell.rate() : std::nan(""));
    }
  }
  return heat_map_svg(map);
}

}  // namespace strata
