// The rotation of 4-bit caches: a block of threads for one block of channels, a thread to a butterfly. The order of
// rotation.cpp, and its bits.
#include "device/kernel.h"
#include "ops/attention/device_rotation.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void kv_rotation(const RotationKernel a) {
  auto* x = reinterpret_cast<float*>(shared_memory());  // [n]
  const int64_t of_head = a.dim / a.n, block = block_x();
  const int64_t row = block / of_head / a.heads, head = block / of_head % a.heads;
  float* memory = a.x + row * a.row + head * a.head + block % of_head * a.n;
  const int n = a.n, pair = thread();
  for (int i = thread(); i < n; i += threads()) x[i] = memory[i];
  for (int half = n / 2; half > 0; half /= 2) {
    barrier();
    if (pair >= n / 2) continue;
    const int i = pair / half * 2 * half + pair % half;
    const float first = x[i], second = x[i + half];
    x[i] = first + second;
    x[i + half] = first - second;
  }
  barrier();
  for (int i = thread(); i < n; i += threads()) memory[i] = x[i] * a.scale;
}
