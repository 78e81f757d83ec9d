// STRATA_SELECT_WMMA and STRATA_GDN_WY: what they ask for, where it runs, what the log says where it does not.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/common_settings.h"
#include "cli/model_settings.h"
#include "device/amdsim/decoder.h"
#include "evidence/parity.h"
#include "ops/registry.h"

namespace strata::cli {
namespace {

std::vector<std::pair<std::string, std::string>> requested(const std::vector<const char*>& variables) {
  Settings settings({common_settings(), kernel_settings()}, operator_names());
  std::vector<const char*> environment = variables;
  environment.push_back(nullptr);
  settings.load_environment(environment.data());
  return requested_arms(settings, operator_names());
}

// Memory that a device may read, for as long as this lives.
class Registered {
 public:
  Registered(std::shared_ptr<Accelerator> accelerator, const ParityCase& test)
      : accelerator_(std::move(accelerator)), ranges_(test.ranges) {
    for (const auto& [memory, bytes] : ranges_) accelerator_->register_host(memory, bytes);
  }
  ~Registered() {
    for (const auto& [memory, bytes] : ranges_) accelerator_->unregister_host(memory);
  }

 private:
  std::shared_ptr<Accelerator> accelerator_;
  std::vector<std::pair<void*, size_t>> ranges_;
};

// What the log says of a case of the operator with the arms that the variable asks for.
std::string log_of(const std::string& device, const std::string& op, size_t which, const char* variable) {
  for (const OperatorEvidence& evidence : operator_evidence()) {
    if (evidence.op != op) continue;
    ParityCase test = evidence.cases(1)[which]();
    std::FILE* file = std::tmpfile();
    {
      Log log(LogLevel::Info, file);
      const std::shared_ptr<Accelerator> accelerator = device == "cpu" ? nullptr : open_accelerator(device);
      std::unique_ptr<Registered> registered;
      if (accelerator != nullptr) registered = std::make_unique<Registered>(accelerator, test);
      Queue queue = accelerator == nullptr ? Queue(1, log) : Queue(accelerator, log);
      for (const auto& [name, arm] : requested({variable})) queue.request_arm(name, arm);
      test.run(queue);
      queue.space().wait();
    }
    std::string text(static_cast<size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
  }
  return "no such operator";
}

constexpr const char *kScore = "STRATA_SELECT_WMMA=1", *kDelta = "STRATA_GDN_WY=1";
constexpr size_t kDeltaCase = 2;  // the first one with a row

TEST(MatrixArms, VariablesAskForArmsAndLongNamesWin) {
  using Arms = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(requested({}), Arms{});
  EXPECT_EQ(requested({kScore}), (Arms{{"qsa_score", "wmma"}}));
  EXPECT_EQ(requested({kDelta}), (Arms{{"gated_delta", "wy-wmma"}}));
  const Arms both = requested({kDelta, "STRATA_ARM_GATED_DELTA=wy-fma"});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both.back().second, "wy-fma");
}

TEST(MatrixArms, RunOnSimulatedAmdGpus) {
  if (!amdsim::decoder_missing().empty()) GTEST_SKIP() << amdsim::decoder_missing();
  for (const std::string target : {"gfx1100", "gfx1151", "gfx1201", "gfx942"}) {
    const std::string device = "sim:" + target, where = "(sim-" + target + ")\n";
    const std::string score = log_of(device, "qsa_score", 0, kScore),
                      delta = log_of(device, "gated_delta", kDeltaCase, kDelta);
    if (score.find("this build has no code") != std::string::npos) GTEST_SKIP() << score;
    EXPECT_NE(score.find("arm qsa_score = wmma " + where), std::string::npos) << score;
    EXPECT_NE(delta.find("arm gated_delta = wy-wmma " + where), std::string::npos) << delta;
  }
}

TEST(MatrixArms, AreRefusedElsewhereWithAReason) {
  for (const std::string device : {"cpu", "emu"}) {
    const std::string score = log_of(device, "qsa_score", 0, kScore),
                      delta = log_of(device, "gated_delta", kDeltaCase, kDelta);
    EXPECT_NE(score.find("arm qsa_score: wmma refused: it runs on AMD GPUs alone; using "), std::string::npos) << score;
    EXPECT_NE(delta.find("arm gated_delta: wy-wmma refused: it runs on AMD GPUs alone; using "), std::string::npos)
        << delta;
  }
}

}  // namespace
}  // namespace strata::cli
