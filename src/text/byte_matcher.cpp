#include "text/byte_matcher.h"

namespace strata::text {

uint32_t ByteMatcher::child(uint32_t node, uint8_t byte) const {
  if (node == 0) return root_[byte];
  uint32_t next = nodes_[node].child;
  while (next != 0 && nodes_[next].byte != byte) next = nodes_[next].sibling;
  return next;
}

bool ByteMatcher::add(std::string_view pattern, int32_t number) {
  if (pattern.size() > kMaxBytes - (nodes_.size() - 1)) return false;
  uint32_t node = 0;
  for (const char c : pattern) {
    const auto byte = static_cast<uint8_t>(c);
    uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      Node fresh;
      fresh.sibling = nodes_[node].child;
      fresh.depth = nodes_[node].depth + 1;
      fresh.byte = byte;
      nodes_.push_back(fresh);
      nodes_[node].child = next;
      if (node == 0) root_[byte] = next;
    }
    node = next;
  }
  if (node != 0 && nodes_[node].pattern < 0) nodes_[node].pattern = number;
  return true;
}

void ByteMatcher::build() {
  // Breadth first, so that the shorter suffixes of a node are ready before it.
  std::vector<uint32_t> order{0};
  order.reserve(nodes_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t parent = order[i];
    for (uint32_t node = nodes_[parent].child; node != 0; node = nodes_[node].sibling) {
      Node& n = nodes_[node];
      n.fail = parent == 0 ? 0 : step(nodes_[parent].fail, n.byte);
      n.longest = n.pattern >= 0 ? node : nodes_[n.fail].longest;
      order.push_back(node);
    }
  }
}

uint32_t ByteMatcher::step(uint32_t state, uint8_t byte) const {
  for (;;) {
    const uint32_t next = child(state, byte);
    if (next != 0 || state == 0) return next;
    state = nodes_[state].fail;
  }
}

}  // namespace strata::text
