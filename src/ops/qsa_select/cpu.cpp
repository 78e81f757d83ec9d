// The passes in plain code, without branches that hang on the scores.
#include <algorithm>
#include <bit>

#include "base/fault.h"
#include "ops/qsa_select/kernels.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {

uint32_t qsa_order_key(float score) {
  if (score != score) return 0;
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits ^ 0x80000000u;
}

namespace {

int64_t compact(const float* scores, int64_t n, float least, int64_t capacity, int32_t* blocks) {
  int64_t found = 0;
  if (fault(Fault::SkipTail)) n -= n % 16;
  for (int64_t b = 0; b < n && found <= capacity; ++b) {
    blocks[found] = static_cast<int32_t>(b);
    found += scores[b] >= least;
  }
  return found;
}

uint32_t order(const float* scores, const int32_t* blocks, int64_t n, uint32_t* keys) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    keys[i] = qsa_order_key(scores[blocks == nullptr ? i : blocks[i]]);
    largest = std::max(largest, keys[i]);
  }
  return largest;
}

int64_t count(const uint32_t* keys, int64_t n, uint32_t least) {
  return std::count_if(keys, keys + n, [least](uint32_t key) { return key >= least; });
}

uint32_t smallest(const uint32_t* keys, int64_t n, uint32_t least) {
  uint32_t result = 0xffffffffu;
  for (int64_t i = 0; i < n; ++i) result = std::min(result, keys[i] >= least ? keys[i] : 0xffffffffu);
  return result;
}

void take(const uint32_t* keys, const int32_t* blocks, int64_t n, uint32_t threshold, int64_t equal, int32_t* out) {
  int64_t taken = 0, ties = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool tie = keys[i] == threshold && ties < equal;
    out[taken] = blocks == nullptr ? static_cast<int32_t>(i) : blocks[i];
    ties += tie;
    taken += tie || keys[i] > threshold;
  }
}

}  // namespace

constinit const QsaSelectKernels kQsaSelectPortable{compact, order, count, smallest, take};

}  // namespace strata
