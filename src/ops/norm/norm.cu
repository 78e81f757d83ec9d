// One block for each (row, group): thread i sums the squares of elements i, i + threads, ...
#include "device/kernel.h"
#include "ops/norm/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void norm_group(const NormKernel a) {
  auto* scratch = reinterpret_cast<float*>(shared_memory());
  const int64_t row = block_x() / a.groups, group = block_x() % a.groups;
  const float* x = a.x + row * a.x_row + group * a.x_group;
  const float* weight = a.weight + group * a.weight_group;
  float* y = a.y + row * a.y_row + group * a.y_group;
  float squares = 0;
  for (int64_t i = thread(); i < a.width; i += threads()) squares = fma_f32(x[i], x[i], squares);
  const float mean = div_f32(block_sum(squares, scratch), static_cast<float>(a.width));
  const float scale = div_f32(1.0f, sqrt_f32(mean + a.eps));
  for (int64_t i = thread(); i < a.width; i += threads()) y[i] = x[i] * scale * weight[i];
}
