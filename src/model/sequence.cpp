#include "model/sequence.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace strata {

Sequence::Sequence(const ModelSpec& spec, int64_t capacity, const CacheOptions& options, PagePool pool)
    : trunk_layers_(spec.trunk_layers()), capacity_(capacity), options_(options) {
  layers.resize(spec.layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    LayerCaches& caches = layers[i];
    if (layer.mixer == MixerKind::Attention) {
      const AttentionSpec& attention = layer.attention;
      caches.k = PagedRows(pool, options.keys, {attention.kv_heads, attention.head_dim});
      caches.v = PagedRows(pool, options.values, {attention.kv_heads, attention.head_dim});
    } else {
      const DeltaSpec& delta = spec.delta;
      caches.delta =
          DeltaState(pool, delta.key_heads, delta.value_heads, delta.dk, delta.dv, options.anchored ? kDeltaChunk : 1);
      caches.conv = HistoryRows(pool, DType::F32, delta.conv_width - 1, options.window, delta.channels());
    }
    if (layer.indexer.ratio > 0) {
      index_ratio_ = layer.indexer.ratio;
      caches.index_keys = PagedRows(pool, options.index_keys, {layer.indexer.dim});
      caches.index_tail = HistoryRows(pool, DType::F32, layer.indexer.ratio - 1, options.window, layer.indexer.dim);
    }
    if (layer.ngram >= 0) {
      const NgramSpec& ngram = spec.ngrams[static_cast<size_t>(layer.ngram)];
      caches.ngram = HistoryRows(pool, DType::F32, int64_t{ngram.conv_width - 1} * ngram.order(), options.window,
                                 spec.residual_width());
    }
  }
  if (!spec.ngrams.empty())
    ngram_context = HistoryRows(pool, DType::I32, spec.ngrams[0].params.orders, options.window, 1, 0xffffffffu);
}

template <class Self, class Visit>
void Sequence::each_cache(Self& self, Visit&& visit) {
  for (size_t i = 0; i < self.layers.size(); ++i) {
    auto& caches = self.layers[i];
    const bool trunk = static_cast<int>(i) < self.trunk_layers_;
    const int64_t length = trunk ? self.length_ : self.mtp_length_;
    auto one = [&](auto& cache, int64_t ratio) {
      if (!cache.empty()) visit(cache, trunk, length, ratio);
    };
    one(caches.k, 1);
    one(caches.v, 1);
    one(caches.index_keys, self.index_ratio_);
    one(caches.index_tail, 1);
    one(caches.delta, 1);
    one(caches.conv, 1);
    one(caches.ngram, 1);
  }
  if (!self.ngram_context.empty()) visit(self.ngram_context, true, self.length_, 1);
}

void Sequence::check_lengths() const {
  each_cache(*this, [&](const auto& cache, bool, int64_t length, int64_t ratio) {
    if (cache.length() != length / ratio)
      throw Error(ErrorKind::Argument, "a cache holds " + std::to_string(cache.length()) + " rows, not " +
                                           std::to_string(length / ratio) + ": the sequence cannot go on");
  });
}

void Sequence::prepare(int64_t rows) {
  check_lengths();
  each_cache(*this, [&](auto& cache, bool trunk, int64_t length, int64_t ratio) {
    if (trunk) cache.prepare((length + rows) / ratio - length / ratio);
  });
}

void Sequence::prepare_mtp(int64_t rows) {
  check_lengths();
  each_cache(*this, [&](auto& cache, bool trunk, int64_t length, int64_t ratio) {
    if (!trunk) cache.prepare((length + rows) / ratio - length / ratio);
  });
}

void Sequence::advance(int64_t rows) {
  length_ += rows;
  check_lengths();
}

void Sequence::advance_mtp(int64_t rows) {
  mtp_length_ += rows;
  check_lengths();
}

int64_t Sequence::max_window() const {
  const int64_t open = kDeltaChunk - 1 - length_ % kDeltaChunk;  // rows before the chunk is complete and folds
  return std::min(options_.window, std::max<int64_t>(open, 1));
}

void Sequence::set_capacity(int64_t capacity) {
  if (capacity < std::max(length_, mtp_length_))
    throw Error(ErrorKind::Argument, "a sequence of " + std::to_string(length_) +
                                         " positions cannot have a context of " + std::to_string(capacity));
  capacity_ = capacity;
}

void Sequence::truncate(int64_t length) {
  if (length < 0 || length > length_)
    throw Error(ErrorKind::Argument,
                "a sequence of " + std::to_string(length_) + " positions cannot be cut to " + std::to_string(length));
  length_ = length;
  each_cache(*this, [&](auto& cache, bool trunk, int64_t position, int64_t ratio) {
    if (trunk) cache.truncate(position / ratio);
  });
}

void Sequence::truncate_mtp(int64_t length) {
  if (length < 0 || length > mtp_length_)
    throw Error(ErrorKind::Argument,
                "an MTP cache of " + std::to_string(mtp_length_) + " cells cannot be cut to " + std::to_string(length));
  mtp_length_ = length;
  each_cache(*this, [&](auto& cache, bool trunk, int64_t position, int64_t ratio) {
    if (!trunk) cache.truncate(position / ratio);
  });
}

uint64_t Sequence::hash() const {
  uint64_t hash = hash64(&length_, sizeof length_);
  each_cache(*this, [&](const auto& cache, bool trunk, int64_t, int64_t) {
    if (trunk) hash = cache.hash(hash);
  });
  return hash;
}

void Sequence::save(ArchiveWriter& writer) const {
  writer.value(length_);
  writer.value(mtp_length_);
  each_cache(*this, [&](const auto& cache, bool, int64_t, int64_t) { cache.save(writer); });
}

void Sequence::load(ArchiveReader& reader) {
  length_ = reader.ranged(0, capacity_, "a length");
  mtp_length_ = reader.ranged(0, capacity_, "a length of the MTP cache");
  each_cache(*this, [&](auto& cache, bool, int64_t position, int64_t ratio) { cache.load(reader, position / ratio); });
}

StateBytes Sequence::bytes() const {
  StateBytes sum;
  for (const LayerCaches& caches : layers) {
    sum.kv += caches.k.bytes() + caches.v.bytes();
    sum.index += caches.index_keys.bytes() + caches.index_tail.bytes();
    sum.delta += caches.delta.bytes();
    sum.convolution += caches.conv.bytes();
    sum.ngram += caches.ngram.bytes();
  }
  sum.ngram += ngram_context.bytes();
  return sum;
}

StateBytes state_bytes(const ModelSpec& spec, int64_t length, const CacheOptions& options) {
  const Sequence fresh(spec, length, options);  // memory that nobody touched costs nothing
  StateBytes sum = fresh.bytes();
  for (size_t i = 0; i < fresh.layers.size(); ++i) {
    const LayerCaches& caches = fresh.layers[i];
    sum.kv += caches.k.bytes_at(length) + caches.v.bytes_at(length);
    if (!caches.index_keys.empty()) sum.index += caches.index_keys.bytes_at(length / spec.layers[i].indexer.ratio);
  }
  return sum;
}

}  // namespace strata
