#include "measure/synthetic_depth.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "device/memory_space.h"
#include "model/append.h"

namespace strata {
namespace {

constexpr int64_t kSlice = 1024;        // positions at a time
constexpr int64_t kStep = 17;           // values from one row to the next in the pool
constexpr int64_t kPool = 1 << 18;      // values behind which rows begin
constexpr float kLargest = 1.7320508f;  // of a uniform value with a mean square of 1, as norms leave it

// Rows are windows into one pool of values: far cheaper than values of their own, and no two of a slice are the same.
class Rows {
 public:
  Rows(Queue& queue, int64_t widest, uint64_t seed) : queue_(queue), random_(seed) {
    std::vector<float> values(static_cast<size_t>(kPool + kSlice * kStep + widest));
    for (float& value : values) value = random_.uniform(-kLargest, kLargest);
    values_ = here(values.data(), values.size() * sizeof(float));
  }
  Queue& queue() { return queue_; }
  // [count, width], valid until the next call.
  Tensor take(int64_t count, int64_t width) {
    Tensor rows = make_f32(static_cast<float*>(values_.data()) + random_.below(kPool), {count, width});
    rows.strides[0] = kStep * static_cast<int64_t>(sizeof(float));
    return rows;
  }
  // [count, 1] below `limit`.
  Tensor tokens(int64_t count, int64_t limit) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random_.below(limit));
    tokens_ = here(tokens.data(), tokens.size() * sizeof(int32_t));
    return make_tensor(tokens_.data(), DType::I32, {count, 1});
  }
  float value() { return random_.uniform(-kLargest, kLargest); }

 private:
  // Where operators read it.
  SpaceMemory here(const void* data, size_t bytes) {
    SpaceMemory memory(queue_.space(), bytes);
    queue_.space().copy(memory.data(), data, bytes);
    return memory;
  }

  Queue& queue_;
  Random random_;
  SpaceMemory values_, tokens_;
};

int64_t widest_row(const ModelSpec& spec) {
  int64_t widest = std::max<int64_t>(spec.residual_width(), spec.delta.channels());
  for (const LayerSpec& layer : spec.layers)
    widest = std::max({widest, int64_t{layer.attention.kv_heads} * layer.attention.head_dim,
                       static_cast<int64_t>(layer.indexer.dim)});
  return widest;
}

// The matrix is filled with the last rows: what it holds does not depend on their number.
void fill_state(DeltaState& state, int64_t rows, bool last, Rows& source) {
  if (!last) return state.is_anchored() ? state.advance(rows) : advance_pending(source.queue(), state, rows, {});
  auto fill = [&](const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    for (float& value : values) value = 0.1f * source.value();
    source.queue().space().copy(tensor.data, values.data(), values.size() * sizeof(float));
  };
  if (!state.is_anchored()) {
    fill(state.matrix(1));
    advance_pending(source.queue(), state, rows, {});
    return;
  }
  const DeltaState::View view = state.writable(rows);
  for (const Tensor& tensor : {view.state, view.ring_k, view.ring_u}) fill(tensor);
  const std::vector<float> decays(static_cast<size_t>(view.ring_g.elements()), -0.01f);
  source.queue().space().copy(view.ring_g.data, decays.data(), decays.size() * sizeof(float));
  state.advance(rows);
}

// Positions first .. first + count - 1 of one layer.
void fill_layer(const ModelSpec& spec, size_t index, LayerCaches& caches, int64_t first, int64_t count, bool last,
                Rows& source) {
  const LayerSpec& layer = spec.layers[index];
  const int64_t kv_width = int64_t{layer.attention.kv_heads} * layer.attention.head_dim;
  if (!caches.k.empty()) {
    append_rows(source.queue(), caches.k, source.take(count, kv_width));
    append_rows(source.queue(), caches.v, source.take(count, kv_width));
  }
  if (!caches.index_keys.empty()) {
    const int64_t ratio = layer.indexer.ratio;
    append_rows(source.queue(), caches.index_keys,
                source.take((first + count) / ratio - first / ratio, layer.indexer.dim));
    append_rows(source.queue(), caches.index_tail, source.take(count, layer.indexer.dim));
  }
  if (!caches.delta.empty()) {
    fill_state(caches.delta, count, last, source);
    append_rows(source.queue(), caches.conv, source.take(count, spec.delta.channels()));
  }
  if (!caches.ngram.empty()) append_rows(source.queue(), caches.ngram, source.take(count, spec.residual_width()));
}

}  // namespace

void fill_synthetic(Queue& queue, Sequence& sequence, const ModelSpec& spec, int64_t positions, uint64_t seed,
                    const std::function<bool(int64_t done)>& progress) {
  if (sequence.length() != 0 || sequence.mtp_length() != 0 || positions < 0 || positions > sequence.capacity())
    throw Error(ErrorKind::Argument, std::to_string(positions) +
                                         " synthetic positions need a fresh sequence with a "
                                         "context of as many, this one holds " +
                                         std::to_string(sequence.length()) + " of " +
                                         std::to_string(sequence.capacity()));
  Rows source(queue, widest_row(spec), seed);
  const auto trunk = static_cast<size_t>(spec.trunk_layers());
  while (sequence.length() < positions) {
    const int64_t first = sequence.length(), count = std::min(kSlice, positions - first);
    sequence.prepare(count, count);
    for (size_t i = 0; i < trunk; ++i)
      fill_layer(spec, i, sequence.layers[i], first, count, first + count == positions, source);
    if (!sequence.ngram_context.empty())
      append_rows(queue, sequence.ngram_context, source.tokens(count, spec.vocabulary));
    sequence.advance(count);
    const int64_t cell = sequence.mtp_length(), cells = spec.mtp_layers > 0 ? sequence.length() - 1 - cell : 0;
    if (cells > 0) {
      sequence.prepare_mtp(cells);
      for (size_t i = trunk; i < spec.layers.size(); ++i)
        fill_layer(spec, i, sequence.layers[i], cell, cells, true, source);
      sequence.advance_mtp(cells);
    }
    if (progress && !progress(sequence.length())) return;
  }
}

}  // namespace strata
