// Outputs of model benchmarks: names, columns, keys and their order, quoting.
#include "measure/bench_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace strata {
namespace {

// llama-bench's keys, and Strata's behind them.
const std::vector<std::string> kTheirs{"build_commit",   "build_number",
                                       "cpu_info",       "gpu_info",
                                       "backends",       "model_filename",
                                       "model_type",     "model_size",
                                       "model_n_params", "n_batch",
                                       "n_ubatch",       "n_threads",
                                       "cpu_mask",       "cpu_strict",
                                       "poll",           "type_k",
                                       "type_v",         "n_gpu_layers",
                                       "n_cpu_moe",      "split_mode",
                                       "main_gpu",       "no_kv_offload",
                                       "flash_attn",     "devices",
                                       "tensor_split",   "tensor_buft_overrides",
                                       "load_mode",      "lazy_mode",
                                       "embeddings",     "no_op_offload",
                                       "no_host",        "fit_target",
                                       "fit_min_ctx",    "n_prompt",
                                       "n_gen",          "n_depth",
                                       "test_time",      "avg_ns",
                                       "stddev_ns",      "avg_ts",
                                       "stddev_ts"};
const std::vector<std::string> kSamples{"samples_ns", "samples_ts"};
const std::vector<std::string> kOurs{
    "draft", "draft_max", "synthetic_acceptance", "n_windows", "n_drafted",     "n_accepted", "acceptance", "arms",
    "state", "load_ns",   "state_bytes",          "checksum",  "strata_version"};

std::vector<std::string> all_keys(bool samples) {
  std::vector<std::string> keys = kTheirs;
  if (samples) keys.insert(keys.end(), kSamples.begin(), kSamples.end());
  keys.insert(keys.end(), kOurs.begin(), kOurs.end());
  return keys;
}

const BenchMachine kMachine{"abc1234", 77, "0.1.0 (abc1234)", "A \"fast\" CPU, 2 cores", 2};

BenchRow sample_row() {
  BenchRow row{.model = {"it's,odd.gguf", "qwen35 1.20 B Q8_0", 1288490189, 1200000000},
               .test = {.prompt = 512, .depth = 4096}};
  row.threads = 2;
  row.cpu_mask = "0x0";
  row.state = "warm";
  row.arms = "norm=avx512";
  row.time = "2026-11-30T01:52:31Z";
  row.result.seconds = {2.0, 4.0};
  return row;
}

std::string written(BenchFormat format, const std::vector<BenchRow>& rows) {
  BenchWriter writer(format, kMachine, rows);
  std::string text = writer.head();
  for (const BenchRow& row : rows) text += writer.row(row);
  return text + writer.foot();
}

std::vector<std::string> keys_of(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(BenchNames, OfTestsAndSizes) {
  EXPECT_EQ(test_name({.prompt = 512}), "pp512");
  EXPECT_EQ(test_name({.output = 128}), "tg128");
  EXPECT_EQ(test_name({.prompt = 512, .output = 128}), "pp512+tg128");
  EXPECT_EQ(test_name({.prompt = 512, .depth = 4096}), "pp512 @ d4096");
  EXPECT_EQ(size_text(29030944), "27.69 MiB");
  EXPECT_EQ(size_text((uint64_t{1} << 30) - 1), "1024.00 MiB");
  EXPECT_EQ(size_text(uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(parameters_text(26199496), "26.20 M");
  EXPECT_EQ(parameters_text(1200000000), "1.20 B");
  EXPECT_EQ(rate_text({256, 128}), "192.00 ± 90.51");  // 64 · sqrt(2)
  EXPECT_EQ(rate_text({10}), "10.00 ± 0.00");
  EXPECT_EQ(rate_text({}), "-");
}

TEST(BenchJson, KeysInOrderAndValues) {
  const auto list = nlohmann::ordered_json::parse(written(BenchFormat::Json, {sample_row(), sample_row()}));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(keys_of(list[0]), all_keys(true));
  const auto& row = list[1];
  EXPECT_EQ(row["cpu_info"], kMachine.cpu);
  EXPECT_EQ(row["build_number"], 77);
  EXPECT_EQ(row["n_depth"], 4096);
  EXPECT_EQ(row["avg_ns"], 3000000000);
  EXPECT_EQ(row["stddev_ns"], 1414213562);
  EXPECT_DOUBLE_EQ(row["avg_ts"].get<double>(), 192);
  EXPECT_EQ(row["samples_ns"], nlohmann::json({2000000000, 4000000000}));
  EXPECT_EQ(row["samples_ts"], nlohmann::json({256.0, 128.0}));
  EXPECT_EQ(row["no_kv_offload"], false);
  EXPECT_EQ(row["type_k"], "f16");
  // An interrupted run may have no row.
  EXPECT_TRUE(nlohmann::json::parse(written(BenchFormat::Json, {})).empty());
}

TEST(BenchJsonl, OneObjectALine) {
  std::istringstream lines(written(BenchFormat::Jsonl, {sample_row(), sample_row()}));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_EQ(keys_of(nlohmann::ordered_json::parse(line)), all_keys(true));
  EXPECT_EQ(count, 2);
}

TEST(BenchCsv, HeaderAndQuotedCells) {
  const std::string text = written(BenchFormat::Csv, {sample_row()});
  std::string header;
  for (const std::string& key : all_keys(false)) header += (header.empty() ? "" : ",") + key;
  EXPECT_EQ(text.substr(0, text.find('\n')), header);
  EXPECT_NE(text.find("\"A \"\"fast\"\" CPU, 2 cores\",\"\",\"CPU\",\"it's,odd.gguf\""), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(BenchSql, TableAndEscapedRow) {
  const std::string text = written(BenchFormat::Sql, {sample_row()});
  EXPECT_TRUE(
      text.starts_with("CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n  build_number INTEGER,"));
  EXPECT_NE(text.find("  avg_ts REAL,\n"), std::string::npos);
  EXPECT_NE(text.find("  strata_version TEXT\n);\n"), std::string::npos);
  EXPECT_NE(text.find("INSERT INTO llama_bench (build_commit, build_number, "), std::string::npos);
  EXPECT_NE(text.find("VALUES ('abc1234', 77, 'A \"fast\" CPU, 2 cores', '', 'CPU', 'it''s,odd.gguf', "),
            std::string::npos)
      << text;
}

TEST(BenchMarkdown, ColumnsOnlyWhereTheySaySomething) {
  BenchRow plain = sample_row();
  EXPECT_EQ(
      written(BenchFormat::Markdown, {plain}),
      "| model                          |       size |     params | backend    | threads |            test |         "
      "         t/s |\n"
      "| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: | "
      "-------------------: |\n"
      "| qwen35 1.20 B Q8_0             |   1.20 GiB |     1.20 B | CPU        |       2 |   pp512 @ d4096 |       "
      "192.00 "
      "± 90.51 |\n"
      "\nbuild: abc1234 (77)\n");
  const auto has = [&](const BenchRow& other, const std::string& column) {
    const std::string text = written(BenchFormat::Markdown, {plain, other});
    return text.substr(0, text.find('\n')).find(" " + column + " |") != std::string::npos;
  };
  for (const char* column : {"n_batch", "n_ubatch", "type_k", "type_v", "draft", "accepted", "cpu_mask", "load s"})
    EXPECT_FALSE(has(plain, column)) << column;
  BenchRow other = plain;
  other.test.batch = 64;
  other.test.micro_batch = 32;
  other.test.caches.keys = DType::Q8_0;
  EXPECT_TRUE(has(other, "n_batch") && has(other, "n_ubatch") && has(other, "type_k") && !has(other, "type_v"));
  other = plain;
  other.test.drafts.kind = DraftKind::Mtp;
  EXPECT_TRUE(has(other, "draft ") && has(other, "accepted"));
  other = plain;
  other.state = "cold";
  EXPECT_TRUE(has(other, "state   ") && has(other, "load s"));
}

TEST(BenchMarkdown, OneValueThatIsNotTheDefaultIsShownToo) {
  BenchRow row = sample_row();
  row.test.micro_batch = 64;
  EXPECT_NE(written(BenchFormat::Markdown, {row}).find("| n_ubatch |"), std::string::npos);
}

TEST(BenchSweep, TableAndPlot) {
  ModelBench::Point point;
  point.prompt = {.prompt = 256, .depth = 1024};
  point.output = {.output = 64, .depth = 1024};
  point.prompt_result.seconds = {0.5};
  EXPECT_EQ(sweep_row(point), "|   256 |    64 |    1024 |    0.500 |    512.00 |        - |         - |\n");
  EXPECT_NE(sweep_head().find("|    PP |    TG |    N_KV |   T_PP s |  S_PP t/s |   T_TG s |  S_TG t/s |"),
            std::string::npos);
  const std::string svg = sweep_plot(kMachine, "a <model>", {{"", {point}}});
  EXPECT_NE(svg.find("pp256"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;model&gt;"), std::string::npos);
}

}  // namespace
}  // namespace strata
