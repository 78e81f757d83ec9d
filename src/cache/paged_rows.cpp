#include "cache/paged_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace strata {

namespace {

constexpr size_t kStretch = 16;  // pages that come into memory at a time where all rows are visited

}  // namespace

PagedRows::PagedRows(PagePool& pool, DType dtype, std::vector<int64_t> row, int64_t resident)
    : pool_(pool),
      dtype_(dtype),
      row_(std::move(row)),
      elements_(1),
      pages_(static_cast<size_t>((resident + kPageRows - 1) / kPageRows)),
      table_(pool.space()) {
  if (tiered() && !pool.space().on_host())
    throw Error(ErrorKind::Argument, "rows in the memory of a device have no second tier in a file");
  for (const int64_t extent : row_) elements_ *= extent;
  const auto block = static_cast<int64_t>(info(dtype).block_elements);
  if (row_.empty() || row_.back() % block != 0)
    throw Error(ErrorKind::Argument, "rows of " + std::to_string(row_.empty() ? 0 : row_.back()) +
                                         " values are no whole blocks of " + std::string(to_string(dtype)));
  row_bytes_ = bytes_of(dtype, elements_);
}

const void* PagedRows::row(int64_t index) const {
  return static_cast<const char*>(table_[static_cast<size_t>(index / kPageRows)]) +
         static_cast<size_t>(index % kPageRows) * row_bytes_;
}

void PagedRows::write_page_of(int64_t index) {
  const auto page = static_cast<size_t>(index / kPageRows);
  if (page == pages_.size()) pages_.append(*pool_, row_bytes_ * static_cast<size_t>(kPageRows));
  table_.set(page, pages_.writable(page));
}

Tensor PagedRows::shape() const {
  static char nothing;  // a tensor without rows is not an absent one
  Tensor view;
  view.data = table_.size() == 0 ? &nothing : const_cast<void*>(table_[0]);
  view.dtype = dtype_;
  view.rank = static_cast<int>(row_.size()) + 1;
  auto stride = static_cast<int64_t>(info(dtype_).block_bytes);
  for (size_t axis = row_.size(); axis-- > 0;) {
    view.extents[axis + 1] = row_[axis];
    view.strides[axis + 1] = stride;
    stride = axis + 1 == row_.size() ? static_cast<int64_t>(bytes_of(dtype_, row_[axis])) : stride * row_[axis];
  }
  view.extents[0] = length_;
  view.strides[0] = static_cast<int64_t>(row_bytes_);
  return view;
}

void PagedRows::prepare(int64_t rows) {
  for (int64_t row = length_; row < length_ + rows; row = (row / kPageRows + 1) * kPageRows) write_page_of(row);
  table_.sync();
}

void PagedRows::extend(int64_t rows) {
  prepare(rows);
  length_ += rows;
}

void PagedRows::truncate(int64_t length) {
  if (length < 0 || length > length_)
    throw Error(ErrorKind::Argument, "cannot cut " + std::to_string(length_) + " rows to " + std::to_string(length));
  length_ = length;
  const auto pages = static_cast<size_t>((length + kPageRows - 1) / kPageRows);
  pages_.resize(std::min(pages_.size(), pages));
  table_.resize(pages_.size());
}

uint64_t PagedRows::bytes_at(int64_t length) const {
  return static_cast<uint64_t>((length + kPageRows - 1) / kPageRows * kPageRows) * row_bytes_;
}

// visit(first row, bytes) for every page, in host memory.
template <class Visit>
void PagedRows::each_page(Visit&& visit) const {
  Fetched host(pool_->space());
  for (int64_t first = 0; first < length_; first += kPageRows) {
    if (const auto page = static_cast<size_t>(first / kPageRows); page % kStretch == 0) {
      pages_.release();
      pages_.use(page, std::min(page + kStretch, pages_.size()));
    }
    const size_t bytes = static_cast<size_t>(std::min(kPageRows, length_ - first)) * row_bytes_;
    visit(host.of(row(first), bytes), bytes);
  }
  pages_.release();
}

uint64_t PagedRows::hash(uint64_t seed) const {
  uint64_t hash = hash64(&length_, sizeof length_, seed);
  each_page([&](const void* rows, size_t bytes) { hash = hash64(rows, bytes, hash); });
  return hash;
}

void PagedRows::save(ArchiveWriter& writer) const {
  writer.value(length_);
  writer.value(static_cast<uint64_t>(row_bytes_));
  each_page([&](const void* rows, size_t bytes) { writer.bytes(rows, bytes); });
}

void PagedRows::load(ArchiveReader& reader, int64_t length) {
  truncate(0);
  reader.expect<int64_t>(length, "a number of cached rows");
  reader.expect<uint64_t>(row_bytes_, "the size of a cached row");
  while (length_ < length) {
    const auto count = std::min(kPageRows, length - length_);
    const size_t bytes = static_cast<size_t>(count) * row_bytes_;
    const void* source = reader.bytes(bytes);
    write_page_of(length_);
    pool_->space().copy(const_cast<void*>(row(length_)), source, bytes);
    length_ += count;
    if (length_ / kPageRows % static_cast<int64_t>(kStretch) == 0) pages_.release();
  }
  pages_.release();
}

}  // namespace strata
