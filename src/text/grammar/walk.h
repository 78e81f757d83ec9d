// Walking the automaton: stacks, sets of states, and sets of sets found on the way (a lazy subset construction).
#pragma once

#include <cstdint>
#include <vector>

#include "text/grammar/automaton.h"

namespace strata::text::grammar {

// What lies below the frames: the root's own end, or a caller that is not known (the walks behind masks).
inline constexpr int32_t kRootFrame = -1, kUnknownFrame = -2;

// Where a rule returns to. Stacks share their lower parts.
struct Frame {
  uint32_t node;
  uint32_t count;  // the counter of the rule that called
  int32_t parent;
  int32_t next_in_bucket;
  bool same(uint32_t n, uint32_t c, int32_t p) const { return node == n && count == c && parent == p; }
};

// Frames, each at most once. The newest can be taken back.
class Frames {
 public:
  int32_t intern(uint32_t node, uint32_t count, int32_t parent);
  const Frame& operator[](int32_t frame) const { return frames_[static_cast<size_t>(frame)]; }
  size_t size() const { return frames_.size(); }
  void cut(size_t size);

 private:
  size_t bucket(uint32_t node, uint32_t count, int32_t parent) const;
  std::vector<Frame> frames_;
  std::vector<int32_t> buckets_;  // a power of two of them
};

struct State {
  uint32_t node;
  int32_t frame;
  uint16_t count;
  uint16_t need;  // kOpen and rounds of the loop that a walk began in, see LocalMask
  bool operator==(const State&) const = default;
  auto operator<=>(const State&) const = default;
};
inline constexpr uint16_t kOpen = 0x8000;  // the walk has not left the loop in which it began

class Walker {
 public:
  explicit Walker(const Automaton& automaton);

  // Follows everything that reads no byte. Gives back the states that read one, sorted, each once.
  struct Closure {
    std::vector<State> states;
    std::vector<uint16_t> ends;  // needs of the states that ended below the known stack
    void clear() { states.clear(), ends.clear(); }
  };
  // `open_loop`: Loop node of the loop in which a walk began and whose rounds are counted without a bound; -1: none.
  // Error when more states than the limit are alive.
  void close(const std::vector<State>& from, Frames& frames, int64_t open_loop, Closure& out);

  // States after one byte of a class, before close().
  void step(const State* begin, const State* end, uint8_t byte_class, std::vector<State>& out) const;

  // Work of one mask or token is bounded: Error beyond the limit.
  void begin_work() { work_ = 0; }
  void add_work(size_t amount);

  const Automaton& automaton() const { return automaton_; }

 private:
  bool seen(const State& state);
  void clear_seen();
  void add_round(const State& state, const Loop& loop, bool open);

  const Automaton& automaton_;
  size_t work_ = 0;
  std::vector<State> todo_;
  // States met in this close(), by hash; a slot counts when its stamp is the current one.
  struct Slot {
    State state;
    uint32_t stamp;
  };
  std::vector<Slot> slots_;
  size_t used_ = 0;
  uint32_t stamp_ = 0;
};

// Sets of states that were met in one walk, with their transitions.
class SetCache {
 public:
  static constexpr int32_t kDead = -1;

  SetCache(Walker& walker, Frames& frames, int64_t open_loop);

  int32_t add(const std::vector<State>& from);  // closed; kDead when nothing is left
  int32_t step(int32_t set, uint8_t byte_class) {
    const int32_t known = next_[static_cast<size_t>(set) * classes_ + byte_class];
    return known != kUnknown ? known : find_step(set, byte_class);
  }
  struct Set {
    uint32_t first_state, states, first_end, ends;
    uint16_t least_need;
  };
  const Set& operator[](int32_t set) const { return sets_[static_cast<size_t>(set)]; }
  const uint16_t* ends(const Set& set) const { return ends_.data() + set.first_end; }

 private:
  static constexpr int32_t kUnknown = -2;
  int32_t find_step(int32_t set, uint8_t byte_class);
  int32_t intern();

  Walker& walker_;
  Frames& frames_;
  const int64_t open_loop_;
  const size_t classes_;
  std::vector<Set> sets_;
  std::vector<State> states_;
  std::vector<uint16_t> ends_;
  std::vector<int32_t> next_;
  std::vector<int32_t> buckets_;  // of sets by hash, open addressing
  Walker::Closure closure_;
  std::vector<State> stepped_;
};

}  // namespace strata::text::grammar
