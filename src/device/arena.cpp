#include "device/arena.h"

#include <algorithm>

namespace strata {
namespace {
constexpr size_t kAlignment = 256;
constexpr size_t kSmallestChunk = size_t{1} << 20;
}  // namespace

Tensor Arena::tensor(DType dtype, std::initializer_list<int64_t> extents) {
  Tensor view = make_tensor(nullptr, dtype, extents);
  const size_t bytes =
      std::max<size_t>(kAlignment, (bytes_of(dtype, view.elements()) + kAlignment - 1) / kAlignment * kAlignment);
  while (chunk_ < chunks_.size() && chunks_[chunk_].bytes() - used_ < bytes) ++chunk_, used_ = 0;
  if (chunk_ == chunks_.size()) chunks_.emplace_back(space_, std::max(bytes, kSmallestChunk));
  view.data = static_cast<char*>(chunks_[chunk_].data()) + used_;
  used_ += bytes;
  return view;
}

uint64_t Arena::bytes() const {
  uint64_t total = 0;
  for (const SpaceMemory& chunk : chunks_) total += chunk.bytes();
  return total;
}

}  // namespace strata
