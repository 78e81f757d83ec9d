#include "cache/delta_state.h"

#include <cstring>

#include "base/error.h"
#include "base/hash.h"

namespace strata {

DeltaState::DeltaState(PagePool& pool, int64_t key_heads, int64_t value_heads, int64_t dk, int64_t dv, int64_t chunk)
    : key_heads_(key_heads), value_heads_(value_heads), dk_(dk), dv_(dv), chunk_(chunk) {
  const int64_t slot = key_heads * dk + value_heads * (dv + 1);
  matrix_ = Block(pool, static_cast<size_t>(value_heads * dk * dv) * sizeof(float));
  ring_ = Block(pool, static_cast<size_t>(chunk * slot) * sizeof(float));
  std::memset(matrix_.writable(), 0, matrix_.bytes());
}

DeltaState::View DeltaState::view(void* matrix, void* ring) const {
  auto* k = static_cast<float*>(ring);
  float* u = k + key_heads_ * dk_ * chunk_;
  float* g = u + value_heads_ * chunk_ * dv_;
  return {make_f32(static_cast<float*>(matrix), {value_heads_, dk_, dv_}), make_f32(k, {key_heads_, chunk_, dk_}),
          make_f32(u, {value_heads_, chunk_, dv_}), make_f32(g, {value_heads_, chunk_})};
}

DeltaState::View DeltaState::writable(int64_t rows) {
  const bool completes = length_ % chunk_ + rows >= chunk_;
  return view(completes ? matrix_.writable() : const_cast<void*>(matrix_.data()), ring_.writable());
}

void DeltaState::truncate(int64_t length) {
  const int64_t start = length_ / chunk_ * chunk_;
  if (length < start || length > length_)
    throw Error(ErrorKind::Argument, "a delta net's state at position " + std::to_string(length_) +
                                         " cannot go back to " + std::to_string(length) + ", only to " +
                                         std::to_string(start));
  length_ = length;
}

// The matrix, and the slots below the cursor: contiguous parts in one order.
template <class Visit>
void DeltaState::each_used_part(const View& view, Visit&& visit) const {
  const auto used = static_cast<size_t>(length_ % chunk_) * sizeof(float);
  visit(view.state.data, matrix_.bytes());
  for (int64_t h = 0; h < key_heads_; ++h) visit(view.ring_k.f32() + h * chunk_ * dk_, used * static_cast<size_t>(dk_));
  for (int64_t h = 0; h < value_heads_; ++h) {
    visit(view.ring_u.f32() + h * chunk_ * dv_, used * static_cast<size_t>(dv_));
    visit(view.ring_g.f32() + h * chunk_, used);
  }
}

uint64_t DeltaState::hash(uint64_t seed) const {
  uint64_t hash = hash64(&length_, sizeof length_, seed);
  each_used_part(view(const_cast<void*>(matrix_.data()), const_cast<void*>(ring_.data())),
                 [&](const void* data, size_t bytes) { hash = hash64(data, bytes, hash); });
  return hash;
}

void DeltaState::save(ArchiveWriter& writer) const {
  for (const int64_t value : {length_, key_heads_, value_heads_, dk_, dv_, chunk_}) writer.value(value);
  each_used_part(view(const_cast<void*>(matrix_.data()), const_cast<void*>(ring_.data())),
                 [&](const void* data, size_t bytes) { writer.bytes(data, bytes); });
}

void DeltaState::load(ArchiveReader& reader, int64_t length) {
  reader.expect<int64_t>(length, "the position of a delta net");
  reader.expect<int64_t>(key_heads_, "the number of key heads");
  reader.expect<int64_t>(value_heads_, "the number of value heads");
  reader.expect<int64_t>(dk_, "the width of a key");
  reader.expect<int64_t>(dv_, "the width of a value");
  reader.expect<int64_t>(chunk_, "the chunk of a delta net");
  length_ = length;
  each_used_part(view(matrix_.overwritable(), ring_.overwritable()),
                 [&](void* data, size_t bytes) { std::memcpy(data, reader.bytes(bytes), bytes); });
}

}  // namespace strata
