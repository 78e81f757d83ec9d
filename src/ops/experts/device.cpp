#include "device/device.h"

#include <algorithm>

#include "ops/experts/device_kernel.h"
#include "ops/experts/experts.h"

namespace strata {

extern const KernelImage kernel_image_experts_f32;

namespace {

constexpr int64_t kFloat = sizeof(float), kMostExperts = 4096;  // of the shared memory that every device has

ExpertMatrix matrix(const Tensor& weight, const Tensor& scale) {
  return {weight.as<const char>(), scale.empty() ? nullptr : scale.f32(), weight.stride(0), weight.stride(1),
          static_cast<uint32_t>(weight.dtype)};
}

int64_t up_to(int64_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

std::string experts_device_refusal(const ExpertsArgs& args) {
  if (args.gate.extent(0) > kMostExperts) return "more than " + std::to_string(kMostExperts) + " experts";
  if (args.x.extent(0) * args.ids.extent(1) > INT32_MAX) return "more than 2^31 pairs of rows and slots";
  return {};
}

void experts_device_f32(Queue& queue, const ExpertsArgs& args) {
  constexpr int64_t kWaves = 4, kThreads = 256;
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  const int64_t experts = args.gate.extent(0), inner = args.gate.extent(1), pairs = rows * k;
  if (pairs == 0 || experts == 0) return;
  // Every expert leaves one tile that is not full.
  const int64_t tiles = std::min(pairs, std::min(experts, pairs) + pairs / kExpertTile);
  const int64_t pair_bytes = up_to(pairs * 4), tile_bytes = up_to(tiles * static_cast<int64_t>(sizeof(ExpertTile)));
  const int64_t activated_bytes = up_to(pairs * inner * kFloat), part_bytes = up_to(pairs * hidden * kFloat);
  auto* scratch =
      static_cast<char*>(queue.scratch(static_cast<uint64_t>(pair_bytes + tile_bytes + activated_bytes + part_bytes)));
  auto* pair_list = reinterpret_cast<int32_t*>(scratch);
  auto* tile_list = reinterpret_cast<ExpertTile*>(scratch + pair_bytes);
  auto* activated = reinterpret_cast<float*>(scratch + pair_bytes + tile_bytes);
  auto* parts = reinterpret_cast<float*>(scratch + pair_bytes + tile_bytes + activated_bytes);

  const ExpertsGroup group{
      args.ids.as<const int32_t>(), args.ids.stride(0) / 4, pairs, k, experts, tiles, pair_list, tile_list};
  queue.launch("experts", kernel_image_experts_f32, "experts_group",
               {{1}, {pairs < 256 ? 64 : 1024}, static_cast<uint32_t>((2 * experts + 1) * 4)}, group);
  const bool aligned = reinterpret_cast<uintptr_t>(args.x.data) % 16 == 0 && args.x.stride(0) % 16 == 0;
  const ExpertsKernel kernel{args.x.f32(),
                             activated,
                             parts,
                             pair_list,
                             tile_list,
                             matrix(args.gate, args.gate_scale),
                             matrix(args.up, args.up_scale),
                             matrix(args.down, args.down_scale),
                             args.x.stride(0) / kFloat,
                             k,
                             hidden,
                             inner,
                             tiles,
                             aligned,
                             inner % 4 == 0};
  // One row has its own expert in every slot.
  queue.launch("experts", kernel_image_experts_f32, rows == 1 ? "experts_activate_1" : "experts_activate_4",
               {{(inner + kWaves - 1) / kWaves * tiles}, {kWaves * 32}}, kernel);
  queue.launch("experts", kernel_image_experts_f32, rows == 1 ? "experts_project_1" : "experts_project_4",
               {{(hidden + kWaves - 1) / kWaves * tiles}, {kWaves * 32}}, kernel);
  const int64_t blocks = (hidden + kThreads - 1) / kThreads;
  const ExpertsCombine combine{parts,
                               args.ids.as<const int32_t>(),
                               args.weights.f32(),
                               args.y.f32(),
                               args.ids.stride(0) / 4,
                               args.weights.stride(0) / kFloat,
                               args.y.stride(0) / kFloat,
                               k,
                               experts,
                               hidden,
                               blocks};
  queue.launch("experts", kernel_image_experts_f32, "experts_combine", {{rows * blocks}, {kThreads}}, combine);
}

}  // namespace strata
