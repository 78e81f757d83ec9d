#include "base/number_list.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

std::vector<int64_t> numbers(std::string_view text) {
  std::vector<int64_t> list;
  EXPECT_EQ(append_numbers(text, list), "") << text;
  return list;
}

std::string reason(std::string_view text) {
  std::vector<int64_t> list;
  return append_numbers(text, list);
}

using List = std::vector<int64_t>;

TEST(NumberList, SingleOnesAndRanges) {
  EXPECT_EQ(numbers("512"), List{512});
  EXPECT_EQ(numbers("-1"), List{-1});
  EXPECT_EQ(numbers("512,0,512"), (List{512, 0, 512}));
  EXPECT_EQ(numbers("1-4"), (List{1, 2, 3, 4}));
  EXPECT_EQ(numbers("3-3"), List{3});
  EXPECT_EQ(numbers("0-4096+1024"), (List{0, 1024, 2048, 3072, 4096}));
  EXPECT_EQ(numbers("0-10+4"), (List{0, 4, 8}));
  EXPECT_EQ(numbers("1-64*2"), (List{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(numbers("5-100*3,7"), (List{5, 15, 45, 7}));
  EXPECT_EQ(numbers("9223372036854775800-9223372036854775807+5"), (List{9223372036854775800, 9223372036854775805}));
  EXPECT_EQ(numbers("1-9223372036854775807*9000000000000000000"), (List{1, 9000000000000000000}));
}

TEST(NumberList, EverythingElseHasAReason) {
  for (const char* text : {"",      ",",     "1,",    ",1",     "a",     "1-",    "-",     "1-a",
                           "1-2-3", "1-8+",  "1-8+0", "1-8+-1", "1-8*1", "1-8*0", "0-8*2", "-4-8*2",
                           "8-1",   "1-8/2", "1 2",   " 1",     "1.5",   "0x10",  "1e3",   "9223372036854775808"})
    EXPECT_NE(reason(text), "") << text;
  EXPECT_EQ(reason("0-4096"), "more than 4096 numbers");
  EXPECT_EQ(reason("0-9223372036854775807"), "more than 4096 numbers");  // in bounded time and memory
}

}  // namespace
}  // namespace strata
