// The pushdown automaton over bytes that all grammars become.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "text/grammar.h"
#include "text/grammar/expr.h"

namespace strata::text::grammar {

enum class Op : uint8_t {
  End,    // of a rule: go on where it was called
  Bytes,  // edges [a, a + b): one byte, then their target
  Split,  // targets [a, a + b): all of them; none: dead
  Call,   // rule entry a, then node b
  Reset,  // the counter of this rule becomes 0; then a, a Loop
  Loop,   // loops[a]: the body once more, or on
  Token,  // tokens[a] as a whole, then b
};

struct Node {
  Op op;
  int32_t loop;  // the loop whose body it is part of; -1: none
  uint32_t a, b;
};

struct Edge {
  uint8_t low, high;
  uint32_t target;
};

// A counted repetition. The count is part of a state and not written out as nodes, so that masks can be shared between
// counts. A rule has one counter: a repetition inside another one becomes a rule of its own.
struct Loop {
  uint32_t min, max;
  uint32_t body, next;
  uint32_t node;  // that is this loop
  bool nullable;  // the body matches the empty text; min is 0 then
};

struct TokenEdge {
  std::string text;
  bool negated;
};

struct Automaton {
  std::vector<Node> nodes;
  std::vector<Edge> edges;  // of one node: sorted, disjoint
  std::vector<uint32_t> targets;
  std::vector<Loop> loops;
  std::vector<TokenEdge> tokens;
  uint32_t root = 0;
  size_t alive_states = 0;  // limit

  // Bytes that no edge tells apart.
  std::array<uint8_t, 256> class_of{};
  std::vector<uint8_t> class_byte;  // one byte of each class

  static Automaton build(Rules& rules);
};

inline constexpr uint32_t kEndNode = 0;

}  // namespace strata::text::grammar
