// The chunk form on accelerators: gated_delta_anchored, and the opt-in arm of gated_delta that starts its chunks at the
// call's first row.
#include <algorithm>
#include <cmath>

#include "device/device.h"
#include "ops/gated_delta/cpu.h"
#include "ops/gated_delta/device_chunk_kernel.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

extern const KernelImage kernel_image_delta_factors;
extern const KernelImage kernel_image_delta_chunks;

namespace {

constexpr int64_t kFloat = sizeof(float), kSlots = kDeltaChunk, kColumns = kDeltaColumns;
constexpr int64_t kScratch = 64 << 20;  // most bytes of factors between the two kernels, about what the cache holds

// What differs by the width that keys are padded to.
struct Sizes {
  const char *factors, *chunks;  // kernels
  int64_t planes, fixed, head;   // of a layout, in bytes
  int64_t shared_fixed, shared_head;
};
template <int kKeys>
constexpr Sizes sizes_of(const char* factors, const char* chunks) {
  using Layout = DeltaChunkLayout<kKeys>;
  return {factors, chunks, 4 * Layout::kPlane, Layout::kHeads, Layout::kHead, Layout::kFixed, Layout::kOfHead};
}
Sizes sizes_for(int64_t dk) {
  if (dk <= 64) return sizes_of<64>("delta_factors64", "delta_chunks64");
  if (dk <= 128) return sizes_of<128>("delta_factors128", "delta_chunks128");
  return sizes_of<256>("delta_factors256", "delta_chunks256");
}

int64_t stride(const Tensor& tensor, int index) { return tensor.stride(index) / kFloat; }

DeltaFactorsKernel factors_kernel(const GatedDeltaAnchoredArgs& args, const DeltaChunkRows& at) {
  DeltaFactorsKernel kernel{};
  kernel.at = at;
  kernel.q = args.q.f32();
  kernel.k = args.k.f32();
  kernel.g = args.g.f32();
  kernel.beta = args.beta.f32();
  kernel.q_row = stride(args.q, 0);
  kernel.q_head = stride(args.q, 1);
  kernel.k_row = stride(args.k, 0);
  kernel.k_head = stride(args.k, 1);
  kernel.g_row = stride(args.g, 0);
  kernel.beta_row = stride(args.beta, 0);
  kernel.query_factor = query_factor(at.dk);
  if (args.ring_k.data == nullptr) return kernel;
  kernel.ring_k = args.ring_k.f32();
  kernel.ring_g = args.ring_g.f32();
  kernel.ring_k_head = stride(args.ring_k, 0);
  kernel.ring_k_slot = stride(args.ring_k, 1);
  kernel.ring_g_head = stride(args.ring_g, 0);
  return kernel;
}

DeltaChunksKernel chunks_kernel(const GatedDeltaAnchoredArgs& args, const DeltaChunkRows& at) {
  DeltaChunksKernel kernel{};
  kernel.at = at;
  kernel.v = args.v.f32();
  kernel.g = args.g.f32();
  kernel.state = args.state.f32();
  kernel.out = args.out.f32();
  kernel.v_row = stride(args.v, 0);
  kernel.v_head = stride(args.v, 1);
  kernel.g_row = stride(args.g, 0);
  kernel.state_head = stride(args.state, 0);
  kernel.state_key = stride(args.state, 1);
  kernel.out_row = stride(args.out, 0);
  kernel.out_head = stride(args.out, 1);
  if (args.ring_k.data == nullptr) return kernel;
  kernel.ring_k = args.ring_k.f32();
  kernel.ring_u = args.ring_u.f32();
  kernel.ring_g = args.ring_g.f32();
  kernel.ring_k_head = stride(args.ring_k, 0);
  kernel.ring_k_slot = stride(args.ring_k, 1);
  kernel.ring_u_head = stride(args.ring_u, 0);
  kernel.ring_u_slot = stride(args.ring_u, 1);
  kernel.ring_g_head = stride(args.ring_g, 0);
  return kernel;
}

// As many value heads a block as its shared memory holds: they share the key head's products. Heads never meet.
int64_t heads_of_block(const Sizes& sizes, int64_t repeat, int64_t limit) {
  int64_t most = std::min<int64_t>(repeat, kDeltaHeads);
  while (most > 1 && sizes.shared_fixed + most * sizes.shared_head > limit) --most;
  const int64_t groups = (repeat + most - 1) / most;
  return (repeat + groups - 1) / groups;
}

// Chunks a turn: their factors stay in the cache. Blocks of factors fill the multiprocessors, two each, whole times
// where that is possible.
int64_t chunks_together(int64_t chunk_bytes, int64_t key_heads, int64_t multiprocessors) {
  const int64_t most = std::max<int64_t>(kScratch / chunk_bytes, 1), full = 2 * multiprocessors;
  const int64_t times = most * key_heads / full;
  return times == 0 ? most : std::max<int64_t>(times * full / key_heads, 1);
}

void run(Queue& queue, const char* op, const GatedDeltaAnchoredArgs& args, bool fold_rest) {
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2), repeat = value_heads / key_heads;
  if (rows == 0) return;
  const Sizes sizes = sizes_for(dk);
  DeltaChunkRows at{rows,
                    args.first % kSlots,
                    0,
                    0,
                    key_heads,
                    value_heads,
                    dk,
                    dv,
                    args.mapping == HeadMapping::Tiled,
                    fold_rest ? 1 : 0};
  const int64_t chunks = (at.slot + rows + kSlots - 1) / kSlots;
  const int64_t chunk_bytes = key_heads * (sizes.fixed + repeat * sizes.head);
  const AcceleratorInfo& device = queue.accelerator()->info();
  const int64_t together = std::min(chunks, chunks_together(chunk_bytes, key_heads, device.multiprocessors));
  DeltaFactorsKernel factors = factors_kernel(args, at);
  DeltaChunksKernel states = chunks_kernel(args, at);
  factors.factors = static_cast<char*>(
      queue.scratch(static_cast<uint64_t>(together * chunk_bytes + key_heads * kSlots * dk * kFloat)));
  factors.last_keys = reinterpret_cast<float*>(factors.factors + together * chunk_bytes);
  states.factors = factors.factors;
  states.last_keys = factors.last_keys;
  const int64_t heads = heads_of_block(sizes, repeat, device.shared_bytes);
  states.slices = (dv + kColumns - 1) / kColumns;
  states.groups = (repeat + heads - 1) / heads;
  const auto factors_shared =
      static_cast<uint32_t>(sizes.planes + (2 * 4 * 256 + 2 * kSlots) * kFloat + repeat * kSlots * 12);
  const auto states_shared = static_cast<uint32_t>(sizes.shared_fixed + heads * sizes.shared_head);
  for (int64_t first = 0; first < chunks; first += together) {
    factors.at.first_chunk = states.at.first_chunk = first;
    factors.at.chunks = states.at.chunks = std::min(together, chunks - first);
    queue.launch(op, kernel_image_delta_factors, sizes.factors,
                 {{factors.at.chunks * key_heads}, {256}, factors_shared}, factors);
    queue.launch(op, kernel_image_delta_chunks, sizes.chunks,
                 {{key_heads * states.groups * states.slices}, {kDeltaWaves * 32}, states_shared}, states);
  }
}

}  // namespace

std::string chunk_device_refusal(int64_t dk, int64_t key_heads, int64_t value_heads) {
  const int64_t repeat = value_heads / key_heads;
  if (dk > 256) return "keys of " + std::to_string(dk) + " values; up to 256";
  if (repeat > 64) return std::to_string(repeat) + " value heads a key head; up to 64";
  return {};
}

void gated_delta_anchored_device(Queue& queue, const GatedDeltaAnchoredArgs& args) {
  run(queue, "gated_delta_anchored", args, false);
}

void gated_delta_wy_device(Queue& queue, const GatedDeltaArgs& args) {
  run(queue, "gated_delta",
      {args.q, args.k, args.v, args.g, args.beta, args.mapping, 0, args.state, {}, {}, {}, args.out}, true);
}

}  // namespace strata
