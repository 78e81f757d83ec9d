// Rows by hash, and their gate.
#include "device/kernel_math.h"
#include "ops/device_fours.h"
#include "ops/ngram_embedding/device_kernel.h"
#include "ops/weights_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

// The row of the table that a token reads for one hash head: every thread hashes for itself.
__device__ inline int64_t row_of(const NgramEmbeddingKernel& a, int64_t t, int head) {
  const int order = head / a.heads + 1;
  bool ended = false;
  uint64_t mix = 0;
  for (int s = 0; s <= order; ++s) {
    const int64_t source = t - s;
    const int32_t token = source >= 0 ? a.ids[source] : a.context[a.orders + source];
    // The token's own end of text does not end its own context.
    ended = ended || token < 0 || (s > 0 && token == a.eos);
    mix ^= static_cast<uint64_t>(ended ? a.eos : token) * a.multipliers[s];
  }
  return static_cast<int64_t>(mix % a.sizes[head] + a.offsets[head]);
}

}  // namespace

extern "C" __global__ void ngram_embedding_rows(const NgramEmbeddingKernel a) {
  const int64_t all = a.orders * a.heads, item = block_x() / a.blocks, row = item / all;
  const int head = static_cast<int>(item % all);
  const int64_t i = block_x() % a.blocks * threads() + thread();  // of eight elements
  if (8 * i >= a.width) return;
  const int64_t id = row_of(a, row, head);
  float w[8];
  with_format(a.type, [&](auto format) {
    decode8<decltype(format)>(reinterpret_cast<Bytes>(a.table) + id * a.table_row, i, a.width, w);
  });
  float* y = a.y + row * a.y_row + head * a.y_head + 8 * i;
  for (int half = 0; half < 8; half += 4)
    store_fours(y + half, {{w[half], w[half + 1], w[half + 2], w[half + 3]}}, a.width - 8 * i - half, a.vector != 0);
}

// A block for each (row, stream); four elements a thread, then the next four of the block. The order of the sum is the
// same where rows do not lie on multiples of 16 bytes.
extern "C" __global__ void ngram_gate_rows(const NgramGateKernel a) {
  auto* scratch = reinterpret_cast<float*>(shared_memory());
  const int64_t row = block_x() / a.streams, stream = block_x() % a.streams;
  const float* key = a.key + row * a.key_row + stream * a.key_stream;
  const float* query = a.query + row * a.query_row + stream * a.query_stream;
  const bool vector = a.vector != 0;
  float sum = 0;
  for (int64_t i = 4 * thread(); i < a.hidden; i += 4 * threads()) {
    const Float4 keys = load_fours(key + i, a.hidden - i, vector),
                 queries = load_fours(query + i, a.hidden - i, vector);
    const float low = fma_f32(keys.v[1], queries.v[1], mul_f32(keys.v[0], queries.v[0]));
    const float high = fma_f32(keys.v[3], queries.v[3], mul_f32(keys.v[2], queries.v[2]));
    sum = add_f32(sum, add_f32(low, high));
  }
  const float product = mul_f32(block_sum(sum, scratch), a.scale);
  const float size = product < 0 ? -product : product;
  const float root = sqrt_f32(size > 1e-6f ? size : 1e-6f);
  const float sign = product > 0 ? 1.0f : (product < 0 ? -1.0f : 0.0f);
  const float gate = product != product ? product : sigmoid_f32(mul_f32(sign, root));
  const float* value = a.value + row * a.value_row;
  float* y = a.y + row * a.y_row + stream * a.y_stream;
  for (int64_t i = 4 * thread(); i < a.hidden; i += 4 * threads()) {
    Float4 four = load_fours(value + i, a.hidden - i, vector);
    for (float& one : four.v) one = mul_f32(gate, one);
    store_fours(y + i, four, a.hidden - i, vector);
  }
}
