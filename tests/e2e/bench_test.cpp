// strata bench -m from outside: the flags that llama-bench's users type, and what comes out.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

std::vector<std::string> bench_call(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {STRATA_BINARY_DIR "/strata", "bench", "-m", kModel, "-r", "1"});
  return arguments;
}
ProcessResult bench(const std::vector<std::string>& arguments) { return run(bench_call(arguments)); }

nlohmann::ordered_json rows_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-o", "json"});
  const ProcessResult result = bench(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::ordered_json::parse(result.out);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Scripts written for a machine with a GPU run here, and are told once for each flag that it does nothing.
TEST(BenchModel, ScriptsForAGpuRunOnTheCpu) {
  const ProcessResult result =
      bench({"-ngl", "99",    "-fa", "1", "-p",    "8", "-n",     "4",  "-b",  "2048", "-ub",   "512",
             "-sm",  "layer", "-mg", "0", "-nkvo", "0", "--poll", "50", "-lm", "mmap", "-embd", "0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_of(result.err, "warn: "), 3u) << result.err;
  EXPECT_NE(result.err.find("warn: -ngl 99 has no effect"), std::string::npos) << result.err;
  const std::regex table(
      "\\| model +\\| +size \\| +params \\| backend +\\| threads \\| +test \\| +t/s \\|\n"
      "\\| -+ \\| -+: \\| -+: \\| -+ \\| -+: \\| -+: \\| -+: \\|\n"
      "\\| qwen4exp 26.20 M Q8_0 +\\| +27.69 MiB \\| +26.20 M \\| CPU +\\| +[0-9]+ \\| +pp8 \\| +[0-9.]+ ± 0.00 \\|\n"
      "\\| qwen4exp [^\n]* tg4 \\| +[0-9.]+ ± 0.00 \\|\n\nbuild: [0-9a-z-]+ \\([0-9]+\\)\n");
  EXPECT_TRUE(std::regex_match(result.out, table)) << result.out;
}

TEST(BenchModel, ListsRangesAndTheirProduct) {
  const auto rows = rows_of({"-p", "8", "-p", "4,6", "-n", "1-4*2", "-pg", "4,2", "-ub", "4,512", "-d", "0-8+8"});
  EXPECT_EQ(rows.size(), (3u + 3 + 1) * 2 * 2);
  // The same tokens end with the same logits, whatever the micro-batch: promise 2, seen from a benchmark.
  std::map<std::string, std::string> checksums;
  for (const auto& row : rows) {
    const std::string tokens =
        std::to_string(row["n_prompt"].get<int>() + row["n_gen"].get<int>() + row["n_depth"].get<int>());
    const std::string sum = row["checksum"];
    EXPECT_EQ(checksums.emplace(tokens, sum).first->second, sum) << row.dump();
    EXPECT_GT(row["avg_ts"].get<double>(), 0);
    EXPECT_EQ(row["state"], "warm");
  }
}

TEST(BenchModel, DraftsAreMeasured) {
  const auto rows = rows_of({"-p", "0", "-n", "12", "--draft", "none,lookup,mtp"});
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) {
    EXPECT_EQ(row["checksum"], rows[0]["checksum"]) << row["draft"];
    EXPECT_EQ(row["n_windows"].get<int>() + row["n_accepted"].get<int>(), 12);
  }
  const auto forced = rows_of({"-p", "0", "-n", "12", "--draft", "mtp", "--draft-max", "3", "--spec-synth-len", "3"});
  EXPECT_EQ(forced[0]["n_windows"], 4);
  EXPECT_EQ(forced[0]["synthetic_acceptance"], "length 3");
}

TEST(BenchModel, ColdRunsSaySo) {
  const auto rows = rows_of({"-p", "4", "-n", "0", "--cold"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0]["state"] == "cold" || rows[0]["state"] == "not cold") << rows[0]["state"];
  EXPECT_GT(rows[0]["load_ns"].get<int64_t>(), 0);
  EXPECT_EQ(rows_of({"-p", "4", "-n", "0", "--no-warmup"})[0]["state"], "as found");
}

TEST(BenchModel, SweepPrintsTheCurveAndDrawsIt) {
  const TempFolder folder;
  const std::string plot = folder.file("curve.svg");
  const ProcessResult result = bench({"--sweep", "-p", "16", "-n", "2", "-c", "64", "--plot", plot});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_of(result.out, "|    16 |     2 |"), 4u) << result.out;
  EXPECT_NE(result.out.find("|    PP |    TG |    N_KV |   T_PP s |  S_PP t/s |   T_TG s |  S_TG t/s |"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(plot));
  const auto rows = rows_of({"--sweep", "-p", "4", "-n", "2", "-d", "0,8"});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3]["n_depth"], 8);
}

TEST(BenchModel, BothStreamsAndDevices) {
  const ProcessResult result = bench({"-p", "4", "-n", "0", "-o", "jsonl", "-oe", "sql", "--progress"});
  ASSERT_EQ(result.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(result.out)["n_prompt"], 4);
  EXPECT_EQ(count_of(result.err, "INSERT INTO llama_bench"), 1u);
  EXPECT_NE(result.err.find("test 1 of 1: pp4"), std::string::npos);
  EXPECT_NE(bench({"--list-devices"}).out.find("cpu: "), std::string::npos);
}

// Where threads run and when weights are read changes neither arms nor results, and stands in the record.
TEST(BenchModel, PlacedThreadsAndWeightsReadAheadGiveTheSame) {
  const auto plain = rows_of({"-p", "8", "-n", "0", "-t", "1"});
  const auto placed = rows_of({"-p", "8", "-n", "0", "-t", "1", "--cpu-strict", "1", "-lm", "populate"});
  EXPECT_EQ(placed[0]["checksum"], plain[0]["checksum"]);
  EXPECT_EQ(placed[0]["load_mode"], "populate");
  EXPECT_EQ(plain[0]["load_mode"], "mmap");
  EXPECT_EQ(placed[0]["cpu_strict"], true);
  EXPECT_EQ(plain[0]["cpu_strict"], false);
  for (const auto& [mode, times] : {std::pair{"populate", 1u}, std::pair{"mmap", 0u}}) {
    const ProcessResult result = bench({"-p", "8", "-n", "0", "-t", "1", "-lm", mode});
    EXPECT_EQ(count_of(result.err, "of weights ahead in "), times) << result.err;
  }
}

TEST(BenchModel, InterruptedRunsKeepWhatWasMeasured) {
  Process process(bench_call({"-p", "0", "-n", "8", "-r", "1000", "-o", "json"}));
  while (process.err().find("loaded in") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_NE(result.err.find("interrupted: 0 of 1 tests are complete"), std::string::npos) << result.err;
  const auto rows = nlohmann::json::parse(result.out);  // complete JSON
  EXPECT_TRUE(rows.empty() || rows[0]["samples_ns"].size() < 1000u);
}

// The tables of docs/performance.md replace what stands between its markers, and nothing else.
TEST(BenchPage, TablesReplaceWhatStandsBetweenTheMarkers) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("strata_page_" + std::to_string(::getpid()));
  fs::create_directories(folder / "plots");
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("kernels.json", R"({"ceilings": {"threads": 2, "read_bytes_per_s": 3e10, "int8_operations_per_s": 1e12,
    "f32_operations_per_s": 2.5e11}, "rows": [{"weights": "Q8_0", "rows": 1, "operations": 1e6, "median_s": 1e-4,
    "share": 0.9, "bound_by": "reading", "target": 0.85, "holds": true}, {"weights": "IQ3_S", "rows": 1,
    "operations": 1e6, "median_s": 1e-4, "share": 0.3, "bound_by": "reading", "target": 0.5, "holds": false}]})");
  write("models.json", R"([{"cpu_info": "a CPU", "build_commit": "abc", "model_type": "qwen35 586.36 M Q8_0",
    "model_size": 604000000, "n_prompt": 0, "n_gen": 64, "avg_ts": 40, "stddev_ts": 1}])");
  for (const char* name : {"ceilings-before.json", "ceilings-after.json"})
    write(name, R"({"ceilings": [{"name": "read", "bytes_per_s": 2.2e10}]})");
  for (const char* name : {"profile-qwen35.json", "profile-moe.json"})
    write(name, R"({"profile": {"stages": [{"stage": "prompt", "parts": [{"name": "matmul", "share": 0.7},
      {"name": "experts", "share": 0.18}, {"name": "norm", "share": 0.12}]}]}})");
  write("roofline.svg", "<svg/>");
  write("page.md", "# Before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n");
  const std::vector<std::string> call{STRATA_SOURCE_DIR "/tools/performance_page.sh", folder.string(),
                                      (folder / "page.md").string()};
  const auto page = [&] {
    const ProcessResult result = run(call);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::ifstream file(folder / "page.md");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string once = page();
  EXPECT_EQ(page(), once);
  EXPECT_TRUE(fs::exists(folder / "plots/roofline-cpu.svg"));
  for (const char* part :
       {"# Before\n<!-- bench: begin -->\n", "<!-- bench: end -->\nafter\n", "| Q8_0 | 10, 90 % | - | - | - |",
        "| Q8_0, one row, of reading | 85 % | 90 % | holds |",
        "| IQ3_S, one row, of reading | 50 % | 30 % | **missed** |", "| tg64 | 40 ± 1 | 24.2 | 45 | 30 | holds |",
        "| products with weights (aim: 85 %) | 88 % | 88 % |", "| norm | 12 % | 12 % |"})
    EXPECT_NE(once.find(part), std::string::npos) << part << "\n" << once;
  EXPECT_EQ(once.find("\nold\n"), std::string::npos);
  fs::remove(folder / "models.json");
  EXPECT_EQ(run(call).exit_code, 1);
  fs::remove_all(folder);
}

TEST(BenchModel, WhatCannotBeMeasuredIsOneError) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases{
      {{"-p", "99999999999"}, "out of range"},
      {{"-d", "1000000"}, "the model has 4096"},
      {{"-d", "0-9999999"}, "more than 4096 numbers"},
      {{"-ctk", "q9_9"}, "no such choice"},
      {{"-p", "1-200", "-n", "1-200", "-d", "1-200"}, "more than 10000 tests"},
      {{"-p", "0", "-n", "0"}, "no test is left"},
      {{"-pg", "512"}, "no pair of lengths"},
      {{"-hf", "some/model"}, "nothing is downloaded"},
      {{"-dev", "CUDA0"}, "no such device"},
      {{"-C", "0xz"}, "no mask of processors"},
      {{"-C", "0x" + std::string(256, 'f')}, "this program may not use processor"},
      {{"--cpu-strict", "1", "-t", "1024"}, "1024 threads cannot have a processor each"},
      {{"--spec-synth-len", "2"}, "needs drafts"},
      {{"--draft", "mtp", "--spec-synth-rates", "1.5"}, "no probability"},
      {{"--cold", "-d", "8"}, "warms the model"},
      {{"--plot", "x.svg"}, "give --sweep"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult result = bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << message << ": " << result.out << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_EQ(count_of(result.err, "\n"), 1u) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
}  // namespace strata::test
