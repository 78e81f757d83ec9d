#include "text/grammar/masks.h"

#include <algorithm>

namespace strata::text::grammar {

namespace {

constexpr size_t kMaxCacheBytes = size_t{64} << 20;  // of one grammar; beyond it all masks are dropped
constexpr size_t kFew = 512;                         // ids; a full mask of 150,000 tokens takes 19 KB

std::vector<TokenMask> masks_of_edges(const Automaton& automaton, const TokenTrie::Data& trie) {
  std::vector<TokenMask> masks;
  for (const TokenEdge& edge : automaton.tokens) {
    const auto found = std::lower_bound(trie.literals.begin(), trie.literals.end(), edge.text,
                                        [](const auto& entry, const std::string& text) { return entry.first < text; });
    if (found == trie.literals.end() || found->first != edge.text) {
      refuse("the vocabulary has no user-defined token " + edge.text, "grammar");
    }
    TokenMask& mask = masks.emplace_back(trie.vocabulary);
    if (!edge.negated) {
      mask.set(found->second);
      continue;
    }
    for (const int32_t id : trie.tokens) mask.set(id);
    mask.reset(found->second);
  }
  return masks;
}

}  // namespace

void Position::set(Walker& walker, const std::vector<State>& from) {
  Walker::Closure closure;
  walker.close(from, frames, -1, closure);
  states = std::move(closure.states);
  accepting = !closure.ends.empty();
}

void Position::begin(Walker& walker) { set(walker, {{walker.automaton().root, kRootFrame, 0, 0}}); }

void Position::advance(Walker& walker, const uint8_t* byte, std::vector<State> extra) {
  std::vector<State> next;
  if (byte != nullptr) {
    walker.add_work(states.size());
    walker.step(states.data(), states.data() + states.size(), walker.automaton().class_of[*byte], next);
  }
  next.insert(next.end(), extra.begin(), extra.end());
  set(walker, next);
}

void Position::compact() {
  if (frames.size() < 2 * frames_kept_ + 64) return;
  std::vector<int32_t> moved(frames.size(), -1);
  for (const State& state : states) {
    for (int32_t f = state.frame; f >= 0 && moved[static_cast<size_t>(f)] < 0; f = frames[f].parent) {
      moved[static_cast<size_t>(f)] = 0;
    }
  }
  Frames kept;
  for (size_t i = 0; i < moved.size(); ++i) {  // parents come first
    if (moved[i] < 0) continue;
    const Frame& frame = frames[static_cast<int32_t>(i)];
    const int32_t parent = frame.parent < 0 ? frame.parent : moved[static_cast<size_t>(frame.parent)];
    moved[i] = kept.intern(frame.node, frame.count, parent);
  }
  for (State& state : states) {
    if (state.frame >= 0) state.frame = moved[static_cast<size_t>(state.frame)];
  }
  frames = std::move(kept);
  frames_kept_ = frames.size();
}

size_t MaskCache::LocalMask::bytes() const {
  return sizeof *this + few.size() * sizeof few[0] + many.words().size() * 8 + needs.size() * sizeof needs[0] +
         leaves.size() * sizeof leaves[0];
}

MaskCache::MaskCache(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTrie::Data> trie)
    : automaton_(std::move(automaton)),
      trie_(std::move(trie)),
      token_masks_(masks_of_edges(*automaton_, *trie_)),
      walker_(*automaton_),
      path_(size_t{trie_->longest} + 1) {}

// Follows all tokens below a node of the trie that the automaton allows. on_node(trie node, set after it).
template <class OnNode>
void MaskCache::walk(uint32_t from, SetCache& sets, int32_t set, const OnNode& on_node) {
  const std::vector<TokenTrie::Node>& nodes = trie_->nodes;
  const uint32_t end = nodes[from].end;
  path_[nodes[from].depth] = set;
  size_t visited = 0;
  for (uint32_t i = from + 1; i < end; ++visited) {
    const TokenTrie::Node& node = nodes[i];
    const int32_t next = sets.step(path_[node.depth - 1u], automaton_->class_of[node.byte]);
    if (next == SetCache::kDead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    on_node(i, next);
    ++i;
  }
  walker_.add_work(visited);
}

uint32_t MaskCache::rounds_left(const State& state) const {
  const int32_t loop = automaton_->nodes[state.node].loop;
  return loop < 0 ? UINT16_MAX : automaton_->loops[static_cast<size_t>(loop)].max - state.count;
}

MaskCache::LocalMask MaskCache::walk_locally(const State& state, int64_t open_loop) {
  LocalMask result;
  Frames frames;
  SetCache sets(walker_, frames, open_loop);
  const State start{state.node, kUnknownFrame, state.count, open_loop >= 0 ? kOpen : uint16_t{0}};
  std::vector<int32_t> ids;
  walk(0, sets, sets.add({start}), [&](uint32_t node, int32_t reached) {
    const SetCache::Set& set = sets[reached];
    for (uint32_t t = trie_->nodes[node].first_token; t < trie_->nodes[node + 1].first_token; ++t) {
      ids.push_back(trie_->tokens[t]);
      if (set.least_need > 0) result.needs.push_back({set.least_need, trie_->tokens[t]});
    }
    if (set.ends > 0 && trie_->nodes[node].end > node + 1) result.leaves.push_back({node, sets.ends(set)[0]});
  });
  std::stable_sort(result.needs.begin(), result.needs.end(), [](Need a, Need b) { return a.rounds > b.rounds; });
  if (ids.size() <= kFew) {
    result.few = std::move(ids);
  } else {
    result.many = TokenMask(trie_->vocabulary);
    for (const int32_t id : ids) result.many.set(id);
  }
  return result;
}

const MaskCache::LocalMask& MaskCache::local(const State& state) {
  const int32_t number = automaton_->nodes[state.node].loop;
  int64_t open_loop = -1;
  uint32_t rounds_wanted = 0;  // before the loop may end; more than a token can make are all the same
  if (number >= 0) {
    const Loop& loop = automaton_->loops[static_cast<size_t>(number)];
    open_loop = loop.node;
    rounds_wanted = std::min<uint32_t>(loop.min > state.count ? loop.min - state.count : 0, trie_->longest + 1u);
  }
  const uint64_t key = (uint64_t{state.node} << 32) | rounds_wanted;
  const auto known = locals_.find(key);
  if (known != locals_.end()) return known->second;
  LocalMask mask = walk_locally(state, open_loop);
  if (local_bytes_ + mask.bytes() > kMaxCacheBytes) locals_.clear(), local_bytes_ = 0;
  local_bytes_ += mask.bytes();
  return locals_.emplace(key, std::move(mask)).first->second;
}

void MaskCache::add_local(const LocalMask& local, uint32_t rounds_left, TokenMask& mask) {
  const bool limited = !local.needs.empty() && local.needs[0].rounds > rounds_left;
  if (!limited) {
    for (const int32_t id : local.few) mask.set(id);
    if (local.many.size() > 0) mask.add(local.many);
    return;
  }
  if (local.many.size() > 0) {
    scratch_ = local.many;
  } else {
    scratch_ = TokenMask(mask.size());
    for (const int32_t id : local.few) scratch_.set(id);
  }
  for (const Need& need : local.needs) {
    if (need.rounds <= rounds_left) break;
    scratch_.reset(need.id);
  }
  mask.add(scratch_);
}

void MaskCache::allowed(Position& position, TokenMask& mask) {
  const std::lock_guard lock(mutex_);
  if (mask.size() == trie_->vocabulary) {
    mask.clear();
  } else {
    mask = TokenMask(trie_->vocabulary);
  }
  walker_.begin_work();
  if (position.accepting) {
    for (const int32_t id : trie_->ends) mask.set(id);
  }
  const size_t frames = position.frames.size();
  SetCache sets(walker_, position.frames, -1);
  const auto allow = [&](uint32_t node, int32_t) {
    for (uint32_t t = trie_->nodes[node].first_token; t < trie_->nodes[node + 1].first_token; ++t) {
      mask.set(trie_->tokens[t]);
    }
  };
  for (const State& state : position.states) {
    const Node& node = automaton_->nodes[state.node];
    if (node.op == Op::Token) {
      mask.add(token_masks_[node.a]);
      continue;
    }
    const LocalMask& here = local(state);
    const uint32_t left = rounds_left(state);
    walker_.add_work(here.few.size() + here.many.words().size() / 16 + here.leaves.size());
    add_local(here, left, mask);
    if (state.frame < 0 || here.leaves.empty()) continue;
    const Frame frame = position.frames[state.frame];
    const int32_t caller = sets.add({{frame.node, frame.parent, static_cast<uint16_t>(frame.count), 0}});
    if (caller == SetCache::kDead) continue;
    for (const Leave& leave : here.leaves) {
      if (leave.rounds <= left) walk(leave.trie_node, sets, caller, allow);
    }
  }
  position.frames.cut(frames);
}

void MaskCache::begin(Position& position) {
  const std::lock_guard lock(mutex_);
  walker_.begin_work();
  position.begin(walker_);
}

void MaskCache::accept(Position& position, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    walker_.begin_work();
    position.advance(walker_, &byte, {});
    position.compact();
  }
}

void MaskCache::accept(Position& position, int32_t token) {
  const std::lock_guard lock(mutex_);
  if (std::find(trie_->ends.begin(), trie_->ends.end(), token) != trie_->ends.end()) {
    position.states.clear();  // the text ends: that it may, stays as it is
    return;
  }
  std::vector<State> behind_token;
  for (const State& state : position.states) {
    const Node& node = automaton_->nodes[state.node];
    if (node.op == Op::Token && token_masks_[node.a].test(token)) {
      behind_token.push_back({node.b, state.frame, state.count, state.need});
    }
  }
  const std::string& bytes = trie_->bytes[static_cast<size_t>(token)];
  walker_.begin_work();
  // A frame that only a token edge needs must outlive the bytes: no compact() in between.
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    position.advance(walker_, &byte, {});
  }
  const auto last = static_cast<uint8_t>(bytes.empty() ? 0 : bytes.back());
  position.advance(walker_, bytes.empty() ? nullptr : &last, std::move(behind_token));
  position.compact();
}

}  // namespace strata::text::grammar
