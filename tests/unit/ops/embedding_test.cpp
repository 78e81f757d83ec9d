#include "ops/embedding/embedding.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

// A copy of decoded values: no rounding at all.
void expect_exact(const EmbeddingArgs& args) {
  std::vector<double> expected(static_cast<size_t>(args.y.elements()));
  embedding_oracle(args, expected.data());
  ASSERT_TRUE(within(args.y, expected, std::vector<double>(expected.size(), 0.0)));
}

TEST(Embedding, EveryDtypeIsDecodedExactly) {
  Random random(1);
  for (const DTypeInfo& type : all_dtypes()) {
    SCOPED_TRACE(type.name);
    const std::vector<int64_t> widths =
        type.block_elements == 1 ? std::vector<int64_t>{1, 17, 320} : std::vector<int64_t>{2 * type.block_elements};
    for (int64_t width : widths)
      for (int64_t copies : {1, 4}) {
        const Owned table = random_weight(type.type, {5, width}, random);
        const Owned ids = owned_i32({4, 0, 3, 3, 1, 0, 2});
        for (int threads : kThreadCounts) {
          TestQueue queue(threads);
          const Owned y(DType::F32, {7, copies, width}, {6, 2});
          const EmbeddingArgs args{.ids = ids, .table = table, .y = y};
          embedding(queue, args);
          expect_exact(args);
          ASSERT_TRUE(y.gaps_intact());
        }
      }
  }
}

TEST(Embedding, ValuesKeepTheirBits) {
  TestQueue queue;
  const Owned table(DType::F32, {2, 5});
  assign<uint32_t>(table, {0x80000000u, 0x7f800000u, 0xff800000u, 0x00000001u, 0x7fc12345u, 1, 2, 3, 4, 5});
  const Owned y(DType::F32, {1, 3, 5});
  embedding(queue, {.ids = owned_i32({0}), .table = table, .y = y});
  for (int64_t copy = 0; copy < 3; ++copy) EXPECT_TRUE(same_bits(y.t()[0].slice(copy, 1), table.t().slice(0, 1)));
}

TEST(Embedding, RowsThatNoIdNamesAreNotRead) {
  Random random(2);
  TestQueue queue;
  const Owned table(DType::F32, {6, 16});  // canaries are NaN
  fill(table.t().slice(2, 1), random);
  const Owned y(DType::F32, {2, 1, 16});
  embedding(queue, {.ids = owned_i32({2, 2}), .table = table, .y = y});
  EXPECT_TRUE(same_bits(y.t()[0], table.t().slice(2, 1)));
  EXPECT_TRUE(same_bits(y.t()[1], table.t().slice(2, 1)));
}

TEST(Embedding, AnIdOutsideTheVocabularyIsRefusedBeforeAnythingIsWritten) {
  Random random(3);
  TestQueue queue;
  const Owned table = random_f32({5, 8}, random);
  for (int32_t id : {5, -1, INT32_MAX, INT32_MIN}) {
    const Owned y(DType::F32, {3, 1, 8});
    const Owned ids = owned_i32({0, 4, id});
    EXPECT_TRUE(argument_refused([&] { embedding(queue, {.ids = ids, .table = table, .y = y}); }, "embedding",
                                 "token id " + std::to_string(id)));
    EXPECT_TRUE(all_canary(y));
  }
}

TEST(Embedding, WrongArgumentsAreNamed) {
  Random random(4);
  TestQueue queue;
  const Owned table = random_f32({5, 8}, random), ids = owned_i32({0, 1}), y(DType::F32, {2, 1, 8});
  const Owned narrow(DType::F32, {2, 1, 7}), tall(DType::F32, {3, 1, 8}), flat(DType::F32, {2, 8}),
      floats(DType::F32, {2});
  auto refused = [&](const char* argument, const EmbeddingArgs& args) {
    return argument_refused([&] { embedding(queue, args); }, "embedding", argument);
  };
  EXPECT_TRUE(refused("ids", {.ids = floats, .table = table, .y = y}));
  EXPECT_TRUE(refused("ids", {.ids = {}, .table = table, .y = y}));
  EXPECT_TRUE(refused("table", {.ids = ids, .table = floats, .y = y}));
  EXPECT_TRUE(refused("y", {.ids = ids, .table = table, .y = narrow}));
  EXPECT_TRUE(refused("y", {.ids = ids, .table = table, .y = tall}));
  EXPECT_TRUE(refused("y", {.ids = ids, .table = table, .y = flat}));
}

}  // namespace
}  // namespace strata::test
