#include "measure/bench_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "evidence/statistics.h"
#include "evidence/svg_plot.h"

namespace strata {
namespace {

// The type that most of the weights' bytes have.
std::string main_type(const gguf::File& file) {
  std::map<DType, uint64_t> bytes;
  for (const gguf::TensorInfo& tensor : file.tensors()) bytes[tensor.type] += tensor.bytes;
  if (bytes.empty()) return "?";
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::string(to_string(most->first));
}

std::vector<double> nanoseconds(const std::vector<double>& seconds) {
  std::vector<double> list;
  for (const double each : seconds) list.push_back(std::round(each * 1e9));
  return list;
}

template <class Format>
std::string joined(const std::vector<double>& values, Format&& format) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + format(value);
  return text;
}

std::string whole(double value) { return fmt::format("{:.0f}", value); }
std::string real(double value) { return fmt::format("{:.6f}", value); }

std::string synthetic_text(const SyntheticAcceptance& synthetic) {
  if (synthetic.length > 0) return fmt::format("length {}", synthetic.length);
  return synthetic.rates.empty() ? std::string() : fmt::format("rates {}", fmt::join(synthetic.rates, ","));
}

std::string acceptance_text(const DraftCounts& counts) {
  return real(counts.drafted > 0 ? static_cast<double>(counts.accepted) / static_cast<double>(counts.drafted) : 0);
}

using Fields = std::vector<BenchField>;

void add_machine_and_settings(Fields& fields, const BenchMachine& machine, const BenchRow& row) {
  const auto text = [&](const char* key, std::string value) { fields.push_back({key, FieldKind::Text, value}); };
  const auto number = [&](const char* key, auto value) {
    fields.push_back({key, FieldKind::Integer, std::to_string(value)});
  };
  const auto flag = [&](const char* key, bool value) { fields.push_back({key, FieldKind::Bool, value ? "1" : "0"}); };
  text("build_commit", machine.build_commit.empty() ? "unknown" : machine.build_commit);
  number("build_number", machine.build_number);
  text("cpu_info", machine.cpu);
  text("gpu_info", machine.accelerator);
  text("backends", machine.device.starts_with("cuda") ? "CUDA" : machine.device.starts_with("hip") ? "ROCm" : "CPU");
  text("model_filename", row.model.file);
  text("model_type", row.model.type);
  number("model_size", row.model.bytes);
  number("model_n_params", row.model.parameters);
  number("n_batch", row.test.batch);
  number("n_ubatch", row.test.micro_batch);
  number("n_threads", row.threads);
  text("cpu_mask", row.cpu_mask);
  flag("cpu_strict", row.cpu_strict);
  number("poll", 0);
  text("type_k", type_text(row.test.caches.keys));
  text("type_v", type_text(row.test.caches.values));
  number("n_gpu_layers", machine.accelerator.empty() ? 0 : 99);
  number("n_cpu_moe", 0);
  text("split_mode", "none");
  number("main_gpu", 0);
  flag("no_kv_offload", false);
  number("flash_attn", -1);
  text("devices", machine.device);
  text("tensor_split", "0.00");
  text("tensor_buft_overrides", "none");
  text("load_mode", row.load_mode);
  text("lazy_mode", "on");
  flag("embeddings", false);
  flag("no_op_offload", false);
  flag("no_host", false);
  number("fit_target", 0);
  number("fit_min_ctx", 0);
}

void add_results(Fields& fields, const BenchRow& row, bool samples) {
  const std::vector<double> times = nanoseconds(row.result.seconds), rates = row.rates();
  fields.push_back({"n_prompt", FieldKind::Integer, std::to_string(row.test.prompt)});
  fields.push_back({"n_gen", FieldKind::Integer, std::to_string(row.test.output)});
  fields.push_back({"n_depth", FieldKind::Integer, std::to_string(row.test.depth)});
  fields.push_back({"test_time", FieldKind::Text, row.time});
  fields.push_back({"avg_ns", FieldKind::Integer, whole(mean(times))});
  fields.push_back({"stddev_ns", FieldKind::Integer, whole(standard_deviation(times))});
  fields.push_back({"avg_ts", FieldKind::Real, real(mean(rates))});
  fields.push_back({"stddev_ts", FieldKind::Real, real(standard_deviation(rates))});
  if (!samples) return;
  fields.push_back({"samples_ns", FieldKind::Integers, joined(times, whole)});
  fields.push_back({"samples_ts", FieldKind::Reals, joined(rates, real)});
}

void add_own(Fields& fields, const BenchMachine& machine, const BenchRow& row) {
  const DraftCounts& drafts = row.result.drafts;
  const bool drafting = row.test.drafts.kind != DraftKind::None;
  fields.push_back({"draft", FieldKind::Text, draft_name(row.test.drafts.kind)});
  fields.push_back({"draft_max", FieldKind::Integer, std::to_string(drafting ? row.test.drafts.limit : 0)});
  fields.push_back({"synthetic_acceptance", FieldKind::Text, synthetic_text(row.test.drafts.synthetic)});
  fields.push_back({"n_windows", FieldKind::Integer, std::to_string(drafts.windows)});
  fields.push_back({"n_drafted", FieldKind::Integer, std::to_string(drafts.drafted)});
  fields.push_back({"n_accepted", FieldKind::Integer, std::to_string(drafts.accepted)});
  fields.push_back({"acceptance", FieldKind::Real, acceptance_text(drafts)});
  fields.push_back({"arms", FieldKind::Text, row.arms});
  fields.push_back({"state", FieldKind::Text, row.state});
  fields.push_back({"load_ns", FieldKind::Integer, whole(row.load_seconds * 1e9)});
  fields.push_back({"state_bytes", FieldKind::Integer, std::to_string(row.result.state_bytes)});
  fields.push_back({"checksum", FieldKind::Text, hash_hex(row.result.checksum)});
  fields.push_back({"strata_version", FieldKind::Text, machine.version});
}

std::string csv_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string sql_text(const BenchField& field) {
  if (field.kind != FieldKind::Text) return field.text;
  std::string quoted = "'";
  for (const char c : field.text)
    if (c != '\0') quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string json_text(const BenchField& field) {
  switch (field.kind) {
    case FieldKind::Text:
      return nlohmann::json(field.text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    case FieldKind::Bool: return field.text == "1" ? "true" : "false";
    case FieldKind::Integers:
    case FieldKind::Reals: return "[" + field.text + "]";
    case FieldKind::Integer:
    case FieldKind::Real: break;
  }
  return field.text;
}

std::string json_object(const Fields& fields, const char* between, const char* open, const char* close) {
  std::string text = open;
  for (size_t i = 0; i < fields.size(); ++i)
    text += (i == 0 ? "" : between) + fmt::format("\"{}\": {}", fields[i].key, json_text(fields[i]));
  return text + close;
}

const char* sql_type(FieldKind kind) {
  switch (kind) {
    case FieldKind::Integer:
    case FieldKind::Bool: return "INTEGER";
    case FieldKind::Real: return "REAL";
    default: return "TEXT";
  }
}

std::string sql_table(const Fields& fields) {
  std::string text = "CREATE TABLE IF NOT EXISTS llama_bench (\n";
  for (size_t i = 0; i < fields.size(); ++i)
    text += fmt::format("  {} {}{}\n", fields[i].key, sql_type(fields[i].kind), i + 1 < fields.size() ? "," : "");
  return text + ");\n\n";
}

std::string sql_insert(const Fields& fields) {
  std::string names, values;
  for (const BenchField& field : fields) {
    names += (names.empty() ? "" : ", ") + field.key;
    values += (values.empty() ? "" : ", ") + sql_text(field);
  }
  return "INSERT INTO llama_bench (" + names + ") VALUES (" + values + ");\n";
}

// A column of the markdown table. Those with a default appear only when a row differs from it, or rows from each other.
struct Column {
  const char* key;
  const char* title;
  int width;
  bool right;
  bool always;
};
constexpr Column kColumns[] = {
    {"model", "model", 30, false, true},      {"size", "size", 10, true, true},
    {"params", "params", 10, true, true},     {"backend", "backend", 10, false, true},
    {"threads", "threads", 7, true, true},    {"cpu_mask", "cpu_mask", 10, false, false},
    {"n_batch", "n_batch", 7, true, false},   {"n_ubatch", "n_ubatch", 8, true, false},
    {"type_k", "type_k", 6, true, false},     {"type_v", "type_v", 6, true, false},
    {"draft", "draft", 6, false, false},      {"state", "state", 8, false, false},
    {"load", "load s", 8, true, false},       {"test", "test", 15, true, true},
    {"accepted", "accepted", 8, true, false}, {"t/s", "t/s", 20, true, true},
};

std::string cell(const std::string& key, const BenchRow& row) {
  const DraftCounts& drafts = row.result.drafts;
  if (key == "model") return row.model.type;
  if (key == "size") return size_text(row.model.bytes);
  if (key == "params") return parameters_text(row.model.parameters);
  if (key == "backend") return "CPU";
  if (key == "threads") return std::to_string(row.threads);
  if (key == "cpu_mask") return row.cpu_mask;
  if (key == "n_batch") return std::to_string(row.test.batch);
  if (key == "n_ubatch") return std::to_string(row.test.micro_batch);
  if (key == "type_k") return type_text(row.test.caches.keys);
  if (key == "type_v") return type_text(row.test.caches.values);
  if (key == "draft") return draft_name(row.test.drafts.kind);
  if (key == "state") return row.state;
  if (key == "load") return fmt::format("{:.3f}", row.load_seconds);
  if (key == "test") return test_name(row.test);
  if (key == "accepted")
    return drafts.drafted == 0 ? std::string("-")
                               : fmt::format("{:.1f} %", 100.0 * static_cast<double>(drafts.accepted) /
                                                             static_cast<double>(drafts.drafted));
  return rate_text(row.rates());
}

// What a column without news shows.
std::string usual(const std::string& key) {
  static const std::map<std::string, std::string> kUsual{{"cpu_mask", "0x0"}, {"n_batch", "2048"}, {"n_ubatch", "512"},
                                                         {"type_k", "f16"},   {"type_v", "f16"},   {"draft", "none"},
                                                         {"state", "warm"}};
  const auto found = kUsual.find(key);
  return found == kUsual.end() ? std::string() : found->second;
}

bool shown(const Column& column, const std::vector<BenchRow>& planned) {
  const std::string key = column.key;
  if (column.always) return true;
  const auto any = [&](auto&& holds) { return std::any_of(planned.begin(), planned.end(), holds); };
  if (key == "accepted") return any([](const BenchRow& row) { return row.test.drafts.kind != DraftKind::None; });
  if (key == "load") return any([](const BenchRow& row) { return row.state == "cold"; });
  return any([&](const BenchRow& row) { return cell(key, row) != usual(key); });
}

size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, const Column& column) {
  const size_t width = static_cast<size_t>(column.width), length = characters(text);
  const std::string space(width > length ? width - length : 0, ' ');
  return column.right ? space + text : text + space;
}

const Column& column_of(const std::string& key) {
  return *std::find_if(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return key == c.key; });
}

std::string table_line(const std::vector<std::string>& columns, const std::function<std::string(const Column&)>& text) {
  std::string line = "|";
  for (const std::string& key : columns) line += " " + padded(text(column_of(key)), column_of(key)) + " |";
  return line + "\n";
}

std::string table_head(const std::vector<std::string>& columns) {
  return table_line(columns, [](const Column& c) { return std::string(c.title); }) +
         table_line(columns, [](const Column& c) {
           std::string rule(static_cast<size_t>(c.width), '-');
           if (c.right) rule.back() = ':';
           return rule;
         });
}

}  // namespace

BenchModel describe_bench_model(const Model& model, const std::string& path) {
  BenchModel result;
  result.file = path;
  result.bytes = model.file().data_bytes();
  for (const gguf::TensorInfo& tensor : model.file().tensors()) result.parameters += tensor.elements();
  result.type = model.spec().arch + " " + parameters_text(result.parameters) + " " + main_type(model.file());
  return result;
}

std::vector<double> BenchRow::rates() const {
  std::vector<double> list;
  for (const double seconds : result.seconds)
    list.push_back(static_cast<double>(test.prompt + test.output) / std::max(seconds, 1e-9));
  return list;
}

std::vector<BenchField> bench_fields(const BenchMachine& machine, const BenchRow& row, bool samples) {
  Fields fields;
  add_machine_and_settings(fields, machine, row);
  add_results(fields, row, samples);
  add_own(fields, machine, row);
  return fields;
}

BenchWriter::BenchWriter(BenchFormat format, BenchMachine machine, const std::vector<BenchRow>& planned)
    : format_(format), machine_(std::move(machine)) {
  for (const Column& column : kColumns)
    if (shown(column, planned)) columns_.emplace_back(column.key);
}

std::string BenchWriter::head() {
  const Fields fields = bench_fields(machine_, BenchRow{}, false);
  switch (format_) {
    case BenchFormat::Markdown: return table_head(columns_);
    case BenchFormat::Json: return "[\n";
    case BenchFormat::Sql: return sql_table(fields);
    case BenchFormat::Csv: {
      std::string line;
      for (const BenchField& field : fields) line += (line.empty() ? "" : ",") + field.key;
      return line + "\n";
    }
    case BenchFormat::Jsonl:
    case BenchFormat::None: break;
  }
  return {};
}

std::string BenchWriter::row(const BenchRow& row) {
  const std::string before = first_ ? "" : ",\n";
  first_ = false;
  switch (format_) {
    case BenchFormat::Markdown: return table_line(columns_, [&](const Column& c) { return cell(c.key, row); });
    case BenchFormat::Json:
      return before + json_object(bench_fields(machine_, row, true), ",\n    ", "  {\n    ", "\n  }");
    case BenchFormat::Jsonl: return json_object(bench_fields(machine_, row, true), ", ", "{", "}\n");
    case BenchFormat::Sql: return sql_insert(bench_fields(machine_, row, false));
    case BenchFormat::Csv: {
      std::string line;
      for (const BenchField& field : bench_fields(machine_, row, false))
        line += (line.empty() ? "" : ",") + csv_text(field.text);
      return line + "\n";
    }
    case BenchFormat::None: break;
  }
  return {};
}

std::string BenchWriter::foot() {
  if (format_ == BenchFormat::Json) return first_ ? "]\n" : "\n]\n";
  if (format_ != BenchFormat::Markdown) return {};
  return fmt::format("\nbuild: {} ({})\n", machine_.build_commit.empty() ? "unknown" : machine_.build_commit,
                     machine_.build_number);
}

std::string type_text(DType type) {
  std::string text(to_string(type));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::string size_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < (uint64_t{1} << 30) ? fmt::format("{:.2f} MiB", value / (1 << 20))
                                     : fmt::format("{:.2f} GiB", value / (1 << 30));
}

std::string parameters_text(uint64_t parameters) {
  const auto value = static_cast<double>(parameters);
  return parameters < 1000000000 ? fmt::format("{:.2f} M", value * 1e-6) : fmt::format("{:.2f} B", value * 1e-9);
}

std::string rate_text(const std::vector<double>& rates) {
  return rates.empty() ? std::string("-") : fmt::format("{:.2f} ± {:.2f}", mean(rates), standard_deviation(rates));
}

std::string sweep_head() {
  return fmt::format("|{:>6} |{:>6} |{:>8} |{:>9} |{:>10} |{:>9} |{:>10} |\n", "PP", "TG", "N_KV", "T_PP s", "S_PP t/s",
                     "T_TG s", "S_TG t/s") +
         fmt::format("|{0:->6}:|{0:->6}:|{0:->8}:|{0:->9}:|{0:->10}:|{0:->9}:|{0:->10}:|\n", "");
}

std::string sweep_row(const ModelBench::Point& point) {
  const auto time = [](const ModelTestResult& result) {
    return result.seconds.empty() ? std::string("-") : fmt::format("{:.3f}", mean(result.seconds));
  };
  const auto rate = [](int64_t tokens, const ModelTestResult& result) {
    return result.seconds.empty() ? std::string("-")
                                  : fmt::format("{:.2f}", static_cast<double>(tokens) / mean(result.seconds));
  };
  return fmt::format("|{:>6} |{:>6} |{:>8} |{:>9} |{:>10} |{:>9} |{:>10} |\n", point.prompt.prompt, point.output.output,
                     point.prompt.depth, time(point.prompt_result), rate(point.prompt.prompt, point.prompt_result),
                     time(point.output_result), rate(point.output.output, point.output_result));
}

std::string sweep_plot(const BenchMachine& machine, const std::string& model, const std::vector<SweepLine>& sweeps) {
  LineChart chart{.title = "Speed over depth" + (model.empty() ? "" : ": " + model),
                  .subtitle = machine.cpu + ", build " + machine.version};
  chart.x = {.label = "tokens before (N_KV)", .binary = true};
  chart.y = {.label = "tokens/s", .scale = AxisScale::Log2};  // prompts are many times faster than output
  for (const SweepLine& sweep : sweeps) {
    PlotSeries prompt, output;
    const std::string tail = sweep.name.empty() ? std::string() : ", " + sweep.name;
    for (const ModelBench::Point& point : sweep.points) {
      const auto depth = static_cast<double>(point.prompt.depth);
      for (const auto& [series, test, result] : {std::tuple(&prompt, &point.prompt, &point.prompt_result),
                                                 std::tuple(&output, &point.output, &point.output_result)}) {
        if (result->seconds.empty()) continue;
        ModelTest shown = *test;
        shown.depth = 0;
        series->name = test_name(shown) + tail;
        series->points.push_back(
            {.x = depth, .y = static_cast<double>(test->prompt + test->output) / mean(result->seconds)});
      }
    }
    for (PlotSeries& series : {std::ref(prompt), std::ref(output)})
      if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return line_chart_svg(chart);
}

}  // namespace strata
