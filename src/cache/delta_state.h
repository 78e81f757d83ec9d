// The state of a gated delta net, in one of two forms that both let rows be taken back without a copy of the matrix.
// Serial: the matrix after some rows, and the inputs of the few rows since, which are pending: the next call runs them
// again, in front of its own. Anchored: the matrix at the last multiple of `chunk` rows, and a ring with the rows
// since; taking rows back inside the open chunk is moving a cursor.
#pragma once

#include <optional>

#include "base/tensor.h"
#include "cache/archive.h"
#include "cache/page_pool.h"

namespace strata {

class DeltaState {
 public:
  struct Shape {
    int64_t key_heads = 0, value_heads = 0, dk = 0, dv = 0;
    int64_t channels() const { return 2 * key_heads * dk + value_heads * dv; }
  };

  DeltaState() = default;
  // Both start as zeros. Serial: at most `window` rows are pending.
  static DeltaState serial(PagePool& pool, const Shape& shape, int64_t window);
  static DeltaState anchored(PagePool& pool, const Shape& shape, int64_t chunk);

  bool empty() const { return chunk_ == 0; }
  int64_t length() const { return length_; }
  bool is_anchored() const { return chunk_ > 1; }
  // Rows that the matrix does not have yet; the anchored form has none.
  int64_t pending() const { return length_ - applied_; }

  // Takes the memory that `rows` more need, of which the first `certain` will never be taken back. Error{Memory};
  // Error{Argument} when a serial state could not keep the others.
  void prepare(int64_t rows, int64_t certain);

  // Anchored: what the operator changes in place for `rows` more rows, counted by advance() afterwards. A matrix that a
  // copy shares is copied only when the rows complete a chunk.
  struct View {
    Tensor state;   // f32 [value_heads, dk, dv]: after the last multiple of chunk rows
    Tensor ring_k;  // f32 [key_heads, chunk, dk]
    Tensor ring_u;  // f32 [value_heads, chunk, dv]
    Tensor ring_g;  // f32 [value_heads, chunk]
  };
  View writable(int64_t rows);
  void advance(int64_t rows);

  // Serial: inputs of the operator.
  struct Rows {
    Tensor conv;     // f32 [rows, channels]: q, k, v after the convolution
    Tensor g, beta;  // f32 [rows, value_heads]
    Rows slice(int64_t first, int64_t count) const {
      return {conv.slice(first, count), g.slice(first, count), beta.slice(first, count)};
    }
  };
  Rows pending_rows() const;  // valid until the next change
  // The matrix [value_heads, dk, dv] after length() - pending() rows, for a call that stores it `stored` rows further.
  // A matrix that a copy shares is copied unless that is 0.
  Tensor matrix(int64_t stored);
  // The matrix has every row so far and those of `rows` but the last `uncertain`. Where their inputs are to be written.
  Rows advance_pending(int64_t rows, int64_t uncertain);

  // The shortest length that truncate() may give: serial, without the pending rows; anchored, without the open chunk.
  int64_t oldest() const { return is_anchored() ? length_ / chunk_ * chunk_ : applied_; }
  // Back to an earlier length. Error{Argument} for anything before oldest().
  void truncate(int64_t length);
  uint64_t bytes() const { return matrix_.bytes() + since_.bytes(); }
  uint64_t bytes_at_most() const;  // with all the rows pending that may be
  // Of the matrix and the slots in use: functions of the tokens. Error{Argument} when rows are pending.
  uint64_t hash(uint64_t seed) const;
  void save(ArchiveWriter& writer) const;
  void load(ArchiveReader& reader, int64_t length);

 private:
  DeltaState(PagePool& pool, const Shape& shape, int64_t chunk, int64_t window);
  View view(void* matrix, void* ring) const;
  Rows rows(void* memory, int64_t count) const;
  size_t pending_bytes() const;  // room for a window of rows
  void check_settled() const;
  MemorySpace space() const { return pool_->space(); }
  template <class Visit>
  void each_used_part(const View& view, Visit&& visit) const;

  std::optional<PagePool> pool_;
  Shape shape_;
  int64_t chunk_ = 0, window_ = 0;
  int64_t length_ = 0, applied_ = 0;  // applied_ is length_ in the anchored form
  Block matrix_;
  Block since_;  // the ring, or the pending rows: taken when there are some
};

}  // namespace strata
