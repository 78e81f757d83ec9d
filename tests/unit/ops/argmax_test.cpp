#include "ops/argmax/argmax.h"

#include <algorithm>
#include <limits>

#include "support/ops_test.h"

namespace strata::test {
namespace {

std::vector<int32_t> ids_of(const Tensor& logits, const Tensor& allowed = {}) {
  const Owned ids(DType::I32, {logits.extent(0), 1}, {2});
  TestQueue queue(2);
  argmax(queue, {logits, allowed, ids});
  EXPECT_TRUE(ids.gaps_intact());
  return packed<int32_t>(ids);
}

Owned rows_of(const std::vector<std::vector<float>>& rows) {
  Owned logits(DType::F32, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())}, {1});
  std::vector<float> values;
  for (const std::vector<float>& row : rows) values.insert(values.end(), row.begin(), row.end());
  assign(logits.t(), values);
  return logits;
}

TEST(Argmax, TiesGoToTheLowestIdAndZerosAreEqual) {
  const Owned logits = rows_of({{1, 3, 2, 3, 3}, {-1, -0.0f, 0, -0.0f, 0}, {-2, -2, -2, -2, -2}, {-5, -4, -3, -2, -1}});
  EXPECT_EQ(ids_of(logits), (std::vector<int32_t>{1, 1, 0, 4}));
}

TEST(Argmax, OnlyAllowedIdsAreChosen) {
  const Owned logits = rows_of({{9, 3, 2, 3, 5}, {1, -7, 0, -6, 8}});
  EXPECT_EQ(ids_of(logits, owned_i32({0b01010})), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(ids_of(logits, owned_i32({0b00100})), (std::vector<int32_t>{2, 2}));
  EXPECT_EQ(ids_of(logits, owned_i32({0})), (std::vector<int32_t>{-1, -1}));
  // Bits behind the last id allow nothing.
  EXPECT_EQ(ids_of(logits, owned_i32({-32})), (std::vector<int32_t>{-1, -1}));
  EXPECT_EQ(ids_of(logits, owned_i32({-1})), (std::vector<int32_t>{0, 4}));
}

TEST(Argmax, ALogitThatIsNotFiniteIsNamedWhateverTheMask) {
  const Owned logits = rows_of({{0, 1, NAN, INFINITY}, {-INFINITY, 1, 2, NAN}, {1, 2, 3, INFINITY}, {1, 2, 3, 4}});
  const Owned second = owned_i32({0b0010});
  for (const Tensor& mask : {Tensor{}, second.t()}) {
    const std::vector<int32_t> ids = ids_of(logits, mask);
    EXPECT_EQ(ids, (std::vector<int32_t>{-4, -2, -5, mask.empty() ? 3 : 1}));
    EXPECT_EQ(ids[0], not_finite_at(2));
    EXPECT_EQ(ids[1], not_finite_at(0));
  }
  EXPECT_EQ(ids_of(logits, owned_i32({0})), (std::vector<int32_t>{-4, -2, -5, -1}));
}

TEST(Argmax, EveryPlaceOfALongRowIsFound) {
  constexpr int64_t kWidth = 1000;
  Random random(3);
  const Owned logits = random_f32({1, kWidth}, random, -1, 0);
  for (int64_t id = kWidth - 1; id >= 0; --id) {
    logits.f({0, id}) = 1;  // the lowest of ever more equal ones
    EXPECT_EQ(ids_of(logits), std::vector<int32_t>{static_cast<int32_t>(id)});
  }
}

TEST(Argmax, WrongArgumentsAreNamed) {
  float x[64] = {};
  const auto refused = [&](const char* argument, Tensor ArgmaxArgs::*tensor, const Tensor& wrong) {
    ArgmaxArgs args{make_f32(x, {2, 32}), {}, make_tensor(x, DType::I32, {2, 1})};
    args.*tensor = wrong;
    TestQueue queue;
    return argument_refused([&] { argmax(queue, args); }, "argmax", argument);
  };
  EXPECT_TRUE(refused("logits is", &ArgmaxArgs::logits, {}));
  EXPECT_TRUE(refused("logits is", &ArgmaxArgs::logits, make_f32(x, {32})));
  EXPECT_TRUE(refused("rows of 0 logits", &ArgmaxArgs::logits, make_f32(x, {2, 0})));
  EXPECT_TRUE(refused("allowed is", &ArgmaxArgs::allowed, make_tensor(x, DType::I32, {2})));
  EXPECT_TRUE(refused("allowed is", &ArgmaxArgs::allowed, make_f32(x, {1})));
  EXPECT_TRUE(refused("ids is", &ArgmaxArgs::ids, make_tensor(x, DType::I32, {2})));
  EXPECT_TRUE(refused("ids is", &ArgmaxArgs::ids, make_f32(x, {2, 1})));
}

}  // namespace
}  // namespace strata::test
