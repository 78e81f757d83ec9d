// A thread decodes eight elements and writes them to every copy.
#include "ops/embedding/device_kernel.h"
#include "ops/weights_kernel.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void embedding_rows(const EmbeddingKernel a) {
  const int64_t row = block_x() / a.blocks, i = block_x() % a.blocks * threads() + thread();
  if (8 * i >= a.width) return;
  const int64_t id = a.ids[row];
  float w[8];
  if (id < 0 || id >= a.vocabulary)  // the host has not seen the ids
    for (float& value : w) value = f32_of_bits(0x7fc00000u);
  else
    with_format(a.type, [&](auto format) {
      decode8<decltype(format)>(reinterpret_cast<Bytes>(a.table) + id * a.table_row, i, a.width, w);
    });
  for (int64_t copy = 0; copy < a.copies; ++copy)
    for (int k = 0; k < 8; ++k)
      if (8 * i + k < a.width) a.y[row * a.y_row + copy * a.y_copy + 8 * i + k] = w[k];
}
