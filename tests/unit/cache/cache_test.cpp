// Caches against a plain list of rows: random appends, truncations and copies that must never see each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "cache/history_rows.h"
#include "cache/paged_rows.h"
#include "support/append.h"

namespace strata {
namespace {

TEST(PagePool, CountsWhatIsLiveAndReusesWhatWasGivenBack) {
  PagePool pool(1000);
  {
    const Block a(pool, 400), b = a;
    EXPECT_EQ(pool.used(), 400u);
    EXPECT_TRUE(a.shared());
    EXPECT_EQ(a.data(), b.data());
  }
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(pool.kept(), 400u);
  const Block c(pool, 400);
  EXPECT_EQ(pool.kept(), 0u);
  EXPECT_EQ(pool.used(), 400u);
}

TEST(PagePool, TheLimitIsAnErrorAndLosesNothing) {
  PagePool pool(1000);
  Block a(pool, 600);
  std::memset(a.writable(), 7, 600);
  try {
    Block b(pool, 500);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
  }
  const Block copy = a;
  EXPECT_THROW(a.writable(), Error);  // the copy that a write needs does not fit
  EXPECT_EQ(static_cast<const char*>(a.data())[599], 7);
  EXPECT_EQ(a.data(), copy.data());
  EXPECT_THROW(Block(pool, 2000), Error);
}

TEST(PagePool, KeptBlocksOfOtherSizesMakeRoom) {
  PagePool pool(1000);
  { const Block a(pool, 800); }
  EXPECT_EQ(pool.kept(), 800u);
  const Block b(pool, 900);
  EXPECT_EQ(pool.kept(), 0u);
  EXPECT_EQ(pool.used(), 900u);
}

TEST(Block, AWriteAfterACopyChangesOneOfThem) {
  PagePool pool;
  Block a(pool, 64);
  std::memset(a.writable(), 1, 64);
  const Block b = a;
  static_cast<char*>(a.writable())[3] = 2;
  EXPECT_EQ(static_cast<const char*>(b.data())[3], 1);
  EXPECT_EQ(static_cast<const char*>(a.data())[3], 2);
  EXPECT_EQ(static_cast<const char*>(a.data())[4], 1);
  EXPECT_FALSE(a.shared());
}

TEST(PagePool, PoisonShowsWhatNobodyWrote) {
  PagePool pool;
  pool.poison(true);
  const Block a(pool, 64);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(a.f32()[i]));
}

// A row is one float: its content is the serial number of the append that made it.
struct Rows {
  PagedRows real;
  std::vector<float> expected;

  void append(const std::vector<float>& values) {
    std::vector<float> rows;
    for (const float value : values) rows.insert(rows.end(), {value, value + 0.25f});
    append_rows(test_queue(), real, make_f32(rows.data(), {static_cast<int64_t>(values.size()), 2}));
    expected.insert(expected.end(), values.begin(), values.end());
  }
  void truncate(int64_t length) {
    real.truncate(length);
    expected.resize(static_cast<size_t>(length));
  }
  void check() const {
    ASSERT_EQ(real.length(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto* row = static_cast<const float*>(real.row(static_cast<int64_t>(i)));
      ASSERT_EQ(row[0], expected[i]) << i;
      ASSERT_EQ(row[1], expected[i] + 0.25f) << i;
      const auto* page = static_cast<const float*>(real.pages().page[i / kPageRows]);
      ASSERT_EQ(page[i % kPageRows * 2], expected[i]);
    }
  }
};

TEST(PagedRows, RandomSchedulesOfCopiesNeverSeeEachOther) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    PagePool pool;
    pool.poison(true);
    std::vector<Rows> all(1);
    all[0].real = PagedRows(pool, DType::F32, {2});
    float serial = 1;
    for (int step = 0; step < 120; ++step) {
      Rows& one = all[static_cast<size_t>(random.below(static_cast<int64_t>(all.size())))];
      switch (random.below(4)) {
        case 0:
        case 1: {
          std::vector<float> values(static_cast<size_t>(random.below(90)));
          for (float& value : values) value = serial++;
          one.append(values);
          break;
        }
        case 2: one.truncate(random.below(one.real.length() + 1)); break;
        default:
          if (all.size() < 6) {
            Rows copy = one;
            all.push_back(std::move(copy));
          } else {
            all.erase(all.begin() + random.below(6));
          }
      }
      for (const Rows& rows : all) rows.check();
    }
    all.clear();
    EXPECT_EQ(pool.used(), 0u);
  }
}

TEST(PagedRows, ACopyTakesNoMemoryUntilItIsWrittenAndThenOnePage) {
  PagePool pool;
  Rows a;
  a.real = PagedRows(pool, DType::F32, {2});
  a.append(std::vector<float>(200, 3.0f));
  const uint64_t before = pool.used();
  Rows b = a;
  EXPECT_EQ(pool.used(), before);
  b.append({4.0f});
  EXPECT_EQ(pool.used(), before + 64 * 2 * sizeof(float));
  a.check();
  b.check();
}

// A pass takes its memory before it writes: also that of a page which is begun, and which a copy shares.
TEST(PagedRows, PreparedRowsTakeNoMemory) {
  for (const int64_t length : {0, 1, 57, 63, 64, 65})
    for (const int64_t rows : {0, 1, 7, 64, 130}) {
      PagePool pool;
      PagedRows cache(pool, DType::F32, {4});
      std::vector<float> values(static_cast<size_t>(4 * std::max(length, rows)) + 4, 1);
      append_rows(test_queue(), cache, make_f32(values.data(), {length, 4}));
      const PagedRows copy = cache;
      cache.prepare(rows);
      const uint64_t used = pool.used();
      append_rows(test_queue(), cache, make_f32(values.data(), {rows, 4}));
      EXPECT_EQ(pool.used(), used) << rows << " rows behind " << length;
      EXPECT_EQ(copy.length(), length);
    }
}

TEST(PagedRows, EveryFormatHoldsWhatItsEncoderMakes) {
  for (DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0}) {
    PagePool pool;
    PagedRows rows(pool, dtype, {2, 64});
    Random random(4);
    std::vector<float> values(3 * 128), back(128);
    for (float& value : values) value = random.uniform(-1, 1);
    append_rows(test_queue(), rows, make_f32(values.data(), {3, 2, 64}));
    const Tensor shape = rows.shape();
    EXPECT_EQ(shape.extent(0), 3);
    EXPECT_EQ(shape.extent(1), 2);
    EXPECT_EQ(shape.extent(2), 64);
    EXPECT_EQ(shape.stride(0), 2 * shape.stride(1));
    EXPECT_EQ(shape.stride(1), static_cast<int64_t>(bytes_of(dtype, 64)));
    EXPECT_EQ(rows.row(2), shape.row<const void>(2));
  }
  PagePool pool;
  EXPECT_THROW(PagedRows(pool, DType::Q8_0, {2, 60}), Error);
}

TEST(PagedRows, HashIsOfTheRowsAlone) {
  PagePool pool;
  pool.poison(true);
  Rows a, b;
  a.real = PagedRows(pool, DType::F32, {2});
  b.real = PagedRows(pool, DType::F32, {2});
  a.append({1, 2, 3});
  b.append({1, 2, 9, 9});
  b.truncate(2);
  EXPECT_NE(a.real.hash(0), b.real.hash(0));
  b.append({3});
  EXPECT_EQ(a.real.hash(0), b.real.hash(0));
  EXPECT_NE(a.real.hash(0), a.real.hash(1));
}

std::vector<std::byte> saved(const auto& cache) {
  std::vector<std::byte> bytes;
  ArchiveWriter writer([&](const void* data, size_t count) {
    const auto* start = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), start, start + count);
  });
  cache.save(writer);
  return bytes;
}

TEST(PagedRows, SavedAndLoadedIsTheSame) {
  PagePool pool;
  Rows a;
  a.real = PagedRows(pool, DType::F32, {2});
  std::vector<float> values(150);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  a.append(values);
  const auto bytes = saved(a.real);
  PagedRows b(pool, DType::F32, {2});
  ArchiveReader reader(bytes, "a file");
  b.load(reader, 150);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(a.real.hash(5), b.hash(5));
  for (size_t cut = 0; cut < bytes.size(); cut += 37) {
    ArchiveReader damaged({bytes.data(), cut}, "a file");
    EXPECT_THROW(b.load(damaged, 150), Error) << cut;
  }
  PagedRows other(pool, DType::F16, {2});
  ArchiveReader again(bytes, "a file");
  EXPECT_THROW(other.load(again, 150), Error);
}

// Each row holds its position; earlier ones hold what stands before the start.
void check_history(const HistoryRows& history, int64_t depth, int64_t width, const std::vector<float>& rows) {
  ASSERT_EQ(history.length(), static_cast<int64_t>(rows.size()));
  const Tensor last = history.last();
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t position = history.length() - depth + i;
    for (int64_t c = 0; c < width; ++c)
      ASSERT_EQ(last.row<float>(i)[c],
                position < 0 ? -5.0f : rows[static_cast<size_t>(position)] + static_cast<float>(c))
          << "position " << position << " of " << history.length();
  }
}

TEST(HistoryRows, RandomSchedulesKeepDepthAndWindow) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    PagePool pool;
    pool.poison(true);
    const int64_t depth = random.below(5), window = random.below(9), width = 1 + random.below(3);
    uint32_t before;
    const float five = -5;
    std::memcpy(&before, &five, sizeof before);
    struct One {
      HistoryRows history;
      std::vector<float> rows;
      int64_t floor;  // the shortest length that the last append promises
    };
    std::vector<One> all{{HistoryRows(pool, DType::F32, depth, window, width, before), {}, 0}};
    float serial = 0;
    for (int step = 0; step < 150; ++step) {
      const auto index = static_cast<size_t>(random.below(static_cast<int64_t>(all.size())));
      One& one = all[index];
      const auto length = one.history.length();
      switch (random.below(4)) {
        case 0:
        case 1: {
          const int64_t count = random.below(2) == 0 ? random.below(9) : random.below(70);
          std::vector<float> data(static_cast<size_t>(count * (width + 2)));  // strided by two values
          for (int64_t i = 0; i < count; ++i) {
            one.rows.push_back(serial += 10);
            for (int64_t c = 0; c < width; ++c)
              data[static_cast<size_t>(i * (width + 2) + c)] = serial + static_cast<float>(c);
          }
          Tensor rows = make_f32(data.data(), {count, width});
          rows.strides[0] = (width + 2) * static_cast<int64_t>(sizeof(float));
          append_rows(test_queue(), one.history, rows);
          one.floor = std::max(length, one.history.length() - window);
          break;
        }
        case 2: {
          const int64_t back = random.below(window + 1);
          const int64_t target = std::max(one.floor, length - back);
          one.history.truncate(target);
          one.rows.resize(static_cast<size_t>(target));
          break;
        }
        default:
          if (all.size() < 4) {
            One copy = one;
            all.push_back(std::move(copy));
          }
      }
      for (const One& each : all) check_history(each.history, depth, width, each.rows);
    }
  }
}

TEST(HistoryRows, GoesNotBackFurtherThanItCan) {
  PagePool pool;
  HistoryRows history(pool, DType::F32, 3, 8, 1);
  std::vector<float> data(100, 1.0f);
  append_rows(test_queue(), history, make_f32(data.data(), {100, 1}));
  EXPECT_NO_THROW(history.truncate(92));
  EXPECT_THROW(history.truncate(60), Error);
  EXPECT_THROW(history.truncate(101), Error);
  EXPECT_EQ(history.length(), 92);
}

TEST(HistoryRows, SavedAndLoadedIsTheSame) {
  PagePool pool;
  HistoryRows a(pool, DType::F32, 3, 8, 2), b(pool, DType::F32, 3, 8, 2);
  std::vector<float> data(80);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  append_rows(test_queue(), a, make_f32(data.data(), {40, 2}));
  const auto bytes = saved(a);
  ArchiveReader reader(bytes, "a file");
  b.load(reader, 40);
  EXPECT_EQ(a.hash(1), b.hash(1));
  EXPECT_THROW(b.truncate(39), Error);
  append_rows(test_queue(), a, make_f32(data.data(), {30, 2}));
  append_rows(test_queue(), b, make_f32(data.data(), {30, 2}));
  EXPECT_EQ(a.hash(1), b.hash(1));
}

}  // namespace
}  // namespace strata
