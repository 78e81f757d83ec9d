// The second tier: what leaves memory comes back with its bytes, and is really gone in between.
#include "cache/file_tier.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "cache/paged_rows.h"
#include "support/append.h"

namespace strata {
namespace {

constexpr size_t kBytes = size_t{64} << 10;

bool folder_in_memory() {
  struct statfs status {};
  return ::statfs(kDefaultTierFolder, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

// Bytes of [data, data + bytes) that are in memory, as the system says.
size_t in_memory(const void* data, size_t bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> flags((bytes + page - 1) / page);
  EXPECT_EQ(::mincore(const_cast<void*>(data), bytes, flags.data()), 0);
  size_t count = 0;
  for (const unsigned char flag : flags) count += flag & 1;
  return count * page;
}

std::vector<FileTier::Slot> take_filled(FileTier& tier, int count) {
  std::vector<FileTier::Slot> slots;
  for (int i = 0; i < count; ++i) {
    slots.push_back(tier.take(kBytes));
    std::memset(slots.back().data, i + 1, kBytes);
  }
  return slots;
}

bool holds(const FileTier::Slot& slot, int value) {
  for (size_t i = 0; i < slot.bytes; ++i)
    if (slot.data[i] != static_cast<char>(value)) return false;
  return true;
}

// Puts a limit on the size of files, as a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(size_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(FileTier, WhatIsReleasedLeavesMemoryAndComesBackWithItsBytes) {
  FileTier tier(kDefaultTierFolder);
  std::vector<FileTier::Slot> slots = take_filled(tier, 32);
  std::vector<FileTier::Slot*> odd;
  for (size_t i = 1; i < slots.size(); i += 2) odd.push_back(&slots[i]);
  tier.release(odd);
  EXPECT_EQ(tier.stats().resident, 16 * kBytes);
  EXPECT_EQ(tier.stats().released, 16u);
  if (!folder_in_memory()) {
    size_t left = 0;
    for (size_t i = 0; i < slots.size(); ++i) {
      const size_t bytes = in_memory(slots[i].data, kBytes);
      if (i % 2 == 1)
        left += bytes;
      else
        EXPECT_EQ(bytes, kBytes) << i;
    }
    // The system may keep a page that somebody else looks at just now: one in ten is far more than that.
    EXPECT_LT(left, odd.size() * kBytes / 10);
    // A read brings in what it touches and no neighbours.
    const size_t before = in_memory(slots[5].data, kBytes);
    EXPECT_EQ(slots[5].data[9], 6);
    EXPECT_LE(in_memory(slots[5].data, kBytes), before + static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  }
  tier.bring(odd);
  EXPECT_EQ(tier.stats().resident, 32 * kBytes);
  EXPECT_EQ(tier.stats().read, 16u);
  for (size_t i = 0; i < slots.size(); ++i) EXPECT_TRUE(holds(slots[i], static_cast<int>(i) + 1)) << i;
  for (const FileTier::Slot& slot : slots) tier.give_back(slot);
  EXPECT_EQ(tier.stats().used, 0u);
  EXPECT_EQ(tier.stats().resident, 0u);
  EXPECT_EQ(tier.stats().peak_used, 32 * kBytes);
}

TEST(FileTier, SpaceThatWasGivenBackIsUsedAgainAndTrimmed) {
  FileTier tier(kDefaultTierFolder);
  std::vector<FileTier::Slot> slots = take_filled(tier, 32);
  const uint64_t reserved = tier.stats().reserved;
  for (const FileTier::Slot& slot : slots) tier.give_back(slot);
  const bool look = !folder_in_memory();
  EXPECT_EQ(look ? in_memory(slots[0].data, kBytes) : 0, 0u);  // nothing is kept in memory for nobody
  slots = take_filled(tier, 32);
  EXPECT_EQ(tier.stats().reserved, reserved);
  const FileTier::Slot kept = slots.back();
  slots.pop_back();
  for (const FileTier::Slot& slot : slots) tier.give_back(slot);
  tier.trim();
  EXPECT_EQ(tier.stats().reserved, kBytes);
  EXPECT_TRUE(holds(kept, 32));
  {  // what was trimmed has to find space again
    const FileSizeLimit limit(1);
    EXPECT_THROW(tier.take(kBytes), Error);
    EXPECT_EQ(tier.stats().used, kBytes);
  }
  slots = take_filled(tier, 31);
  EXPECT_EQ(tier.stats().reserved, 32 * kBytes);
  for (int i = 0; i < 31; ++i) EXPECT_TRUE(holds(slots[static_cast<size_t>(i)], i + 1));
  EXPECT_TRUE(holds(kept, 32));
}

TEST(FileTier, NoSpaceIsAnErrorBeforeAnythingIsWritten) {
  const FileSizeLimit limit(5 * kBytes);
  PagePool pool;
  std::vector<Block> blocks;
  for (int i = 0; i < 5; ++i) {
    blocks.emplace_back(pool, kBytes, Tier::File);
    std::memset(blocks.back().writable(), i, kBytes);
  }
  const Block copy = blocks[0];
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      blocks[0].writable();  // the copy needs space of its own
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Memory);
      for (const char* part : {"no space", "--kv-file-dir", kDefaultTierFolder})
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(blocks[0].data(), copy.data());
  blocks.pop_back();
  static_cast<char*>(blocks[0].writable())[1] = 9;
  EXPECT_EQ(static_cast<const char*>(copy.data())[1], 0);
  EXPECT_EQ(static_cast<const char*>(blocks[0].data())[2], 0);
  EXPECT_EQ(pool.used(), 0u);  // the limit of the pool is for memory
  EXPECT_EQ(pool.file().used, 5 * kBytes);
}

TEST(FileTier, AFolderThatCannotServeIsOneClearError) {
  for (const char* folder : {"/nowhere/at/all", "/proc", "/dev/null"}) {
    try {
      check_tier_folder(folder);
      FAIL() << folder;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      EXPECT_NE(std::string(error.what()).find("--kv-file-dir"), std::string::npos) << error.what();
    }
    PagePool pool;
    pool.set_folder(folder);
    EXPECT_THROW(Block(pool, 64, Tier::File), Error);
    EXPECT_EQ(pool.file().used, 0u);
  }
}

// Rows of 512 bytes: a page is 32 KiB.
constexpr int64_t kWidth = 128;

void append(PagedRows& rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> row(kWidth, static_cast<float>(rows.length()));
    append_rows(test_queue(), rows, make_f32(row.data(), {1, kWidth}));
  }
}

size_t pages_in_memory(const PagedRows& rows) {
  size_t bytes = 0;
  for (int64_t first = 0; first < rows.length(); first += kPageRows)
    bytes += in_memory(rows.row(first), kWidth * kPageRows * sizeof(float));
  return bytes / (kWidth * kPageRows * sizeof(float));
}

TEST(PagedRowsInAFile, TheWorkingSetIsWhatWasUsedLast) {
  PagePool pool;
  PagedRows rows(pool, DType::F32, {kWidth}, 4 * kPageRows);
  append(rows, 20 * kPageRows);
  const uint64_t page = pool.file().used / 20;
  EXPECT_EQ(pool.file().resident, 20 * page);  // until the pass is over
  rows.release();
  EXPECT_EQ(pool.file().resident, 4 * page);
  EXPECT_EQ(folder_in_memory() ? 4 : pages_in_memory(rows), 4u);
  const std::vector<int64_t> some{3, 7, 8};
  rows.use(some);
  EXPECT_EQ(pool.file().resident, 7 * page);  // 0, 1 and 2 were as new as any, and the newest
  rows.release();
  EXPECT_EQ(pool.file().resident, 4 * page);  // the three and the newest
  const uint64_t read = pool.file().read;
  rows.use(some);
  EXPECT_EQ(pool.file().read, read);
  // Read from end to end, it keeps its beginning: each time only the others are read.
  rows.use_all();
  rows.release();
  const uint64_t released = pool.file().released, again = pool.file().read;
  rows.use_all();
  rows.release();
  EXPECT_EQ(pool.file().read - again, 16u);
  EXPECT_EQ(pool.file().released - released, 16u);
  for (int64_t i = 0; i < rows.length(); ++i)
    ASSERT_EQ(static_cast<const float*>(rows.row(i))[kWidth - 1], static_cast<float>(i));
}

TEST(PagedRowsInAFile, PagesThatCopiesShareLeaveWithTheLastWhoHoldsThem) {
  PagePool pool;
  PagedRows first(pool, DType::F32, {kWidth}, 2 * kPageRows);
  append(first, 6 * kPageRows);
  first.release();
  const uint64_t page = pool.file().used / 6;
  {
    PagedRows second = first;
    EXPECT_EQ(pool.file().resident, 2 * page);
    EXPECT_EQ(pool.file().used, 6 * page);
    const std::vector<int64_t> both{0, 3};
    second.use(both);  // page 0 is held by the first as well
    EXPECT_EQ(pool.file().resident, 3 * page);
    first.release();
    EXPECT_EQ(pool.file().resident, 3 * page);
    append(second, 10);
    EXPECT_EQ(pool.file().used, 7 * page);
  }
  EXPECT_EQ(pool.file().used, 6 * page);
  EXPECT_EQ(pool.file().resident, 2 * page);  // those of the first
  const PagedRows third = first;
  first = PagedRows();
  EXPECT_EQ(pool.file().resident, 0u);
  EXPECT_EQ(third.hash(0), third.hash(0));
  EXPECT_LE(pool.file().resident, 2 * page);
}

// Any schedule: the same rows as in memory, and never more in memory than the working sets.
TEST(PagedRowsInAFile, RandomSchedulesHoldWhatMemoryHolds) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    PagePool pool, plain;
    pool.poison(true);
    struct Both {
      PagedRows file, memory;
    };
    std::vector<Both> all;
    all.push_back({PagedRows(pool, DType::F32, {kWidth}, 2 * kPageRows), PagedRows(plain, DType::F32, {kWidth})});
    float serial = 0;
    for (int step = 0; step < 80; ++step) {
      const auto index = static_cast<size_t>(random.below(static_cast<int64_t>(all.size())));
      Both& one = all[index];
      switch (random.below(6)) {
        case 0:
        case 1: {
          const int64_t count = random.below(150);
          std::vector<float> values(static_cast<size_t>(count * kWidth), ++serial);
          append_rows(test_queue(), one.file, make_f32(values.data(), {count, kWidth}));
          append_rows(test_queue(), one.memory, make_f32(values.data(), {count, kWidth}));
          break;
        }
        case 2: {
          const int64_t length = random.below(one.file.length() + 1);
          one.file.truncate(length);
          one.memory.truncate(length);
          break;
        }
        case 3:
          if (one.file.length() > 0) {
            const std::vector<int64_t> page{random.below((one.file.length() + kPageRows - 1) / kPageRows)};
            one.file.use(page);
          }
          break;
        case 4:
          if (all.size() < 4) {
            Both copy = one;
            all.push_back(std::move(copy));
          }
          break;
        default:
          if (all.size() > 1) all.erase(all.begin() + static_cast<std::ptrdiff_t>(index));
      }
      for (const Both& both : all) ASSERT_EQ(both.file.hash(1), both.memory.hash(1)) << "seed " << seed;
      ASSERT_LE(pool.file().resident, all.size() * 2 * kPageRows * kWidth * sizeof(float)) << "seed " << seed;
    }
    EXPECT_GT(pool.file().read, 0u);
    EXPECT_EQ(pool.used(), 0u);
    all.clear();
    EXPECT_EQ(pool.file().used, 0u);
    EXPECT_EQ(pool.file().resident, 0u);
  }
}

// The comparisons can fail: a page that is lost while it is out of memory shows.
TEST(PagedRowsInAFile, ALostPageIsSeen) {
  PagePool pool;
  PagedRows rows(pool, DType::F32, {kWidth}, kPageRows);
  append(rows, 3 * kPageRows);
  const uint64_t before = rows.hash(1);
  EXPECT_EQ(rows.hash(1), before);
  ASSERT_EQ(::madvise(const_cast<void*>(rows.row(kPageRows)), 1, MADV_REMOVE), 0);
  EXPECT_NE(rows.hash(1), before);
}

}  // namespace
}  // namespace strata
