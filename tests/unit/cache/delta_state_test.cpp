#include "cache/delta_state.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

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
