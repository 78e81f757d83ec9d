// What a model benchmark prints: the columns and keys of llama-bench, in its order, and Strata's own behind them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/model_bench.h"

namespace strata {

struct BenchMachine {
  std::string build_commit;
  int64_t build_number = 0;  // commits up to this one; 0: unknown
  std::string version;
  std::string cpu;
  int default_threads = 1;  // what -t is when it is not given
  std::string device = "cpu";
  std::string accelerator = {};  // what it is; empty: the CPU
};

struct BenchModel {
  std::string file;
  std::string type;  // "qwen4exp 26.21 M Q8_0"
  uint64_t bytes = 0, parameters = 0;
};
BenchModel describe_bench_model(const Model& model, const std::string& path);

// One test with everything that is known of it. Before it ran: the settings alone.
struct BenchRow {
  BenchModel model;
  ModelTest test;
  int threads = 1;
  std::string cpu_mask{};   // "0x0": none
  bool cpu_strict = false;  // each thread on a processor of its own
  std::string load_mode = "mmap";
  std::string state{};      // what the run found: "warm", "cold", "as found"
  double load_seconds = 0;  // of the model, before the test
  std::string arms{};       // "matmul=avx512 norm=avx2 ..."
  std::string time{};       // when the test began: 2026-11-30T01:52:31Z
  ModelTestResult result{};
  std::vector<double> rates() const;  // tokens a second, of each repetition
};

enum class FieldKind { Text, Integer, Real, Bool, Integers, Reals };
struct BenchField {
  std::string key;
  FieldKind kind = FieldKind::Text;
  std::string text;  // Bool: 0 or 1; lists: with commas between
};
// The fields of csv and sql, or, with `samples`, of json and jsonl.
std::vector<BenchField> bench_fields(const BenchMachine& machine, const BenchRow& row, bool samples);

enum class BenchFormat { None, Markdown, Csv, Json, Jsonl, Sql };

// Writes rows in one format, piece by piece, so that what was measured is out when a run ends early.
class BenchWriter {
 public:
  // `planned`: every row to come, which decides the columns of the markdown table.
  BenchWriter(BenchFormat format, BenchMachine machine, const std::vector<BenchRow>& planned);

  std::string head();
  std::string row(const BenchRow& row);
  std::string foot();

 private:
  const BenchFormat format_;
  const BenchMachine machine_;
  std::vector<std::string> columns_;  // keys, of the markdown table
  bool first_ = true;
};

// Pieces of the table.
std::string type_text(DType type);                  // "q8_0"
std::string size_text(uint64_t bytes);              // "27.95 MiB", "1.20 GiB"
std::string parameters_text(uint64_t parameters);   // "26.21 M", "1.20 B"
std::string rate_text(const std::vector<double>&);  // "123.45 ± 1.20"

// One row of a depth sweep as sweep-bench prints it: PP, TG, N_KV, T_PP, S_PP, T_TG, S_TG.
std::string sweep_head();
std::string sweep_row(const ModelBench::Point& point);
// Speed over depth as an SVG document: two lines for each sweep, prompts and output.
struct SweepLine {
  std::string name;  // what this sweep differs in; empty for the only one
  std::vector<ModelBench::Point> points;
};
std::string sweep_plot(const BenchMachine& machine, const std::string& model, const std::vector<SweepLine>& sweeps);

}  // namespace strata
