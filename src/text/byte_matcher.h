// Finds many byte strings at once in linear time (Aho-Corasick automaton).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace strata::text {

class ByteMatcher {
 public:
  static constexpr size_t kMaxBytes = size_t{16} << 20;  // of all patterns together; a node takes 28 bytes

  ByteMatcher() : nodes_(1), root_(256, 0) {}

  // Patterns are numbered by the caller, from 0; empty ones match nothing, and of equal ones the first counts.
  // All come before build(). False, and no change, above kMaxBytes.
  [[nodiscard]] bool add(std::string_view pattern, int32_t number);
  void build();

  // A state stands for the longest suffix of the bytes read that begins some pattern. 0 is the start.
  uint32_t step(uint32_t state, uint8_t byte) const;
  uint32_t suffix_length(uint32_t state) const { return nodes_[state].depth; }
  // The longest pattern that ends here: its number, or -1.
  int32_t match(uint32_t state) const { return nodes_[nodes_[state].longest].pattern; }
  uint32_t match_length(uint32_t state) const { return nodes_[nodes_[state].longest].depth; }

  bool empty() const { return nodes_.size() == 1; }

 private:
  struct Node {
    uint32_t child = 0;  // first child; children are linked by `sibling`; 0 ends the list
    uint32_t sibling = 0;
    uint32_t fail = 0;     // state of the next shorter suffix
    uint32_t longest = 0;  // state of the longest pattern that ends here; 0: none
    uint32_t depth = 0;
    int32_t pattern = -1;
    uint8_t byte = 0;
  };
  uint32_t child(uint32_t node, uint8_t byte) const;

  std::vector<Node> nodes_;
  std::vector<uint32_t> root_;  // children of the start by byte: most bytes of a text leave it at once
};

}  // namespace strata::text
