// The last few rows before a position: inputs of a causal convolution, raw index keys of the open block, the last
// tokens. `depth` rows are needed to go on; `window` more are kept, so that as many rows of the last append can be
// taken back.
#pragma once

#include "base/tensor.h"
#include "cache/archive.h"
#include "cache/page_pool.h"

namespace strata {

class HistoryRows {
 public:
  HistoryRows() = default;
  // Rows of `width` 4-byte values. Rows before position 0 hold `before`.
  HistoryRows(PagePool& pool, DType dtype, int64_t depth, int64_t window, int64_t width, uint32_t before = 0);

  bool empty() const { return width_ == 0; }
  int64_t length() const { return length_; }
  // [depth, width], oldest first: the rows of positions length - depth .. length - 1. Valid until the next change.
  Tensor last() const;

  void prepare(int64_t rows);  // takes the memory that rows to come need. Error{Memory}
  // Counts `rows` more: the memory [n, width] of the last of them, n <= rows, whose contents are to be written.
  Tensor extend(int64_t rows);
  int64_t oldest() const { return oldest_; }  // the shortest length that truncate() may give
  // Takes back rows of the last append, at most `window` of them. Error{Argument} when they are not held any more.
  void truncate(int64_t length);
  uint64_t bytes() const { return block_.bytes(); }
  uint64_t hash(uint64_t seed) const;  // of the rows that last() gives
  void save(ArchiveWriter& writer) const;
  void load(ArchiveReader& reader, int64_t length);

 private:
  char* slot(void* memory, int64_t position) const;
  int64_t kept_of(int64_t rows) const { return rows < depth_ + window_ ? rows : depth_ + window_; }

  DType dtype_ = DType::F32;
  int64_t depth_ = 0, window_ = 0, width_ = 0, rows_ = 0;
  int64_t length_ = 0;
  int64_t base_ = 0;    // position of the first row held
  int64_t oldest_ = 0;  // the shortest length that truncate() may give
  MemorySpace space_;
  Block block_;
};

}  // namespace strata
