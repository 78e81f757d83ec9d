#include "measure/token_trace.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(TokenTrace, SameSeedSameTokensAndLongerOnesBeginAlike) {
  const std::vector<int32_t> shorter = token_trace(100, 50, 7);
  std::vector<int32_t> longer = token_trace(100, 80, 7);
  for (const int32_t token : longer) EXPECT_TRUE(token >= 0 && token < 100);
  longer.resize(50);
  EXPECT_EQ(longer, shorter);
  EXPECT_NE(token_trace(100, 50, 8), shorter);
  EXPECT_TRUE(token_trace(1, 0).empty());
}

}  // namespace
}  // namespace strata
