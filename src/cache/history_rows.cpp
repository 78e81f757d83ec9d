#include "cache/history_rows.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace strata {
namespace {

constexpr int64_t kWord = 4;   // bytes of a value
constexpr int64_t kSpare = 5;  // rows more than two times what is kept: that much further between two moves

}  // namespace

HistoryRows::HistoryRows(PagePool& pool, DType dtype, int64_t depth, int64_t window, int64_t width, uint32_t before)
    : dtype_(dtype),
      depth_(depth),
      window_(window),
      width_(width),
      rows_(2 * (depth + window) + kSpare),
      base_(-depth),
      space_(pool.space()) {
  block_ = Block(pool, static_cast<size_t>(std::max<int64_t>(1, rows_ * width_) * kWord));
  const std::vector<uint32_t> words(static_cast<size_t>(depth_ * width_), before);
  space_.copy(block_.writable(), words.data(), words.size() * sizeof(uint32_t));
}

char* HistoryRows::slot(void* memory, int64_t position) const {
  return static_cast<char*>(memory) + (position - base_) * width_ * kWord;
}

Tensor HistoryRows::last() const {
  return make_tensor(slot(const_cast<void*>(block_.data()), length_ - depth_), dtype_, {depth_, width_});
}

// Makes room behind the rows held: what must be kept moves to the front.
void HistoryRows::prepare(int64_t rows) {
  char* memory = static_cast<char*>(block_.writable());
  if (length_ + kept_of(rows) - base_ <= rows_) return;
  const int64_t kept = std::min(depth_ + window_, length_ - base_);
  space_.move_down(memory, slot(memory, length_ - kept), static_cast<size_t>(kept * width_ * kWord));
  base_ = length_ - kept;
  oldest_ = std::max(oldest_, base_ + depth_);
}

Tensor HistoryRows::extend(int64_t rows) {
  prepare(rows);
  const int64_t kept = kept_of(rows);
  // Rows that would be beyond the window are never held: those that are follow the old ones without a gap.
  if (kept < rows) {
    base_ += rows - kept;
    oldest_ = length_ + rows - kept + depth_;
  }
  length_ += rows;
  return make_tensor(slot(block_.writable(), length_ - kept), dtype_, {kept, width_});
}

void HistoryRows::truncate(int64_t length) {
  if (length > length_ || length < oldest_)
    throw Error(ErrorKind::Argument, "cannot go back from position " + std::to_string(length_) + " to " +
                                         std::to_string(length) + ", only to " + std::to_string(oldest_));
  length_ = length;
}

uint64_t HistoryRows::hash(uint64_t seed) const {
  const uint64_t start = hash64(&length_, sizeof length_, seed);
  const auto bytes = static_cast<size_t>(depth_ * width_ * kWord);
  return hash64(Fetched(space_).of(last().data, bytes), bytes, start);
}

void HistoryRows::save(ArchiveWriter& writer) const {
  writer.value(length_);
  writer.value(depth_);
  writer.value(width_);
  const auto bytes = static_cast<size_t>(depth_ * width_ * kWord);
  writer.bytes(Fetched(space_).of(last().data, bytes), bytes);
}

void HistoryRows::load(ArchiveReader& reader, int64_t length) {
  reader.expect<int64_t>(length, "a position");
  reader.expect<int64_t>(depth_, "the depth of a history");
  reader.expect<int64_t>(width_, "the width of a history");
  const auto bytes = static_cast<size_t>(depth_ * width_ * kWord);
  const void* source = reader.bytes(bytes);
  space_.copy(block_.overwritable(), source, bytes);
  length_ = oldest_ = length;
  base_ = length - depth_;
}

}  // namespace strata
