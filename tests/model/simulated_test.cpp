// A small model of each family on simulated AMD GPUs, from its prompt to its tokens: machine code, interpreted. Greedy
// tokens are the CPU's. By default on gfx1100 alone; with TEST_ALL=1 more tokens, and on all targets.
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "runtime/engine.h"
#include "support/model_run.h"
#include "support/test_files.h"
#include "support/tiny_models.h"

namespace strata::test {
namespace {

struct Family {
  std::string arch, target;
  bool anchored = false;  // delta nets in their anchored form
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.arch << " on " << family.target; }

std::vector<Family> families() {
  std::vector<Family> all;
  for (const char* target : {"gfx1100", "gfx1151", "gfx1201", "gfx942"})
    for (const char* arch : kArchitectures) {
      all.push_back({arch, target, false});
      if (is_hybrid(arch)) all.push_back({arch, target, true});
    }
  return all;
}

std::string name_of(const testing::TestParamInfo<Family>& info) {
  return info.param.target + "_" + info.param.arch + (info.param.anchored ? "_anchored" : "");
}

class Simulated : public testing::TestWithParam<Family> {
 protected:
  // The prompt passes the budget of block selection, which is 8 positions in such models.
  static std::vector<int32_t> generate(const std::string& path, const std::string& device, bool anchored) {
    EngineOptions options;
    options.model = path;
    options.device = device;
    options.caches = exact_caches();
    options.caches.anchored = anchored;
    options.micro_batch = 16;
    Log log(LogLevel::Error);
    Engine engine(options, log);
    GenerateRequest request;
    for (int k = 0; k < (test_all() ? 43 : 37); ++k) request.prompt.push_back(32 + k * 7 % 90);
    request.max_tokens = test_all() ? 20 : 6;
    request.ignore_end = true;
    request.sampler.temperature = 0;
    return engine.generate(request).tokens;
  }
};

TEST_P(Simulated, GreedyTokensAreThoseOfTheCpu) {
  const Family& family = GetParam();
  if (!amdsim::decoder_missing().empty()) GTEST_SKIP() << amdsim::decoder_missing();
  if (!test_all() && family.target != "gfx1100") GTEST_SKIP() << "with TEST_ALL=1";
  const TempFolder folder;
  const std::string path = folder.file("model.gguf");
  TinyShape shape;
  shape.width = 128;
  shape.type = DType::F32;  // what the CPU computes from f32 weights is as close as what a GPU does
  tiny_model(family.arch, shape).write(path);
  const std::vector<int32_t> expected = generate(path, "cpu", family.anchored);
  std::vector<int32_t> tokens;
  try {
    tokens = generate(path, "sim:" + family.target, family.anchored);
  } catch (const Error& error) {
    if (std::string(error.what()).find("this build has no code") != std::string::npos) GTEST_SKIP() << error.what();
    throw;
  }
  EXPECT_EQ(tokens, expected);
}

INSTANTIATE_TEST_SUITE_P(Families, Simulated, testing::ValuesIn(families()), name_of);

}  // namespace
}  // namespace strata::test
