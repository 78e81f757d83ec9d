// The state of a gated delta net: the matrix at the last multiple of `chunk` rows, and a ring with the rows since.
// Taking rows back inside the open chunk is moving a cursor.
#pragma once

#include "base/tensor.h"
#include "cache/archive.h"
#include "cache/page_pool.h"

namespace strata {

class DeltaState {
 public:
  DeltaState() = default;
  // Starts as zeros.
  DeltaState(PagePool& pool, int64_t key_heads, int64_t value_heads, int64_t dk, int64_t dv, int64_t chunk);

  bool empty() const { return chunk_ == 0; }
  int64_t length() const { return length_; }

  // What the operator changes in place; rows are counted by advance() afterwards.
  struct View {
    Tensor state;   // f32 [value_heads, dk, dv]: after the last multiple of chunk rows
    Tensor ring_k;  // f32 [key_heads, chunk, dk]
    Tensor ring_u;  // f32 [value_heads, chunk, dv]
    Tensor ring_g;  // f32 [value_heads, chunk]
  };
  // For `rows` more rows. A matrix that a copy shares is copied only when the rows complete a chunk.
  View writable(int64_t rows);
  void advance(int64_t rows) { length_ += rows; }

  // Back to an earlier length of the same open chunk. Error{Argument} for anything before.
  void truncate(int64_t length);
  uint64_t bytes() const { return matrix_.bytes() + ring_.bytes(); }
  uint64_t hash(uint64_t seed) const;  // of the matrix and the slots in use
  void save(ArchiveWriter& writer) const;
  void load(ArchiveReader& reader, int64_t length);

 private:
  View view(void* matrix, void* ring) const;
  template <class Visit>
  void each_used_part(const View& view, Visit&& visit) const;

  int64_t key_heads_ = 0, value_heads_ = 0, dk_ = 0, dv_ = 0, chunk_ = 0;
  int64_t length_ = 0;
  Block matrix_, ring_;
};

}  // namespace strata
