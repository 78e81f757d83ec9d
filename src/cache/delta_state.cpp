#include "cache/delta_state.h"

#include "base/error.h"
#include "base/hash.h"

namespace strata {

DeltaState::DeltaState(PagePool& pool, const Shape& shape, int64_t chunk, int64_t window)
    : pool_(pool), shape_(shape), chunk_(chunk), window_(window) {
  const int64_t slot = shape.key_heads * shape.dk + shape.value_heads * (shape.dv + 1);
  matrix_ = Block(pool, static_cast<size_t>(shape.value_heads * shape.dk * shape.dv) * sizeof(float));
  if (is_anchored()) since_ = Block(pool, static_cast<size_t>(chunk * slot) * sizeof(float));
  space().fill(matrix_.writable(), 0, matrix_.bytes());
}

DeltaState DeltaState::serial(PagePool& pool, const Shape& shape, int64_t window) { return {pool, shape, 1, window}; }
DeltaState DeltaState::anchored(PagePool& pool, const Shape& shape, int64_t chunk) { return {pool, shape, chunk, 0}; }

DeltaState::View DeltaState::view(void* matrix, void* ring) const {
  const auto& [key_heads, value_heads, dk, dv] = shape_;
  const Tensor state = make_f32(static_cast<float*>(matrix), {value_heads, dk, dv});
  if (!is_anchored()) return {state, {}, {}, {}};
  auto* k = static_cast<float*>(ring);
  float* u = k + key_heads * dk * chunk_;
  float* g = u + value_heads * chunk_ * dv;
  return {state, make_f32(k, {key_heads, chunk_, dk}), make_f32(u, {value_heads, chunk_, dv}),
          make_f32(g, {value_heads, chunk_})};
}

DeltaState::Rows DeltaState::rows(void* memory, int64_t count) const {
  auto* conv = static_cast<float*>(memory);
  float* g = conv + window_ * shape_.channels();
  return {make_f32(conv, {count, shape_.channels()}), make_f32(g, {count, shape_.value_heads}),
          make_f32(g + window_ * shape_.value_heads, {count, shape_.value_heads})};
}

size_t DeltaState::pending_bytes() const {
  return static_cast<size_t>(window_ * (shape_.channels() + 2 * shape_.value_heads)) * sizeof(float);
}

uint64_t DeltaState::bytes_at_most() const {
  return matrix_.bytes() + (is_anchored() ? since_.bytes() : pending_bytes());
}

void DeltaState::prepare(int64_t rows, int64_t certain) {
  if (is_anchored()) {
    writable(rows);
    return;
  }
  if (rows - certain > window_)
    throw Error(ErrorKind::Argument, std::to_string(rows - certain) + " rows that may be taken back are more than " +
                                         std::to_string(window_) + ", the window of the caches");
  matrix(pending() + certain);
  if (rows == certain) return;
  if (since_.bytes() == 0) since_ = Block(*pool_, pending_bytes());
  pending() > 0 ? since_.writable() : since_.overwritable();  // rows that are pending now are read first
}

DeltaState::View DeltaState::writable(int64_t rows) {
  const bool completes = length_ % chunk_ + rows >= chunk_;
  return view(completes ? matrix_.writable() : const_cast<void*>(matrix_.data()), since_.writable());
}

void DeltaState::advance(int64_t rows) {
  length_ += rows;
  applied_ = length_;
}

DeltaState::Rows DeltaState::pending_rows() const {
  return pending() == 0 ? Rows{} : rows(const_cast<void*>(since_.data()), pending());
}

Tensor DeltaState::matrix(int64_t stored) {
  return view(stored > 0 ? matrix_.writable() : const_cast<void*>(matrix_.data()), nullptr).state;
}

DeltaState::Rows DeltaState::advance_pending(int64_t rows, int64_t uncertain) {
  length_ += rows;
  applied_ = length_ - uncertain;
  return uncertain == 0 ? Rows{} : this->rows(since_.overwritable(), uncertain);
}

void DeltaState::truncate(int64_t length) {
  if (length < oldest() || length > length_)
    throw Error(ErrorKind::Argument, "a delta net's state at position " + std::to_string(length_) +
                                         " cannot go back to " + std::to_string(length) + ", only to " +
                                         std::to_string(oldest()));
  length_ = length;
  if (is_anchored()) applied_ = length;
}

void DeltaState::check_settled() const {
  if (pending() > 0)
    throw Error(ErrorKind::Argument, "a delta net's state has " + std::to_string(pending()) +
                                         " rows that are not in its matrix: settle the sequence first");
}

// The matrix, and the slots below the cursor: contiguous parts in one order.
template <class Visit>
void DeltaState::each_used_part(const View& view, Visit&& visit) const {
  const auto& [key_heads, value_heads, dk, dv] = shape_;
  const auto used = static_cast<size_t>(length_ % chunk_) * sizeof(float);
  visit(view.state.data, matrix_.bytes());
  if (!is_anchored()) return;
  for (int64_t h = 0; h < key_heads; ++h) visit(view.ring_k.f32() + h * chunk_ * dk, used * static_cast<size_t>(dk));
  for (int64_t h = 0; h < value_heads; ++h) {
    visit(view.ring_u.f32() + h * chunk_ * dv, used * static_cast<size_t>(dv));
    visit(view.ring_g.f32() + h * chunk_, used);
  }
}

uint64_t DeltaState::hash(uint64_t seed) const {
  check_settled();
  uint64_t hash = hash64(&length_, sizeof length_, seed);
  Fetched host(space());
  each_used_part(view(const_cast<void*>(matrix_.data()), const_cast<void*>(since_.data())),
                 [&](const void* data, size_t bytes) { hash = hash64(host.of(data, bytes), bytes, hash); });
  return hash;
}

void DeltaState::save(ArchiveWriter& writer) const {
  check_settled();
  for (const int64_t value : {length_, shape_.key_heads, shape_.value_heads, shape_.dk, shape_.dv, chunk_})
    writer.value(value);
  Fetched host(space());
  each_used_part(view(const_cast<void*>(matrix_.data()), const_cast<void*>(since_.data())),
                 [&](const void* data, size_t bytes) { writer.bytes(host.of(data, bytes), bytes); });
}

void DeltaState::load(ArchiveReader& reader, int64_t length) {
  reader.expect<int64_t>(length, "the position of a delta net");
  reader.expect<int64_t>(shape_.key_heads, "the number of key heads");
  reader.expect<int64_t>(shape_.value_heads, "the number of value heads");
  reader.expect<int64_t>(shape_.dk, "the width of a key");
  reader.expect<int64_t>(shape_.dv, "the width of a value");
  reader.expect<int64_t>(chunk_, "the chunk of a delta net");
  length_ = applied_ = length;
  each_used_part(view(matrix_.overwritable(), is_anchored() ? since_.overwritable() : nullptr),
                 [&](void* data, size_t bytes) { space().copy(data, reader.bytes(bytes), bytes); });
}

}  // namespace strata
