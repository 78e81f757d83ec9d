#include "runtime/plan.h"

#include <algorithm>

#include "device/device.h"

namespace strata {
namespace {

constexpr int64_t kScoredRows = 32;  // rows whose block scores exist at a time (Forward::attend_selected)
constexpr int64_t kWindowRows = 8;   // rows with logits at a time

// Values a row of one layer takes at most.
int64_t layer_values(const ModelSpec& spec, const LayerSpec& layer) {
  const int64_t width = spec.residual_width();
  int64_t values = 2 * spec.hidden + spec.streams + 2 * width + spec.low_rank;
  if (layer.mixer == MixerKind::Attention) {
    const AttentionSpec& a = layer.attention;
    values += int64_t{a.heads} * a.head_dim * (a.gated ? 4 : 3) + 2 * int64_t{a.kv_heads} * a.head_dim;
    values += int64_t{layer.indexer.heads + 1} * layer.indexer.dim;
  } else {
    const DeltaSpec& d = spec.delta;
    values += 2 * d.channels() + 2 * int64_t{d.value_heads} * d.dv + 4 * d.value_heads;
  }
  int64_t mlp = 2 * int64_t{layer.inner};
  if (layer.mlp == MlpKind::Experts) {
    const ExpertsSpec& e = spec.experts;
    mlp = e.count + 2 * e.used + int64_t{e.used} * (2 * e.inner + spec.hidden) + 2 * int64_t{e.shared_inner};
  }
  if (layer.ngram >= 0) {
    const NgramSpec& n = spec.ngrams[static_cast<size_t>(layer.ngram)];
    values += int64_t{n.params.orders} * n.params.heads * n.width + 5 * width;
  }
  return values + mlp;
}

constexpr int64_t pages_of(int64_t rows) { return (rows + kPageRows - 1) / kPageRows; }

// Keys and values in memory while the whole lies in a file.
uint64_t resident_kv_bytes(const ModelSpec& spec, const PlanRequest& request) {
  const int64_t pass = std::min(request.micro_batch, request.context);
  const int64_t set = std::min(request.context, (pages_of(request.caches.resident) + pages_of(pass)) * kPageRows);
  const uint64_t whole = state_bytes(spec, request.context, request.caches).kv;
  const uint64_t sets = state_bytes(spec, set, request.caches).kv;
  int64_t layers = 0;
  for (const LayerSpec& layer : spec.layers) layers += layer.mixer == MixerKind::Attention ? 1 : 0;
  const uint64_t running = layers > 0 ? whole / static_cast<uint64_t>(layers) : 0;
  const auto slots = static_cast<uint64_t>(request.slots);
  return std::min(whole * slots, sets * slots + running);
}

}  // namespace

uint64_t scratch_bytes(const ModelSpec& spec, int64_t rows, int64_t context) {
  int64_t widest = 0, scored = 0;
  for (const LayerSpec& layer : spec.layers) {
    widest = std::max(widest, layer_values(spec, layer));
    if (layer.indexer.ratio > 0) {
      const int64_t chosen = std::min<int64_t>(context, int64_t{layer.indexer.budget} + layer.indexer.ratio);
      scored = std::max(scored, std::min(rows, kScoredRows) * (context / layer.indexer.ratio + chosen));
    }
  }
  const int64_t values =
      rows * (spec.residual_width() + spec.rope.rotary_dims + widest) + scored + 2 * kWindowRows * spec.vocabulary;
  return static_cast<uint64_t>(values) * sizeof(float);
}

MemoryPlan plan_memory(const ModelSpec& spec, const gguf::File& file, const PlanRequest& request) {
  MemoryPlan plan;
  plan.weights = file.data_bytes();
  const StateBytes one = state_bytes(spec, request.context, request.caches);
  const auto slots = static_cast<uint64_t>(request.slots);
  plan.states = {one.kv * slots, one.index * slots, one.delta * slots, one.convolution * slots, one.ngram * slots};
  plan.scratch = scratch_bytes(spec, std::min(request.micro_batch, request.context), request.context);
  plan.available = request.accelerator ? request.accelerator->free_bytes() : free_memory_bytes();
  plan.kv_memory = plan.states.kv;
  if (request.caches.resident > 0) {
    plan.kv_file = plan.states.kv;
    plan.kv_memory = resident_kv_bytes(spec, request);
    plan.disk = free_disk_bytes(request.tier_folder);
  }
  return plan;
}

namespace {

std::string mib(uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

std::string does_not_fit(const ModelSpec& spec, const gguf::File& file, const PlanRequest& request, uint64_t floor) {
  const MemoryPlan plan = plan_memory(spec, file, request);
  if (plan.disk > 0 && plan.kv_file > plan.disk)
    return "keys and values of " + std::to_string(request.slots) + " x " + std::to_string(request.context) +
           " positions need a file of " + mib(plan.kv_file) + ", " + mib(plan.disk) + " are free in " +
           request.tier_folder + ": ask for a smaller context (-c), a smaller cache type (-ctk q8_0 -ctv q8_0), or " +
           "another folder (--kv-file-dir)";
  if (plan.available == 0 || plan.need() + floor <= plan.available) return {};
  const uint64_t room = plan.available > floor ? plan.available - floor : 0;
  PlanRequest smaller = request;
  while (smaller.context > 64 && plan_memory(spec, file, smaller).need() > room) smaller.context /= 2;
  return "caches and scratch for " + std::to_string(request.slots) + " x " + std::to_string(request.context) +
         " positions need " + mib(plan.need()) + ", " + mib(room) + " are free" +
         (floor > 0 ? " above the floor of " + mib(floor) : "") + ": ask for a smaller context (-c " +
         std::to_string(smaller.context) +
         "), a smaller cache type (-ctk q8_0 -ctv q8_0), fewer sequences at a time, or " +
         (request.caches.resident > 0 ? "fewer positions in memory (--kv-resident)"
                                      : "keys and values in a file (--kv-resident)");
}

}  // namespace strata
