#include "cache/history_rows.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace strata {
namespace {

constexpr int64_t kStep = 16;  // rows between two moves to the front
constexpr int64_t kWord = 4;   // bytes of a value

}  // namespace

HistoryRows::HistoryRows(PagePool& pool, DType dtype, int64_t depth, int64_t window, int64_t width, uint32_t before)
    : dtype_(dtype), depth_(depth), window_(window), width_(width), rows_(depth + window + kStep), base_(-depth) {
  block_ = Block(pool, static_cast<size_t>(std::max<int64_t>(1, rows_ * width_) * kWord));
  auto* words = static_cast<uint32_t*>(block_.writable());
  std::fill_n(words, depth_ * width_, before);
}

char* HistoryRows::slot(void* memory, int64_t position) const {
  return static_cast<char*>(memory) + (position - base_) * width_ * kWord;
}

Tensor HistoryRows::last() const {
  return make_tensor(slot(const_cast<void*>(block_.data()), length_ - depth_), dtype_, {depth_, width_});
}

// Moves what must be kept to the front, so that `rows` more fit.
void HistoryRows::make_room(int64_t rows) {
  if (length_ + rows - base_ <= rows_) return;
  const int64_t kept = std::min(depth_ + window_, length_ - base_);
  char* memory = static_cast<char*>(block_.writable());
  std::memmove(memory, slot(memory, length_ - kept), static_cast<size_t>(kept * width_ * kWord));
  base_ = length_ - kept;
  oldest_ = std::max(oldest_, base_ + depth_);
}

void HistoryRows::append(const Tensor& rows) {
  const int64_t count = rows.extent(0);
  int64_t done = 0;
  while (done < count) {
    const int64_t part = std::min(kStep, count - done);
    make_room(part);
    void* memory = block_.writable();
    for (int64_t i = 0; i < part; ++i)
      std::memcpy(slot(memory, length_ + i), rows.row<const char>(done + i), static_cast<size_t>(width_ * kWord));
    length_ += part;
    done += part;
  }
}

void HistoryRows::truncate(int64_t length) {
  if (length > length_ || length < oldest_)
    throw Error(ErrorKind::Argument, "cannot go back from position " + std::to_string(length_) + " to " +
                                         std::to_string(length) + ", only to " + std::to_string(oldest_));
  length_ = length;
}

uint64_t HistoryRows::hash(uint64_t seed) const {
  const uint64_t start = hash64(&length_, sizeof length_, seed);
  return hash64(last().data, static_cast<size_t>(depth_ * width_ * kWord), start);
}

void HistoryRows::save(ArchiveWriter& writer) const {
  writer.value(length_);
  writer.value(depth_);
  writer.value(width_);
  writer.bytes(last().data, static_cast<size_t>(depth_ * width_ * kWord));
}

void HistoryRows::load(ArchiveReader& reader, int64_t length) {
  reader.expect<int64_t>(length, "a position");
  reader.expect<int64_t>(depth_, "the depth of a history");
  reader.expect<int64_t>(width_, "the width of a history");
  const auto bytes = static_cast<size_t>(depth_ * width_ * kWord);
  const void* source = reader.bytes(bytes);
  std::memcpy(block_.overwritable(), source, bytes);
  length_ = oldest_ = length;
  base_ = length - depth_;
}

}  // namespace strata
