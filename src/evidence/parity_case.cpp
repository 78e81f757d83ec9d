#include "evidence/parity_case.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace strata {
namespace {

constexpr int64_t kGuard = 64;  // bytes of canary before and behind
constexpr size_t kPage = 4096;

}  // namespace

CaseMemory::Pages CaseMemory::take(size_t bytes) {
  Pages pages;
  pages.bytes = std::max<size_t>((bytes + kPage - 1) / kPage, 1) * kPage;
  pages.buffer = Buffer(pages.bytes + kPage);
  const auto address = reinterpret_cast<uintptr_t>(pages.buffer.data());
  pages.start = static_cast<char*>(pages.buffer.data()) + (kPage - address % kPage) % kPage;
  return pages;
}

std::vector<std::pair<void*, size_t>> CaseMemory::ranges() const {
  std::vector<std::pair<void*, size_t>> list;
  for (const Block& block : blocks_) list.emplace_back(block.pages.start, block.pages.bytes);
  for (const Pages& pages : paged_) list.emplace_back(pages.start, pages.bytes);
  return list;
}

Tensor CaseMemory::tensor(DType dtype, const std::vector<int64_t>& extents, const std::vector<int64_t>& pads) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(extents.size());
  const int64_t block = info(dtype).block_bytes;
  int64_t bytes = static_cast<int64_t>(bytes_of(dtype, extents.back()));
  for (size_t axis = extents.size(); axis-- > 0;) {
    const bool last = axis + 1 == extents.size();
    tensor.extents[axis] = extents[axis];
    tensor.strides[axis] = last ? block : bytes + (axis < pads.size() ? pads[axis] * block : 0);
    if (!last) bytes = tensor.strides[axis] * extents[axis];
  }
  Pages pages = take(static_cast<size_t>(kGuard + bytes + kGuard));
  for (size_t i = 0; i < pages.bytes; i += 4) std::memcpy(pages.start + i, &kCanary, 4);
  tensor.data = pages.start + kGuard;
  blocks_.push_back({std::move(pages), tensor});
  return tensor;
}

RowPages CaseMemory::paged(const Tensor& tensor, int64_t rows, Random& random) {
  const int64_t pages = (tensor.extent(0) + rows - 1) / rows, stride = tensor.stride(0);
  if (pages == 0) return {};
  auto row_bytes = static_cast<int64_t>(bytes_of(tensor.dtype, tensor.extent(tensor.rank - 1)));
  for (int axis = 1; axis + 1 < tensor.rank; ++axis) row_bytes += (tensor.extent(axis) - 1) * tensor.stride(axis);
  std::vector<int64_t> place(static_cast<size_t>(pages));
  for (int64_t i = 0; i < pages; ++i) place[static_cast<size_t>(i)] = i;
  for (int64_t i = pages; i-- > 1;)
    std::swap(place[static_cast<size_t>(i)], place[static_cast<size_t>(random.below(i + 1))]);
  Pages memory = take(static_cast<size_t>(pages * rows * stride));
  std::memset(memory.start, 0xff, memory.bytes);  // NaN in every float format
  std::vector<const void*> addresses(static_cast<size_t>(pages));
  for (int64_t page = 0; page < pages; ++page) {
    char* start = memory.start + place[static_cast<size_t>(page)] * rows * stride;
    for (int64_t i = page * rows; i < std::min((page + 1) * rows, tensor.extent(0)); ++i)
      std::memcpy(start + i % rows * stride, tensor.row<const char>(i), static_cast<size_t>(row_bytes));
    addresses[static_cast<size_t>(page)] = start;
  }
  paged_.push_back(std::move(memory));
  return {table(addresses), rows};
}

const void* const* CaseMemory::table(const std::vector<const void*>& addresses) {
  Pages memory = take(addresses.size() * sizeof(void*));
  std::memcpy(memory.start, addresses.data(), addresses.size() * sizeof(void*));
  tables_.push_back(memory.start);
  paged_.push_back(std::move(memory));
  return reinterpret_cast<const void* const*>(tables_.back());
}

bool CaseMemory::guards_intact() const {
  for (const Block& block : blocks_) {
    const char* start = block.pages.start;
    std::vector<char> inside(block.pages.bytes, 0);
    const auto row_bytes = bytes_of(block.tensor.dtype, block.tensor.extent(block.tensor.rank - 1));
    for_each_row(block.tensor, [&](void* row) {
      std::memset(inside.data() + (static_cast<const char*>(row) - start), 1, row_bytes);
    });
    for (size_t i = 0; i < inside.size(); ++i)
      if (inside[i] == 0 && start[i] != reinterpret_cast<const char*>(&kCanary)[i % 4]) return false;
  }
  return true;
}

Tensor CaseMemory::f32(const std::vector<int64_t>& extents, Random& random, float low, float high,
                       const std::vector<int64_t>& pads) {
  const Tensor result = tensor(DType::F32, extents, pads);
  for_each_row(result, [&](void* row) {
    for (int64_t i = 0; i < extents.back(); ++i) static_cast<float*>(row)[i] = random.uniform(low, high);
  });
  return result;
}

Tensor CaseMemory::i32(const std::vector<int32_t>& values) {
  const Tensor result = tensor(DType::I32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), result.as<int32_t>());
  return result;
}

void for_each_row(const Tensor& tensor, const std::function<void(void*)>& visit) {
  if (tensor.elements() == 0) return;
  if (tensor.rank == 1) return visit(tensor.data);
  for (int64_t i = 0; i < tensor.extent(0); ++i) for_each_row(tensor[i], visit);
}

}  // namespace strata
