#include "measure/rates_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "base/settings_text.h"

namespace strata {
namespace {

using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr const char* kKind = "strata rates";
constexpr size_t kMaxRecord = size_t{16} << 20, kMaxDepth = 16, kMaxCells = 64, kMaxRuns = 10000;
constexpr int64_t kMaxTokens = int64_t{1} << 31;
constexpr double kMaxSeconds = 1e8;

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

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

ordered_json rate_json(const std::optional<double>& rate) { return rate ? ordered_json(*rate) : ordered_json(nullptr); }

ordered_json run_json(const RatesRun& run) {
  ordered_json object{{"prompt_seconds", run.prompt_seconds},
                      {"output_seconds", run.output_seconds},
                      {"output_tokens", run.output_tokens},
                      {"drafted", run.drafted},
                      {"accepted", run.accepted},
                      {"output", run.output}};
  if (!run.flags.empty()) object["flags"] = run.flags;
  return object;
}

ordered_json cell_json(const RatesCell& cell, const RatesRecord& record) {
  ordered_json runs = ordered_json::array();
  for (const RatesRun& run : cell.runs) runs.push_back(run_json(run));
  ordered_json object{{"length", cell.length},
                      {"prompt_tokens", cell.prompt_tokens},
                      {"prompt_tokens_per_s", rate_json(prompt_rate(cell))},
                      {"output_tokens_per_s", rate_json(output_rate(cell, record.plan))},
                      {"runs", runs}};
  if (!cell.missing.empty()) object["missing"] = cell.missing;
  if (cell.failed) object["failed"] = true;
  if (!record.name.empty())
    object["log"] = std::filesystem::path(rates_log_path(record.name + ".json", cell.length)).filename().string();
  return object;
}

// nlohmann converts 1.5 to 1 silently; a count has to be a whole number.
int64_t whole(const ordered_json& value, int64_t most = kMaxTokens) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > most)
    throw Error(ErrorKind::Format, "has " + value.dump() + " in the place of a count");
  return value.get<int64_t>();
}

double seconds(const ordered_json& value) {
  const double time = value.get<double>();
  if (!(time >= 0 && time <= kMaxSeconds))
    throw Error(ErrorKind::Format, "has " + value.dump() + " in the place of a time");
  return time;
}

const ordered_json& list(const ordered_json& value, size_t most) {
  if (!value.is_array() || value.size() > most)
    throw Error(ErrorKind::Format, "has a list that is none, or is longer than " + std::to_string(most));
  return value;
}

RatesRun parse_run(const ordered_json& object) {
  RatesRun run;
  run.prompt_seconds = seconds(object.at("prompt_seconds"));
  run.output_seconds = seconds(object.at("output_seconds"));
  run.output_tokens = whole(object.at("output_tokens"));
  run.drafted = whole(object.at("drafted"));
  run.accepted = whole(object.at("accepted"));
  run.output = object.at("output").get<std::string>();
  if (object.contains("flags")) run.flags = object.at("flags").get<std::vector<std::string>>();
  return run;
}

RatesCell parse_cell(const ordered_json& object, const RatesPlan& plan) {
  RatesCell cell;
  cell.length = whole(object.at("length"));
  cell.prompt_tokens = whole(object.at("prompt_tokens"));
  for (const auto& run : list(object.at("runs"), kMaxRuns)) cell.runs.push_back(parse_run(run));
  cell.missing = object.value("missing", std::string());
  cell.failed = object.value("failed", false);
  if (cell.prompt_tokens > cell.length) throw Error(ErrorKind::Format, "has a prompt that is longer than its column");
  if (cell.missing.empty() && !output_rate(cell, plan) && plan.generate > 1)
    throw Error(ErrorKind::Format, fmt::format("has no rate at {} and no reason why", cell.length));
  return cell;
}

RatesRecord parse_document(const ordered_json& document) {
  if (!document.is_object() || document.value("kind", ordered_json()) != kKind)
    throw Error(ErrorKind::Format, "is no record of rates");
  if (whole(document.at("schema")) != kSchema)
    throw Error(ErrorKind::Format,
                fmt::format("is of schema version {}, this program reads {}", document.at("schema").dump(), kSchema));
  RatesRecord record;
  const ordered_json& plan = document.at("plan");
  for (const auto& length : list(plan.at("lengths"), kMaxCells)) record.plan.lengths.push_back(whole(length));
  record.plan.generate = whole(plan.at("generate"));
  record.plan.repetitions = whole(plan.at("repetitions"));
  record.plan.limit = seconds(plan.at("limit_seconds"));
  record.plan.warm_up = plan.at("warm_up").get<bool>();
  record.prompt = plan.at("prompt").get<std::string>();
  record.model = named(document.at("model"));
  record.settings = named(document.at("settings"));
  record.facts = named(document.at("facts"));
  record.stopped = document.at("stopped").get<std::string>();
  for (const auto& cell : list(document.at("cells"), kMaxCells)) record.cells.push_back(parse_cell(cell, record.plan));
  const auto same = [](const RatesCell& cell, int64_t length) { return cell.length == length; };
  // A run that was killed left the cells so far.
  const bool enough = record.cells.size() == record.plan.lengths.size() || !record.stopped.empty();
  if (!enough || record.cells.size() > record.plan.lengths.size() ||
      !std::equal(record.cells.begin(), record.cells.end(), record.plan.lengths.begin(), same))
    throw Error(ErrorKind::Format, "has other cells than its plan has lengths");
  if (std::adjacent_find(record.plan.lengths.begin(), record.plan.lengths.end(), std::greater_equal<>()) !=
      record.plan.lengths.end())
    throw Error(ErrorKind::Format, "has lengths that do not ascend");
  return record;
}

}  // namespace

std::string rates_record_path(const std::string& folder, const std::string& name) {
  return folder + "/rates/" + name + ".json";
}

std::string rates_log_path(const std::string& record_path, int64_t length) {
  return record_path.substr(0, record_path.size() - 5) + "." + std::to_string(length) + ".log";
}

std::string rates_run_line(const RatesCell& cell, size_t run) {
  const RatesRun& one = cell.runs[run];
  std::string flags;
  for (const std::string& flag : one.flags) flags += (flags.empty() ? ", disturbed: " : "; ") + flag;
  return fmt::format(
      "run {} at {}: prompt {} tokens in {} s, output {} tokens in {} s, drafts {} of {} held, output {}{}", run + 1,
      cell.length, cell.prompt_tokens, one.prompt_seconds, one.output_tokens, one.output_seconds, one.accepted,
      one.drafted, one.output, one_line(flags));
}

std::string rates_missing_line(const RatesCell& cell) {
  return fmt::format("missing at {}: {}", cell.length, one_line(cell.missing));
}

std::string rates_record_text(const RatesRecord& record) {
  ordered_json cells = ordered_json::array();
  for (const RatesCell& cell : record.cells) cells.push_back(cell_json(cell, record));
  const ordered_json document{{"kind", kKind},
                              {"schema", kSchema},
                              {"plan",
                               {{"lengths", record.plan.lengths},
                                {"generate", record.plan.generate},
                                {"repetitions", record.plan.repetitions},
                                {"limit_seconds", record.plan.limit},
                                {"warm_up", record.plan.warm_up},
                                {"prompt", record.prompt}}},
                              {"model", named(record.model)},
                              {"settings", named(record.settings)},
                              {"facts", named(record.facts)},
                              {"stopped", record.stopped},
                              {"cells", cells}};
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

RatesRecord parse_rates_record(const std::string& text, const std::string& where, const std::string& name) {
  try {
    check_json_depth(text, kMaxDepth, where);
    RatesRecord record = parse_document(ordered_json::parse(text));
    record.name = name;
    return record;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::Format, std::string("is no record of rates: ") + error.what(), where);
  } catch (const Error& error) {
    throw Error(ErrorKind::Format, error.message(), where);
  }
}

RatesRecord read_rates_record(const std::string& path) {
  return parse_rates_record(read_file(path, kMaxRecord), path, std::filesystem::path(path).stem().string());
}

void check_rates_log(const RatesCell& cell, const std::string& log, const std::string& where) {
  size_t runs = 0;
  bool missing = false;
  for (const std::string& line : split_text(log, '\n')) {
    if (line.starts_with("run ")) {
      if (runs == cell.runs.size() || line != rates_run_line(cell, runs))
        throw Error(ErrorKind::Format, "the raw log and the record differ: " + quoted_text(line), where);
      ++runs;
    } else if (line.starts_with("missing ")) {
      missing = line == rates_missing_line(cell);
      if (!missing) throw Error(ErrorKind::Format, "the raw log and the record differ: " + quoted_text(line), where);
    }
  }
  if (runs != cell.runs.size() || missing == cell.missing.empty())
    throw Error(ErrorKind::Format,
                fmt::format("the raw log has {} runs, the record {}, or one of them says what is missing and the other "
                            "does not",
                            runs, cell.runs.size()),
                where);
}

}  // namespace strata
