#include "model/state.h"

#include <algorithm>

namespace strata {
namespace {

// Every state with its shape. allocate(part, dtype, extents) gives the memory; `part` says to which sum it belongs.
template <class Allocate>
void lay_out(const ModelSpec& spec, int64_t capacity, StateTypes types, std::vector<LayerState>& layers,
             Tensor& ngram_context, Allocate&& allocate) {
  using Part = StateBytes;
  layers.resize(spec.layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    LayerState& state = layers[i];
    if (layer.mixer == MixerKind::Attention) {
      const AttentionSpec& attention = layer.attention;
      state.k = allocate(&Part::kv, DType::F32, {capacity, attention.kv_heads, attention.head_dim});
      state.v = allocate(&Part::kv, DType::F32, {capacity, attention.kv_heads, attention.head_dim});
    } else {
      const DeltaSpec& delta = spec.delta;
      state.delta = allocate(&Part::delta, DType::F32, {delta.value_heads, delta.dk, delta.dv});
      state.conv_history = allocate(&Part::convolution, DType::F32, {delta.conv_width - 1, delta.channels()});
    }
    if (layer.indexer.ratio > 0) {
      state.index_tail = allocate(&Part::index, DType::F32, {layer.indexer.ratio, layer.indexer.dim});
      state.index_pooled =
          allocate(&Part::index, types.index_keys, {capacity / layer.indexer.ratio, layer.indexer.dim});
    }
    if (layer.ngram >= 0) {
      const NgramSpec& ngram = spec.ngrams[static_cast<size_t>(layer.ngram)];
      state.ngram_history =
          allocate(&Part::ngram, DType::F32, {int64_t{ngram.conv_width - 1} * ngram.order(), spec.residual_width()});
    }
  }
  if (!spec.ngrams.empty()) ngram_context = allocate(&Part::ngram, DType::I32, {spec.ngrams[0].params.orders});
}

using Extents = std::initializer_list<int64_t>;

size_t bytes_for(DType dtype, Extents extents) {
  return std::max<size_t>(1, bytes_of(dtype, make_tensor(nullptr, dtype, extents).elements()));
}

}  // namespace

StateBytes state_bytes(const ModelSpec& spec, int64_t capacity, StateTypes types) {
  StateBytes sum;
  std::vector<LayerState> layers;
  Tensor context;
  lay_out(spec, capacity, types, layers, context, [&](uint64_t StateBytes::*part, DType dtype, Extents extents) {
    sum.*part += bytes_for(dtype, extents);
    return Tensor{};
  });
  return sum;
}

SequenceState::SequenceState(const ModelSpec& spec, int64_t capacity, StateTypes types) : capacity_(capacity) {
  lay_out(spec, capacity, types, layers, ngram_context, [&](uint64_t StateBytes::*, DType dtype, Extents extents) {
    buffers_.emplace_back(bytes_for(dtype, extents));
    return buffers_.back().tensor(dtype, extents);
  });
  if (!ngram_context.empty()) std::fill_n(ngram_context.as<int32_t>(), ngram_context.elements(), -1);
}

uint64_t SequenceState::bytes() const {
  uint64_t total = 0;
  for (const Buffer& buffer : buffers_) total += buffer.bytes();
  return total;
}

}  // namespace strata
