// The walk on an accelerator: rounds of rows, whose partial results take bounded scratch; in each round one launch for
// the splits and one that merges them.
#include "ops/attention/device.h"

#include <algorithm>
#include <bit>
#include <string>

#include "ops/attention/device_kernel.h"
#include "ops/attention/softmax_kernel_types.h"

namespace strata {

extern const KernelImage kernel_image_attention_fma, kernel_image_attention_mma, kernel_image_attention_stream,
    kernel_image_attention_merge;

namespace {

static_assert(kCellSplit == kSplit);
constexpr int64_t kScratchBytes = int64_t{256} << 20;  // of a round, unless one row needs more

int64_t quotient_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

int32_t type_of(DType type) {
  switch (type) {
    case DType::F32: return 0;
    case DType::F16: return 1;
    case DType::BF16: return 2;
    case DType::Q8_0: return 3;
    default: return 4;
  }
}

bool rows_aligned(const Tensor& tensor, const RowPages& pages) {
  const bool start = pages.page != nullptr || reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0;  // pages are aligned
  return start && tensor.stride(0) % 16 == 0 && tensor.stride(1) % 16 == 0;
}

KvDevice cells_on_device(const Tensor& tensor, const RowPages& pages) {
  const bool paged = pages.page != nullptr;
  return {.data = tensor.as<char>(),
          .cell_bytes = tensor.stride(0),
          .head_bytes = tensor.stride(1),
          .pages = pages.page,
          .page_shift = paged ? std::countr_zero(static_cast<uint64_t>(pages.rows)) : 0,
          .type = type_of(tensor.dtype),
          .aligned = rows_aligned(tensor, pages) ? 1 : 0};
}

struct Kernels {
  const char* op;
  const KernelImage& image;
  const char* split;  // the kernel
  int64_t slots, threads;
  uint32_t shared;
  bool walks = false;  // two blocks a multiprocessor stay and walk over tiles and splits
};

AttentionKernel kernel_of(const CellAttention& args, int64_t slots) {
  const int64_t width = args.ids.empty() ? args.k.extent(0) : args.ids.extent(1);
  return {.q = args.q.f32(),
          .q_row = args.q.stride(0) / 4,
          .q_head = args.q.stride(1) / 4,
          .k = cells_on_device(args.k, args.k_pages),
          .v = cells_on_device(args.v, args.v_pages),
          .counts = args.counts.as<int32_t>(),
          .ids = args.ids.as<int32_t>(),
          .id_row = args.ids.empty() ? 0 : args.ids.stride(0) / 4,
          .scale = args.scale,
          .dim = static_cast<int32_t>(args.dim()),
          .kv_heads = static_cast<int32_t>(args.kv_heads()),
          .group = static_cast<int32_t>(args.group()),
          .width = static_cast<int32_t>(width),
          .rows = args.rows(),
          .slots = slots,
          .tiles = 0,
          .splits = static_cast<int32_t>(std::max<int64_t>(quotient_up(width, kSplit), 1)),
          .m = nullptr,
          .l = nullptr,
          .a = nullptr,
          .out = args.out.f32(),
          .out_row = args.out.stride(0) / 4,
          .out_head = args.out.stride(1) / 4,
          .lse = args.lse.f32(),
          .lse_row = args.lse.empty() ? 0 : args.lse.stride(0) / 4};
}

// The reducer of NVIDIA GPUs has 64 channels a block, so that a few rows are many blocks; that of AMD GPUs loads 16
// bytes a thread and makes the weights of a row once. The same bits.
void run_merge(Queue& queue, const char* op, const AttentionKernel& kernel, int64_t pairs) {
  constexpr int64_t kChannels = 64, kThreads = 256, kQuads = kMergeQuads * 4;
  const AcceleratorKind kind = queue.accelerator()->info().kind;
  const bool amd = kind == AcceleratorKind::Hip || kind == AcceleratorKind::Simulation;
  if (!amd || kernel.dim % 4 != 0) {
    queue.launch(op, kernel_image_attention_merge, "attention_merge",
                 {{pairs * quotient_up(kernel.dim, kChannels)}, {kThreads}, (2 * kMergeChunk + 2 * kThreads) * 4},
                 kernel);
    return;
  }
  const int threads = static_cast<int>(quotient_up(std::min<int64_t>(kernel.dim, kQuads), 32) * 32);
  queue.launch(op, kernel_image_attention_merge, "attention_merge_quads",
               {{pairs * quotient_up(kernel.dim, kQuads)}, {threads}, (2 * kMergeChunk + 5 * kThreads) * 4}, kernel);
}

// Rows first .. first + rows - 1.
void run_round(Queue& queue, const Kernels& kernels, AttentionKernel kernel, int64_t first, int64_t rows) {
  const int64_t heads = int64_t{kernel.kv_heads} * kernel.group;
  kernel.q += first * kernel.q_row;
  kernel.counts += first;
  if (kernel.ids != nullptr) kernel.ids += first * kernel.id_row;
  kernel.out += first * kernel.out_row;
  if (kernel.lse != nullptr) kernel.lse += first * kernel.lse_row;
  kernel.rows = rows;
  kernel.tiles = kernel.ids == nullptr ? quotient_up(rows * kernel.group, kernel.slots)
                                       : rows * quotient_up(kernel.group, kernel.slots);
  const int64_t tiles = kernel.kv_heads * kernel.tiles;
  Dim grid{tiles, kernel.splits};
  if (kernels.walks) {
    int64_t blocks = 2 * queue.accelerator()->info().multiprocessors;
    if (8 * tiles <= blocks) blocks -= blocks % tiles;  // a block keeps its tile, and its queries
    grid = {std::min(tiles * kernel.splits, blocks)};
  }
  queue.launch(kernels.op, kernels.image, kernels.split, {grid, {kernels.threads}, kernels.shared}, kernel);
  run_merge(queue, kernels.op, kernel, rows * heads);
}

void run_rounds(Queue& queue, const Kernels& kernels, const CellAttention& args) {
  if (args.rows() == 0 || args.heads() == 0) return;
  AttentionKernel kernel = kernel_of(args, kernels.slots);
  const int64_t partials = args.heads() * kernel.splits, row_bytes = partials * (args.dim() + 2) * 4;
  const int64_t rows = std::clamp<int64_t>(kScratchBytes / row_bytes, 1, args.rows());
  kernel.a = static_cast<float*>(queue.scratch(static_cast<uint64_t>(rows * row_bytes)));  // first: aligned
  kernel.m = kernel.a + rows * partials * args.dim();
  kernel.l = kernel.m + rows * partials;
  for (int64_t first = 0; first < args.rows(); first += rows)
    run_round(queue, kernels, kernel, first, std::min(rows, args.rows() - first));
}

}  // namespace

void cell_attention_fma(Queue& queue, const char* op, const CellAttention& args) {
  constexpr int64_t kSlots = 8;
  const int64_t floats = kSlots * (quotient_up(args.dim(), 8) * 8 + kSplit) + kSlots;
  run_rounds(queue, {op, kernel_image_attention_fma, "attention_fma", kSlots, 128, static_cast<uint32_t>(4 * floats)},
             args);
}

std::string cell_attention_mma_refusal(const CellAttention& args) {
  const DType type = args.k.dtype;
  const int64_t dim = args.dim();
  if (type != args.v.dtype || (type != DType::BF16 && type != DType::F16))
    return "k is " + describe(args.k) + ", v " + describe(args.v) + ": this arm multiplies bf16 or f16, both the same";
  if (dim != 64 && dim != 128 && dim != 256)
    return "heads of " + std::to_string(dim) + " channels, this arm has 64, 128 and 256";
  if (!rows_aligned(args.k, args.k_pages) || !rows_aligned(args.v, args.v_pages))
    return "keys or values of a head do not start at a multiple of 16 bytes";
  return {};
}

void cell_attention_mma(Queue& queue, const char* op, const CellAttention& args) {
  constexpr int64_t kSlots = 16, kParts = 3, kPitch = kSplit + 8;
  const std::string name =
      std::string("attention_") + (args.k.dtype == DType::F16 ? "f16_" : "bf16_") + std::to_string(args.dim());
  const int64_t bytes = kParts * kSlots * kSplit * 2 + kSlots * kPitch * 4 + 2 * kSlots * 4;
  run_rounds(queue, {op, kernel_image_attention_mma, name.c_str(), kSlots, 128, static_cast<uint32_t>(bytes)}, args);
}

std::string cell_attention_stream_refusal(const CellAttention& args) {
  const int64_t dim = args.dim();
  if (dim != 128 && dim != 256) return "heads of " + std::to_string(dim) + " channels, this arm has 128 and 256";
  return cell_attention_mma_refusal(args);
}

void cell_attention_stream(Queue& queue, const char* op, const CellAttention& args) {
  constexpr int64_t kSlots = 16;
  const auto dim = static_cast<int>(args.dim());
  const std::string name =
      std::string("attention_stream_") + (args.k.dtype == DType::F16 ? "f16_" : "bf16_") + std::to_string(dim);
  run_rounds(queue,
             {op, kernel_image_attention_stream, name.c_str(), kSlots, kStreamThreads,
              static_cast<uint32_t>(stream_shared_bytes(dim)), true},
             args);
}

}  // namespace strata
