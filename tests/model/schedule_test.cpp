// Same tokens, same bits, whatever the schedule. 200 schedules by default, 10,000 with TEST_ALL=1. A failure names its
// seed: TEST_SEED=N runs that schedule alone and prints its steps.
#include "model/schedule.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "support/model_run.h"

namespace strata::test {
namespace {

// The default model's contexts pass the budget of its block selection, so it is slow: it gets few, and fewer forks.
constexpr int kMiniSchedules = 11, kTinySchedules = 27, kAllMini = 39, kAllTiny = 1423;
static_assert(kMiniSchedules + 7 * kTinySchedules == 200 && kAllMini + 7 * kAllTiny == 10000);

ScheduleOptions options_for(const BitsModel& model, Damage damage = Damage::None) {
  ScheduleOptions options;
  options.damage = damage;
  if (model.small()) return options;
  options.forks = 2;
  options.check_drafts = 8;
  return options;
}

class Schedules : public testing::TestWithParam<std::string> {};

// Of four schedules one has delta nets in the anchored form; small models also run one on the arms of AVX2 and one on
// portable code.
class Arms {
 public:
  explicit Arms(const std::string& name) : name_(name), best_(name) {}
  BitsModel& best() { return best_; }
  BitsModel& of(uint64_t seed) {
    const size_t kind = seed % 4;
    if (kind == 0 || (kind > 1 && !best_.small())) return best_;
    const CpuIsa isa = kind == 2 ? CpuIsa::Avx2 : kind == 3 ? CpuIsa::Portable : CpuIsa::Avx512Bf16;
    CacheOptions caches;
    caches.anchored = kind == 1;
    auto& other = others_[kind - 1];
    if (other == nullptr) other = std::make_unique<BitsModel>(name_, isa, caches);
    return *other;
  }

 private:
  std::string name_;
  BitsModel best_;
  std::array<std::unique_ptr<BitsModel>, 3> others_;
};

TEST_P(Schedules, EveryRowHasTheBitsOfAPlainRun) {
  Arms arms(GetParam());
  const BitsModel& model = arms.best();
  const char* only = std::getenv("TEST_SEED");
  const int count = test_all()      ? (model.small() ? kAllTiny : kAllMini)
                    : model.small() ? kTinySchedules
                                    : kMiniSchedules;
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 0;
  const uint64_t end = only != nullptr ? first + 1 : static_cast<uint64_t>(count);
  ScheduleResult sum;
  for (uint64_t seed = first; seed < end; ++seed) {
    const ScheduleResult result = run_schedule(arms.of(seed), seed, options_for(model));
    if (only != nullptr) std::printf("%s", result.log.c_str());
    EXPECT_EQ(result.failure, "") << "steps:\n" << result.log << "to repeat: TEST_SEED=" << seed;
    sum.rows += result.rows, sum.rejected += result.rejected, sum.together += result.together;
    sum.released += result.released, sum.read += result.read;
    for (size_t i = 0; i < kActions; ++i) sum.actions[i] += result.actions[i];
  }
  std::printf(
      "%s: %llu schedules, %lld rows compared, %lld in company, %lld guesses taken back, %llu pages released, "
      "%llu read again\n",
      GetParam().c_str(), static_cast<unsigned long long>(end - first), static_cast<long long>(sum.rows),
      static_cast<long long>(sum.together), static_cast<long long>(sum.rejected),
      static_cast<unsigned long long>(sum.released), static_cast<unsigned long long>(sum.read));
  if (only != nullptr) return;
  for (size_t i = 0; i < kActions; ++i) EXPECT_GT(sum.actions[i], 0) << "no schedule did action " << i;
  EXPECT_GT(sum.rejected, 0);
  EXPECT_GT(sum.together, 0);
  EXPECT_GT(sum.released, 0u);
  EXPECT_GT(sum.read, 0u);
}

// The checker can fail: each damage, as soon as a schedule has an occasion for it, is found.
TEST_P(Schedules, EveryDamageIsFound) {
  BitsModel model(GetParam());
  const int wanted = model.small() ? 5 : 1;
  for (const Damage damage : {Damage::NoTruncate, Damage::PageWrite, Damage::MatrixWrite, Damage::History,
                              Damage::ArchiveByte, Damage::LostPage, Damage::OtherContext}) {
    if (!model.has_delta() && (damage == Damage::MatrixWrite || damage == Damage::History)) continue;
    SCOPED_TRACE(to_string(damage));
    int damaged = 0;
    std::string example;
    for (uint64_t seed = 0; seed < 40 && damaged < wanted; ++seed) {
      const ScheduleResult result = run_schedule(model, seed, options_for(model, damage));
      if (!result.damaged) continue;
      ++damaged;
      example = result.failure;
      EXPECT_NE(result.failure, "") << result.log;
    }
    EXPECT_EQ(damaged, wanted);
    std::printf("%-36s %s\n", to_string(damage), example.c_str());
  }
}

TEST(Schedule, TheSameSeedGivesTheSameSchedule) {
  BitsModel model("qwen3");
  const ScheduleResult a = run_schedule(model, 5), b = run_schedule(model, 5), c = run_schedule(model, 6);
  EXPECT_EQ(a.log, b.log);
  EXPECT_NE(a.log, c.log);
}

INSTANTIATE_TEST_SUITE_P(Models, Schedules, testing::ValuesIn(bits_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata::test
