// only: cuda
// The loops of device_ceilings.cu for matrix units.
#include "device/kernel.h"
#include "evidence/device_ceiling_arguments.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void ceiling_bf16(const CeilingKernel a) {
  float sum[8][4] = {};
  const uint32_t left[4] = {0x3f803f80u + thread(), 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
  const uint32_t right[2] = {0x3f803f80u, 0x3f803f80u + thread()};
  for (int64_t i = 0; i < a.turns; ++i)
    for (int k = 0; k < 8; ++k) mma_bf16(sum[k], left, right);
  float all = 0;
  for (int k = 0; k < 8; ++k) all += sum[k][0] + sum[k][1] + sum[k][2] + sum[k][3];
  if (all == -1.0f) static_cast<float*>(a.to)[0] = all;
}

extern "C" __global__ void ceiling_int8(const CeilingKernel a) {
  int32_t sum[8][4] = {};
  const uint32_t left[4] = {0x01010101u + thread(), 0x01010101u, 0x01010101u, 0x01010101u};
  const uint32_t right[2] = {0x01010101u, 0x01010101u + thread()};
  for (int64_t i = 0; i < a.turns; ++i)
    for (int k = 0; k < 8; ++k) mma_s8(sum[k], left, right);
  int32_t all = 0;
  for (int k = 0; k < 8; ++k) all += sum[k][0] + sum[k][1] + sum[k][2] + sum[k][3];
  if (all == -1) static_cast<int32_t*>(a.to)[0] = all;
}
