#include <algorithm>

#include "base/error.h"
#include "device/device.h"
#include "ops/matmul/device_kernel.h"
#include "ops/matmul/matmul.h"
#include "ops/mma_layout.h"

namespace strata {

extern const KernelImage kernel_image_matmul_mma, kernel_image_matmul_mma_iq;

namespace {

constexpr int64_t kFewRows = 48;  // at most, for the kernel of few rows

struct MmaFormat {
  DType type;
  const KernelImage* image;
  const char *few, *many;
  int group;
  bool minima;
};

constexpr MmaFormat kFormats[] = {
    {DType::Q8_0, &kernel_image_matmul_mma, "matmul_few_q8_0", "matmul_many_q8_0", 32, false},
    {DType::Q4_0, &kernel_image_matmul_mma, "matmul_few_q4_0", "matmul_many_q4_0", 32, false},
    {DType::Q4_K, &kernel_image_matmul_mma, "matmul_few_q4_k", "matmul_many_q4_k", 32, true},
    {DType::Q5_K, &kernel_image_matmul_mma, "matmul_few_q5_k", "matmul_many_q5_k", 32, true},
    {DType::Q6_K, &kernel_image_matmul_mma, "matmul_few_q6_k", "matmul_many_q6_k", 16, false},
    {DType::BF16, &kernel_image_matmul_mma, "matmul_few_bf16", "matmul_many_bf16", 32, false},
    {DType::Q3_K, &kernel_image_matmul_mma_iq, "matmul_few_q3_k", "matmul_many_q3_k", 16, false},
    {DType::IQ4_NL, &kernel_image_matmul_mma_iq, "matmul_few_iq4_nl", "matmul_many_iq4_nl", 32, false},
    {DType::IQ4_XS, &kernel_image_matmul_mma_iq, "matmul_few_iq4_xs", "matmul_many_iq4_xs", 32, false},
    {DType::IQ3_S, &kernel_image_matmul_mma_iq, "matmul_few_iq3_s", "matmul_many_iq3_s", 32, false},
    {DType::IQ3_XXS, &kernel_image_matmul_mma_iq, "matmul_few_iq3_xxs", "matmul_many_iq3_xxs", 32, false},
    {DType::IQ2_XS, &kernel_image_matmul_mma_iq, "matmul_few_iq2_xs", "matmul_many_iq2_xs", 16, false},
    {DType::IQ2_S, &kernel_image_matmul_mma_iq, "matmul_few_iq2_s", "matmul_many_iq2_s", 16, false},
    {DType::IQ2_XXS, &kernel_image_matmul_mma_iq, "matmul_few_iq2_xxs", "matmul_many_iq2_xxs", 32, false},
    {DType::MXFP4, &kernel_image_matmul_mma_iq, "matmul_few_mxfp4", "matmul_many_mxfp4", 32, false},
    {DType::Q2_0, &kernel_image_matmul_mma_iq, "matmul_few_q2_0", "matmul_many_q2_0", 32, false},
};

const MmaFormat* format_of(DType type) {
  for (const MmaFormat& format : kFormats)
    if (format.type == type) return &format;
  return nullptr;
}

// README.md, Error of mma: roundings against those of the bound.
bool covered(const MmaFormat& format, int64_t in) {
  const int64_t chunks = (in + kMmaChunk - 1) / kMmaChunk;
  return (format.minima ? 113 : 54) + chunks <= in / 16 + 6;
}

int stage_bytes(const MmaFormat& format, int rows, int stages) {
  const DTypeInfo& type = info(format.type);
  return mma_stage_bytes(static_cast<int>(type.block_elements), static_cast<int>(type.block_bytes), format.group,
                         format.minima, rows, stages);
}

// Waves that share the chunks of a block: as even as possible.
int64_t even_waves(int64_t chunks) {
  if (chunks <= 8) return chunks;
  int64_t best = 8;
  auto wasted = [&](int64_t waves) { return (chunks + waves - 1) / waves * waves - chunks; };
  for (int64_t waves = 7; waves >= 4; --waves)
    if (wasted(waves) < wasted(best)) best = waves;
  return best;
}

}  // namespace

std::string matmul_mma_refusal(const MatmulArgs& args) {
  const MmaFormat* format = format_of(args.weight.dtype);
  const int64_t in = args.x.extent(1);
  if (format == nullptr) return "no kernel for " + std::string(to_string(args.weight.dtype)) + " weights";
  if (in % 32 != 0) return "rows are not whole groups of 32 elements";
  if (!covered(*format, in)) return "rows are too short for the bound";
  if (reinterpret_cast<uintptr_t>(args.weight.data) % 16 != 0 ||
      args.weight.stride(0) != static_cast<int64_t>(bytes_of(args.weight.dtype, in)))
    return "weights are not contiguous from a multiple of 16 bytes on";
  return {};
}

void matmul_device_mma(Queue& queue, const MatmulArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 256;
  const MmaFormat& format = *format_of(args.weight.dtype);
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), out = args.weight.extent(0), groups = in / 32;
  const int64_t chunks = (in + kMmaChunk - 1) / kMmaChunk, limit = queue.accelerator()->info().shared_bytes;
  const int64_t few_stage = stage_bytes(format, 16, kFewStages), few_sums = chunks * 16 * 8 * kFloat;
  const int64_t few_waves = std::min(even_waves(chunks), (limit - few_sums) / few_stage);
  const int64_t many_rows = 16 * kManyTiles, many_columns = 8 * kManyColumns;
  const int64_t many_stage = stage_bytes(format, static_cast<int>(many_rows), kManyStages);
  const bool few = rows <= kFewRows && few_waves > 0;
  const int64_t tile = few ? 8 : many_columns, tiles = (rows + tile - 1) / tile, padded = tiles * tile;

  const int64_t part_bytes = groups * 3 * padded * 32 * 2;
  auto* scratch = static_cast<char*>(queue.scratch(static_cast<uint64_t>(part_bytes + groups * padded * kFloat)));
  auto* parts = reinterpret_cast<uint32_t*>(scratch);
  auto* sums = reinterpret_cast<float*>(scratch + part_bytes);
  const MatmulSplit split{args.x.f32(), parts, sums, rows, padded, groups, args.x.stride(0) / kFloat};
  queue.launch("matmul", kernel_image_matmul_mma, "matmul_split",
               {{(groups * padded * 4 + kThreads - 1) / kThreads}, {kThreads}}, split);
  const char* weight = args.weight.as<const char>();
  const MatmulMma kernel{parts,
                         sums,
                         padded,
                         weight,
                         args.bias.empty() ? nullptr : args.bias.f32(),
                         args.y.f32(),
                         rows,
                         in,
                         out,
                         args.y.stride(0) / kFloat,
                         args.weight.stride(0),
                         tiles,
                         args.scale};
  if (few) {
    queue.launch("matmul", *format.image, format.few,
                 {{(out + 15) / 16 * tiles}, {few_waves * 32}, static_cast<uint32_t>(few_waves * few_stage + few_sums)},
                 kernel);
    return;
  }
  const int64_t needed = (out + many_rows - 1) / many_rows;
  const int64_t waves = std::min({int64_t{8}, needed, limit / many_stage});
  if (waves < 1) throw Error(ErrorKind::Device, "the device has too little shared memory", "matmul");
  queue.launch("matmul", *format.image, format.many,
               {{(needed + waves - 1) / waves * tiles}, {waves * 32}, static_cast<uint32_t>(waves * many_stage)},
               kernel);
}

}  // namespace strata
