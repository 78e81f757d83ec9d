// Matrix kernels and what they share, with a mistake in their source, compiled as the build does: the interpreter or
// the evidence of the operator must catch each. Without a mistake the same way gives code that passes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "device/amdsim/decoder.h"
#include "unit/amdsim/assembled.h"
#include "unit/amdsim/mutants.h"

namespace strata::amdsim {
namespace {

const std::string kSource = STRATA_SOURCE_DIR "/src/";

struct Mistake {
  const char* name;
  const char* file;   // under src
  const char* wrong;  // a regular expression: what becomes `instead`
  const char* instead;
  const char* caught = "";  // what the failure says
};

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The code object of a source of src, with one file changed; empty: the compiler refused.
std::vector<unsigned char> compiled(const std::string& source, const std::string& target, const Mistake* mistake) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("strata_mistake_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::string from = kSource + source;
  if (mistake != nullptr) {
    const std::string text = text_of(kSource + mistake->file);
    const std::string changed = std::regex_replace(text, std::regex(mistake->wrong), mistake->instead);
    EXPECT_NE(changed, text) << mistake->name << ": there is no such text in " << mistake->file;
    const std::filesystem::path to = folder / mistake->file;
    std::filesystem::create_directories(to.parent_path());
    std::ofstream(to) << changed;
    if (mistake->file == source) from = to.string();
  }
  std::vector<std::string> command = {"clang-19", "-c"};
  std::istringstream flags(STRATA_AMD_FLAGS);
  for (std::string flag; flags >> flag;) command.push_back(flag);
  const std::string object = (folder / "kernel.co").string();
  for (const std::string& part : {"--offload-arch=" + target, "-I" + folder.string(), "-I" + kSource,
                                  std::string("-I" STRATA_BINARY_DIR "/device"), std::string("-o"), object, from})
    command.push_back(part);
  const bool done = run_tool(command);
  const std::string bytes = done ? text_of(object) : "";
  std::filesystem::remove_all(folder);
  return {bytes.begin(), bytes.end()};
}

class AmdSimSourceMutation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
    if (!have_assembler()) GTEST_SKIP() << "clang-19 and lld-19 are not there";
    if (shipped_code("norm", "gfx1100").empty()) GTEST_SKIP() << "no code objects in this build";
  }

  // The failure of the first case that fails; empty: none does.
  static std::string failure(const CaseRunner& runner, const std::vector<size_t>& cases, const std::string& target,
                             ReplacedCode replaced) {
    const auto device = open_simulation(target, std::move(replaced));
    for (const size_t one : cases)
      if (const std::string wrong = runner.failure(one, device); !wrong.empty()) return wrong;
    return {};
  }
  static void all_caught(const CaseRunner& runner, const std::string& image, const std::string& source,
                         const std::string& target, size_t most, const std::vector<Mistake>& mistakes) {
    std::vector<size_t> cases;
    for (size_t k = 0; k < runner.cases() && cases.size() < most; ++k)
      if (!runner.refused(k)) cases.push_back(k);
    ASSERT_FALSE(cases.empty());
    EXPECT_EQ(failure(runner, cases, target, {{image, compiled(source, target, nullptr)}}), "");
    for (const Mistake& mistake : mistakes) {
      const auto code = compiled(source, target, &mistake);
      ASSERT_FALSE(code.empty()) << mistake.name << " does not compile";
      const std::string wrong = failure(runner, cases, target, {{image, code}});
      EXPECT_NE(wrong, "") << target << ": " << mistake.name;
      EXPECT_NE(wrong.find(mistake.caught), std::string::npos) << mistake.name << ": " << wrong;
    }
  }
};

constexpr const char* kScore = "ops/qsa_score/score_wmma.gfx.cu";
constexpr const char* kLayer = "device/kernel_hip.h";
const char* const kUneven = "lanes 16 to 31 of a matrix operand must hold";

TEST_F(AmdSimSourceMutation, TheMatrixScorer) {
  const std::string product = R"(wmma_f32_16x16x16_f16_w32\(a, b, c\))";
  const std::string lower = " * static_cast<_Float16>(lane() < 16 ? 1 : 0)";
  const std::string without_a = "wmma_f32_16x16x16_f16_w32(a" + lower + ", b, c)";
  const std::string without_b = "wmma_f32_16x16x16_f16_w32(a, b" + lower + ", c)";
  all_caught({"qsa_score", "wmma"}, "score_wmma_gfx", kScore, "gfx1100", 8,
             {{"the layout of gfx12", kScore, R"(tile\[matrix::row\(i\) \* kPitch)",
               "tile[(8 * (matrix::lane() / 16) + i) * kPitch"},
              {"A not replicated", kLayer, product.c_str(), without_a.c_str(), kUneven},
              {"B not replicated", kLayer, product.c_str(), without_b.c_str(), kUneven},
              {"rows stored beyond their end", kScore, R"(if \(to < score_blocks\(a, query\)\))", "if (query >= 0)"},
              {"keys of the tile before", kScore, R"(const char\* key = keys \+ block \*)",
               "const char* key = keys + (block - first + begin) *"},
              {"sums of the tile before", kScore, R"(for \(int i = 0; i < matrix::kSums; \+\+i\) tile)",
               "for (int i = 0; t == 0 && i < matrix::kSums; ++i) tile"}});
}

// The row of the dead key is of all arms: a sum over the lanes of a wave.
TEST_F(AmdSimSourceMutation, AShuffleTooShort) {
  all_caught({"qsa_score", "fma"}, "qsa_score_fma", "ops/qsa_score/qsa_score_fma.cu", "gfx1100", 8,
             {{"half of the lanes", "device/kernel.h",
               R"(for \(int step = kWave / 2; step > 0; step /= 2\) value \+= shuffle_xor)",
               "for (int step = kWave / 4; step > 0; step /= 2) value += shuffle_xor"},
              {"lanes of another row", "device/kernel_hip.h", R"(return shuffle\(value, lane\(\) \^ mask\))",
               "return shuffle(value, lane() ^ (mask & 15))"}});
}

}  // namespace
}  // namespace strata::amdsim
