#include "ops/embedding/embedding.h"

#include "support/ops_test.h"

namespace strata::test {
namespace {

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
