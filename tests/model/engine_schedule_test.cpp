// Same requests, same tokens and bits, whatever an engine does beside them. A failure names its seed: TEST_SEED=N runs
// that schedule alone and prints its steps; TEST_ALL=1 runs many more.
#include "model/engine_schedule.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "support/model_run.h"

namespace strata::test {
namespace {

// A token of the default model takes milliseconds: it gets few schedules of few requests.
constexpr uint64_t kMiniSchedules = 10, kTinySchedules = 120, kAllMini = 60, kAllTiny = 2000;

EngineScheduleOptions options_for(const EngineModel& model, EngineDamage damage = EngineDamage::None) {
  EngineScheduleOptions options;
  options.damage = damage;
  if (!model.small()) options.requests = 6, options.longest = 9;
  return options;
}

class EngineSchedules : public testing::TestWithParam<std::string> {};

TEST_P(EngineSchedules, EveryRequestGetsTheBitsOfAPlainRun) {
  EngineModel model(GetParam());
  const char* only = std::getenv("TEST_SEED");
  const uint64_t count =
      test_all() ? (model.small() ? kAllTiny : kAllMini) : (model.small() ? kTinySchedules : kMiniSchedules);
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 0;
  const uint64_t end = only != nullptr ? first + 1 : count;
  EngineScheduleResult::Counts sum;
  for (uint64_t seed = first; seed < end; ++seed) {
    const EngineScheduleResult result = run_engine_schedule(model, seed, options_for(model));
    if (only != nullptr) std::printf("%s", result.log.c_str());
    EXPECT_EQ(result.failure, "") << "steps:\n" << result.log << "to repeat: TEST_SEED=" << seed;
    sum.add(result.counts);
  }
  std::string held;
  for (const int64_t windows : sum.held) held += " " + std::to_string(windows);
  std::printf(
      "%s: %lld rows of logits; %lld requests finished (%lld sampled, %lld of a full context, %lld with a kept "
      "prompt), "
      "%lld cancelled, %lld interrupted, %lld without memory; %lld steps in company; sessions: %lld went on, %lld "
      "loaded, %lld restarts; windows by forced drafts that hold:%s; windows of lookup %lld, of MTP %lld\n",
      GetParam().c_str(), static_cast<long long>(sum.logits), static_cast<long long>(sum.finished),
      static_cast<long long>(sum.sampled), static_cast<long long>(sum.full), static_cast<long long>(sum.cached),
      static_cast<long long>(sum.cancelled), static_cast<long long>(sum.interrupted),
      static_cast<long long>(sum.out_of_memory), static_cast<long long>(sum.together),
      static_cast<long long>(sum.resumed), static_cast<long long>(sum.loaded), static_cast<long long>(sum.restarts),
      held.c_str(), static_cast<long long>(sum.lookup), static_cast<long long>(sum.mtp));
  if (only != nullptr) return;
  for (const int64_t happened : {sum.finished, sum.sampled, sum.cached, sum.together, sum.resumed})
    EXPECT_GT(happened, 0);
  if (!model.small()) return;  // too few to see all of it
  for (const int64_t happened :
       {sum.full, sum.cancelled, sum.interrupted, sum.out_of_memory, sum.loaded, sum.restarts, sum.lookup})
    EXPECT_GT(happened, 0);
  for (const int64_t windows : sum.held) EXPECT_GT(windows, 0);
  EXPECT_EQ(sum.mtp > 0, model.has_mtp());
}

// The checker can fail: each damage, as soon as a schedule has an occasion for it, is found.
TEST_P(EngineSchedules, EveryDamageIsFound) {
  EngineModel model(GetParam());
  const int wanted = model.small() ? 4 : 1;
  for (const EngineDamage damage :
       {EngineDamage::Company, EngineDamage::Page, EngineDamage::Rejected, EngineDamage::WrongPrefix,
        EngineDamage::WrongSession, EngineDamage::RandomNumber}) {
    SCOPED_TRACE(to_string(damage));
    int damaged = 0;
    std::string example;
    for (uint64_t seed = 0; seed < 40 && damaged < wanted; ++seed) {
      const EngineScheduleResult result = run_engine_schedule(model, seed, options_for(model, damage));
      if (!result.damaged) {
        EXPECT_EQ(result.failure, "") << result.log;
        continue;
      }
      ++damaged;
      example = result.failure;
      EXPECT_NE(result.failure, "") << result.log;
    }
    EXPECT_EQ(damaged, wanted);
    std::printf("%-32s %s\n", to_string(damage), example.c_str());
  }
}

TEST(EngineSchedule, TheSameSeedGivesTheSameSchedule) {
  EngineModel model("qwen35");
  const EngineScheduleResult a = run_engine_schedule(model, 5), b = run_engine_schedule(model, 5),
                             c = run_engine_schedule(model, 6);
  EXPECT_EQ(a.log, b.log);
  EXPECT_NE(a.log, c.log);
}

INSTANTIATE_TEST_SUITE_P(Models, EngineSchedules, testing::ValuesIn(bits_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata::test
