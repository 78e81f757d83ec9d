// Keys: the order of the bits is that of the logits, and of equal logits the least id is the largest key.
#include "device/kernel.h"
#include "ops/argmax/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

struct Found {
  uint64_t best;
  uint32_t broken;
};

__device__ inline Found better(const Found& a, const Found& b) {
  return {a.best > b.best ? a.best : b.best, a.broken > b.broken ? a.broken : b.broken};
}

__device__ inline uint64_t key_of(float logit, int64_t id) {
  const uint32_t bits = bits_of_f32(logit == 0 ? 0.0f : logit);
  const uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(ordered) << 32 | ~static_cast<uint32_t>(id);
}

// The best over a block of threads, in thread 0.
__device__ inline Found block_best(Found mine) {
  auto* all = reinterpret_cast<Found*>(shared_memory());
  all[thread()] = mine;
  for (int step = threads() / 2; step > 0; step /= 2) {
    barrier();
    if (thread() < step) all[thread()] = better(all[thread()], all[thread() + step]);
  }
  return all[0];
}

}  // namespace

extern "C" __global__ void argmax_blocks(const ArgmaxKernel a) {
  const int64_t row = block_x() / a.blocks, first = block_x() % a.blocks * (kArgmaxThreads * kArgmaxEach);
  const float* logits = a.logits + row * a.logits_row;
  Found mine{0, 0};
  STRATA_UNROLL
  for (int k = 0; k < kArgmaxEach; ++k) {
    const int64_t i = first + k * kArgmaxThreads + thread();
    if (i >= a.count) continue;
    const float logit = logits[i];
    const bool finite = (bits_of_f32(logit) & 0x7f800000u) != 0x7f800000u;
    const bool allowed = a.allowed == nullptr || (a.allowed[i / 32] >> (i % 32) & 1u) != 0;
    mine = better(mine, {allowed && finite ? key_of(logit, i) : 0, finite ? 0 : ~static_cast<uint32_t>(i)});
  }
  const Found all = block_best(mine);
  if (thread() != 0) return;
  a.best[block_x()] = all.best;
  a.broken[block_x()] = all.broken;
}

extern "C" __global__ void argmax_rows(const ArgmaxKernel a) {
  Found mine{0, 0};
  for (int64_t i = thread(); i < a.blocks; i += threads())
    mine = better(mine, {a.best[block_x() * a.blocks + i], a.broken[block_x() * a.blocks + i]});
  const Found all = block_best(mine);
  if (thread() != 0) return;
  const auto least = static_cast<int32_t>(~all.broken), id = static_cast<int32_t>(~static_cast<uint32_t>(all.best));
  a.ids[block_x() * a.ids_row] = all.broken != 0 ? -2 - least : (all.best != 0 ? id : -1);
}
