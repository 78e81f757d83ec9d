#include "measure/token_trace.h"

#include "base/random.h"

namespace strata {

std::vector<int32_t> token_trace(int64_t vocabulary, int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(vocabulary));
  return tokens;
}

}  // namespace strata
