// strata generate and tokenize from outside: what they print, and one clear line for every bad input.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "gguf/gguf.h"
#include "support/model_run.h"
#include "support/process.h"
#include "support/random_model.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kProgram = STRATA_BINARY_DIR "/strata";
const std::string kModel = source_path("models/strata-mini-q8_0.gguf");
const char* const kQuestion = "<|im_start|>user\nWhat does grep do?<|im_end|>\n<|im_start|>assistant\n";

ProcessResult strata(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kProgram);
  return run(arguments);
}

nlohmann::json generated(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"generate", "--json"});
  const ProcessResult result = strata(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

// Exit 1, nothing on standard output, one line on standard error that holds every part.
void expect_failure(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const ProcessResult result = strata(arguments);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out, "");
  std::string errors;
  std::istringstream lines(result.err);
  int count = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find("error:") != std::string::npos) errors = line, ++count;
  EXPECT_EQ(count, 1) << result.err;
  for (const std::string& part : parts)
    EXPECT_NE(errors.find(part), std::string::npos) << errors << "\nlacks: " << part;
}

// The default model with its metadata and tensors changed on the way.
using Change = std::function<bool(std::string& name, std::vector<uint64_t>& ne)>;  // false: leave the tensor out
void rewrite(const std::string& path, const Change& change, const std::string& arch = "qwen4exp",
             bool tokenizer = true) {
  const gguf::File file = gguf::File::open(kModel);
  gguf::Writer writer(path);
  for (const gguf::KeyValue& one : file.metadata()) {
    if (!tokenizer && one.key.starts_with("tokenizer.")) continue;
    writer.add(one.key, one.key == "general.architecture" ? gguf::Value::of_string(arch) : one.value);
  }
  std::vector<const gguf::TensorInfo*> kept;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    std::string name = tensor.name;
    std::vector<uint64_t> ne(tensor.ne, tensor.ne + tensor.dims);
    if (change && !change(name, ne)) continue;
    writer.add_tensor(name, tensor.type, ne);
    kept.push_back(&tensor);
  }
  writer.begin_data();
  for (size_t i = 0; i < kept.size(); ++i) writer.write(file.data(*kept[i]), writer.tensors()[i].bytes);
  writer.commit();
}

// A context beyond the model's is a warning; with scaling it is the model's, and the log says what was set.
TEST(Generate, ContextsBeyondTheTrainedOne) {
  const std::vector<std::string> base{"generate", "-p", "The file system", "-n", "2", "-c", "6000"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    const ProcessResult result = strata(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.err;
  };
  const auto holds = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string plain = with({});
  EXPECT_TRUE(holds(plain, "the context of 6000 is beyond the 4096 positions of the model")) << plain;
  EXPECT_FALSE(holds(plain, "RoPE"));
  const std::string yarn = with({"--rope-scaling", "yarn", "--rope-scale", "2"});
  EXPECT_TRUE(holds(yarn, "RoPE: YaRN, scale 2: 4096 to 8192 positions, attention factor 1.0693")) << yarn;
  EXPECT_FALSE(holds(yarn, "beyond"));
  const std::string stated =
      with({"--rope-scaling", "yarn", "--rope-scale", "2", "--yarn-orig-ctx", "2048", "--yarn-attn-factor", "1.2",
            "--yarn-ext-factor", "-1", "--yarn-beta-fast", "16", "--yarn-beta-slow", "-1"});
  EXPECT_TRUE(holds(stated, "2048 to 4096 positions, attention factor 1.2 as stated")) << stated;
  EXPECT_TRUE(holds(stated, "beyond the 4096")) << stated;
  EXPECT_TRUE(holds(with({"--rope-scale", "2"}), "RoPE: linear, scale 2: 8192 positions"));
  for (const auto& [flag, value] : {std::pair{"--yarn-orig-ctx", "64"}, std::pair{"--yarn-ext-factor", "1"}})
    EXPECT_EQ(strata({"generate", "-p", "x", flag, value}).exit_code, 2);
  EXPECT_EQ(strata({"generate", "-p", "x", "--rope-scaling", "none", "--rope-scale", "2"}).exit_code, 2);
}

TEST(Generate, AnswersAQuestion) {
  const ProcessResult result = strata({"generate", "-p", kQuestion, "-n", "64"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "The grep command is used to print lines that match patterns.\n");
  for (const char* part : {"prompt: 13 tokens", "output: 13 tokens", "tokens/s", "peak memory", "arms: "})
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Generate, TextDoesNotDependOnThreadsOrMicroBatch) {
  const nlohmann::json plain = generated({"-p", "The file system", "-n", "24", "-t", "1"});
  EXPECT_EQ(plain["tokens"].size(), 24u);
  EXPECT_EQ(plain["finish_reason"], "length");
  EXPECT_FALSE(plain["arms"]["matmul"].empty());
  for (const char* batch : {"1", "2", "512"})
    EXPECT_EQ(generated({"-p", "The file system", "-n", "24", "-t", "2", "-ub", batch})["tokens"], plain["tokens"]);
}

TEST(Generate, ASeedGivesTheSameText) {
  const std::vector<std::string> sampled{"-p", "The file system", "-n", "24", "--temp", "1.0", "--top-k", "0"};
  auto with_seed = [&](const char* seed) {
    std::vector<std::string> arguments = sampled;
    arguments.insert(arguments.end(), {"--seed", seed});
    return generated(arguments)["tokens"];
  };
  EXPECT_EQ(with_seed("7"), with_seed("7"));
  EXPECT_NE(with_seed("7"), with_seed("8"));
}

TEST(Generate, CachesOfEveryTypeAnswer) {
  for (const char* type : {"f32", "bf16", "q8_0", "q4_0"})
    EXPECT_EQ(generated({"-p", kQuestion, "-n", "8", "-ctk", type, "-ctv", type})["tokens"].size(), 8u) << type;
  const ProcessResult wrong = strata({"generate", "-p", kQuestion, "--cache-type-k", "q9"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("q8_0"), std::string::npos) << wrong.err;
}

TEST(Generate, KeysAndValuesInAFileChangeNoText) {
  const std::string prompt(2000, 'a');
  const nlohmann::json plain = generated({"-p", prompt, "-n", "12", "--ignore-eos"});
  const nlohmann::json tiered = generated({"-p", prompt, "-n", "12", "--ignore-eos", "--kv-resident", "1"});
  EXPECT_EQ(plain["tokens"], tiered["tokens"]);
  EXPECT_EQ(plain["kv_file"]["bytes"], 0);
  EXPECT_GT(tiered["kv_file"]["bytes"], tiered["kv_file"]["resident_bytes"]);
  EXPECT_GT(tiered["kv_file"]["pages_released"], 0);
  EXPECT_GT(tiered["kv_file"]["pages_read"], 0);
  EXPECT_EQ(strata({"generate", "-p", "a", "--kv-resident", "-1"}).exit_code, 2);
  EXPECT_EQ(strata({"generate", "-p", "a", "--kv-resident", "99999999999"}).exit_code, 2);
  const ProcessResult nowhere = strata({"generate", "-p", "a", "--kv-resident", "64", "--kv-file-dir", "/nowhere"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.err.find("/nowhere: cannot make a file for keys and values here"), std::string::npos)
      << nowhere.err;
}

TEST(Generate, StopStringEndsBeforeIt) {
  const nlohmann::json result = generated({"-p", kQuestion, "-n", "64", "--stop", "print lines"});
  EXPECT_EQ(result["text"], "The grep command is used to ");
  EXPECT_EQ(result["finish_reason"], "stop string");
}

TEST(Generate, ReadsFilesStandardInputAndIds) {
  const TempFolder folder;
  const std::string file = folder.write("prompt.txt", kQuestion);
  const nlohmann::json from_file = generated({"-f", file, "-n", "8"});
  const ProcessResult from_input = run({kProgram, "generate", "--json", "-f", "-", "-n", "8"}, {}, kQuestion);
  EXPECT_EQ(nlohmann::json::parse(from_input.out)["tokens"], from_file["tokens"]);
  EXPECT_EQ(generated({"--tokens", "8186,460,198,673,647,7584,482,30,8187,198,8186,470,198", "-n", "8"})["tokens"],
            from_file["tokens"]);
}

TEST(Generate, ContextEndsTheOutput) {
  const nlohmann::json result = generated({"-p", "The file system", "-n", "100", "-c", "10", "--ignore-eos"});
  EXPECT_EQ(result["finish_reason"], "length");
  // The prompt and every token but the last fill the context: the last one needs no place.
  EXPECT_EQ(result["prompt_n"].get<int>() + result["predicted_n"].get<int>(), 11);
}

TEST(Generate, CtrlCEndsWith130AndKeepsTheText) {
  Process process({kProgram, "generate", "-p", "The Linux kernel", "-n", "-1", "--ignore-eos"});
  for (int i = 0; i < 200 && process.out().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(result.out.empty());
  EXPECT_NE(result.err.find("ended by interrupted"), std::string::npos) << result.err;
}

TEST(Generate, BadFiles) {
  const TempFolder folder;
  const std::string text = folder.write("text.gguf", "this is no model");
  std::ifstream in(kModel, std::ios::binary);
  std::string head(1000000, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  const std::string cut = folder.write("cut.gguf", head);
  auto fails = [](const std::string& file, std::vector<std::string> parts) {
    parts.push_back(file);
    expect_failure({"generate", "-m", file, "-p", "a"}, parts);
  };
  fails(folder.file("none.gguf"), {"No such file"});
  fails(text, {"GGUF"});
  fails(cut, {"byte"});
  fails("/", {"not a regular file"});

  const std::string other = folder.file("other.gguf");
  rewrite(other, {}, "mamba9");
  fails(other, {"mamba9", "qwen4exp"});
  rewrite(other, [](std::string& name, std::vector<uint64_t>&) { return name != "blk.3.attn_k.weight"; });
  fails(other, {"blk.3.attn_k.weight", "missing"});
  rewrite(other, [](std::string& name, std::vector<uint64_t>& ne) {
    if (name == "blk.2.ffn_up_exps.weight") ne = {320, 64, 8};
    return true;
  });
  fails(other, {"blk.2.ffn_up_exps.weight", "[8, 64, 320]", "[8, 128, 320]"});
  rewrite(other, {}, "qwen4exp", false);
  fails(other, {"tokenizer", "token ids"});
  EXPECT_EQ(generated({"-m", other, "--tokens", "450,7584,536", "-n", "4"})["predicted_n"], 4);
}

TEST(Generate, BadPrompts) {
  expect_failure({"generate", "-p", ""}, {"prompt is empty"});
  expect_failure({"generate", "-p", "one two three four five six", "-c", "3"}, {"prompt has", "context 3"});
  expect_failure({"generate", "--tokens", "1,99999"}, {"99999", "8192"});
  expect_failure({"generate", "-f", "/no/such/prompt"}, {"/no/such/prompt"});
  const ProcessResult none = strata({"generate"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("--prompt"), std::string::npos);
  const ProcessResult word = strata({"generate", "--tokens", "1,two"});
  EXPECT_EQ(word.exit_code, 2);
  EXPECT_NE(word.err.find("'two'"), std::string::npos);
}

TEST(Generate, RequestedArms) {
  EXPECT_EQ(generated({"-p", "a", "-n", "1", "--arm", "matmul=portable"})["arms"]["matmul"], "portable");
  const ProcessResult fallback = strata({"generate", "-p", "a", "-n", "1", "--arm", "matmul=warp"});
  EXPECT_EQ(fallback.exit_code, 0);
  EXPECT_NE(fallback.err.find("arm matmul: warp refused: no such arm; using "), std::string::npos)
      << fallback.err;
  expect_failure({"generate", "-p", "a", "-n", "1", "--arm", "matmul=warp", "--strict-arms"}, {"matmul", "warp"});
}

TEST(Tokenize, PrintsTokens) {
  const ProcessResult ids = strata({"tokenize", "--ids", kQuestion});
  EXPECT_EQ(ids.out, "8186 460 198 673 647 7584 482 30 8187 198 8186 470 198\n");
  const ProcessResult list = strata({"tokenize", "The grep"});
  EXPECT_EQ(list.out, "    450  \"The\"\n   7584  \" grep\"\n");
}

TEST(Convert, WritesAFileThatRuns) {
  const TempFolder folder;
  const std::string out = folder.file("qwen3.gguf");
  const ProcessResult result =
      strata({"convert", source_path("tests/fixtures/hf/qwen3_tied"), "-o", out, "--outtype", "f16"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(generated({"-m", out, "--tokens", "5,6,7", "-n", "3"})["predicted_n"], 3);
  expect_failure({"convert", folder.file("nowhere"), "-o", out}, {"nowhere"});
  const ProcessResult type = strata({"convert", source_path("tests/fixtures/hf/qwen3_tied"), "--outtype", "q9"});
  EXPECT_EQ(type.exit_code, 2);
  EXPECT_NE(type.err.find("Q8_0"), std::string::npos);
}

// A file size limit stands for a full disk: both fail in write().
TEST(Convert, FullDiskLeavesNothingBehind) {
  const TempFolder folder;
  const ProcessResult result = run({"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" convert \"$1\" -o \"$2\"",
                                    kProgram, source_path("tests/fixtures/hf/qwen3_tied"), folder.file("out.gguf")});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("out.gguf"), std::string::npos) << result.err;
  EXPECT_TRUE(folder.empty());
}

// 2 GB of weights: mapped in under a second, resident memory near the file's size.
TEST(Generate, ASessionIsOneText) {
  const TempFolder folder;
  const std::string path = folder.file("text.session");
  const std::vector<std::string> sampled{"--temp", "0.9", "--seed", "5"};
  auto piece = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), sampled.begin(), sampled.end());
    return generated(arguments);
  };
  const nlohmann::json whole = piece({"-p", "The file system", "-n", "12"});
  const nlohmann::json first = piece({"-p", "The file system", "-n", "7", "--session", path});
  const nlohmann::json second = piece({"-n", "5", "--session", path});
  nlohmann::json tokens = first["tokens"];
  for (const auto& token : second["tokens"]) tokens.push_back(token);
  EXPECT_EQ(tokens, whole["tokens"]);
  EXPECT_EQ(first["cached_n"], 0);
  EXPECT_EQ(second["cached_n"], second["prompt_n"].get<int>() - 1);
  expect_failure({"generate", "--session", path, "-n", "1", "--qsa-keys", "f32"}, {path, "index keys"});
  const ProcessResult chat = strata({"chat", "--session", path});
  EXPECT_EQ(chat.exit_code, 2);
  EXPECT_NE(chat.err.find("go on with strata generate"), std::string::npos) << chat.err;
}

TEST(Generate, LargeFileIsMapped) {
  if (!test_all()) GTEST_SKIP() << "writes 2 GB: needs TEST_ALL=1";
  const TempFolder folder;
  const std::string file = folder.file("large.gguf");
  RandomModel({.layers = 36,
               .hidden = 2048,
               .inner = 6144,
               .heads = 16,
               .kv_heads = 8,
               .head_dim = 128,
               .vocabulary = 32000,
               .type = DType::Q8_0})
      .write_qwen3(file);
  const double size = static_cast<double>(std::filesystem::file_size(file));
  const nlohmann::json result = generated({"-m", file, "--tokens", "1,2,3,4", "-n", "4"});
  std::printf("file %.2f GB, loaded in %.1f ms, peak %.2f GB, prompt %.1f and output %.1f tokens/s\n", size / 1e9,
              result["load_ms"].get<double>(), result["peak_bytes"].get<double>() / 1e9,
              result["prompt_per_second"].get<double>(), result["predicted_per_second"].get<double>());
  EXPECT_GT(size, 1.9e9);
  EXPECT_LT(result["load_ms"].get<double>(), 1000);
  EXPECT_LT(result["peak_bytes"].get<double>(), 1.05 * size);  // caches and scratch of 8 positions are far below 5 %
  EXPECT_GT(result["peak_bytes"].get<double>(), 0.9 * size);   // every weight was read: the figure means something
}

}  // namespace
}  // namespace strata::test
