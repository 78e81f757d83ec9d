// What one sequence remembers: every cache of every layer behind one interface, so that whatever acts on a sequence
// (copy, taking rows back, saving, hashing) acts on all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/delta_state.h"
#include "cache/history_rows.h"
#include "cache/paged_rows.h"
#include "model/spec.h"

namespace strata {

// Keys and values of 4 bits are rotated (ops/attention/rotation.h), each by itself: their caches hold rotated rows.
struct CacheOptions {
  DType keys = DType::F16, values = DType::F16;  // f32, f16, bf16, q8_0, q4_0
  DType index_keys = DType::BF16;                // f32, f16, bf16
  int64_t window = 8;                            // rows of one call that can be taken back
  int64_t resident = 0;   // positions whose keys and values stay in memory, the others in a file; 0: all
  bool anchored = false;  // delta nets in the anchored form (delta_state.h): other bits
};

// Block formats need heads of whole blocks, in every layer with attention. Error{Usage} naming setting, type and head.
void check_cache_types(const ModelSpec& spec, const CacheOptions& options);

struct LayerCaches {
  PagedRows k, v;          // [kv_heads, head_dim] a row; keys normed and rotated
  PagedRows index_keys;    // [d] a row: pooled index keys, one for each complete block
  HistoryRows index_tail;  // raw index keys of the last ratio - 1 positions
  DeltaState delta;
  HistoryRows conv;   // inputs before the convolution of the last conv_width - 1 positions
  HistoryRows ngram;  // the same of the n-gram module, (conv_width - 1) · N positions
};

// Bytes of a sequence's states, by what they hold. What grows with the length: kv and pooled index keys.
struct StateBytes {
  uint64_t kv = 0, index = 0, delta = 0, convolution = 0, ngram = 0;
  uint64_t total() const { return kv + index + delta + convolution + ngram; }
};
// What a sequence of that length takes at most, without making one: the rows that drafts leave pending are counted.
StateBytes state_bytes(const ModelSpec& spec, int64_t length, const CacheOptions& options = {});

// A value: a copy shares all memory until one of the two writes to it.
class Sequence {
 public:
  // capacity: positions it may hold, up to kMaxContext. Error{Memory} when the pool has not enough for the fixed part,
  // Error{Argument} when a cache type does not fit the model.
  Sequence(const ModelSpec& spec, int64_t capacity, const CacheOptions& options = {}, PagePool pool = PagePool());

  int64_t capacity() const { return capacity_; }
  void set_capacity(int64_t capacity);                // at least length()
  int64_t length() const { return length_; }          // positions in the trunk's caches
  int64_t mtp_length() const { return mtp_length_; }  // cells in the MTP blocks' caches
  const CacheOptions& options() const { return options_; }

  // How many rows a call may have so that all but the first can be taken back.
  int64_t max_window() const;
  // Takes back rows of the last call: at most `window` of them. With delta nets in the serial form, those that were
  // not certain; in the anchored form, none before the last multiple of kDeltaChunk. Error{Argument}
  // for others, and nothing has changed.
  void truncate(int64_t length);
  void truncate_mtp(int64_t length);

  StateBytes bytes() const;  // now, whoever shares it
  // Equal for equal tokens, however they came in; the MTP cells are not part of it. Like save(), Error{Argument} while
  // rows that were not certain wait to be applied: Forward::settle() first.
  uint64_t hash() const;
  void save(ArchiveWriter& writer) const;
  void load(ArchiveReader& reader);  // replaces everything; Error{Format}

  std::vector<LayerCaches> layers;
  HistoryRows ngram_context;  // i32: the last N - 1 tokens, -1 before the start

  // For the forward pass: takes the memory that `rows` more need, of which the first `certain` will never be taken
  // back. Error{Memory}; Error{Argument} when an earlier pass ended half-way, or when more rows than the window holds
  // are not certain.
  void prepare(int64_t rows, int64_t certain);
  void prepare_mtp(int64_t rows);
  // Counts rows that every cache has taken. Error{Argument} when one of them disagrees.
  void advance(int64_t rows);
  void advance_mtp(int64_t rows);

 private:
  template <class Self, class Visit>
  static void each_cache(Self& self, Visit&& visit);  // visit(cache, in the trunk?, positions, positions of a row)
  void check_lengths() const;
  void check_held(bool trunk, int64_t length) const;

  int trunk_layers_ = 0;
  int index_ratio_ = 1;
  int64_t capacity_ = 0, length_ = 0, mtp_length_ = 0;
  CacheOptions options_;
};

}  // namespace strata
