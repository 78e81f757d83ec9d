// Rows that grow by appending, one for each position: keys, values, pooled index keys. Pages of 64 rows, shared between
// copies until one of them appends to a shared page. They may lie in the second tier, with a working set in memory.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/tensor.h"
#include "cache/archive.h"
#include "cache/page_pool.h"
#include "cache/page_set.h"
#include "cache/page_table.h"

namespace strata {

inline constexpr int64_t kPageRows = 64;

class PagedRows {
 public:
  PagedRows() = default;
  // A row has the extents `row` (f32, f16, bf16, q8_0 or q4_0; a block format needs whole blocks along the last axis).
  // resident: rows in memory at most between two passes, rounded up to whole pages; 0: all, in the first tier.
  PagedRows(PagePool& pool, DType dtype, std::vector<int64_t> row, int64_t resident = 0);

  bool empty() const { return row_bytes_ == 0; }  // no such cache
  int64_t length() const { return length_; }
  DType dtype() const { return dtype_; }
  RowPages pages() const { return {table_.data(), kPageRows}; }  // valid until the rows change
  const void* row(int64_t index) const;
  // Shape [length, row...] over the first page's memory: dtype, extents and strides for operators that take a table.
  Tensor shape() const;

  bool tiered() const { return pages_.tiered(); }
  // Before rows are read through pages(): of these pages, ascending, or of all. Results do not depend on it.
  void use(std::span<const int64_t> pages) const { pages_.use(pages); }
  void use_all() const { pages_.use(0, pages_.size()); }
  void release() const { pages_.release(); }  // afterwards: back to the working set. Error{File}

  void prepare(int64_t rows);                           // takes the memory that `rows` more need. Error{Memory}
  void extend(int64_t rows);                            // so many more, whose contents are to be written
  int64_t oldest() const { return 0; }                  // the shortest length that truncate() may give
  void truncate(int64_t length);                        // 0 .. length()
  uint64_t bytes() const { return bytes_at(length_); }  // of all pages, whoever shares them
  uint64_t bytes_at(int64_t length) const;              // what so many rows take
  uint64_t hash(uint64_t seed) const;
  void save(ArchiveWriter& writer) const;
  void load(ArchiveReader& reader, int64_t length);  // replaces everything

 private:
  void write_page_of(int64_t index);  // the row's page is this cache's own
  template <class Visit>
  void each_page(Visit&& visit) const;

  std::optional<PagePool> pool_;
  DType dtype_ = DType::F32;
  std::vector<int64_t> row_;
  int64_t elements_ = 0;  // of a row
  size_t row_bytes_ = 0;
  int64_t length_ = 0;
  PageSet pages_;
  PageTable table_;
};

}  // namespace strata
