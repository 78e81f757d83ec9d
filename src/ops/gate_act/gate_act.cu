// Four elements a thread; 16 bytes at a time where everything lies on multiples of 16.
#include "device/kernel_math.h"
#include "ops/device_fours.h"
#include "ops/gate_act/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

__device__ inline float activated(float x, bool silu) { return silu ? silu_f32(x) : sigmoid_f32(x); }

}  // namespace

extern "C" __global__ void gate_act_rows(const GateActKernel a) {
  const int64_t item = block_x() / a.blocks, row = item / a.groups, group = item % a.groups;
  const int64_t i = 4 * (block_x() % a.blocks * threads() + thread()), left = a.width - i;
  if (left <= 0) return;
  const bool vector = a.vector != 0, silu = a.silu != 0;
  const float* gate = a.gate + row * a.gate_row + group * a.gate_group;
  float* y = a.y + row * a.y_row + group * a.y_group + i;
  Float4 product;
  if (a.one_gate != 0) {
    const float shared = activated(gate[0], silu);
    for (float& one : product.v) one = shared;
  } else {
    const Float4 gates = load_fours(gate + i, left, vector);
    for (int k = 0; k < 4; ++k) product.v[k] = activated(gates.v[k], silu);
  }
  if (a.value != nullptr) {
    const Float4 values = load_fours(a.value + row * a.value_row + group * a.value_group + i, left, vector);
    for (int k = 0; k < 4; ++k) product.v[k] = mul_f32(values.v[k], product.v[k]);
  }
  if (a.accumulate != 0) {
    const Float4 before = load_fours(y, left, vector);
    for (int k = 0; k < 4; ++k) product.v[k] = add_f32(before.v[k], product.v[k]);
  }
  store_fours(y, product, left, vector);
}

extern "C" __global__ void residual_add_elements(const ResidualAddKernel a) {
  const int64_t i = 4 * (block_x() * threads() + thread()), left = a.elements - i;
  if (left <= 0) return;
  const bool vector = a.vector != 0 && left >= 4;
  Float4 sum = load_fours(a.x + i, left, vector);
  const Float4 more = load_fours(a.y + i, left, vector);
  for (int k = 0; k < 4; ++k) sum.v[k] = add_f32(sum.v[k], more.v[k]);
  store_fours(a.x + i, sum, left, vector);
}
