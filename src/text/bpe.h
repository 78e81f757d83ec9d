// The merges of byte-level BPE, on raw bytes: the printable alphabet of the files exists only while they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace strata::text {

// Bytes behind a text in the printable byte alphabet, in which bytes 33-126, 161-172 and 174-255 stand for themselves
// as code points and the others are U+0100, U+0101, ...; nothing if a character is not in the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view text);

class Bpe {
 public:
  // Buffers reused from piece to piece.
  struct Workspace {
    std::vector<int32_t> symbol, previous, next;
    std::vector<uint64_t> queue;
  };

  // `tokens`: bytes by id; an empty string takes no part. `merges`: "left right" in the printable alphabet, by falling
  // priority. Error{Model} for a merge that is no pair; one with a character outside the alphabet can never happen and
  // is left out.
  Bpe(std::span<const std::string> tokens, std::span<const std::string> merges, bool ignore_merges);

  // Appends the ids of one piece of less than 2^31 bytes. O(n log n).
  void encode(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;

  bool has_byte(uint8_t byte) const { return byte_symbol_[byte] < token_count_; }

 private:
  struct Merge {
    int32_t left, right, result;  // symbols
  };
  // Keyed with a number drawn per object, so that no file can be made whose entries all collide.
  struct KeyedHash {
    using is_transparent = void;
    uint64_t key;
    size_t operator()(std::string_view text) const;
  };
  using SymbolMap = std::unordered_map<std::string, int32_t, KeyedHash, std::equal_to<>>;

  int32_t intern(std::string bytes);
  void add_merge(std::string_view text, size_t index);
  size_t slot_of(int32_t left, int32_t right) const;
  void merge_all(std::string_view piece, Workspace& workspace) const;
  void push(Workspace& workspace, int32_t position) const;

  uint64_t key_;
  int32_t token_count_;
  bool ignore_merges_;
  SymbolMap symbols_;  // a symbol below token_count_ is a token; others only occur in merges
  int32_t byte_symbol_[256];
  std::vector<Merge> merges_;    // by rank
  std::vector<uint32_t> slots_;  // open addressing: rank + 1 of the pair, 0 empty; size a power of two
};

}  // namespace strata::text
