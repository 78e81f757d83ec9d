// Arms of gated_delta_anchored for accelerators: chunks in segments, so that what one launch leaves for the next stays
// in the device's cache.
#include <algorithm>

#include "device/device.h"
#include "ops/gated_delta/device_arguments.h"
#include "ops/gated_delta/device_kernel.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

extern const KernelImage kernel_image_gated_delta_chunk;

namespace {

constexpr const char* kOp = "gated_delta_anchored";
constexpr int64_t kFloat = sizeof(float);

DeltaChunkKernel kernel_of(const GatedDeltaAnchoredArgs& args) {
  DeltaChunkKernel a{};
  take_arguments(a, args);
  a.ring_k = args.ring_k.f32(), a.ring_u = args.ring_u.f32(), a.ring_g = args.ring_g.f32();
  a.start = args.first % kDeltaChunk;
  a.ring_k_head = args.ring_k.stride(0) / kFloat, a.ring_k_slot = args.ring_k.stride(1) / kFloat;
  a.ring_u_head = args.ring_u.stride(0) / kFloat, a.ring_u_slot = args.ring_u.stride(1) / kFloat;
  a.ring_g_head = args.ring_g.stride(0) / kFloat;
  return a;
}

}  // namespace

std::string gated_delta_chunk_refusal(const GatedDeltaAnchoredArgs& args) {
  return args.q.extent(2) <= 256 ? std::string() : "keys of " + std::to_string(args.q.extent(2)) + " values; up to 256";
}

void gated_delta_anchored_columns(Queue& queue, const GatedDeltaAnchoredArgs& args) {
  constexpr int64_t kThreads = 128, kColumns = kThreads / 8, kSegment = 16;
  constexpr uint32_t kGates = kDeltaChunk * (sizeof(double) + sizeof(int) + sizeof(float));
  DeltaChunkKernel a = kernel_of(args);
  if (a.rows == 0) return;
  const int64_t chunks = (a.start + a.rows + kDeltaChunk - 1) / kDeltaChunk, most = std::min(chunks, kSegment);
  const int width = a.dk <= 64 ? 0 : a.dk <= 128 ? 1 : 2;
  a.width = kKeyWidths[width];
  const int64_t keys = most * a.key_heads * kDeltaChunk * a.width, slots = most * a.value_heads * kDeltaChunk;
  const int64_t floats = 2 * keys + 2 * slots * kDeltaChunk + 2 * slots;
  a.queries = static_cast<float*>(queue.scratch(static_cast<uint64_t>(floats * kFloat)));
  a.keys = a.queries + keys;
  a.kk = a.keys + keys;
  a.qk = a.kk + slots * kDeltaChunk;
  a.from_state = a.qk + slots * kDeltaChunk;
  a.weight = a.from_state + slots;
  a.slices = (a.dv + kColumns - 1) / kColumns;
  constexpr const char* kKernels[] = {"gated_delta_chunk64", "gated_delta_chunk128", "gated_delta_chunk256"};
  for (a.first_chunk = 0; a.first_chunk < chunks; a.first_chunk += a.chunks) {
    a.chunks = std::min(kSegment, chunks - a.first_chunk);
    queue.launch(kOp, kernel_image_gated_delta_chunk, "gated_delta_chunk_prepare",
                 {{a.chunks * a.key_heads}, {256}, kGates}, a);
    queue.launch(kOp, kernel_image_gated_delta_chunk, kKernels[width],
                 {{a.value_heads * a.slices}, {kThreads}, static_cast<uint32_t>(kDeltaChunk * kColumns * kFloat)}, a);
  }
}

}  // namespace strata
