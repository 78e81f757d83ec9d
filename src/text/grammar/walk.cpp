#include "text/grammar/walk.h"

#include <algorithm>

#include "base/hash.h"

namespace strata::text::grammar {

namespace {

// Steps for one mask or token; a walk over a vocabulary of 250,000 tokens takes below a million. It bounds the memory
// of a walk too.
constexpr size_t kMaxWork = 16'000'000;
// States met on the way to those that read a byte, for each of the latter that the limit allows.
constexpr size_t kSilentStates = 10;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 29)) * 0x94D049BB133111EBu;
  return h ^ (h >> 32);
}

uint64_t hash_of(const State& state) {
  return mix((uint64_t{state.node} << 32) | static_cast<uint32_t>(state.frame),
             (uint64_t{state.count} << 16) | state.need);
}

}  // namespace

size_t Frames::bucket(uint32_t node, uint32_t count, int32_t parent) const {
  return mix((uint64_t{node} << 32) | static_cast<uint32_t>(parent), count) & (buckets_.size() - 1);
}

int32_t Frames::intern(uint32_t node, uint32_t count, int32_t parent) {
  if (frames_.size() >= buckets_.size()) {
    buckets_.assign(std::max<size_t>(16, 2 * buckets_.size()), -1);
    for (size_t i = 0; i < frames_.size(); ++i) {
      int32_t& head = buckets_[bucket(frames_[i].node, frames_[i].count, frames_[i].parent)];
      frames_[i].next_in_bucket = head;
      head = static_cast<int32_t>(i);
    }
  }
  int32_t& head = buckets_[bucket(node, count, parent)];
  for (int32_t i = head; i >= 0; i = frames_[static_cast<size_t>(i)].next_in_bucket) {
    if (frames_[static_cast<size_t>(i)].same(node, count, parent)) return i;
  }
  frames_.push_back({node, count, parent, head});
  head = static_cast<int32_t>(frames_.size() - 1);
  return head;
}

void Frames::cut(size_t size) {
  while (frames_.size() > size) {  // the newest of a bucket comes first in it
    const Frame& frame = frames_.back();
    buckets_[bucket(frame.node, frame.count, frame.parent)] = frame.next_in_bucket;
    frames_.pop_back();
  }
}

Walker::Walker(const Automaton& automaton) : automaton_(automaton), slots_(64, Slot{{}, 0}) {}

void Walker::add_work(size_t amount) {
  work_ += amount;
  if (work_ > kMaxWork) {
    refuse("the grammar is too ambiguous: more than " + std::to_string(kMaxWork) + " steps for one token", "grammar");
  }
}

void Walker::clear_seen() {
  used_ = 0;
  if (slots_.size() > 4096) slots_.assign(64, Slot{{}, 0}), stamp_ = 0;
  if (++stamp_ == 0) slots_.assign(slots_.size(), Slot{{}, 0}), stamp_ = 1;
}

bool Walker::seen(const State& state) {
  if (2 * ++used_ > slots_.size()) {
    std::vector<Slot> old(2 * slots_.size(), Slot{{}, 0});
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.stamp != stamp_) continue;
      size_t at = hash_of(slot.state) & (slots_.size() - 1);
      while (slots_[at].stamp == stamp_) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  size_t at = hash_of(state) & (slots_.size() - 1);
  for (; slots_[at].stamp == stamp_; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].state == state) return --used_, true;
  }
  slots_[at] = {state, stamp_};
  return false;
}

void Walker::add_round(const State& state, const Loop& loop, bool open) {
  const bool more = open || state.count < loop.max;
  if (more) {
    State round = state;
    round.node = loop.body;
    ++round.count;
    if (open) ++round.need;
    todo_.push_back(round);
  }
  if (state.count >= loop.min) {
    todo_.push_back({loop.next, state.frame, 0, open ? static_cast<uint16_t>(state.need & ~kOpen) : state.need});
  }
}

void Walker::close(const std::vector<State>& from, Frames& frames, int64_t open_loop, Closure& out) {
  out.clear();
  clear_seen();
  todo_ = from;
  // Rounds of a loop with an empty body lead back to it with a higher count, which allows nothing that the lower one
  // does not: only the least count of each is followed.
  struct EmptyRounds {
    uint32_t node;
    int32_t frame;
    uint16_t need, count;
  };
  std::vector<EmptyRounds> empty_rounds;
  while (!todo_.empty()) {
    const State state = todo_.back();
    todo_.pop_back();
    if (seen(state)) continue;
    if (out.states.size() > automaton_.alive_states || used_ > kSilentStates * automaton_.alive_states) {
      refuse("the grammar is too ambiguous: more than " + std::to_string(automaton_.alive_states) + " states at once",
             "grammar");
    }
    const Node& node = automaton_.nodes[state.node];
    const auto go = [&](uint32_t target) { todo_.push_back({target, state.frame, state.count, state.need}); };
    switch (node.op) {
      case Op::Bytes:
      case Op::Token: out.states.push_back(state); break;
      case Op::Split:
        for (uint32_t i = 0; i < node.b; ++i) go(automaton_.targets[node.a + i]);
        break;
      case Op::Call: {
        const int32_t frame = node.b == kEndNode ? state.frame : frames.intern(node.b, state.count, state.frame);
        todo_.push_back({node.a, frame, 0, state.need});
        break;
      }
      case Op::Reset: todo_.push_back({node.a, state.frame, 0, state.need}); break;
      case Op::Loop: {
        const Loop& loop = automaton_.loops[node.a];
        const bool open = (state.need & kOpen) != 0 && state.frame == kUnknownFrame && open_loop == state.node;
        if (loop.nullable) {
          const auto same = [&](const EmptyRounds& r) { return r.node == state.node && r.frame == state.frame; };
          const auto known = std::find_if(empty_rounds.begin(), empty_rounds.end(), [&](const EmptyRounds& r) {
            return same(r) && (r.need & kOpen) == (state.need & kOpen) && r.count <= state.count &&
                   r.need <= state.need;
          });
          if (known != empty_rounds.end()) break;
          empty_rounds.push_back({state.node, state.frame, state.need, state.count});
        }
        add_round(state, loop, open);
        break;
      }
      case Op::End:
        if (state.frame < 0) {
          out.ends.push_back(static_cast<uint16_t>(state.need & ~kOpen));
        } else {
          const Frame& frame = frames[state.frame];
          todo_.push_back({frame.node, frame.parent, static_cast<uint16_t>(frame.count), state.need});
        }
        break;
    }
  }
  add_work(used_);
  std::sort(out.states.begin(), out.states.end());
  std::sort(out.ends.begin(), out.ends.end());
  out.ends.erase(std::unique(out.ends.begin(), out.ends.end()), out.ends.end());
}

void Walker::step(const State* begin, const State* end, uint8_t byte_class, std::vector<State>& out) const {
  out.clear();
  const uint8_t byte = automaton_.class_byte[byte_class];
  for (const State* state = begin; state != end; ++state) {
    const Node& node = automaton_.nodes[state->node];
    if (node.op != Op::Bytes) continue;
    const Edge* first = automaton_.edges.data() + node.a;
    const Edge* last = first + node.b;
    const Edge* edge = std::lower_bound(first, last, byte, [](const Edge& e, uint8_t b) { return e.high < b; });
    if (edge != last && edge->low <= byte) out.push_back({edge->target, state->frame, state->count, state->need});
  }
}

SetCache::SetCache(Walker& walker, Frames& frames, int64_t open_loop)
    : walker_(walker),
      frames_(frames),
      open_loop_(open_loop),
      classes_(walker.automaton().class_byte.size()),
      buckets_(64, -1) {}

int32_t SetCache::add(const std::vector<State>& from) {
  if (from.empty()) return kDead;
  walker_.close(from, frames_, open_loop_, closure_);
  return closure_.states.empty() && closure_.ends.empty() ? kDead : intern();
}

int32_t SetCache::find_step(int32_t set, uint8_t byte_class) {
  const Set& from = sets_[static_cast<size_t>(set)];
  const State* first = states_.data() + from.first_state;
  walker_.add_work(from.states);
  walker_.step(first, first + from.states, byte_class, stepped_);
  const int32_t found = add(stepped_);
  next_[static_cast<size_t>(set) * classes_ + byte_class] = found;
  return found;
}

int32_t SetCache::intern() {
  const std::vector<State>& states = closure_.states;
  const std::vector<uint16_t>& ends = closure_.ends;
  const auto hash = [](const State* s, size_t n, const uint16_t* e, size_t m) {
    uint64_t h = mix(n, m);
    for (size_t i = 0; i < n; ++i) h = mix(h, hash_of(s[i]));
    for (size_t i = 0; i < m; ++i) h = mix(h, e[i]);
    return h;
  };
  const auto place = [&](uint64_t h) {  // of an equal set, or free
    size_t at = h & (buckets_.size() - 1);
    for (; buckets_[at] >= 0; at = (at + 1) & (buckets_.size() - 1)) {
      const Set& set = sets_[static_cast<size_t>(buckets_[at])];
      if (set.states == states.size() && set.ends == ends.size() &&
          std::equal(states.begin(), states.end(), states_.begin() + set.first_state) &&
          std::equal(ends.begin(), ends.end(), ends_.begin() + set.first_end)) {
        break;
      }
    }
    return at;
  };
  const uint64_t wanted = hash(states.data(), states.size(), ends.data(), ends.size());
  size_t at = place(wanted);
  if (buckets_[at] >= 0) return buckets_[at];

  if (2 * (sets_.size() + 1) > buckets_.size()) {
    buckets_.assign(2 * buckets_.size(), -1);
    for (size_t i = 0; i < sets_.size(); ++i) {
      const Set& set = sets_[i];
      size_t slot = hash(states_.data() + set.first_state, set.states, ends_.data() + set.first_end, set.ends) &
                    (buckets_.size() - 1);
      while (buckets_[slot] >= 0) slot = (slot + 1) & (buckets_.size() - 1);
      buckets_[slot] = static_cast<int32_t>(i);
    }
    at = place(wanted);
  }
  uint16_t least = UINT16_MAX;
  for (const State& state : states) least = std::min<uint16_t>(least, state.need & ~kOpen);
  for (const uint16_t need : ends) least = std::min(least, need);
  walker_.add_work(classes_ + states.size());
  sets_.push_back({static_cast<uint32_t>(states_.size()), static_cast<uint32_t>(states.size()),
                   static_cast<uint32_t>(ends_.size()), static_cast<uint32_t>(ends.size()), least});
  states_.insert(states_.end(), states.begin(), states.end());
  ends_.insert(ends_.end(), ends.begin(), ends.end());
  next_.resize(next_.size() + classes_, kUnknown);
  buckets_[at] = static_cast<int32_t>(sets_.size() - 1);
  return buckets_[at];
}

}  // namespace strata::text::grammar
