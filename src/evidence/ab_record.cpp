#include "evidence/ab_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/settings_text.h"
#include "evidence/ab_gates.h"

namespace strata {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr size_t kMaxRecord = size_t{64} << 20, kMaxDepth = 16, kMaxCells = 400000, kMaxItems = 100000;

ordered_json named(const NamedValues& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

NamedValues named(const ordered_json& object) {
  NamedValues values;
  for (const auto& [name, value] : object.items()) values.emplace_back(name, value.get<std::string>());
  return values;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

// Not finite: null.
ordered_json real(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json plan_json(const AbPlan& plan) {
  ordered_json gates = ordered_json::array();
  for (const AbGate& gate : plan.gates) gates.push_back(to_text(gate));
  return {{"model", plan.model},
          {"model_hash", plan.model_hash},
          {"a", named(plan.overrides[0])},
          {"b", named(plan.overrides[1])},
          {"settings", named(plan.settings)},
          {"lengths", plan.lengths},
          {"pairs", plan.pairs},
          {"slots", plan.slots},
          {"generate", plan.generate},
          {"retries", plan.retries},
          {"seed", plan.seed},
          {"confidence", plan.confidence},
          {"same_bits", plan.same_bits},
          {"same_sides", plan.same_sides},
          {"gates", gates}};
}

// nlohmann converts 1.5 to 1 silently; a count has to be a whole number.
int64_t whole(const ordered_json& value) {
  if (!value.is_number_integer())
    throw Error(ErrorKind::Format, "has " + value.dump() + " in the place of a whole number");
  return value.get<int64_t>();
}

AbPlan parse_plan(const ordered_json& object, const std::string& where) {
  AbPlan plan;
  plan.model = object.at("model").get<std::string>();
  plan.model_hash = object.at("model_hash").get<std::string>();
  plan.overrides = {named(object.at("a")), named(object.at("b"))};
  plan.settings = named(object.at("settings"));
  for (const auto& length : object.at("lengths")) plan.lengths.push_back(whole(length));
  plan.pairs = whole(object.at("pairs"));
  plan.slots = whole(object.at("slots"));
  plan.generate = whole(object.at("generate"));
  plan.retries = whole(object.at("retries"));
  plan.seed = whole(object.at("seed"));
  plan.confidence = object.at("confidence").get<double>();
  plan.same_bits = object.at("same_bits").get<bool>();
  plan.same_sides = object.at("same_sides").get<bool>();
  for (const auto& gate : object.at("gates")) {
    const std::vector<AbGate> one = parse_gates(gate.get<std::string>(), where);
    plan.gates.insert(plan.gates.end(), one.begin(), one.end());
  }
  return plan;
}

ordered_json cell_json(const AbCell& cell) {
  ordered_json object{{"order", cell.order},
                      {"side", to_string(cell.side)},
                      {"metric", to_string(cell.metric)},
                      {"length", cell.length},
                      {"pair", cell.pair},
                      {"slot", cell.slot},
                      {"attempt", cell.attempt}};
  if (!cell.failure.empty()) {
    object["failure"] = cell.failure;
    return object;
  }
  object["tokens"] = cell.tokens;
  object["seconds"] = cell.seconds;
  object["output"] = cell.output;
  if (!cell.flags.empty()) object["flags"] = cell.flags;
  return object;
}

AbSide parse_side(const std::string& text) {
  for (const AbSide side : kAbSides)
    if (to_string(side) == text) return side;
  throw Error(ErrorKind::Format, "there is no side " + quoted_text(text));
}

AbMetric parse_metric(const std::string& text) {
  for (const AbMetric metric : kAbMetrics)
    if (to_string(metric) == text) return metric;
  throw Error(ErrorKind::Format, "there is no metric " + quoted_text(text));
}

AbCell parse_cell(const ordered_json& object) {
  AbCell cell;
  cell.order = whole(object.at("order"));
  cell.side = parse_side(object.at("side").get<std::string>());
  cell.metric = parse_metric(object.at("metric").get<std::string>());
  cell.length = whole(object.at("length"));
  cell.pair = whole(object.at("pair"));
  cell.slot = whole(object.at("slot"));
  cell.attempt = whole(object.at("attempt"));
  if (object.contains("failure")) {
    cell.failure = object.at("failure").get<std::string>();
    if (cell.failure.empty()) throw Error(ErrorKind::Format, "has a failure without a reason");
    return cell;
  }
  cell.tokens = whole(object.at("tokens"));
  cell.seconds = object.at("seconds").get<double>();
  cell.output = object.at("output").get<std::string>();
  if (object.contains("flags")) cell.flags = object.at("flags").get<std::vector<std::string>>();
  return cell;
}

ordered_json arm_json(const AbArmUse& use) {
  ordered_json object{{"side", to_string(use.side)}, {"length", use.length}, {"op", use.op}};
  if (!use.requested.empty()) object["requested"] = use.requested;
  object["prefill"] = use.prefill;
  object["decode"] = use.decode;
  return object;
}

AbArmUse parse_arm(const ordered_json& object) {
  return {.side = parse_side(object.at("side").get<std::string>()),
          .length = whole(object.at("length")),
          .op = object.at("op").get<std::string>(),
          .requested = object.value("requested", std::string()),
          .prefill = object.at("prefill").get<std::string>(),
          .decode = object.at("decode").get<std::string>()};
}

ordered_json outputs_json(const AbOutputs& outputs) {
  return {{"length", outputs.length},
          {"same_bits", outputs.same_bits},
          {"rows", outputs.rows},
          {"first_token_that_differs", outputs.first_token},
          {"max_difference", real(outputs.max_difference)}};
}

AbOutputs parse_outputs(const ordered_json& object) {
  const ordered_json& difference = object.at("max_difference");
  return {.length = whole(object.at("length")),
          .same_bits = object.at("same_bits").get<bool>(),
          .rows = whole(object.at("rows")),
          .first_token = whole(object.at("first_token_that_differs")),
          .max_difference = difference.is_null() ? HUGE_VAL : difference.get<double>()};
}

ordered_json comparison_json(const AbComparison& one) {
  return {
      {"metric", to_string(one.metric)},    {"length", one.length},
      {"ratios", one.ratios.size()},        {"disturbed", std::count(one.disturbed.begin(), one.disturbed.end(), true)},
      {"a_tokens_per_s", one.speed[0]},     {"b_tokens_per_s", one.speed[1]},
      {"median_ratio", one.median},         {"low", real(one.interval.low)},
      {"high", real(one.interval.high)},    {"level", one.interval.level},
      {"bootstrap_low", one.bootstrap.low}, {"bootstrap_high", one.bootstrap.high},
      {"ratio_of_medians", one.of_medians}, {"disagree", one.disagree}};
}

ordered_json gate_json(const AbGateResult& result) {
  ordered_json lengths = ordered_json::object();
  for (const auto& [length, outcome] : result.lengths) lengths[std::to_string(length)] = to_string(outcome);
  return {{"gate", to_text(result.gate)}, {"outcome", to_string(result.outcome)}, {"lengths", lengths}};
}

template <class List, class Make>
ordered_json array_of(const List& list, Make&& make) {
  ordered_json array = ordered_json::array();
  for (const auto& item : list) array.push_back(make(item));
  return array;
}

template <class Item, class Parse>
std::vector<Item> list_of(const ordered_json& array, size_t limit, Parse&& parse) {
  if (!array.is_array() || array.size() > limit)
    throw Error(ErrorKind::Format, "has a list that is none, or is longer than " + std::to_string(limit));
  std::vector<Item> list;
  for (const auto& item : array) list.push_back(parse(item));
  return list;
}

AbRecord parse_document(const ordered_json& document, const std::string& where) {
  if (!document.is_object() || document.value("kind", ordered_json()) != "strata ab")
    throw Error(ErrorKind::Format, "is no record of a paired trial");
  if (whole(document.at("schema")) != kSchema)
    throw Error(ErrorKind::Format,
                fmt::format("is of schema version {}, this program reads {}", document.at("schema").dump(), kSchema));
  AbRecord record;
  record.hash = document.at("plan_hash").get<std::string>();
  record.verdict = document.at("verdict").get<std::string>();
  AbTrial& trial = record.trial;
  trial.plan = parse_plan(document.at("plan"), where);
  if (plan_hash(trial.plan) != record.hash)
    throw Error(ErrorKind::Format,
                fmt::format("the plan was changed after the trial began: its hash is {}, recorded is "
                            "{} (gates, lengths, pairs and settings are fixed before the first run)",
                            plan_hash(trial.plan), quoted_text(record.hash)));
  trial.facts = named(document.at("facts"));
  trial.stopped = document.at("stopped").get<std::string>();
  trial.cells = list_of<AbCell>(document.at("cells"), kMaxCells, parse_cell);
  trial.arms = list_of<AbArmUse>(document.at("arms"), kMaxItems, parse_arm);
  trial.outputs = list_of<AbOutputs>(document.at("outputs"), kMaxItems, parse_outputs);
  check_plan(trial.plan);
  check_cells(trial);
  return record;
}

}  // namespace

std::string ab_record_path(const std::string& folder, const std::string& name) {
  return folder + "/ab/" + name + ".json";
}

void check_record_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  if (name.empty() || name.size() > 100 || name[0] == '.' || name[0] == '-' ||
      !std::all_of(name.begin(), name.end(), allowed))
    throw Error(ErrorKind::Usage, quoted_text(name) + " is no name for a record: letters, digits, '.', '-' and '_'");
}

std::string plan_line(const AbPlan& plan) { return "plan " + plan_hash(plan); }

std::string cell_line(const AbCell& cell) {
  const std::string place = fmt::format("run {} {} {}@{} pair {} slot {} attempt {}", cell.order, to_string(cell.side),
                                        to_string(cell.metric), cell.length, cell.pair, cell.slot, cell.attempt);
  if (!cell.failure.empty()) return place + " failed: " + one_line(cell.failure);
  std::string flags;
  for (const std::string& flag : cell.flags) flags += (flags.empty() ? " disturbed: " : "; ") + flag;
  return fmt::format("{}: {} tokens in {} s, output {}{}", place, cell.tokens, cell.seconds, cell.output,
                     one_line(flags));
}

std::string ab_record_text(const AbTrial& trial, const AbJudgement& judgement) {
  const ordered_json document{{"kind", "strata ab"},
                              {"schema", kSchema},
                              {"verdict", to_string(judgement.verdict)},
                              {"reasons", judgement.reasons},
                              {"plan_hash", plan_hash(trial.plan)},
                              {"plan", plan_json(trial.plan)},
                              {"facts", named(trial.facts)},
                              {"stopped", trial.stopped},
                              {"failed_attempts", judgement.failed_attempts},
                              {"gates", array_of(judgement.gates, gate_json)},
                              {"results", array_of(judgement.comparisons, comparison_json)},
                              {"arms", array_of(trial.arms, arm_json)},
                              {"outputs", array_of(trial.outputs, outputs_json)},
                              {"cells", array_of(trial.cells, cell_json)}};
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

AbRecord parse_ab_record(const std::string& text, const std::string& where) {
  try {
    check_json_depth(text, kMaxDepth, where);
    return parse_document(ordered_json::parse(text), where);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::Format, std::string("is no record of a paired trial: ") + error.what(), where);
  } catch (const Error& error) {
    throw Error(ErrorKind::Format, error.message(), where);
  }
}

AbRecord read_ab_record(const std::string& path) { return parse_ab_record(read_file(path, kMaxRecord), path); }

void check_raw_log(const AbRecord& record, const std::string& log, const std::string& where) {
  size_t cells = 0;
  bool planned = false;
  for (size_t start = 0; start < log.size();) {
    const size_t end = std::min(log.find('\n', start), log.size());
    const std::string line = log.substr(start, end - start);
    start = end + 1;
    if (line.starts_with("plan ")) {
      if (line != plan_line(record.trial.plan))
        throw Error(ErrorKind::Format, "the raw log began with another plan: " + quoted_text(line), where);
      planned = true;
    } else if (line.starts_with("run ")) {
      if (cells == record.trial.cells.size() || line != cell_line(record.trial.cells[cells]))
        throw Error(ErrorKind::Format,
                    fmt::format("the raw log and the record differ at cell {}: {}", cells, quoted_text(line)), where);
      ++cells;
    }
  }
  if (!planned) throw Error(ErrorKind::Format, "the raw log has no plan", where);
  if (cells != record.trial.cells.size())
    throw Error(ErrorKind::Format,
                fmt::format("the raw log has {} cells, the record {}", cells, record.trial.cells.size()), where);
}

}  // namespace strata
