// strata perplexity and strata diff from outside.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "support/model_run.h"
#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kProgram = STRATA_BINARY_DIR "/strata";

std::string sample_text(int times = 4) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text +=
        "The file system keeps data in blocks. The grep command is used to print lines that match patterns, and the "
        "kernel schedules processes so that each gets its share of time; naïve code does not.\n";
  return text;
}

class PerplexityProgram : public ::testing::Test {
 protected:
  ProcessResult perplexity(std::vector<std::string> more, bool with_text = true, std::string_view input = {}) const {
    std::vector<std::string> arguments{kProgram, "perplexity"};
    if (with_text) arguments.insert(arguments.end(), {"-f", text_, "-c", "48"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, {}, input);
  }
  ProcessResult diff(const std::string& a, const std::string& b) const { return run({kProgram, "diff", a, b}); }
  void dump(const std::string& name, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--save-all-logits", folder_.file(name), "--chunks", "2"});
    const ProcessResult result = perplexity(more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void expect_error(const ProcessResult& result, int code, const std::string& part) const {
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.err.find("strata: error: "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.out.find("PPL"), std::string::npos) << result.out;
  }

  const TempFolder folder_;
  const std::string text_ = folder_.write("text.txt", sample_text());
};

TEST_F(PerplexityProgram, PrintsRunningValuesAndTheEstimate) {
  const ProcessResult result = perplexity({});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(
      std::regex_match(result.out, std::regex("(\\[[1-9]\\][0-9.]+,){2,9}\n"
                                              "Final estimate: PPL = [0-9]+\\.[0-9]{4} \\+/- [0-9]+\\.[0-9]{5}\n")))
      << result.out;
  EXPECT_EQ(perplexity({"-ub", "5", "-t", "1"}).out, result.out);
  EXPECT_EQ(perplexity({"-f", "-", "-c", "48"}, false, sample_text()).out, result.out);
  const nlohmann::json json = nlohmann::json::parse(perplexity({"-o", "json"}).out);
  EXPECT_NE(result.out.find(std::to_string(json["ppl"]["value"].get<double>()).substr(0, 5)), std::string::npos);
  EXPECT_EQ(json["positions"].get<int>(), json["chunks"].get<int>() * 23);  // 48 - 1 - 24
  EXPECT_EQ(json["running_ppl"].back(), json["ppl"]["value"]);
  EXPECT_TRUE(json["complete"].get<bool>());
}

TEST_F(PerplexityProgram, DumpsAreEqualOrToldApart) {
  dump("a");
  dump("b", {"-ub", "3"});
  dump("q8", {"-ctk", "q8_0", "-ctv", "q8_0"});
  const ProcessResult same = diff(folder_.file("a"), folder_.file("b"));
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_TRUE(same.out.starts_with("identical: ")) << same.out;
  const ProcessResult differs = diff(folder_.file("a"), folder_.file("q8"));
  EXPECT_EQ(differs.exit_code, 1) << differs.err;
  for (const char* part :
       {"cache_type_k: Q8_0", "first difference: chunk 1, position 24", "of 46", "KL divergence", "same top token"})
    EXPECT_NE(differs.out.find(part), std::string::npos) << differs.out;
  const nlohmann::json json =
      nlohmann::json::parse(run({kProgram, "diff", "--json", folder_.file("a"), folder_.file("q8")}).out);
  EXPECT_FALSE(json["equal"].get<bool>());
  EXPECT_GT(json["mean_kld"].get<double>(), 0);

  dump("other", {"-c", "40"});
  const ProcessResult other = diff(folder_.file("a"), folder_.file("other"));
  expect_error(other, 2, "n_ctx 48 here, 40 there");
  expect_error(diff(folder_.file("a"), text_), 2, "no file of logits");
  expect_error(diff(folder_.file("a"), folder_.file("none")), 2, "none");
}

TEST_F(PerplexityProgram, ComparesWithABaseOfEitherForm) {
  const std::string codes = folder_.file("codes"), full = folder_.file("full");
  const ProcessResult made = perplexity({"--kl-divergence-base", codes, "--save-all-logits", full, "--chunks", "2"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(std::filesystem::file_size(codes), 20u + 2 * 48 * 4 + 2 * 23 * (8192 + 4) * 2);

  const ProcessResult itself = perplexity({"--kl-divergence", "--kl-divergence-base", full}, false);
  EXPECT_EQ(itself.exit_code, 0) << itself.err;
  for (const char* part :
       {"====== Perplexity statistics ======", "====== KL divergence statistics ======",
        "====== Token probability statistics ======", "Mean    KLD:   0.000000 ±   0.000000", "Maximum KLD:   0.000000",
        "Cor(ln(PPL(Q)), ln(PPL(base))): 100.00%", "Same top p: 100.000 ± 0.000 %"})
    EXPECT_NE(itself.out.find(part), std::string::npos) << part << "\n" << itself.out;

  const auto divergence = [&](const std::string& base) {
    const ProcessResult result =
        perplexity({"--kl-divergence", "--kl-divergence-base", base, "-ctk", "q4_0", "-ctv", "q4_0", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out)["divergence"];
  };
  const nlohmann::json exact = divergence(full), coded = divergence(codes);
  EXPECT_EQ(exact["positions"], 46);
  EXPECT_GT(exact["kld"]["value"].get<double>(), 1e-4);
  // A code is within half a step of 16 / 65535 nats, so is every term's logarithm.
  EXPECT_NEAR(exact["kld"]["value"].get<double>(), coded["kld"]["value"].get<double>(), 1.3e-4);
  EXPECT_EQ(exact["ppl"], coded["ppl"]);
}

TEST_F(PerplexityProgram, RefusesBasesOfOtherRuns) {
  const std::string base = folder_.file("base");
  dump("base");
  const auto compared = [&](std::vector<std::string> more, bool with_text) {
    more.insert(more.end(), {"--kl-divergence", "--kl-divergence-base", base});
    return perplexity(more, with_text);
  };
  expect_error(compared({"-c", "64"}, false), 2, "chunks of 48 tokens, not 64");
  const std::string other = folder_.write("other.txt", "One more line. " + sample_text());
  expect_error(compared({"-f", other}, false), 2, "another text");
  expect_error(compared({"-m", source_path("tests/fixtures/gguf-peer/") +
                                   entries_of(source_path("tests/fixtures/gguf-peer"), ".gguf").front()},
                        false),
               2, "vocabulary of 8192");
  std::filesystem::resize_file(base, std::filesystem::file_size(base) - 1);
  expect_error(compared({}, false), 1, "cut short");
  expect_error(perplexity({"--kl-divergence"}), 2, "--kl-divergence-base");
}

TEST_F(PerplexityProgram, RefusesTextsThatAreTooShortOrMissing) {
  expect_error(perplexity({"-c", "4096"}), 1, "shorter chunks (-c)");
  expect_error(perplexity({"-f", "-"}, false), 1, "the text has 0 tokens");
  expect_error(perplexity({"-f", folder_.file("none")}, false), 1, "none");
  expect_error(perplexity({}, false), 2, "-f FILE");
  expect_error(perplexity({"--save-all-logits", folder_.file("no/where")}), 1, "no/where");
}

TEST_F(PerplexityProgram, CtrlCKeepsWhatWasMeasured) {
  const std::string text = folder_.write("long.txt", sample_text(4000));
  const std::string full = folder_.file("full"), codes = folder_.file("codes");
  Process process(
      {kProgram, "perplexity", "-f", text, "-c", "48", "--save-all-logits", full, "--kl-divergence-base", codes});
  for (int i = 0; i < 400 && process.out().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.out.find("Interrupted after "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("Estimate so far: PPL = "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("Final"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("was not written"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(codes));
  const ProcessResult base = perplexity({"--kl-divergence", "--kl-divergence-base", full, "--chunks", "1"}, false);
  EXPECT_EQ(base.exit_code, 0) << base.err;
  EXPECT_NE(base.out.find("Maximum KLD:   0.000000"), std::string::npos) << base.out;
}

}  // namespace
}  // namespace strata::test
