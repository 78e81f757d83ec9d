#include "device/device.h"
#include "ops/matmul/device_kernel.h"
#include "ops/matmul/matmul.h"
#include "ops/mma_formats.h"
#include "ops/mma_layout.h"

namespace strata {

extern const KernelImage kernel_image_matmul_mma, kernel_image_matmul_mma_iq;

namespace {

constexpr int64_t kFewRows = 48;  // at most, for the kernel of few rows

const KernelImage& image_of(const MmaFormat& format) {
  return format.in_first ? kernel_image_matmul_mma : kernel_image_matmul_mma_iq;
}

// Kernels that stream the weights; false: not these weights, or too many rows.
bool stream(Queue& queue, const MatmulArgs& args, const MmaFormat& format) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 256;
  const AcceleratorInfo& device = queue.accelerator()->info();
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), groups = in / 32, tiles = (rows + 7) / 8;
  if (rows > kFewRows) return false;
  const bool alone = rows == 1;
  const MmaOnePlan plan = mma_one_plan(format, args.weight, alone, device.shared_bytes, device.multiprocessors);
  if (plan.blocks == 0) return false;
  uint32_t* parts = nullptr;
  float* sums = nullptr;
  if (!alone) {
    const int64_t part_bytes = rows * groups * kMmaOneWords * 4;
    auto* scratch = static_cast<char*>(queue.scratch(static_cast<uint64_t>(part_bytes + rows * groups * kFloat)));
    parts = reinterpret_cast<uint32_t*>(scratch);
    sums = reinterpret_cast<float*>(scratch + part_bytes);
    const MatmulOneSplit split{args.x.f32(), parts, sums, rows, groups, args.x.stride(0) / kFloat};
    queue.launch("matmul", kernel_image_matmul_mma, "matmul_split_one",
                 {{(rows * groups * 4 + kThreads - 1) / kThreads}, {kThreads}}, split);
  }
  const MatmulOne kernel{args.x.f32(),
                         parts,
                         sums,
                         args.weight.as<const char>(),
                         args.bias.empty() ? nullptr : args.bias.f32(),
                         args.y.f32(),
                         rows,
                         in,
                         args.weight.extent(0),
                         args.y.stride(0) / kFloat,
                         args.weight.stride(0),
                         tiles,
                         args.scale};
  const std::string name = (alone ? "matmul_one_" : "matmul_eight_") + std::string(format.suffix);
  queue.launch("matmul", image_of(format), name.c_str(),
               {{plan.blocks * tiles}, {plan.waves * 32}, static_cast<uint32_t>(plan.shared), true}, kernel);
  return true;
}

}  // namespace

std::string matmul_mma_refusal(const MatmulArgs& args) { return mma_refusal(args.weight, 7); }

void matmul_device_mma(Queue& queue, const MatmulArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 256;
  const MmaFormat& format = *mma_format(args.weight.dtype);
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), out = args.weight.extent(0), groups = in / 32;
  if (rows == 0 || out == 0 || stream(queue, args, format)) return;
  const int64_t limit = queue.accelerator()->info().shared_bytes;
  const int64_t few_waves = mma_few_waves(format, in, limit);
  const bool few = rows <= kFewRows && few_waves > 0;
  const int64_t tile = few ? 8 : 8 * kManyColumns, tiles = (rows + tile - 1) / tile, padded = tiles * tile;

  const int64_t part_bytes = groups * 3 * padded * 32 * 2;
  auto* scratch = static_cast<char*>(queue.scratch(static_cast<uint64_t>(part_bytes + groups * padded * kFloat)));
  auto* parts = reinterpret_cast<uint32_t*>(scratch);
  auto* sums = reinterpret_cast<float*>(scratch + part_bytes);
  const MatmulSplit split{args.x.f32(), parts, sums, rows, padded, groups, args.x.stride(0) / kFloat};
  queue.launch("matmul", kernel_image_matmul_mma, "matmul_split",
               {{(groups * padded * 4 + kThreads - 1) / kThreads}, {kThreads}}, split);
  const MatmulMma kernel{parts,
                         sums,
                         padded,
                         args.weight.as<const char>(),
                         args.bias.empty() ? nullptr : args.bias.f32(),
                         args.y.f32(),
                         rows,
                         in,
                         out,
                         args.y.stride(0) / kFloat,
                         args.weight.stride(0),
                         tiles,
                         args.scale};
  const int64_t waves = few ? few_waves : mma_many_waves(format, out, limit);
  const int64_t columns = few ? 16 : waves * 16 * kManyTiles;  // of a block
  const int64_t shared = few ? mma_few_shared(format, in, waves) : mma_many_shared(format, waves);
  const std::string name = (few ? "matmul_few_" : "matmul_many_") + std::string(format.suffix);
  queue.launch("matmul", image_of(format), name.c_str(),
               {{(out + columns - 1) / columns * tiles}, {waves * 32}, static_cast<uint32_t>(shared)}, kernel);
}

}  // namespace strata
