// Scratch memory for one pass: taken in order, given back together. After the first pass it allocates nothing.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "device/memory_space.h"

namespace strata {

class Arena {
 public:
  Arena() = default;
  explicit Arena(MemorySpace space) : space_(std::move(space)) {}

  const MemorySpace& space() const { return space_; }
  // Contents are unspecified.
  Tensor tensor(DType dtype, std::initializer_list<int64_t> extents);
  Tensor f32(std::initializer_list<int64_t> extents) { return tensor(DType::F32, extents); }
  Tensor i32(std::initializer_list<int64_t> extents) { return tensor(DType::I32, extents); }

  struct Mark {
    size_t chunk = 0, used = 0;
  };
  Mark mark() const { return {chunk_, used_}; }
  void rewind(Mark mark) { chunk_ = mark.chunk, used_ = mark.used; }  // gives back everything taken since
  uint64_t bytes() const;

 private:
  MemorySpace space_;
  std::vector<SpaceMemory> chunks_;
  size_t chunk_ = 0, used_ = 0;
};

// Gives back what a scope took.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.rewind(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace strata
