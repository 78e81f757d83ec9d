// The walk of attention and sparse_attention: rows in tiles, cells in splits, (tile, split) pairs in rounds. The splits
// of a round are computed in parallel into scratch of bounded size, then merged in ascending order, row by row.
#include "ops/attention/softmax.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "base/fault.h"

namespace strata {
namespace {

constexpr int64_t kTileRows = 48;             // queries that share one pass over a split, unless one group has more
constexpr int64_t kTogether = 64;             // queries of all kv heads that one item computes
constexpr int64_t kRoundFloats = 256 * 1024;  // of partial results; keeps them in cache

// Aligned and not cleared.
class Scratch {
 public:
  explicit Scratch(int64_t floats)
      : data_(static_cast<float*>(::operator new(static_cast<size_t>(floats) * sizeof(float), kAlign))) {}
  float* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Delete {
    void operator()(float* data) const { ::operator delete(data, kAlign); }
  };
  std::unique_ptr<float, Delete> data_;
};

int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// The types that the kernels read; nothing for all others.
std::optional<KvType> kv_type(DType type) {
  switch (type) {
    case DType::F32: return KvType::F32;
    case DType::F16: return KvType::F16;
    case DType::BF16: return KvType::BF16;
    case DType::Q8_0: return KvType::Q8_0;
    case DType::Q4_0: return KvType::Q4_0;
    default: return std::nullopt;
  }
}

// Neighbouring rows that share their cells' keys and values.
struct Tile {
  int64_t first_row, rows, splits, first_unit;  // a unit is one split of one tile, over all kv heads
};

class Walk {
 public:
  Walk(const CellAttention& args, const SoftmaxKernel& kernel, int threads)
      : args_(args),
        kernel_(kernel),
        group_(args.group()),
        width_(rounded_up(args.dim(), 16)),
        tile_rows_(args.ids.empty() ? std::max<int64_t>(1, kTileRows / group_) : 1),
        queries_(std::min(tile_rows_, args.rows()) * group_),
        slot_(rounded_up(args.kv_heads() * queries_ * (width_ + 2), 16)) {
    for (int64_t row = 0; row < args.rows(); row += tile_rows_) {
      const int64_t rows = std::min(tile_rows_, args.rows() - row);
      int64_t cells = 1;  // a row without cells still has its result written
      for (int64_t t = row; t < row + rows; ++t) cells = std::max(cells, args.count(t));
      tiles_.push_back({row, rows, (cells + kSplit - 1) / kSplit, units_});
      units_ += tiles_.back().splits;
      most_cells_ = std::max(most_cells_, std::min(cells, kSplit));
    }
    // All kv heads of a cell lie side by side: taken together they are read as one stream.
    together_ = std::clamp<int64_t>(kTogether / queries_, 1, args.kv_heads());
    while (together_ > 1 && units_ * parts() < 4 * threads) together_ = (together_ + 1) / 2;
    own_ = rounded_up(together_ * queries_ * (width_ + kSplit) + queries_ + kSoftmaxBlock * width_, 16);
    round_ = std::min(units_, std::max<int64_t>(kRoundFloats / slot_, threads));
    slots_ = std::make_unique<Scratch>(round_ * slot_);
    threads_ = std::make_unique<Scratch>(threads * own_);
    carry_ = std::make_unique<Scratch>(2 * tile_rows_ * args.heads() * (width_ + 16));
  }

  void run(ThreadPool& pool) {
    const int64_t split_cost = most_cells_ * together_ * queries_ * width_ / 4, merge_cost = round_ * width_ / 4;
    for (int64_t round = 0; round * round_ < units_; ++round) {
      const int64_t begin = round * round_, end = std::min(units_, begin + round_);
      pool.run((end - begin) * parts(), ThreadPool::grain_of(split_cost), [&](int64_t from, int64_t to, int share) {
        for (int64_t item = from; item < to; ++item)
          split(begin, begin + item / parts(), item % parts() * together_, threads_->data() + share * own_);
      });
      const Tile &head = tile_of(begin), &tail = tile_of(end - 1);
      const int64_t rows = tail.first_row + tail.rows - head.first_row;
      pool.run(rows * args_.heads(), ThreadPool::grain_of(merge_cost), [&](int64_t from, int64_t to, int) {
        for (int64_t item = from; item < to; ++item)
          merge(head.first_row + item / args_.heads(), item % args_.heads(), round);
      });
    }
  }

 private:
  const Tile& tile_of(int64_t unit) const {
    const auto after = std::upper_bound(tiles_.begin(), tiles_.end(), unit,
                                        [](int64_t value, const Tile& tile) { return value < tile.first_unit; });
    return *(after - 1);
  }
  int64_t parts() const { return (args_.kv_heads() + together_ - 1) / together_; }
  int64_t head_of(int64_t kv_head, int64_t member) const {
    return fault(Fault::WrongHeadMapping) ? member * args_.kv_heads() + kv_head : kv_head * group_ + member;
  }
  static KvCells cells_from(const Tensor& tensor, const RowPages& pages, int64_t kv_head) {
    const int64_t offset = kv_head * tensor.stride(1);
    return {.data = static_cast<const char*>(tensor.data) + (pages.page == nullptr ? offset : 0),
            .stride = tensor.stride(0),
            .head_stride = tensor.stride(1),
            .type = kv_type(tensor.dtype).value(),
            .pages = pages.page,
            .offset = offset,
            .page_shift = pages.page == nullptr ? 0 : std::countr_zero(static_cast<uint64_t>(pages.rows)),
            .page_mask = pages.rows - 1};
  }

  // The partial result of one query of a unit: a slot holds a [kv_heads, queries, width], then m and l.
  struct Partial {
    float *a, *m, *l;
  };
  Partial partial(int64_t slot_index, const Tile& tile, int64_t kv_head, int64_t query) const {
    float* slot = slots_->data() + slot_index * slot_;
    const int64_t index = kv_head * tile.rows * group_ + query, all = args_.kv_heads() * queries_;
    return {slot + index * width_, slot + all * width_ + index, slot + all * (width_ + 1) + index};
  }

  void split(int64_t round_begin, int64_t unit, int64_t kv_head, float* own) const {
    const Tile& tile = tile_of(unit);
    const int64_t first = (unit - tile.first_unit) * kSplit, queries = tile.rows * group_, dim = args_.dim();
    const int64_t kv_heads = std::min(together_, args_.kv_heads() - kv_head);
    float *q = own, *scores = q + together_ * queries_ * width_, *rows = scores + together_ * queries_ * kSplit;
    auto* counts = reinterpret_cast<int32_t*>(rows + kSoftmaxBlock * width_);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t row = tile.first_row + i / group_;
      counts[i] = static_cast<int32_t>(std::clamp<int64_t>(args_.count(row) - first, 0, kSplit));
      for (int64_t x = 0; x < kv_heads; ++x) {
        const float* source = args_.q[row].row<const float>(head_of(kv_head + x, i % group_));
        float* copy = q + (x * queries + i) * width_;
        std::fill(std::copy(source, source + dim, copy), copy + width_, 0.0f);
      }
    }
    const Partial result = partial(unit - round_begin, tile, kv_head, 0);
    kernel_.split({.k = cells_from(args_.k, args_.k_pages, kv_head),
                   .v = cells_from(args_.v, args_.v_pages, kv_head),
                   .ids = args_.ids.empty() ? nullptr : args_.ids.row<const int32_t>(tile.first_row) + first,
                   .first = first,
                   .kv_heads = kv_heads,
                   .queries = queries,
                   .dim = dim,
                   .width = width_,
                   .q = q,
                   .counts = counts,
                   .scale = args_.scale,
                   .scores = scores,
                   .rows = rows,
                   .m = result.m,
                   .l = result.l,
                   .a = result.a});
  }

  // A row of a tile that the end of a round cuts: a [width], m, l. Two sets, since the tile that goes on from the
  // previous round and the one that the next round goes on with may differ.
  float* carry(int64_t set, int64_t row_in_tile, int64_t head) const {
    return carry_->data() + ((set * tile_rows_ + row_in_tile) * args_.heads() + head) * (width_ + 16);
  }

  // The units of `round` that belong to a row's tile enter its sums, the first of the tile as it is.
  void merge(int64_t row, int64_t item_head, int64_t round) const {
    const int64_t kv_head = item_head / group_, member = item_head % group_, head = head_of(kv_head, member);
    const Tile& tile = tiles_[static_cast<size_t>(row / tile_rows_)];
    const int64_t in_tile = row - tile.first_row, query = in_tile * group_ + member;
    const int64_t begin = round * round_, tile_end = tile.first_unit + tile.splits;
    const int64_t to = std::min(begin + round_, tile_end);
    int64_t unit = std::max(begin, tile.first_unit);
    SoftmaxState state;
    if (unit == tile.first_unit) {
      const Partial next = partial(unit++ - begin, tile, kv_head, query);
      state = {*next.m, *next.l, next.a};
    } else {
      float* kept = carry(round % 2, in_tile, item_head);
      state = {kept[width_], kept[width_ + 1], kept};
    }
    for (; unit < to; ++unit) {
      const Partial next = partial(unit - begin, tile, kv_head, query);
      kernel_.merge(state, *next.m, *next.l, next.a, width_);
    }
    if (to < tile_end) {
      float* kept = carry(1 - round % 2, in_tile, item_head);
      std::copy(state.a, state.a + width_, kept);
      kept[width_] = state.m;
      kept[width_ + 1] = state.l;
      return;
    }
    kernel_.finish(state, args_.out[row].row<float>(head), args_.dim());
    if (args_.lse.empty()) return;
    const bool none = state.m == -std::numeric_limits<float>::infinity();
    const double lse = static_cast<double>(state.m) + (none ? 0 : std::log(static_cast<double>(state.l)));
    args_.lse.row<float>(row)[head] = static_cast<float>(lse);
  }

  const CellAttention& args_;
  const SoftmaxKernel& kernel_;
  const int64_t group_, width_, tile_rows_, queries_;
  const int64_t slot_;    // floats
  int64_t own_ = 0;       // floats of a thread's own scratch
  int64_t together_ = 1;  // kv heads of one item
  std::vector<Tile> tiles_;
  int64_t units_ = 0, round_ = 0, most_cells_ = 1;
  std::unique_ptr<Scratch> slots_, threads_, carry_;
};

}  // namespace

void check_cell_attention(const char* op, const CellAttention& args) {
  check_tensor(op, "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.rows(), heads = args.heads(), dim = args.dim();
  check_shape(op, "k", args.k, {-1, -1, dim});
  const int64_t cells = args.k.extent(0), kv_heads = args.kv_heads();
  check_shape(op, "v", args.v, {cells, kv_heads, dim});
  for (const auto& [name, tensor] : {std::pair{"k", &args.k}, std::pair{"v", &args.v}}) {
    const std::optional<KvType> type = kv_type(tensor->dtype);
    if (!type)
      argument_error(op, std::string(name) + " is " + describe(*tensor) + ", needs f32, f16, bf16, q8_0 or q4_0");
    if (in_blocks(*type) && dim % kKvBlock != 0)
      argument_error(op, std::string(name) + " is " + describe(*tensor) + ": heads of " + std::to_string(dim) +
                             " channels are no whole blocks of " + std::to_string(kKvBlock));
    check_tensor(op, name, *tensor, tensor->dtype, {cells, kv_heads, dim});  // the last axis
  }
  for (const RowPages* pages : {&args.k_pages, &args.v_pages})
    if (pages->page != nullptr && (pages->rows < 1 || !std::has_single_bit(static_cast<uint64_t>(pages->rows))))
      argument_error(op, "pages of " + std::to_string(pages->rows) + " cells: a power of two is needed");
  check_tensor(op, "out", args.out, DType::F32, {rows, heads, dim});
  if (!args.lse.empty()) check_tensor(op, "lse", args.lse, DType::F32, {rows, heads});
  if (dim < 1) argument_error(op, "q has heads of size 0");
  if (kv_heads < 1 || heads % kv_heads != 0)
    argument_error(
        op, std::to_string(heads) + " query heads do not divide among " + std::to_string(kv_heads) + " kv heads");
}

void cell_attention(Queue& queue, const CellAttention& args, const SoftmaxKernel& kernel) {
  if (args.rows() == 0 || args.heads() == 0) return;
  Walk(args, kernel, queue.pool().threads()).run(queue.pool());
}

}  // namespace strata
