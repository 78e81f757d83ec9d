#include "model/sequence.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace strata {

void check_cache_types(const ModelSpec& spec, const CacheOptions& caches) {
  for (const auto& [setting, type] : {std::pair{"cache_type_k", caches.keys}, std::pair{"cache_type_v", caches.values}})
    for (const LayerSpec& layer : spec.layers) {
      const auto block = static_cast<int64_t>(info(type).block_elements);
      const int64_t dim = layer.attention.head_dim;
      if (layer.mixer != MixerKind::Attention || dim % block == 0) continue;
      throw Error(ErrorKind::Usage, std::string(setting) + " " + std::string(to_string(type)) +
                                        " stores whole blocks of " + std::to_string(block) +
                                        " channels, this model has heads of " + std::to_string(dim) +
                                        ": take f16, bf16 or f32");
    }
}

namespace {

// Cells are numbered in 32 bits, and positions have to be exact in f32.
void check_capacity(int64_t capacity) {
  if (capacity < 0 || capacity > kMaxContext)
    throw Error(ErrorKind::Argument, "a sequence holds up to " + std::to_string(kMaxContext) + " positions, not " +
                                         std::to_string(capacity) + ": ask for a smaller context (-c)");
}

}  // namespace

Sequence::Sequence(const ModelSpec& spec, int64_t capacity, const CacheOptions& options, PagePool pool)
    : trunk_layers_(spec.trunk_layers()), capacity_(capacity), options_(options) {
  check_capacity(capacity);
  layers.resize(spec.layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    LayerCaches& caches = layers[i];
    if (layer.mixer == MixerKind::Attention) {
      const AttentionSpec& attention = layer.attention;
      caches.k = PagedRows(pool, options.keys, {attention.kv_heads, attention.head_dim}, options.resident);
      caches.v = PagedRows(pool, options.values, {attention.kv_heads, attention.head_dim}, options.resident);
    } else {
      const DeltaSpec& delta = spec.delta;
      const DeltaState::Shape shape{delta.key_heads, delta.value_heads, delta.dk, delta.dv};
      caches.delta = options.anchored ? DeltaState::anchored(pool, shape, kDeltaChunk)
                                      : DeltaState::serial(pool, shape, options.window);
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

namespace {

void prepare_cache(DeltaState& cache, int64_t rows, int64_t certain) { cache.prepare(rows, certain); }
void prepare_cache(auto& cache, int64_t rows, int64_t) { cache.prepare(rows); }

}  // namespace

void Sequence::prepare(int64_t rows, int64_t certain) {
  check_lengths();
  each_cache(*this, [&](auto& cache, bool trunk, int64_t length, int64_t ratio) {
    if (trunk) prepare_cache(cache, (length + rows) / ratio - length / ratio, certain);
  });
}

void Sequence::prepare_mtp(int64_t rows) {
  check_lengths();
  each_cache(*this, [&](auto& cache, bool trunk, int64_t length, int64_t ratio) {
    if (!trunk) prepare_cache(cache, (length + rows) / ratio - length / ratio, rows);
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

void Sequence::check_held(bool trunk, int64_t length) const {
  each_cache(*this, [&](const auto& cache, bool in_trunk, int64_t, int64_t ratio) {
    if (in_trunk == trunk && length / ratio < cache.oldest())
      throw Error(ErrorKind::Argument, "rows before position " + std::to_string(cache.oldest() * ratio) +
                                           " cannot be taken back any more, so not to " + std::to_string(length));
  });
}

int64_t Sequence::max_window() const {
  if (!options_.anchored) return std::max<int64_t>(options_.window, 1);
  return std::min(std::max<int64_t>(options_.window, 1), std::max<int64_t>(1, kDeltaChunk - 1 - length_ % kDeltaChunk));
}

void Sequence::set_capacity(int64_t capacity) {
  check_capacity(capacity);
  if (capacity < std::max(length_, mtp_length_))
    throw Error(ErrorKind::Argument, "a sequence of " + std::to_string(length_) +
                                         " positions cannot have a context of " + std::to_string(capacity));
  capacity_ = capacity;
}

void Sequence::truncate(int64_t length) {
  if (length < 0 || length > length_)
    throw Error(ErrorKind::Argument,
                "a sequence of " + std::to_string(length_) + " positions cannot be cut to " + std::to_string(length));
  check_held(true, length);
  length_ = length;
  each_cache(*this, [&](auto& cache, bool trunk, int64_t position, int64_t ratio) {
    if (trunk) cache.truncate(position / ratio);
  });
}

void Sequence::truncate_mtp(int64_t length) {
  if (length < 0 || length > mtp_length_)
    throw Error(ErrorKind::Argument,
                "an MTP cache of " + std::to_string(mtp_length_) + " cells cannot be cut to " + std::to_string(length));
  check_held(false, length);
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
  const bool drafts = layers.size() > static_cast<size_t>(trunk_layers_);
  mtp_length_ = reader.ranged(0, drafts ? capacity_ : 0, "a length of the MTP cache");
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
  sum.delta = 0;
  for (size_t i = 0; i < fresh.layers.size(); ++i) {
    const LayerCaches& caches = fresh.layers[i];
    sum.delta += caches.delta.bytes_at_most();
    sum.kv += caches.k.bytes_at(length) + caches.v.bytes_at(length);
    if (!caches.index_keys.empty()) sum.index += caches.index_keys.bytes_at(length / spec.layers[i].indexer.ratio);
  }
  return sum;
}

}  // namespace strata
