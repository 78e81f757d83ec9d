#include "model/placement.h"

#include <algorithm>
#include <vector>

namespace strata {
namespace {

template <class Visit>
void each_tensor(Linear& map, Visit&& visit) {
  for (Linear::Part& part : map.parts) visit(part.weight);
  visit(map.bias);
}

template <class Visit>
void each_tensor(DenseWeights& w, Visit&& visit) {
  for (Linear* map : {&w.gate, &w.up, &w.down}) each_tensor(*map, visit);
}

template <class Visit>
void each_tensor(HyperWeights& w, Visit&& visit) {
  visit(w.norm);
  for (Linear* map : {&w.down, &w.up, &w.inject}) each_tensor(*map, visit);
}

template <class Visit>
void each_tensor(AttentionWeights& w, Visit&& visit) {
  for (Linear* map : {&w.q, &w.k, &w.v, &w.output, &w.index_q, &w.index_k}) each_tensor(*map, visit);
  for (Tensor* tensor : {&w.q_norm, &w.k_norm, &w.index_q_norm, &w.index_k_norm}) visit(*tensor);
}

template <class Visit>
void each_tensor(DeltaWeights& w, Visit&& visit) {
  for (Linear* map : {&w.qkv, &w.z, &w.beta, &w.alpha, &w.output}) each_tensor(*map, visit);
  for (Tensor* tensor : {&w.conv, &w.dt_bias, &w.a, &w.norm}) visit(*tensor);
}

template <class Visit>
void each_tensor(ExpertWeights& w, Visit&& visit) {
  for (Linear* map : {&w.router, &w.shared_gate}) each_tensor(*map, visit);
  for (Tensor* tensor : {&w.gate, &w.up, &w.down, &w.gate_scale, &w.up_scale, &w.down_scale}) visit(*tensor);
  each_tensor(w.shared, visit);
}

template <class Visit>
void each_tensor(NgramWeights& w, Visit&& visit) {
  for (Linear* map : {&w.key, &w.value}) each_tensor(*map, visit);
  for (Tensor* tensor : {&w.norm_key, &w.norm_query, &w.norm_conv, &w.conv}) visit(*tensor);
}

template <class Visit>
void each_tensor(Weights& w, Visit&& visit) {
  for (Tensor* tensor : {&w.table, &w.output_norm, &w.ngram_table}) visit(*tensor);
  each_tensor(w.head, visit);
  each_tensor(w.output_mixer, visit);
  for (LayerWeights& layer : w.layers) {
    visit(layer.attention_norm);
    visit(layer.mlp_norm);
    each_tensor(layer.attention_hyper, visit);
    each_tensor(layer.mlp_hyper, visit);
    each_tensor(layer.attention, visit);
    each_tensor(layer.delta, visit);
    each_tensor(layer.dense, visit);
    each_tensor(layer.experts, visit);
    each_tensor(layer.ngram, visit);
  }
  for (MtpWeights& mtp : w.mtp) {
    for (Tensor* tensor : {&mtp.embedding_norm, &mtp.hidden_norm, &mtp.head_norm, &mtp.table}) visit(*tensor);
    each_tensor(mtp.merge, visit);
    each_tensor(mtp.head, visit);
    each_tensor(mtp.mixer, visit);
  }
}

// Memory that tensors show without a gap.
struct Range {
  const char *begin, *end;
  size_t offset = 0;  // in the placed memory
};

Range range_of(const Tensor& tensor) {
  const int last = tensor.rank - 1;
  auto bytes = static_cast<int64_t>(bytes_of(tensor.dtype, tensor.extent(last)));
  for (int axis = 0; axis < last; ++axis) bytes += (tensor.extent(axis) - 1) * tensor.stride(axis);
  const auto* begin = tensor.as<const char>();
  return {begin, begin + bytes};
}

std::vector<Range> ranges_of(Weights& weights) {
  std::vector<Range> all;
  each_tensor(weights, [&](const Tensor& tensor) {
    if (!tensor.empty() && tensor.elements() > 0) all.push_back(range_of(tensor));
  });
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> merged;
  for (const Range& one : all) {
    if (!merged.empty() && one.begin < merged.back().end)
      merged.back().end = std::max(merged.back().end, one.end);
    else
      merged.push_back(one);
  }
  return merged;
}

}  // namespace

SpaceMemory place_weights(Weights& weights, const MemorySpace& space) {
  constexpr size_t kAlignment = 256;
  std::vector<Range> ranges = ranges_of(weights);
  size_t total = 0;
  for (Range& range : ranges) {
    range.offset = total;
    total += (static_cast<size_t>(range.end - range.begin) + kAlignment - 1) / kAlignment * kAlignment;
  }
  SpaceMemory memory(space, total);
  auto* base = static_cast<char*>(memory.data());
  for (const Range& range : ranges)
    space.copy(base + range.offset, range.begin, static_cast<size_t>(range.end - range.begin));
  space.wait();
  each_tensor(weights, [&](Tensor& tensor) {
    if (tensor.empty() || tensor.elements() == 0) return;
    const auto* data = tensor.as<const char>();
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), data,
                                        [](const char* at, const Range& range) { return at < range.begin; });
    const Range& range = *std::prev(after);
    tensor.data = base + range.offset + (data - range.begin);
  });
  return memory;
}

}  // namespace strata
