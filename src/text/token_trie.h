// The tokens of a vocabulary by their bytes, for grammars: built once per vocabulary, cheap to copy, immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace strata::text {

// A set of token ids.
class TokenMask {
 public:
  TokenMask() = default;
  explicit TokenMask(int32_t size) : size_(size), words_((static_cast<size_t>(size) + 63) / 64) {}

  int32_t size() const { return size_; }
  bool test(int32_t id) const { return (words_[static_cast<size_t>(id) / 64] >> (id % 64)) & 1; }
  void set(int32_t id) { words_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  void reset(int32_t id) { words_[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (id % 64)); }
  void clear() { words_.assign(words_.size(), 0); }
  bool any() const;
  int32_t count() const;
  void add(const TokenMask& other) {  // of the same size
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  const std::vector<uint64_t>& words() const { return words_; }
  bool operator==(const TokenMask&) const = default;

 private:
  int32_t size_ = 0;
  std::vector<uint64_t> words_;
};

class TokenTrie {
 public:
  // Tokens above 1 KiB take no part: a grammar never allows them.
  static constexpr size_t kMaxTokenBytes = 1024;

  struct Node {
    uint32_t end;          // first node after those below this one; nodes lie in depth-first order
    uint32_t first_token;  // of `tokens`; the tokens of node i end where those of node i + 1 begin
    uint16_t depth;        // the root, node 0, has 0
    uint8_t byte;
  };
  struct Data {
    std::vector<Node> nodes;                                // one more than there are, to end the last one's tokens
    std::vector<int32_t> tokens;                            // ids
    std::vector<int32_t> ends;                              // tokens that end the generation
    std::vector<std::pair<std::string, int32_t>> literals;  // user-defined tokens (type 4) by text, sorted
    std::vector<std::string> bytes;                         // by id; empty for a token that takes no part
    int32_t vocabulary = 0;
    uint16_t longest = 0;  // bytes of the longest token
  };

  // Holds normal, byte and user-defined tokens; those that end the generation are kept apart.
  explicit TokenTrie(const Tokenizer& tokenizer);
  explicit TokenTrie(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  const Data& data() const { return *data_; }
  const std::shared_ptr<const Data>& shared() const { return data_; }
  int32_t vocabulary() const { return data_->vocabulary; }

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace strata::text
