// No barrier of a shipped kernel can be left out: without any one of them a case of the operator's evidence fails. By
// default on gfx1100 for all kernels and on the other targets for one barrier of each; with TEST_ALL=1 for all.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "evidence/parity_case.h"
#include "ops/attention/rotation.h"
#include "ops/registry.h"
#include "unit/amdsim/mutants.h"

namespace strata::amdsim {
namespace {

bool test_all() { return std::getenv("TEST_ALL") != nullptr; }

// Something that runs kernels on a device and looks at what they gave: the first thing that is wrong, or nothing.
struct Probe {
  std::string name;
  std::function<std::string(const std::shared_ptr<Accelerator>&)> run;
};

// The rotation of heads has no evidence of its own: it is part of a 4-bit cache.
std::string rotation_failure(const std::shared_ptr<Accelerator>& device) {
  constexpr int64_t kRows = 3, kHeads = 2, kDim = 128;
  Random random(5);
  CaseMemory memory;
  const Tensor x = memory.f32({kRows, kHeads, kDim}, random);
  std::vector<std::vector<double>> expected, bound;
  for (int64_t row = 0; row < kRows * kHeads; ++row) {
    const float* values = static_cast<const float*>(x.data) + row * kDim;
    expected.emplace_back(kDim);
    bound.emplace_back(kDim);
    rotation_oracle(values, kDim, expected.back().data());
    rotation_bound(values, kDim, bound.back().data());
  }
  for (const auto& [at, bytes] : memory.ranges()) device->register_host(at, bytes);
  std::string wrong;
  try {
    Log log(LogLevel::Error);
    Queue queue(device, log);
    rotate_heads(queue, x);
    queue.stream().wait();
  } catch (const Error& error) {
    wrong = error.what();
  }
  for (const auto& [at, bytes] : memory.ranges()) device->unregister_host(at);
  for (size_t row = 0; wrong.empty() && row < expected.size(); ++row)
    for (size_t c = 0; c < kDim; ++c) {
      const float value = static_cast<const float*>(x.data)[row * kDim + c];
      if (!(std::fabs(value - expected[row][c]) <= bound[row][c])) wrong = "row " + std::to_string(row);
    }
  return wrong;
}

// The program without the barrier at an instruction: of gfx12, without its signal too.
Mutant without_barrier(const Program& program, const std::string& image, uint32_t index) {
  PatchedCode patched(shipped_code(image, processor_of(program.target())));
  auto drop = [&](uint32_t k) { patched.no_operation(program[k].address, program[program[k].next].address); };
  drop(index);
  if (is_gfx12(program.target()))
    for (uint32_t k = index; k-- > 0;)
      if (program[k].name == std::string("s_barrier_signal")) {
        drop(k);
        break;
      }
  return {kernel_at(program, program[index].address) + ", barrier at " + std::to_string(program[index].address), image,
          patched.bytes()};
}

struct Barrier {
  std::string image;
  uint32_t index = 0;         // of the instruction
  std::vector<Probe> probes;  // that come to it
};

// The barriers of a target's code objects and what comes to them.
class Barriers {
 public:
  explicit Barriers(const std::string& target) : target_(target) {
    for (const KernelImage* image : kernel_images()) {
      const auto code = shipped_code(image->name, target);
      if (code.empty()) continue;
      auto& program = programs_[image->name] = std::make_unique<Program>(code);
      const char* name = is_gfx12(program->target()) ? "s_barrier_wait" : "s_barrier";
      for (const uint32_t k : instructions_of(*program, name))
        barriers_[image->name][(*program)[k].address] = {image->name, k, {}};
    }
    for (const OperatorEvidence& evidence : operator_evidence())
      for (const ArmInfo& arm : evidence.arms)
        if (arm.image != nullptr && barriers_.count(arm.image->name) != 0) explore({evidence, arm});
    explore(open_simulation(target_), {{"rotation", rotation_failure}});
  }

  std::vector<Barrier> all() const {
    std::vector<Barrier> list;
    for (const auto& [image, by_address] : barriers_)
      for (const auto& [address, barrier] : by_address) list.push_back(barrier);
    return list;
  }
  // What lets a kernel without it pass, or nothing: then it was caught.
  std::string survivor(const Barrier& barrier) const {
    const Mutant mutant = without_barrier(*programs_.at(barrier.image), barrier.image, barrier.index);
    std::string names;
    for (const Probe& probe : barrier.probes) {
      if (!probe.run(open_simulation(target_, mutant.replaced())).empty()) return {};
      names += (names.empty() ? "" : "; ") + probe.name;
    }
    return target_ + ", " + barrier.image + ": " + mutant.what +
           (names.empty() ? " is not reached" : " passes " + names);
  }

 private:
  static constexpr size_t kMostProbes = 4;  // of a barrier

  void explore(const CaseRunner& runner) {
    std::vector<Probe> probes;
    for (size_t k = 0; k < runner.cases(); ++k)
      probes.push_back({runner.evidence().op + " case " + std::to_string(k),
                        [runner, k](const auto& device) { return runner.failure(k, device); }});
    explore(open_simulation(target_), probes);
  }
  // By default until two cases in turn for each barrier were found or eight seconds are over.
  void explore(const std::shared_ptr<Accelerator>& device, const std::vector<Probe>& probes) {
    const auto start = std::chrono::steady_clock::now();
    for (const Probe& probe : probes) {
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(test_all() ? 120 : 8)) break;
      const std::string wrong = probe.run(device);
      if (wrong.starts_with("refused")) continue;
      EXPECT_EQ(wrong, "") << target_ << " " << probe.name;
      for (const auto& [image, addresses] : met_barriers(*device))
        for (const uint32_t address : addresses) {
          std::vector<Probe>& known = barriers_[image][address].probes;
          if (known.size() < kMostProbes) known.push_back(probe);
        }
    }
  }

  std::string target_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
  std::map<std::string, std::map<uint32_t, Barrier>> barriers_;
};

class AmdSimBarriers : public testing::TestWithParam<std::string> {};

TEST_P(AmdSimBarriers, NoneCanBeLeftOut) {
  if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
  if (shipped_code("norm", GetParam()).empty()) GTEST_SKIP() << "no code objects in this build";
  const Barriers barriers(GetParam());
  const std::vector<Barrier> all = barriers.all();
  EXPECT_GT(all.size(), 100u);
  const size_t step = test_all() || GetParam() == "gfx1100" ? 1 : 9;
  for (size_t k = 0; k < all.size(); k += step) EXPECT_EQ(barriers.survivor(all[k]), "");
}

INSTANTIATE_TEST_SUITE_P(Targets, AmdSimBarriers, testing::Values("gfx1100", "gfx1151", "gfx1201", "gfx942"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace strata::amdsim
