#include "base/tensor.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/buffer.h"
#include "base/error.h"
#include "device/arena.h"

namespace strata {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tensor, ViewsShareMemory) {
  float values[24];
  for (int i = 0; i < 24; ++i) values[i] = static_cast<float>(i);
  const Tensor t = make_f32(values, {2, 3, 4});
  EXPECT_EQ(t.elements(), 24);
  EXPECT_TRUE(t.contiguous());
  EXPECT_EQ(t[1].rank, 2);
  EXPECT_EQ(t[1].row<float>(2)[3], 23.0f);
  EXPECT_EQ(t.slice(1, 1)[0].f32(), values + 12);
  EXPECT_EQ(describe(t), "F32 [2, 3, 4]");
}

TEST(Tensor, StridesOfQuantisedRows) {
  unsigned char bytes[2 * 2 * 18];
  const Tensor t = make_tensor(bytes, DType::Q4_0, {2, 64});
  EXPECT_EQ(t.stride(0), 36);
  EXPECT_EQ(t.row<unsigned char>(1), bytes + 36);
  EXPECT_THROW(make_tensor(bytes, DType::Q4_0, {2, 33}), Error);
}

TEST(Tensor, ChecksNameOperatorArgumentAndShape) {
  float values[12] = {};
  const Tensor t = make_f32(values, {3, 4});
  EXPECT_NO_THROW(check_tensor("op", "x", t, DType::F32, {-1, 4}));
  EXPECT_EQ(message_of([&] { check_tensor("op", "x", t, DType::F32, {3, 5}); }), "op: x is F32 [3, 4], needs [3, 5]");
  EXPECT_EQ(message_of([&] { check_tensor("op", "x", t, DType::I32, {3, 4}); }), "op: x is F32 [3, 4], needs I32");
  EXPECT_EQ(message_of([&] { check_tensor("op", "x", {}, DType::F32, {-1}); }), "op: x is absent, needs [*]");
  Tensor gaps = t;
  gaps.strides[1] = 8;
  gaps.extents[1] = 2;
  EXPECT_EQ(message_of([&] {
              check_tensor("op", "x", gaps, DType::F32, {3, 2});
            }),
            "op: x has gaps along its last axis");
}

TEST(Buffer, RefusesWhatDoesNotFit) {
  const Buffer buffer(64);
  EXPECT_NO_THROW(buffer.f32({4, 4}));
  EXPECT_THROW(buffer.f32({4, 5}), Error);
  EXPECT_EQ(buffer.f32({16}).f32()[15], 0.0f);
}

TEST(Arena, GivesBackAndReuses) {
  Arena arena;
  const Tensor first = arena.f32({100});
  const Arena::Mark mark = arena.mark();
  const Tensor second = arena.f32({1 << 20});  // larger than a chunk
  second.f32()[(1 << 20) - 1] = 1;
  arena.rewind(mark);
  const uint64_t bytes = arena.bytes();
  {
    const ArenaScope scope(arena);
    EXPECT_NE(arena.f32({10}).data, first.data);
  }
  arena.f32({1 << 20});
  EXPECT_EQ(arena.bytes(), bytes);
}

}  // namespace
}  // namespace strata
