// Races in global memory: between waves of a work-group that no barrier orders, and between work-groups.
#include <gtest/gtest.h>

#include "device/amdsim/access_log.h"
#include "device/amdsim/decoder.h"
#include "unit/amdsim/assembled.h"

namespace strata::amdsim {
namespace {

// s[4:5] out, s[6:7] in; v1: four times the thread; v2: that of the thread in the grid, of blocks of 32.
const std::string kStart =
    "s_load_b128 s[4:7], s[0:1], 0x0\nv_lshlrev_b32 v1, 2, v0\ns_lshl_b32 s8, s2, 7\nv_add_nc_u32 v2, s8, v1\n"
    "s_waitcnt lgkmcnt(0)\n";
const std::string kOther = "v_xor_b32 v3, 0x80, v2\n";  // the word of the neighbouring wave or work-group
const std::string kStored = "s_waitcnt_vscnt null, 0x0\n", kLoaded = "s_waitcnt vmcnt(0)\n";

const std::vector<SmallKernel>& kernels() {
  const std::string own = "global_store_b32 v2, v0, s[4:5]\n", other = "global_load_b32 v4, v3, s[4:5]\n";
  static const std::vector<SmallKernel> all = {
      {"apart", kStart + own + kStored + "global_load_b32 v4, v2, s[4:5]\n" + kLoaded + own},
      {"all_read", kStart + "global_load_b32 v4, v1, s[6:7]\ns_load_b32 s9, s[6:7], 0x0\n" + kLoaded},
      {"bytes_apart", kStart + "v_lshlrev_b32 v5, 3, v0\nv_add_nc_u32 v5, s2, v5\nglobal_store_b8 v5, v0, s[4:5]\n" +
                          kStored + "global_load_u8 v6, v5, s[4:5]\n" + kLoaded},
      {"atomics", kStart + "v_mov_b32 v5, 0\nglobal_atomic_add_u32 v5, v0, s[4:5]\n"},
      {"one_word", kStart + "global_store_b32 v1, v0, s[4:5]\n"},
      {"one_byte", kStart + "global_store_b8 v0, v0, s[4:5]\n"},
      {"reads_other", kStart + kOther + own + kStored + other + kLoaded},
      {"reads_then_other_writes", kStart + kOther + other + kLoaded + own},
      {"scalar_read", kStart + own + kStored + "s_load_b32 s9, s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\n"},
      {"atomic_and_load", kStart + "global_atomic_add_u32 v2, v0, s[4:5]\n" + kStored + kOther + other + kLoaded},
      {"atomic_and_store",
       kStart + "global_atomic_add_u32 v2, v0, s[4:5]\n" + kStored + kOther + "global_store_b32 v3, v0, s[4:5]\n"},
      {"ordered", kStart + kOther + own + kStored + "s_barrier\n" + other + kLoaded + "s_barrier\n" + own},
      {"unordered_write", kStart + kOther + own + kStored + "s_barrier\n" + other + kLoaded + own},
  };
  return all;
}

class AmdSimRace : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
    if (!have_assembler()) GTEST_SKIP() << "clang-19 and lld-19 are not there";
  }
  static std::string error(const std::string& kernel, int64_t groups, int64_t threads, uint64_t seed = 1,
                           int pool = 1) {
    static const Program program(assemble("gfx1100", kernels()));
    return run_small(program, kernel, groups, threads, seed, 100000, pool).error;
  }
};

TEST_F(AmdSimRace, WorkGroupsApartDoNotMeet) {
  for (const char* kernel : {"apart", "all_read", "bytes_apart", "atomics"}) EXPECT_EQ(error(kernel, 8, 32), "");
}

// Whatever the order, and on several threads: of two that meet one sees the other.
TEST_F(AmdSimRace, WorkGroupsThatMeetAreNamed) {
  for (const char* kernel : {"one_word", "one_byte", "reads_other", "reads_then_other_writes", "scalar_read",
                             "atomic_and_load", "atomic_and_store"})
    for (uint64_t turn = 0; turn < 24; ++turn) {
      EXPECT_EQ(error(kernel, 1, 32), "");
      const std::string wrong = error(kernel, 2 + 6 * (turn % 2), 32, turn, 1 + turn % 4);
      EXPECT_NE(wrong.find("nothing orders accesses of work-groups"), std::string::npos) << kernel << ": " << wrong;
      EXPECT_NE(wrong.find(std::string("kernel ") + kernel + ", address 0x"), std::string::npos) << wrong;
      EXPECT_NE(wrong.find("work-group"), std::string::npos) << wrong;
    }
  EXPECT_NE(error("one_word", 2, 32).find(", lane 0: a store of 4 bytes at 0x"), std::string::npos);
  EXPECT_NE(error("one_word", 2, 32).find(" races with work-group 0"), std::string::npos) << error("one_word", 2, 32);
}

TEST_F(AmdSimRace, WavesOfAGroupAreOrderedByBarriers) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(error("ordered", 1, 64, seed), "");
    for (const char* kernel : {"reads_other", "reads_then_other_writes", "unordered_write", "atomic_and_load"}) {
      const std::string wrong = error(kernel, 1, 64, seed);
      EXPECT_NE(wrong.find("no barrier is between them"), std::string::npos) << kernel << ": " << wrong;
      EXPECT_NE(wrong.find("races with wave"), std::string::npos) << wrong;
    }
  }
}

TEST(AmdSimAccessLog, ReadersOfOneBytePassAWriterOfAnother) {
  AccessLog log;
  AccessLog::Page& page = *log.page(0);
  const uint64_t first = AccessLog::accessor(0, 0, 0), second = AccessLog::accessor(1, 0, 0);
  EXPECT_EQ(AccessLog::note(page, 0, 3, AccessKind::Read, first), 0u);
  EXPECT_EQ(AccessLog::note(page, 0, 12, AccessKind::Write, second), 0u);
  EXPECT_EQ(AccessLog::note(page, 0, 3, AccessKind::Read, first), 0u);
  EXPECT_NE(AccessLog::note(page, 0, 4, AccessKind::Read, first), 0u);
}

// An access that spans words and pages is noted in all of them.
TEST(AmdSimAccessLog, AccessesAnywhere) {
  AccessLog log;
  AccessView view(log);
  const uint64_t first = AccessLog::accessor(0, 0, 0), second = AccessLog::accessor(1, 0, 0);
  const uint64_t edge = 4 * AccessLog::kWords;
  EXPECT_EQ(view.note(edge - 3, 6, AccessKind::Write, first), 0u);
  for (uint64_t at = edge - 8; at < edge + 8; ++at)
    EXPECT_EQ(view.note(at, 1, AccessKind::Read, second) != 0, at >= edge - 3 && at < edge + 3) << at - edge;
}

TEST(AmdSimAccessLog, GroupsBeyondTheNumberThatFitsAreStillApart) {
  AccessLog log;
  AccessLog::Page& page = *log.page(0);
  for (int64_t group : {int64_t{0}, int64_t{0x7ffffffd}, int64_t{1} << 40}) {
    EXPECT_EQ(AccessLog::note(page, 1, 15, AccessKind::Read, AccessLog::accessor(group, 0, 0)), 0u);
    EXPECT_EQ(AccessLog::note(page, 1, 15, AccessKind::Read, AccessLog::accessor(group, 1, 3)), 0u);
  }
  EXPECT_NE(AccessLog::note(page, 1, 15, AccessKind::Write, AccessLog::accessor(0, 0, 0)), 0u);
}

}  // namespace
}  // namespace strata::amdsim
