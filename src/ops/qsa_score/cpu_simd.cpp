// The SIMD arms around their kernels: queries laid out once, keys transposed tile by tile, threads along the blocks.
#include <algorithm>
#include <bit>
#include <memory>

#include "ops/qsa_score/kernels.h"
#include "ops/qsa_score/operands.h"

namespace strata {
namespace {

constexpr int64_t kQueries = 256;  // laid out at a time: 512 KiB for 4 heads of 128

// Aligned to a cache line, not cleared.
class Scratch {
 public:
  explicit Scratch(int64_t floats)
      : memory_(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(floats) + 16)) {}
  float* data() const {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get());
    return memory_.get() + (64 - address % 64) % 64 / sizeof(float);
  }

 private:
  std::unique_ptr<float[]> memory_;
};

QsaForm form_of(DType dtype) {
  if (dtype == DType::F32) return QsaForm::F32;
  return dtype == DType::BF16 ? QsaForm::Bf16 : QsaForm::F16;
}

// One row for a kernel: groups of four heads, in each the steps, in each the heads of the group.
void lay_out_query(const QsaScoreArgs& args, int64_t row, QsaLayout layout, int64_t steps, float* out) {
  const int64_t heads = args.q.extent(1), d = args.q.extent(2);
  const DType form = args.pooled.dtype;
  for (int64_t h = 0; h < heads; ++h) {
    const float* q = args.q[row].row<const float>(h);
    const int64_t group = h / 4 * 4, width = std::min<int64_t>(4, heads - group);
    float* first = out + group * steps + (h - group);
    for (int64_t s = 0; s < steps; ++s)
      if (layout == QsaLayout::Dims) {
        first[s * width] = as_operand(form, q[s]);
      } else {
        const uint32_t low = f32_to_bf16(q[2 * s]), high = 2 * s + 1 < d ? f32_to_bf16(q[2 * s + 1]) : 0;
        first[s * width] = std::bit_cast<float>(low | high << 16);
      }
  }
}

void score_with(Queue& queue, const QsaScoreArgs& args, const QsaScoreKernels& kernels) {
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), d = args.q.extent(2);
  const int64_t steps = kernels.layout == QsaLayout::Dims ? d : (d + 1) / 2, query_size = heads * steps;
  const int32_t* n_kv = args.n_kv.as<int32_t>();
  const Scratch queries(std::min(rows, kQueries) * query_size);
  const Scratch tiles(queue.pool().threads() * kQsaTile * steps);
  for (int64_t first = 0; first < rows; first += kQueries) {
    const int64_t count = std::min(kQueries, rows - first);
    const int64_t blocks = *std::max_element(n_kv + first, n_kv + first + count) / args.ratio;
    if (blocks == 0) continue;
    float* query = queries.data();
    queue.pool().run(count, ThreadPool::grain_of(query_size), [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t)
        lay_out_query(args, first + t, kernels.layout, steps, query + t * query_size);
    });
    const int64_t grain = (ThreadPool::grain_of(count * query_size / 16) + kQsaTile - 1) / kQsaTile * kQsaTile;
    queue.pool().run(blocks, grain, [&](int64_t begin, int64_t end, int share) {
      float* tile = tiles.data() + share * kQsaTile * steps;
      for (int64_t b = begin; b < end; b += kQsaTile) {
        kernels.pack(args.pages.at(args.pooled, b), args.pooled.stride(0), std::min(kQsaTile, end - b), d,
                     form_of(args.pooled.dtype), tile);
        for (int64_t t = 0; t < count; ++t) {
          const int64_t last = std::min<int64_t>({b + kQsaTile, end, n_kv[first + t] / args.ratio});
          if (last <= b) continue;
          kernels.score(tile, query + t * query_size, steps, heads, last - b, args.scores.row<float>(first + t) + b);
        }
      }
    });
  }
}

}  // namespace

void qsa_score_avx2(Queue& queue, const QsaScoreArgs& args) { score_with(queue, args, kQsaScoreAvx2); }
void qsa_score_avx512(Queue& queue, const QsaScoreArgs& args) { score_with(queue, args, kQsaScoreAvx512); }
void qsa_score_avx512bf16(Queue& queue, const QsaScoreArgs& args) { score_with(queue, args, kQsaScoreAvx512Bf16); }

}  // namespace strata
