#include "ops/mma_formats.h"

#include <algorithm>

#include "base/error.h"
#include "ops/mma_layout.h"

namespace strata {
namespace {

constexpr MmaFormat kFormats[] = {
    {DType::Q8_0, "q8_0", true, 32, false},        {DType::Q4_0, "q4_0", true, 32, false},
    {DType::Q4_K, "q4_k", true, 32, true},         {DType::Q5_K, "q5_k", true, 32, true},
    {DType::Q6_K, "q6_k", true, 16, false},        {DType::BF16, "bf16", true, 32, false},
    {DType::Q3_K, "q3_k", false, 16, false},       {DType::IQ4_NL, "iq4_nl", false, 32, false},
    {DType::IQ4_XS, "iq4_xs", false, 32, false},   {DType::IQ3_S, "iq3_s", false, 32, false},
    {DType::IQ3_XXS, "iq3_xxs", false, 32, false}, {DType::IQ2_XS, "iq2_xs", false, 16, false},
    {DType::IQ2_S, "iq2_s", false, 16, false},     {DType::IQ2_XXS, "iq2_xxs", false, 32, false},
    {DType::MXFP4, "mxfp4", false, 32, false},     {DType::Q2_0, "q2_0", false, 32, false},
};

constexpr int64_t kFewSums = 16 * 8 * sizeof(float);  // of a chunk

int64_t chunks_of(int64_t in) { return (in + kMmaChunk - 1) / kMmaChunk; }

int64_t stage_bytes(const MmaFormat& format, int rows, int stages) {
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

const MmaFormat* mma_format(DType type) {
  for (const MmaFormat& format : kFormats)
    if (format.type == type) return &format;
  return nullptr;
}

std::string mma_refusal(const Tensor& weight, int64_t roundings) {
  const MmaFormat* format = mma_format(weight.dtype);
  const int64_t in = weight.extent(weight.rank - 1);
  if (format == nullptr) return "no kernel for " + std::string(to_string(weight.dtype)) + " weights";
  if (in % 32 != 0) return "rows are not whole groups of 32 elements";
  if ((format->minima ? 110 : 51) + chunks_of(in) + 3 > in / 16 + roundings - 1)
    return "rows are too short for the bound";
  // Blocks of whole pieces of 16 bytes are copied as they lie, others with what is around them.
  const uint32_t block = info(weight.dtype).block_bytes;
  bool placed = reinterpret_cast<uintptr_t>(weight.data) % 16 == 0;
  if (block == 2 || block % 16 == 0)
    for (int axis = 0; axis + 1 < weight.rank; ++axis) placed = placed && weight.stride(axis) % 16 == 0;
  return placed ? "" : "weights are not at multiples of 16 bytes";
}

int64_t mma_few_shared(const MmaFormat& format, int64_t in, int64_t waves) {
  return waves * stage_bytes(format, 16, kFewStages) + chunks_of(in) * kFewSums;
}

int64_t mma_few_waves(const MmaFormat& format, int64_t in, int64_t shared_limit) {
  const int64_t left = shared_limit - chunks_of(in) * kFewSums;
  return left < 0 ? 0 : std::min(even_waves(chunks_of(in)), left / stage_bytes(format, 16, kFewStages));
}

int64_t mma_many_shared(const MmaFormat& format, int64_t waves) {
  return waves * stage_bytes(format, 16 * kManyTiles, kManyStages);
}

int64_t mma_many_waves(const MmaFormat& format, int64_t out, int64_t shared_limit) {
  const int64_t needed = (out + 16 * kManyTiles - 1) / (16 * kManyTiles);
  const int64_t waves = std::min({int64_t{8}, needed, shared_limit / mma_many_shared(format, 1)});
  if (waves < 1 && needed > 0)
    throw Error(ErrorKind::Device, "the device has too little shared memory", "matrix units");
  return waves;
}

// Whole rounds of blocks for all multiprocessors, as few as leave room for enough waves beside the sums of the chunks.
MmaOnePlan mma_one_plan(const MmaFormat& format, const Tensor& weight, bool alone, int64_t shared_limit,
                        int64_t multiprocessors) {
  constexpr int64_t kEnough = 8, kMost = 12, kRounds = 64;
  const DTypeInfo& type = info(format.type);
  const auto elements = static_cast<int>(type.block_elements), bytes = static_cast<int>(type.block_bytes);
  const int64_t in = weight.extent(weight.rank - 1), out = weight.extent(weight.rank - 2), chunks = in / kMmaChunk;
  const int64_t stride = weight.stride(weight.rank - 2), tiles = (out + 15) / 16;
  const bool placed = kMmaChunk / elements * bytes % 16 == 0;
  if (in % kMmaChunk != 0 || (placed && stride % 16 != 0) || out > INT32_MAX / 2) return {};
  const int64_t wave = mma_one_wave_bytes(elements, bytes, format.group, format.minima);
  for (int64_t rounds = 1; rounds <= kRounds; ++rounds) {
    MmaOnePlan plan;
    plan.blocks = std::min(tiles, multiprocessors * rounds);
    plan.tiles = (tiles + plan.blocks - 1) / plan.blocks;
    const int64_t items = plan.tiles * chunks;
    const int64_t fixed = (alone ? in / 32 * (kMmaOneWords + 1) + items * 16 : items * 16 * 8) * 4;
    plan.waves = std::min({kMost, items, (shared_limit - fixed) / wave});
    plan.shared = fixed + plan.waves * wave;
    if (fixed < shared_limit && plan.waves >= std::min(kEnough, items)) return plan;
    if (plan.blocks == tiles) break;
  }
  return {};
}

}  // namespace strata
