// The chunk form in three passes for any accelerator: `wy-fma`, and `wy-wmma` on the matrix units of AMD GPUs. Chunks
// begin at the call's first row and go in segments, so that what a pass leaves for the next one is bounded.
#include <algorithm>
#include <string>

#include "device/device.h"
#include "ops/gated_delta/device_arguments.h"
#include "ops/gated_delta/device_kernel.h"
#include "ops/gated_delta/device_wy_kernel.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

extern const KernelImage kernel_image_delta_wy, kernel_image_delta_wy_wmma_gfx;

namespace {

constexpr const char* kOp = "gated_delta";
constexpr int64_t kFloat = sizeof(float), kScratch = 64 << 20;  // most bytes between the passes
constexpr uint32_t kDecays =                                    // shared memory of make_decays
    2 * kWyRows * kWyRows * 4 + 2 * kWyRows * 4 + kWyHeads * (kDeltaChunk * 12 + kWyRows * 4);

DeltaWyKernel kernel_of(const GatedDeltaArgs& args) {
  DeltaWyKernel a{};
  take_arguments(a, args);
  a.width = *std::lower_bound(std::begin(kKeyWidths), std::end(kKeyWidths), a.dk);
  return a;
}

// Runs launch(a) for one segment after another. Bytes: of a chunk and key head; of the states of a chunk and value
// head.
template <class Launch>
void in_segments(Queue& queue, DeltaWyKernel& a, int64_t factors, int64_t states, Launch launch) {
  const auto whole = [](int64_t bytes) { return (bytes + 15) / 16 * 16; };
  const int64_t chunks = (a.rows + kWyRows - 1) / kWyRows;
  a.states_at = whole(static_cast<int64_t>(sizeof(DeltaWyRecord)) + kWyRows * a.dv * kFloat);
  a.record_bytes = a.states_at + whole(states);
  const int64_t chunk = a.key_heads * factors + a.value_heads * a.record_bytes;
  const int64_t together = std::clamp<int64_t>(kScratch / chunk, 1, chunks);
  a.factors = static_cast<char*>(queue.scratch(static_cast<uint64_t>(together * chunk)));
  a.records = a.factors + together * a.key_heads * factors;
  for (a.first_chunk = 0; a.first_chunk < chunks; a.first_chunk += a.chunks) {
    a.chunks = std::min(together, chunks - a.first_chunk);
    launch(a);
  }
}

int width_index(const DeltaWyKernel& a) { return a.width == 64 ? 0 : (a.width == 128 ? 1 : 2); }

}  // namespace

void gated_delta_wy_fma(Queue& queue, const GatedDeltaArgs& args) {
  constexpr int64_t kThreads = 128, kColumns = kThreads / 8;
  constexpr uint32_t kOutputs = (32 * (kWyRows + 4) + kWyRows * kWyRows) * 4;
  constexpr const char* kScans[] = {"delta_wy_scan64", "delta_wy_scan128", "delta_wy_scan256"};
  DeltaWyKernel a = kernel_of(args);
  if (a.rows == 0) return;
  a.slices = (a.dv + kColumns - 1) / kColumns;
  const int64_t threads = std::min<int64_t>((a.dv + 31) / 32 * 32, 128), parts = (a.dv + threads - 1) / threads;
  in_segments(queue, a, 2 * kWyRows * a.width * kFloat, a.dk * a.dv * kFloat, [&](const DeltaWyKernel& part) {
    queue.launch(kOp, kernel_image_delta_wy, "delta_wy_factors",
                 {{part.chunks * part.key_heads}, {kWyThreads}, kDecays}, part);
    queue.launch(kOp, kernel_image_delta_wy, kScans[width_index(part)],
                 {{part.value_heads * part.slices}, {kThreads}, static_cast<uint32_t>(kWyRows * kColumns * kFloat)},
                 part);
    queue.launch(kOp, kernel_image_delta_wy, "delta_wy_outputs",
                 {{part.chunks * part.value_heads * parts}, {static_cast<int>(threads)}, kOutputs}, part);
  });
}

void gated_delta_wy_wmma(Queue& queue, const GatedDeltaArgs& args) {
  constexpr const char* kFactors[] = {"wy_wmma_factors64", "wy_wmma_factors128", "wy_wmma_factors256"};
  constexpr const char* kScans[] = {"wy_wmma_scan64", "wy_wmma_scan128", "wy_wmma_scan256"};
  constexpr const char* kOutputs[] = {"wy_wmma_outputs64", "wy_wmma_outputs128", "wy_wmma_outputs256"};
  constexpr uint32_t kTiles = kWyWaves * kWyRows * kWyPitch * 4;
  DeltaWyKernel a = kernel_of(args);
  if (a.rows == 0) return;
  a.slices = (a.dv + kWyColumns - 1) / kWyColumns;
  const int64_t states = a.slices * (a.width / 16 * 2 * kWyStateWord + kWyColumns * kFloat);
  const int width = width_index(a), threads = kWyWaves * queue.accelerator()->info().wave;
  const int64_t waves = a.value_heads * a.slices;
  in_segments(queue, a, 6 * kWyRows * a.width * 2, states, [&](const DeltaWyKernel& part) {
    queue.launch(
        kOp, kernel_image_delta_wy_wmma_gfx, kFactors[width],
        {{part.chunks * part.key_heads}, {kWyThreads}, kDecays + static_cast<uint32_t>(2 * kWyRows * part.width * 2)},
        part);
    queue.launch(kOp, kernel_image_delta_wy_wmma_gfx, kScans[width],
                 {{(waves + kWyWaves - 1) / kWyWaves}, {threads}, 2 * kTiles + kWyWaves * kWyRows * kWyRows * 4}, part);
    queue.launch(kOp, kernel_image_delta_wy_wmma_gfx, kOutputs[width],
                 {{(part.chunks * waves + kWyWaves - 1) / kWyWaves}, {threads}, kTiles}, part);
  });
}

}  // namespace strata
