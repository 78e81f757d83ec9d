// No barrier of a shipped kernel can be left out: without any one of them a case of the operator's evidence fails. By
// default on gfx1100 for all kernels and on the other targets for one barrier of each; with TEST_ALL=1 for all.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "evidence/parity_case.h"
#include "ops/attention/device_kernel.h"
#include "ops/attention/rotation.h"
#include "ops/registry.h"
#include "unit/amdsim/mutants.h"

namespace strata::amdsim {
namespace {

bool test_all() { return std::getenv("TEST_ALL") != nullptr; }
bool whole(const std::string& target) { return test_all() || target == "gfx1100"; }

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

// More splits than the merge takes at a time: attention to so many cells takes too long here.
std::string merge_failure(const std::shared_ptr<Accelerator>& device) {
  constexpr int64_t kSplits = kMergeChunk + 70, kDim = 6;
  Random random(6);
  CaseMemory memory;
  const Tensor m = memory.f32({kSplits}, random, -3, 3), l = memory.f32({kSplits}, random, 1, 2);
  const Tensor a = memory.f32({kSplits, kDim}, random, 1, 2), out = memory.f32({kDim}, random);
  const Tensor counts = memory.i32({static_cast<int32_t>(kSplits * kCellSplit)});
  AttentionKernel kernel{};
  kernel.counts = counts.as<int32_t>();
  kernel.dim = kDim;
  kernel.kv_heads = kernel.group = 1;
  kernel.width = *kernel.counts;
  kernel.splits = kSplits;
  kernel.m = m.f32();
  kernel.l = l.f32();
  kernel.a = a.f32();
  kernel.out = out.f32();
  std::string wrong;
  for (const auto& [at, bytes] : memory.ranges()) device->register_host(at, bytes);
  try {
    for (const KernelImage* image : kernel_images())
      if (image->name == std::string("attention_merge"))
        device->make_stream()->launch("merge", *image, "attention_merge", {{1}, {256}, kMergeShared}, &kernel,
                                      sizeof(kernel));
  } catch (const Error& error) {
    wrong = error.what();
  }
  for (const auto& [at, bytes] : memory.ranges()) device->unregister_host(at);
  double total = 0, sums[kDim] = {};
  for (int64_t j = 0; j < kSplits; ++j) {
    const double weight = std::exp(static_cast<double>(kernel.m[j]));
    total += weight * kernel.l[j];
    for (int64_t c = 0; c < kDim; ++c) sums[c] += weight * kernel.a[j * kDim + c];
  }
  for (int64_t c = 0; wrong.empty() && c < kDim; ++c)  // about 300 additions in a row, of positive numbers
    if (!(std::fabs(kernel.out[c] - sums[c] / total) <= 1e-4)) wrong = "channel " + std::to_string(c);
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
    explore(open_simulation(target_), {{"rotation", rotation_failure}, {"merge of many splits", merge_failure}});
    for (const OperatorEvidence& evidence : operator_evidence())
      for (const ArmInfo& arm : evidence.arms)
        if (arm.image != nullptr && barriers_.count(arm.image->name) != 0) explore({evidence, arm});
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
    const auto device = open_simulation(target_, mutant.replaced());
    std::string names;
    for (const size_t k : spread(barrier.probes.size())) {
      const Probe& probe = barrier.probes[k];
      if (!probe.run(device).empty()) return {};
      names += (names.empty() ? " passes " : "; ") + probe.name;
    }
    return target_ + ", " + barrier.image + ": " + mutant.what + (names.empty() ? " is not reached" : names);
  }

 private:
  static constexpr uint64_t kInstructions = 100'000'000;  // of an arm that are run to find probes, by default

  // 0 to n - 1, neighbours far apart: by their bits in reversed order.
  static std::vector<size_t> spread(size_t n) {
    std::vector<size_t> order;
    const size_t bits = std::bit_width(n);
    for (size_t k = 0; k < size_t{1} << bits; ++k) {
      size_t reversed = 0;
      for (size_t bit = 0; bit < bits; ++bit) reversed |= (k >> bit & 1) << (bits - 1 - bit);
      if (reversed < n) order.push_back(reversed);
    }
    return order;
  }

  void explore(const CaseRunner& runner) {
    std::vector<Probe> probes;
    const size_t last = runner.cases() - 1, first = std::min<size_t>(8, runner.cases());
    std::vector<size_t> order(first);  // the last ones, then the others
    std::iota(order.begin(), order.end(), size_t{0});
    for (const size_t k : spread(runner.cases()))
      if (k >= first) order.push_back(k);
    for (const size_t k : order)
      probes.push_back({runner.evidence().op + " " + runner.arm().name + " case " + std::to_string(last - k),
                        [runner, at = last - k](const auto& device) { return runner.failure(at, device); }});
    explore(open_simulation(target_), probes);
  }
  void explore(const std::shared_ptr<Accelerator>& device, const std::vector<Probe>& probes) {
    const uint64_t most = test_all() ? ~uint64_t{0} : whole(target_) ? kInstructions : kInstructions / 4;
    for (const Probe& probe : probes) {
      if (simulated_instructions(*device) > most) break;
      const std::string wrong = probe.run(device);
      if (wrong.starts_with("refused")) continue;
      EXPECT_EQ(wrong, "") << target_ << " " << probe.name;
      for (const auto& [image, addresses] : met_barriers(*device))
        for (const uint32_t address : addresses) barriers_[image][address].probes.push_back(probe);
    }
  }

  std::string target_;
  std::map<std::string, std::unique_ptr<Program>> programs_;
  std::map<std::string, std::map<uint32_t, Barrier>> barriers_;
};

// Waves of 64 lanes keep to themselves what two waves of 32 exchange: these kernels have barriers that only the other
// targets need, where they are left out like all.
bool may_survive(const std::string& target, const std::string& survivor) {
  if (target != "gfx942") return false;
  return std::ranges::any_of(
      std::array{"kv_rotation, barrier", "qsa_pool_blocks, barrier", "wy_wmma_factors256, barrier"},
      [&](const char* name) { return survivor.find(name) != std::string::npos; });
}

class AmdSimBarriers : public testing::TestWithParam<std::string> {};

TEST_P(AmdSimBarriers, NoneCanBeLeftOut) {
  if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
  if (shipped_code("norm", GetParam()).empty()) GTEST_SKIP() << "no code objects in this build";
  const Barriers barriers(GetParam());
  const std::vector<Barrier> all = barriers.all();
  EXPECT_GT(all.size(), 100u);
  size_t tried = 0;
  for (size_t k = 0; k < all.size(); k += whole(GetParam()) ? 1 : 9) {
    if (!whole(GetParam()) && all[k].probes.empty()) continue;
    const std::string survivor = barriers.survivor(all[k]);
    EXPECT_TRUE(survivor.empty() || may_survive(GetParam(), survivor)) << survivor;
    ++tried;
  }
  EXPECT_GE(tried, whole(GetParam()) ? 100u : 10u);
}

INSTANTIATE_TEST_SUITE_P(Targets, AmdSimBarriers, testing::Values("gfx1100", "gfx1151", "gfx1201", "gfx942"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace strata::amdsim
