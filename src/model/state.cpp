#include "model/state.h"

#include <algorithm>

namespace strata {

Tensor SequenceState::allocate(DType dtype, std::initializer_list<int64_t> extents) {
  const Tensor shape = make_tensor(nullptr, dtype, extents);
  buffers_.emplace_back(std::max<size_t>(1, bytes_of(dtype, shape.elements())));
  return buffers_.back().tensor(dtype, extents);
}

SequenceState::SequenceState(const ModelSpec& spec, int64_t capacity) : capacity_(capacity) {
  layers.resize(spec.layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    LayerState& state = layers[i];
    if (layer.mixer == MixerKind::Attention) {
      const AttentionSpec& attention = layer.attention;
      state.k = allocate(DType::F32, {capacity, attention.kv_heads, attention.head_dim});
      state.v = allocate(DType::F32, {capacity, attention.kv_heads, attention.head_dim});
    } else {
      const DeltaSpec& delta = spec.delta;
      state.delta = allocate(DType::F32, {delta.value_heads, delta.dk, delta.dv});
      state.conv_history = allocate(DType::F32, {delta.conv_width - 1, delta.channels()});
    }
    if (layer.indexer.ratio > 0) {
      state.index_tail = allocate(DType::F32, {layer.indexer.ratio, layer.indexer.dim});
      state.index_pooled = allocate(DType::F32, {capacity / layer.indexer.ratio, layer.indexer.dim});
    }
    if (layer.ngram >= 0) {
      const NgramSpec& ngram = spec.ngrams[static_cast<size_t>(layer.ngram)];
      state.ngram_history =
          allocate(DType::F32, {int64_t{ngram.conv_width - 1} * ngram.order(), spec.residual_width()});
    }
  }
  if (spec.ngrams.empty()) return;
  ngram_context = allocate(DType::I32, {spec.ngrams[0].params.orders});
  std::fill_n(ngram_context.as<int32_t>(), ngram_context.elements(), -1);
}

uint64_t SequenceState::bytes() const {
  uint64_t total = 0;
  for (const Buffer& buffer : buffers_) total += buffer.bytes();
  return total;
}

}  // namespace strata
