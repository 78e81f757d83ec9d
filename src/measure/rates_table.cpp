// Tables of rates: one record or several of the same build, device and way of measuring.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/settings_text.h"
#include "evidence/ab_gates.h"
#include "measure/rates_record.h"

namespace strata {
namespace {

using nlohmann::ordered_json;

std::string value_of(const NamedValues& values, const std::string& name) {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  return {};
}

std::string name_of(const RatesRecord& record) { return record.name.empty() ? "this run" : record.name; }

// What every record of a table has in common.
NamedValues common(const RatesRecord& record) {
  NamedValues values;
  for (const char* fact : {"program", "binary_hash", "device", "instruction_sets"})
    values.emplace_back(fact, value_of(record.facts, fact));
  values.emplace_back("generated tokens", std::to_string(record.plan.generate));
  values.emplace_back("runs of a cell", std::to_string(record.plan.repetitions));
  values.emplace_back("prompt", record.prompt);
  values.emplace_back("warm-up", record.plan.warm_up ? "yes" : "no");
  return values;
}

// Model and settings; the record's name where that is not enough to tell rows apart.
std::vector<std::string> row_names(const std::vector<RatesRecord>& records) {
  std::set<std::string> threads;
  for (const RatesRecord& record : records) threads.insert(value_of(record.facts, "threads"));
  std::vector<std::string> names;
  for (const RatesRecord& record : records) {
    std::string name = value_of(record.model, "type");
    for (const auto& [setting, value] : record.settings) name += ", " + setting + " " + value;
    if (threads.size() > 1) name += ", " + value_of(record.facts, "threads") + " threads";
    names.push_back(name);
  }
  std::vector<std::string> shown = names;
  for (size_t i = 0; i < names.size(); ++i)
    if (std::count(names.begin(), names.end(), names[i]) > 1) shown[i] += " (" + name_of(records[i]) + ")";
  return shown;
}

std::vector<int64_t> columns(const std::vector<RatesRecord>& records) {
  std::set<int64_t> lengths;
  for (const RatesRecord& record : records) lengths.insert(record.plan.lengths.begin(), record.plan.lengths.end());
  return {lengths.begin(), lengths.end()};
}

const RatesCell* cell_at(const RatesRecord& record, int64_t length) {
  const auto found = std::find_if(record.cells.begin(), record.cells.end(),
                                  [&](const RatesCell& cell) { return cell.length == length; });
  return found == record.cells.end() ? nullptr : &*found;
}

std::optional<double> rate_of(const RatesRecord& record, int64_t length, bool output) {
  const RatesCell* cell = cell_at(record, length);
  if (cell == nullptr) return std::nullopt;
  return output ? output_rate(*cell, record.plan) : prompt_rate(*cell);
}

std::string rate_text(const std::optional<double>& rate) {
  if (!rate) return "-";
  return *rate < 100 ? fmt::format("{:.1f}", *rate) : fmt::format("{:.0f}", *rate);
}

// In a cell of a Markdown table.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c < ' ' && c >= 0 ? ' ' : c);
  return out;
}

std::string one_table(const std::vector<RatesRecord>& records, const std::string& title, bool output) {
  const std::vector<std::string> names = row_names(records);
  size_t width = 5;
  for (const std::string& name : names) width = std::max(width, escaped(name).size());
  std::string text = fmt::format("{}:\n\n| {:<{}} |", title, "model", width),
              rule = fmt::format("|{:-<{}}|", "", width + 2);
  for (const int64_t length : columns(records)) {
    text += fmt::format(" {:>6} |", length_text(length));
    rule += "-------:|";
  }
  text += "\n" + rule + "\n";
  for (size_t i = 0; i < records.size(); ++i) {
    text += fmt::format("| {:<{}} |", escaped(names[i]), width);
    for (const int64_t length : columns(records))
      text += fmt::format(" {:>6} |", rate_text(rate_of(records[i], length, output)));
    text += "\n";
  }
  return text + "\n";
}

// Everything that a reader of the rates has to know of a cell.
std::vector<std::string> notes_of(const RatesRecord& record, const std::vector<int64_t>& lengths) {
  std::vector<std::string> notes;
  for (const int64_t length : lengths) {
    const RatesCell* cell = cell_at(record, length);
    const std::string column = length_text(length) + ": ";
    if (cell == nullptr) {
      notes.push_back(column + "not part of this record");
      continue;
    }
    if (!cell->missing.empty()) notes.push_back(column + cell->missing);
    if (cell->prompt_tokens > 0 && cell->prompt_tokens != length)
      notes.push_back(column + fmt::format("a prompt of {} tokens, so that the output fits", cell->prompt_tokens));
    const auto disturbed =
        std::count_if(cell->runs.begin(), cell->runs.end(), [](const RatesRun& run) { return !run.flags.empty(); });
    if (disturbed > 0)
      notes.push_back(column + fmt::format("{} of {} runs disturbed: {}", disturbed, cell->runs.size(),
                                           std::find_if(cell->runs.begin(), cell->runs.end(), [](const RatesRun& run) {
                                             return !run.flags.empty();
                                           })->flags.front()));
  }
  if (!record.stopped.empty()) notes.push_back("ended early: " + record.stopped);
  return notes;
}

std::vector<std::string> definitions(const RatesRecord& record) {
  const std::string statistic = record.plan.repetitions == 1
                                    ? std::string("One run per cell")
                                    : fmt::format("Medians of {} runs per cell", record.plan.repetitions);
  return {
      "Prompt rate: tokens of the prompt over the seconds from the request to the logits of its last token; one-shot, "
      "nothing kept from before.",
      fmt::format("Output rate: {} tokens over the seconds from those logits to the end of {} tokens, greedy, on past "
                  "the end of text (the first token has no pass of its own).",
                  record.plan.generate - 1, record.plan.generate),
      fmt::format("{}; prompts: {}; {}.", statistic, record.prompt,
                  record.plan.warm_up ? "after a short run that is not counted" : "no warm-up")};
}

}  // namespace

void check_same_table(const std::vector<RatesRecord>& records) {
  if (records.empty()) throw Error(ErrorKind::Usage, "there is no record to make a table of");
  const NamedValues first = common(records.front());
  for (const RatesRecord& record : records) {
    const NamedValues other = common(record);
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i].second != other[i].second)
        throw Error(ErrorKind::Usage,
                    fmt::format("{} and {} cannot stand in one table: {} is {} in the first and {} in the second",
                                name_of(records.front()), name_of(record), first[i].first, quoted_text(first[i].second),
                                quoted_text(other[i].second)));
  }
}

std::string rates_markdown(const std::vector<RatesRecord>& records) {
  check_same_table(records);
  const RatesRecord& first = records.front();
  std::string text = one_table(records, "Prompt tokens/s", false) +
                     one_table(records, fmt::format("Output tokens/s, greedy, {} tokens", first.plan.generate), true);
  const std::vector<std::string> names = row_names(records);
  std::string notes;
  for (size_t i = 0; i < records.size(); ++i)
    for (const std::string& note : notes_of(records[i], columns(records)))
      notes += fmt::format("- {}{}\n", records.size() > 1 ? escaped(names[i]) + ", " : "", escaped(note));
  if (!notes.empty()) text += notes + "\n";
  for (const std::string& line : definitions(first)) text += line + "\n";
  const std::string device = value_of(first.facts, "device"), sets = value_of(first.facts, "instruction_sets");
  text += fmt::format("\nBuild {} (binary {}), {}", value_of(first.facts, "program"),
                      value_of(first.facts, "binary_hash"), device);
  if (device.find(sets) == std::string::npos) text += ", as " + sets;
  std::set<std::string> threads, days;
  for (const RatesRecord& record : records) {
    threads.insert(value_of(record.facts, "threads"));
    days.insert(value_of(record.facts, "began").substr(0, 10));
  }
  if (threads.size() == 1) text += fmt::format(", {} threads", *threads.begin());
  return text + fmt::format("; {}\n", fmt::join(days, ", "));
}

std::string rates_json(const std::vector<RatesRecord>& records) {
  check_same_table(records);
  const RatesRecord& first = records.front();
  const std::vector<std::string> names = row_names(records);
  const std::vector<int64_t> lengths = columns(records);
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < records.size(); ++i) {
    ordered_json prompt = ordered_json::array(), output = ordered_json::array(), settings = ordered_json::object();
    for (const int64_t length : lengths) {
      const auto rate = [&](bool of_output) {
        const std::optional<double> value = rate_of(records[i], length, of_output);
        return value ? ordered_json(*value) : ordered_json(nullptr);
      };
      prompt.push_back(rate(false));
      output.push_back(rate(true));
    }
    for (const auto& [name, value] : records[i].settings) settings[name] = value;
    rows.push_back({{"row", names[i]},
                    {"record", records[i].name},
                    {"model", value_of(records[i].model, "file")},
                    {"settings", settings},
                    {"threads", value_of(records[i].facts, "threads")},
                    {"began", value_of(records[i].facts, "began")},
                    {"prompt_tokens_per_s", prompt},
                    {"output_tokens_per_s", output},
                    {"notes", notes_of(records[i], lengths)}});
  }
  ordered_json document{{"kind", "strata rates table"}, {"schema", 1}};
  for (const auto& [name, value] : common(first)) document[name] = value;
  document["lengths"] = lengths;
  document["definitions"] = definitions(first);
  document["rows"] = rows;
  return document.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace strata
