// strata synth, inspect and quantize from outside.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "gguf/gguf.h"
#include "support/model_run.h"
#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kProgram = STRATA_BINARY_DIR "/strata";
const std::string kModel = source_path("models/strata-mini-q8_0.gguf");

ProcessResult strata(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kProgram);
  return run(arguments);
}

void expect_error(const std::vector<std::string>& arguments, int code, const std::vector<std::string>& parts) {
  const ProcessResult result = strata(arguments);
  EXPECT_EQ(result.exit_code, code) << result.err;
  for (const std::string& part : parts)
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "\nlacks: " << part;
}

nlohmann::json inspected(const std::string& path) {
  const ProcessResult result = strata({"inspect", "--json", "--tensors", path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

TEST(Models, SynthQuantizeInspectGenerate) {
  const TempFolder folder;
  const std::string f16 = folder.file("f16.gguf"), mix = folder.file("mix.gguf");
  ASSERT_EQ(strata({"synth", "--arch", "qwen35", "--layers", "8", "--mtp", "--quant", "f16", "-o", f16}).exit_code, 0);
  const ProcessResult quantized = strata({"quantize", f16, mix, "q4_k_m", "-t", "2"});
  ASSERT_EQ(quantized.exit_code, 0) << quantized.err;
  EXPECT_NE(quantized.out.find("F16 -> Q4_K"), std::string::npos) << quantized.out;
  EXPECT_NE(quantized.out.find("bits per weight"), std::string::npos);
  const nlohmann::json report = inspected(mix);
  EXPECT_EQ(report["runnable"], true);
  EXPECT_EQ(report["model"]["layers"].size(), 9u);
  EXPECT_EQ(report["metadata"]["general.file_type"], 15);
  EXPECT_EQ(report["types"][0]["type"], "Q4_K");
  EXPECT_EQ(report["tensor_list"].size(), report["file"]["tensors"].get<size_t>());
  const ProcessResult text =
      strata({"generate", "-m", mix, "-p", "The grep command", "-n", "4", "--ignore-eos", "--json"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(nlohmann::json::parse(text.out)["predicted_n"], 4);
}

TEST(Models, DryRunsWriteNothing) {
  const TempFolder folder;
  const std::string out = folder.file("out.gguf");
  const ProcessResult synth =
      strata({"synth", "--shape", "qwen4exp-flash", "--quant", "Q4_K_M", "--dry-run", "-o", out});
  EXPECT_EQ(synth.exit_code, 0) << synth.err;
  EXPECT_NE(synth.out.find("M parameters"), std::string::npos) << synth.out;
  const ProcessResult quantize = strata({"quantize", kModel, out, "Q4_K_M", "--dry-run"});
  EXPECT_EQ(quantize.exit_code, 0) << quantize.err;
  EXPECT_TRUE(folder.empty());
}

TEST(Models, InspectTellsWhyAModelDoesNotRun) {
  const TempFolder folder;
  const std::string path = folder.file("odd.gguf");
  {
    gguf::Writer writer(path);
    writer.add("general.architecture", gguf::Value::of_string("mamba\x1b[31m9"));
    writer.add("general.name\xff", gguf::Value::of_string("evil\n\x1b]0;title\x07"));
    writer.add("some.list", gguf::Value::of_f32s(std::vector<double>(100, 0.1)));
    writer.begin_data();
    writer.commit();
  }
  const nlohmann::json report = inspected(path);
  EXPECT_EQ(report["runnable"], false);
  EXPECT_NE(report["error"].get<std::string>().find("unknown architecture"), std::string::npos);
  EXPECT_EQ(report["metadata"]["some.list"]["count"], 100);
  EXPECT_EQ(report["metadata"]["some.list"]["first"][0], 0.1);
  EXPECT_TRUE(report["tokenizer"].is_null());
  const ProcessResult text = strata({"inspect", path});
  EXPECT_EQ(text.exit_code, 0);
  for (const char c : text.out) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << text.out;
  EXPECT_NE(text.out.find("does not run"), std::string::npos) << text.out;
  expect_error({"inspect", folder.file("none.gguf")}, 1, {"No such file"});
  expect_error({"inspect", folder.write("text.gguf", "no model")}, 1, {"GGUF"});
}

// A sequence's keys and values take what their types say; a type that the heads do not fit is one error.
TEST(Models, MemoryCountsTheCacheTypes) {
  auto memory = [&](std::vector<std::string> types) {
    types.insert(types.begin(), {"inspect", "--json", kModel});
    return nlohmann::json::parse(strata(types).out)["memory"][0];
  };
  const nlohmann::json plain = memory({}), small = memory({"-ctk", "q8_0", "-ctv", "q4_0"});
  EXPECT_EQ(plain["kv_type"], "F16");
  EXPECT_EQ(small["kv_type"], "Q8_0/Q4_0");
  EXPECT_EQ(small["kv"].get<int64_t>() * 128, plain["kv"].get<int64_t>() * (34 + 18));
  const TempFolder folder;
  const std::string odd = folder.file("odd.gguf");
  ASSERT_EQ(strata({"synth", "--arch", "qwen3", "--head-dim", "48", "-o", odd}).exit_code, 0);
  expect_error({"generate", "-m", odd, "--tokens", "1", "-n", "1", "-ctv", "q8_0"}, 2,
               {"cache_type_v", "Q8_0", "heads of 48"});
  const nlohmann::json report = nlohmann::json::parse(strata({"inspect", "--json", "-ctk", "q4_0", odd}).out);
  EXPECT_FALSE(report["runnable"].get<bool>());
}

TEST(Models, WrongUse) {
  const TempFolder folder;
  const std::string out = folder.file("out.gguf");
  expect_error({"quantize", kModel, out, "Q9"}, 2, {"Q9", "Q4_K_M", "MXFP4"});
  expect_error({"quantize", kModel, out}, 2, {"IN OUT TYPE"});
  expect_error({"quantize", folder.file("none.gguf"), out, "Q4_K"}, 1, {"none.gguf"});
  expect_error({"synth", "-o", out}, 2, {"--shape", "--arch"});
  expect_error({"synth", "--arch", "gpt2", "-o", out}, 2, {"gpt2", "qwen4exp"});
  expect_error({"synth", "--shape", "qwen9", "-o", out}, 2, {"qwen9", "qwen3-0.6b"});
  expect_error({"synth", "--arch", "qwen3", "--heads", "5", "-o", out}, 2, {"kv-heads 2 does not divide heads 5"});
  expect_error({"synth", "--arch", "qwen3", "--quant", "IQ1_S", "-o", out}, 2, {"IQ1_S", "Q4_K_M"});
  expect_error({"synth", "--arch", "qwen3"}, 2, {"--outfile"});
  EXPECT_TRUE(folder.empty());
}

// Ctrl-C while a large file is written: exit 130 and no file under any name.
TEST(Models, CtrlCLeavesNothingBehind) {
  const TempFolder folder;
  Process process({kProgram, "synth", "--shape", "qwen3-30b-a3b", "--quant", "F32", "--layers", "8", "-o",
                   folder.file("out.gguf")});
  for (int i = 0; i < 200 && folder.empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(folder.empty());
}

}  // namespace
}  // namespace strata::test
