#include <cmath>

#include "base/fault.h"
#include "ops/argmax/argmax.h"

namespace strata {
namespace {

int32_t best_of(const float* logits, int64_t count, const int32_t* allowed) {
  int64_t best = kNoneAllowed;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(logits[i])) return not_finite_at(i);
    const bool chosen = allowed == nullptr || (static_cast<uint32_t>(allowed[i / 32]) >> (i % 32) & 1u) != 0;
    if (chosen && (best < 0 || logits[i] > logits[best])) best = i;
  }
  return static_cast<int32_t>(best);
}

}  // namespace

void argmax_portable(Queue& queue, const ArgmaxArgs& args) {
  const int64_t count = args.logits.extent(1) - (fault(Fault::SkipTail) ? 1 : 0);
  queue.pool().run(args.logits.extent(0), ThreadPool::grain_of(count), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      *args.ids.row<int32_t>(t) = best_of(args.logits.row<const float>(t), count, args.allowed.as<const int32_t>());
  });
}

}  // namespace strata
