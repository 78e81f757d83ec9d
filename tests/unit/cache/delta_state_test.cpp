#include "cache/delta_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "support/append.h"

namespace strata {
namespace {

constexpr int64_t kChunk = 8;

// Stands for the operator: slots get their position, the matrix the number of complete chunks.
void run(DeltaState& state, int64_t rows) {
  const int64_t first = state.length();
  const DeltaState::View view = state.writable(rows);
  for (int64_t p = first; p < first + rows; ++p) {
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 3; ++c) view.ring_k[h].row<float>(p % kChunk)[c] = static_cast<float>(p);
    for (int64_t h = 0; h < 4; ++h) {
      for (int64_t c = 0; c < 5; ++c) view.ring_u[h].row<float>(p % kChunk)[c] = static_cast<float>(p);
      view.ring_g.row<float>(h)[p % kChunk] = static_cast<float>(p);
    }
    if (p % kChunk == kChunk - 1)
      for (int64_t i = 0; i < view.state.elements(); ++i) view.state.f32()[i] += 1;
  }
  state.advance(rows);
}

DeltaState make(PagePool& pool) { return DeltaState::anchored(pool, {2, 4, 3, 5}, kChunk); }

uint64_t hash_after(int64_t rows) {
  PagePool pool;
  pool.poison(true);
  DeltaState state = make(pool);
  run(state, rows);
  return state.hash(0);
}

TEST(DeltaState, TakenBackIsAsNeverRun) {
  PagePool pool;
  pool.poison(true);
  for (int64_t start = 0; start < 3 * kChunk; ++start) {
    DeltaState state = make(pool);
    run(state, start);
    const int64_t window = kChunk - 1 - start % kChunk;  // never completes the chunk
    run(state, window);
    for (int64_t kept = window; kept-- > 0;) {
      state.truncate(start + kept);
      EXPECT_EQ(state.hash(0), hash_after(start + kept));
    }
    EXPECT_THROW(state.truncate(start / kChunk * kChunk - 1), Error);
  }
}

TEST(DeltaState, CopiesShareTheMatrixUntilAChunkIsComplete) {
  PagePool pool;
  DeltaState a = make(pool);
  run(a, 3);
  const DeltaState b = a;
  const uint64_t before = pool.used();
  run(a, 2);
  EXPECT_LT(pool.used() - before, a.bytes());  // the ring alone
  run(a, 6);
  EXPECT_EQ(pool.used() - before, a.bytes());
  EXPECT_EQ(b.hash(0), hash_after(3));
  EXPECT_EQ(a.hash(0), hash_after(11));
}

constexpr int64_t kWindow = 4;
constexpr DeltaState::Shape kShape{2, 4, 3, 5};

// A serial state beside the rows that it stands for. Stands for the operator too: an order-dependent sum of exact
// integers of every input of the rows.
struct Serial {
  DeltaState state;
  std::vector<float> rows;

  static Serial make(PagePool& pool) { return {DeltaState::serial(pool, kShape, kWindow), {}}; }

  static void apply(const Tensor& matrix, const DeltaState::Rows& inputs, int64_t count) {
    for (int64_t t = 0; t < count; ++t) {
      float sum = 0;
      for (const Tensor& x : {inputs.conv, inputs.g, inputs.beta})
        for (int64_t i = 0; i < x.extent(1); ++i) sum += static_cast<float>(i + 1) * x.row<float>(t)[i];
      for (int64_t i = 0; i < matrix.elements(); ++i)
        matrix.f32()[i] = std::fmod(3 * matrix.f32()[i] + sum + static_cast<float>(i), 65521.0f);
    }
  }

  void run(const std::vector<float>& values, int64_t certain) {
    const auto count = static_cast<int64_t>(values.size());
    const int64_t pending = state.pending(), all = pending + count, channels = kShape.channels();
    std::vector<float> memory(static_cast<size_t>(all * (channels + 2 * kShape.value_heads)));
    const DeltaState::Rows wide{
        make_f32(memory.data(), {all, channels}), make_f32(memory.data() + all * channels, {all, kShape.value_heads}),
        make_f32(memory.data() + all * (channels + kShape.value_heads), {all, kShape.value_heads})};
    const DeltaState::Rows before = state.pending_rows();
    const auto both = [&](const Tensor& to, const Tensor& from, float factor) {
      for (int64_t i = 0; i < to.extent(1); ++i) {
        for (int64_t t = 0; t < pending; ++t) to.row<float>(t)[i] = from.row<float>(t)[i];
        for (int64_t t = 0; t < count; ++t) to.row<float>(pending + t)[i] = factor * values[static_cast<size_t>(t)];
      }
    };
    both(wide.conv, before.conv, 1);
    both(wide.g, before.g, 2);
    both(wide.beta, before.beta, 3);
    state.prepare(count, certain);
    const int64_t stored = pending + certain;
    apply(state.matrix(stored), wide, stored);
    advance_pending(test_queue(), state, count, wide.slice(stored, all - stored));
    rows.insert(rows.end(), values.begin(), values.end());
  }
  void truncate(int64_t length) {
    state.truncate(length);
    rows.resize(static_cast<size_t>(length));
  }
  // Of a copy without pending rows.
  uint64_t settled_hash() const {
    Serial copy = *this;
    copy.run({}, 0);
    return copy.state.hash(0);
  }
  uint64_t expected_hash() const {
    PagePool pool;
    Serial plain = make(pool);
    plain.run(rows, static_cast<int64_t>(rows.size()));
    return plain.state.hash(0);
  }
};

TEST(DeltaState, SerialSchedulesOfWindowsAndCopiesNeverSeeEachOther) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    PagePool pool;
    pool.poison(true);
    std::vector<Serial> all{Serial::make(pool)};
    float serial = 1;
    for (int step = 0; step < 60; ++step) {
      Serial& one = all[static_cast<size_t>(random.below(static_cast<int64_t>(all.size())))];
      switch (random.below(4)) {
        case 0:
        case 1: {
          std::vector<float> values(static_cast<size_t>(random.below(7)));
          for (float& value : values) value = serial++;
          const auto count = static_cast<int64_t>(values.size());
          one.run(values, std::max<int64_t>(count - random.below(kWindow + 1), 0));
          break;
        }
        case 2: one.truncate(one.state.oldest() + random.below(one.state.pending() + 1)); break;
        default:
          if (all.size() < 5) {
            Serial copy = one;
            all.push_back(std::move(copy));
          } else {
            all.erase(all.begin() + random.below(5));
          }
      }
      for (const Serial& each : all) {
        ASSERT_EQ(each.state.length(), static_cast<int64_t>(each.rows.size()));
        ASSERT_EQ(each.settled_hash(), each.expected_hash()) << "seed " << seed << ", step " << step;
      }
    }
    all.clear();
    EXPECT_EQ(pool.used(), 0u);
  }
}

TEST(DeltaState, SerialGoesBackOverPendingRowsOnly) {
  PagePool pool;
  Serial one = Serial::make(pool);
  one.run({1, 2, 3, 4, 5}, 3);
  EXPECT_EQ(one.state.oldest(), 3);
  EXPECT_THROW(one.state.truncate(2), Error);
  EXPECT_THROW(one.state.truncate(6), Error);
  EXPECT_NO_THROW(one.state.truncate(4));
  EXPECT_EQ(one.state.pending(), 1);
  EXPECT_THROW(one.state.prepare(kWindow + 2, 1), Error);
  EXPECT_NO_THROW(one.state.prepare(kWindow + 1, 1));
}

TEST(DeltaState, PendingRowsAreNeitherHashedNorSaved) {
  PagePool pool;
  Serial one = Serial::make(pool);
  one.run({1, 2, 3}, 1);
  ArchiveWriter writer([](const void*, size_t) { FAIL(); });
  EXPECT_THROW(one.state.hash(0), Error);
  EXPECT_THROW(one.state.save(writer), Error);
  one.run({}, 0);
  EXPECT_NO_THROW(one.state.hash(0));
}

// Memory is taken by prepare(), and a matrix that stays as it is stays shared.
TEST(DeltaState, SerialCopiesShareTheMatrixUntilRowsAreApplied) {
  PagePool pool;
  Serial a = Serial::make(pool);
  a.run({1, 2}, 2);
  const uint64_t matrix = pool.used();
  EXPECT_EQ(a.state.bytes(), matrix);  // no rows were uncertain
  Serial b = a;
  b.run({3, 4}, 0);
  const uint64_t pending = pool.used() - matrix;
  EXPECT_EQ(pending, kWindow * (kShape.channels() + 2 * kShape.value_heads) * sizeof(float));
  EXPECT_EQ(b.state.bytes(), matrix + pending);
  b.state.prepare(3, 1);
  EXPECT_EQ(pool.used(), 2 * matrix + pending);
  b.run({5, 6, 7}, 1);
  EXPECT_EQ(pool.used(), 2 * matrix + pending);
  EXPECT_EQ(a.settled_hash(), a.expected_hash());
  EXPECT_EQ(b.settled_hash(), b.expected_hash());
}

TEST(DeltaState, SerialSavedAndLoadedIsTheSame) {
  PagePool pool;
  pool.poison(true);
  Serial a = Serial::make(pool), b = Serial::make(pool);
  a.run({1, 2, 3}, 3);
  b.run({9, 8, 7}, 1);  // loading replaces pending rows
  std::vector<std::byte> bytes;
  ArchiveWriter writer([&](const void* data, size_t count) {
    const auto* start = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), start, start + count);
  });
  a.state.save(writer);
  ArchiveReader reader(bytes, "a file");
  b.state.load(reader, 3);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(b.state.pending(), 0);
  EXPECT_EQ(a.state.hash(3), b.state.hash(3));
  ArchiveReader foreign(bytes, "a file");
  EXPECT_THROW(make(pool).load(foreign, 3), Error);  // the anchored form has another chunk
}

TEST(DeltaState, SavedAndLoadedIsTheSame) {
  PagePool pool;
  pool.poison(true);
  for (int64_t rows : {0, 5, 8, 19}) {
    DeltaState a = make(pool), b = make(pool);
    run(a, rows);
    std::vector<std::byte> bytes;
    ArchiveWriter writer([&](const void* data, size_t count) {
      const auto* start = static_cast<const std::byte*>(data);
      bytes.insert(bytes.end(), start, start + count);
    });
    a.save(writer);
    ArchiveReader reader(bytes, "a file");
    b.load(reader, rows);
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(a.hash(3), b.hash(3));
    ArchiveReader cut({bytes.data(), bytes.size() - 1}, "a file");
    EXPECT_THROW(b.load(cut, rows), Error);
    ArchiveReader foreign(bytes, "a file");
    EXPECT_THROW(DeltaState::anchored(pool, {2, 4, 3, 6}, kChunk).load(foreign, rows), Error);
  }
}

}  // namespace
}  // namespace strata
