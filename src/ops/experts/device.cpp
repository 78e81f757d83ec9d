#include "device/device.h"

#include <algorithm>
#include <initializer_list>

#include "ops/experts/device_kernel.h"
#include "ops/experts/experts.h"
#include "ops/mma_formats.h"
#include "ops/mma_layout.h"

namespace strata {

extern const KernelImage kernel_image_experts_f32, kernel_image_experts_mma, kernel_image_experts_mma_iq;

namespace {

constexpr int64_t kFloat = sizeof(float), kMostExperts = 4096;  // of the shared memory that every device has
constexpr int64_t kThreads = 256, kDotWaves = 4;

int64_t blocks_of(int64_t elements, int64_t block) { return (elements + block - 1) / block; }

const KernelImage& image_of(const MmaFormat& format) {
  return format.in_first ? kernel_image_experts_mma : kernel_image_experts_mma_iq;
}

ExpertMatrix matrix(const Tensor& weight, const Tensor& scale) {
  return {weight.as<const char>(), scale.empty() ? nullptr : scale.f32(), weight.stride(0), weight.stride(1),
          static_cast<uint32_t>(weight.dtype)};
}

// Room within one scratch memory.
class Room {
 public:
  int64_t take(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += (bytes + 15) / 16 * 16;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// One call: sizes, where what lies, and the launches that every arm makes.
class Call {
 public:
  Call(Queue& queue, const ExpertsArgs& args, int64_t tile, bool split) : queue_(queue), args_(args), tile_(tile) {
    const int64_t split_rows = (std::max(rows, pairs) + 7) / 8 * 8, split_width = std::max(hidden, inner) / 32 * 32;
    Room room;
    const int64_t pair_at = room.take(pairs * 4);
    const int64_t tile_at = room.take(tiles() * static_cast<int64_t>(sizeof(ExpertTile)));
    const int64_t activated_at = room.take(pairs * inner * kFloat),
                  up_at = room.take(split ? pairs * inner * kFloat : 0);
    const int64_t part_at = room.take(pairs * hidden * kFloat);
    const int64_t split_at = room.take(split ? split_rows * split_width * 6 : 0);
    const int64_t sums_at = room.take(split ? split_rows * split_width / 32 * kFloat : 0);
    auto* scratch = static_cast<char*>(queue.scratch(static_cast<uint64_t>(room.bytes())));
    pair_list = reinterpret_cast<int32_t*>(scratch + pair_at);
    tile_list = reinterpret_cast<ExpertTile*>(scratch + tile_at);
    activated = reinterpret_cast<float*>(scratch + activated_at);
    up = reinterpret_cast<float*>(scratch + up_at);
    parts = reinterpret_cast<float*>(scratch + part_at);
    split_parts = reinterpret_cast<uint32_t*>(scratch + split_at);
    split_sums = reinterpret_cast<float*>(scratch + sums_at);
  }

  // Every expert leaves one tile that is not full.
  int64_t tiles() const { return std::min(pairs, std::min(experts, pairs) + pairs / tile_); }

  void group() {
    const ExpertsGroup group{args_.ids.as<const int32_t>(),
                             args_.ids.stride(0) / 4,
                             pairs,
                             k,
                             experts,
                             tiles(),
                             static_cast<int>(tile_),
                             pair_list,
                             tile_list};
    queue_.launch("experts", kernel_image_experts_f32, "experts_group",
                  {{1}, {pairs < 256 ? 64 : 1024}, static_cast<uint32_t>((2 * experts + 1) * 4)}, group);
  }
  ExpertsKernel dots() const {
    const bool aligned = reinterpret_cast<uintptr_t>(args_.x.data) % 16 == 0 && args_.x.stride(0) % 16 == 0;
    return {args_.x.f32(),
            activated,
            parts,
            pair_list,
            tile_list,
            matrix(args_.gate, args_.gate_scale),
            matrix(args_.up, args_.up_scale),
            matrix(args_.down, args_.down_scale),
            args_.x.stride(0) / kFloat,
            k,
            hidden,
            inner,
            tiles(),
            aligned,
            inner % 4 == 0};
  }
  // One row has its own expert in every slot.
  void activate_f32() {
    queue_.launch("experts", kernel_image_experts_f32, rows == 1 ? "experts_activate_1" : "experts_activate_4",
                  {{blocks_of(inner, kDotWaves) * tiles()}, {kDotWaves * 32}}, dots());
  }
  void project_f32() {
    queue_.launch("experts", kernel_image_experts_f32, rows == 1 ? "experts_project_1" : "experts_project_4",
                  {{blocks_of(hidden, kDotWaves) * tiles()}, {kDotWaves * 32}}, dots());
  }
  void combine() {
    const int64_t blocks = blocks_of(hidden, kThreads);
    const ExpertsCombine combine{parts,
                                 args_.ids.as<const int32_t>(),
                                 args_.weights.f32(),
                                 args_.y.f32(),
                                 args_.ids.stride(0) / 4,
                                 args_.weights.stride(0) / kFloat,
                                 args_.y.stride(0) / kFloat,
                                 k,
                                 experts,
                                 hidden,
                                 blocks};
    queue_.launch("experts", kernel_image_experts_f32, "experts_combine", {{rows * blocks}, {kThreads}}, combine);
  }

  struct Product {
    const Tensor *weight, *scale;
    float* y;
  };
  // Of `count` rows of x: one for each row of the call, or for each pair.
  void products(const float* x, int64_t x_row, int64_t count, std::initializer_list<Product> list) {
    const int64_t pairs_a_row = count == rows ? k : 1;
    bool is_split = false;
    for (const auto& [weight, scale, y] : list) {
      if (product_one(*weight, *scale, x, x_row, y, pairs_a_row)) continue;
      if (!is_split) split(x, x_row, count, weight->extent(2));
      is_split = true;
      product(*weight, *scale, y, pairs_a_row);
    }
  }

  void split(const float* x, int64_t x_row, int64_t count, int64_t width) {
    padded_ = (count + 7) / 8 * 8;
    const ExpertsSplit split{x, split_parts, split_sums, count, padded_, width / 32, x_row};
    queue_.launch("experts", kernel_image_experts_mma, "experts_split",
                  {{blocks_of(width / 32 * padded_ * 4, kThreads)}, {kThreads}}, split);
  }
  // Of what was split last.
  void product(const Tensor& weight, const Tensor& scale, float* y, int64_t pairs_a_row) {
    const MmaFormat& format = *mma_format(weight.dtype);
    const int64_t out = weight.extent(1), in = weight.extent(2), limit = queue_.accelerator()->info().shared_bytes;
    const ExpertsProduct product{split_parts,
                                 split_sums,
                                 padded_,
                                 pair_list,
                                 tile_list,
                                 matrix(weight, scale),
                                 y,
                                 in,
                                 out,
                                 tiles(),
                                 static_cast<int>(pairs_a_row)};
    const bool few = tile_ <= 8;
    const int64_t waves = few ? mma_few_waves(format, in, limit) : mma_many_waves(format, out, limit);
    const int64_t columns = few ? 16 : waves * 16 * kManyTiles;
    const int64_t shared = few ? mma_few_shared(format, in, waves) : mma_many_shared(format, waves);
    const std::string name = (few ? "experts_few_" : "experts_many_") + std::string(format.suffix);
    queue_.launch("experts", image_of(format), name.c_str(),
                  {{blocks_of(out, columns) * tiles()}, {waves * 32}, static_cast<uint32_t>(shared)}, product);
  }
  // In tiles of one pair; x is split where it is used. False: not for these weights.
  bool product_one(const Tensor& weight, const Tensor& scale, const float* x, int64_t x_row, float* y,
                   int64_t pairs_a_row) {
    if (tile_ != 1) return false;
    const MmaFormat& format = *mma_format(weight.dtype);
    const AcceleratorInfo& device = queue_.accelerator()->info();
    const int64_t share = std::max<int64_t>(1, device.multiprocessors / tiles());
    const MmaOnePlan plan = mma_one_plan(format, weight, true, device.shared_bytes, share);
    if (plan.blocks == 0) return false;
    const ExpertsOne product{x,
                             pair_list,
                             tile_list,
                             matrix(weight, scale),
                             y,
                             x_row,
                             weight.extent(2),
                             weight.extent(1),
                             tiles(),
                             static_cast<int>(pairs_a_row)};
    queue_.launch("experts", image_of(format), ("experts_one_" + std::string(format.suffix)).c_str(),
                  {{plan.blocks * tiles()}, {plan.waves * 32}, static_cast<uint32_t>(plan.shared)}, product);
    return true;
  }
  void gate() {
    const ExpertsGate gate{activated, up, pairs * inner};
    queue_.launch("experts", kernel_image_experts_mma, "experts_gate",
                  {{blocks_of(pairs * inner, kThreads)}, {kThreads}}, gate);
  }

 private:
  Queue& queue_;
  const ExpertsArgs& args_;
  int64_t tile_, padded_ = 0;

 public:
  const int64_t rows = args_.x.extent(0), hidden = args_.x.extent(1), k = args_.ids.extent(1);
  const int64_t experts = args_.gate.extent(0), inner = args_.gate.extent(1), pairs = rows * k;
  int32_t* pair_list;
  ExpertTile* tile_list;
  float *activated, *up, *parts;
  uint32_t* split_parts;
  float* split_sums;
};

bool nothing_to_do(const ExpertsArgs& args) { return args.ids.elements() == 0 || args.gate.extent(0) == 0; }

}  // namespace

std::string experts_device_refusal(const ExpertsArgs& args) {
  if (args.gate.extent(0) > kMostExperts) return "more than " + std::to_string(kMostExperts) + " experts";
  if (args.x.extent(0) * args.ids.extent(1) > INT32_MAX) return "more than 2^31 pairs of rows and slots";
  return {};
}

void experts_device_f32(Queue& queue, const ExpertsArgs& args) {
  if (nothing_to_do(args)) return;
  Call call(queue, args, 4, false);
  call.group();
  call.activate_f32();
  call.project_f32();
  call.combine();
}

// Gate and up; down may be too short, and goes in f32 then.
std::string experts_mma_refusal(const ExpertsArgs& args) {
  constexpr int64_t kFewLongest = 16384;  // whose sums of chunks fit the shared memory of every device
  if (std::string reason = experts_device_refusal(args); !reason.empty()) return reason;
  for (const auto& [name, weight] : {std::pair{"gate", &args.gate}, std::pair{"up", &args.up}})
    if (const std::string reason = mma_refusal(*weight, 6); !reason.empty()) return std::string(name) + ": " + reason;
  return std::max(args.x.extent(1), args.gate.extent(1)) > kFewLongest ? "rows are too long" : "";
}

void experts_device_mma(Queue& queue, const ExpertsArgs& args) {
  if (nothing_to_do(args)) return;
  // As many pairs as most experts have; the bits are the same in any tile.
  const int64_t pairs = args.ids.elements(), experts = args.gate.extent(0);
  const int64_t tile = pairs <= experts ? 1 : (pairs < 16 * experts ? 8 : 8 * kManyColumns);
  Call call(queue, args, tile, true);
  call.group();
  call.products(args.x.f32(), args.x.stride(0) / kFloat, call.rows,
                {{&args.gate, &args.gate_scale, call.activated}, {&args.up, &args.up_scale, call.up}});
  call.gate();
  if (mma_refusal(args.down, 6).empty()) {
    call.products(call.activated, call.inner, call.pairs, {{&args.down, &args.down_scale, call.parts}});
  } else {
    call.project_f32();
  }
  call.combine();
}

}  // namespace strata
