#include "measure/synthetic_depth.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace strata {
namespace {

constexpr int64_t kSlice = 1024;        // positions at a time
constexpr int64_t kStep = 17;           // values from one row to the next in the pool
constexpr int64_t kPool = 1 << 18;      // values behind which rows begin
constexpr float kLargest = 1.7320508f;  // of a uniform value with a mean square of 1, as norms leave it

// Rows are windows into one pool of values: far cheaper than values of their own, and no two of a slice are the same.
class Rows {
 public:
  Rows(int64_t widest, uint64_t seed) : random_(seed), values_(static_cast<size_t>(kPool + kSlice * kStep + widest)) {
    for (float& value : values_) value = random_.uniform(-kLargest, kLargest);
  }
  // [count, width], valid until the next call.
  Tensor take(int64_t count, int64_t width) {
    Tensor rows = make_f32(values_.data() + random_.below(kPool), {count, width});
    rows.strides[0] = kStep * static_cast<int64_t>(sizeof(float));
    return rows;
  }
  // [count, 1] below `limit`.
  Tensor tokens(int64_t count, int64_t limit) {
    tokens_.resize(static_cast<size_t>(count));
    for (int32_t& token : tokens_) token = static_cast<int32_t>(random_.below(limit));
    return make_tensor(tokens_.data(), DType::I32, {count, 1});
  }
  float value() { return random_.uniform(-kLargest, kLargest); }

 private:
  Random random_;
  std::vector<float> values_;
  std::vector<int32_t> tokens_;
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
  if (!last) return state.is_anchored() ? state.advance(rows) : state.advance(rows, {});
  auto fill = [&](const Tensor& tensor) {
    float* values = tensor.f32();
    for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = 0.1f * source.value();
  };
  if (!state.is_anchored()) {
    fill(state.matrix(1));
    state.advance(rows, {});
    return;
  }
  const DeltaState::View view = state.writable(rows);
  for (const Tensor& tensor : {view.state, view.ring_k, view.ring_u}) fill(tensor);
  std::fill_n(view.ring_g.f32(), view.ring_g.elements(), -0.01f);  // log decays
  state.advance(rows);
}

// Positions first .. first + count - 1 of one layer.
void fill_layer(const ModelSpec& spec, size_t index, LayerCaches& caches, int64_t first, int64_t count, bool last,
                Rows& source) {
  const LayerSpec& layer = spec.layers[index];
  const int64_t kv_width = int64_t{layer.attention.kv_heads} * layer.attention.head_dim;
  if (!caches.k.empty()) {
    caches.k.append(source.take(count, kv_width));
    caches.v.append(source.take(count, kv_width));
  }
  if (!caches.index_keys.empty()) {
    const int64_t ratio = layer.indexer.ratio;
    caches.index_keys.append(source.take((first + count) / ratio - first / ratio, layer.indexer.dim));
    caches.index_tail.append(source.take(count, layer.indexer.dim));
  }
  if (!caches.delta.empty()) {
    fill_state(caches.delta, count, last, source);
    caches.conv.append(source.take(count, spec.delta.channels()));
  }
  if (!caches.ngram.empty()) caches.ngram.append(source.take(count, spec.residual_width()));
}

}  // namespace

void fill_synthetic(Sequence& sequence, const ModelSpec& spec, int64_t positions, uint64_t seed,
                    const std::function<bool(int64_t done)>& progress) {
  if (sequence.length() != 0 || sequence.mtp_length() != 0 || positions < 0 || positions > sequence.capacity())
    throw Error(ErrorKind::Argument, std::to_string(positions) +
                                         " synthetic positions need a fresh sequence with a "
                                         "context of as many, this one holds " +
                                         std::to_string(sequence.length()) + " of " +
                                         std::to_string(sequence.capacity()));
  Rows source(widest_row(spec), seed);
  const auto trunk = static_cast<size_t>(spec.trunk_layers());
  while (sequence.length() < positions) {
    const int64_t first = sequence.length(), count = std::min(kSlice, positions - first);
    sequence.prepare(count, count);
    for (size_t i = 0; i < trunk; ++i)
      fill_layer(spec, i, sequence.layers[i], first, count, first + count == positions, source);
    if (!sequence.ngram_context.empty()) sequence.ngram_context.append(source.tokens(count, spec.vocabulary));
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
