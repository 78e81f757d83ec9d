#include "model/schedule.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/hash.h"

namespace strata::test {
namespace {

constexpr std::array<const char*, kActions> kNames{"run", "start", "copy", "drop", "save", "run to the page", "resume"};
constexpr size_t kMaxLive = 6, kMaxCheckpoints = 3;
constexpr int kSharedStreams = 3;

// Tokens that a sequence follows, and what a plain run of all of them gives.
struct Stream {
  Tokens tokens;
  PlainRun plain;
};

struct Live {
  int number = 0;
  Sequence sequence;
  std::shared_ptr<const Stream> stream;
  int64_t length = 0;  // tokens of the stream that the sequence is to hold
};

class Schedule {
 public:
  Schedule(BitsModel& model, uint64_t seed, const ScheduleOptions& options)
      : model_(model), options_(options), seed_(seed), random_(seed * 2 + 1), tiers_(seed * 3 + 2) {
    pool_.poison(true);
  }

  ScheduleResult run() {
    for (int i = 0; i < kSharedStreams; ++i) streams_.push_back(shared_stream(i));
    const uint64_t empty = pool_.used();
    try {
      start();
      for (step_ = 1; step_ <= options_.steps && result_.failure.empty(); ++step_) one_step();
      if (result_.failure.empty()) check_end();
    } catch (const std::exception& error) {
      fail(std::string("threw: ") + error.what());
    }
    live_.clear(), checkpoints_.clear();
    const FileTierStats file = pool_.file();
    if (result_.failure.empty() && (pool_.used() != empty || file.used + file.resident > 0))
      fail(std::to_string(pool_.used()) + " bytes are still in use, and " + std::to_string(file.used) +
           " in the file, " + std::to_string(file.resident) + " of them in memory");
    result_.released = file.released, result_.read = file.read;
    return std::move(result_);
  }

 private:
  bool chance(int64_t one_of) { return random_.below(one_of) == 0; }
  size_t pick(size_t count) { return static_cast<size_t>(random_.below(static_cast<int64_t>(count))); }
  bool damages(Damage damage) const { return options_.damage == damage && !result_.damaged; }

  void say(const std::string& what) { result_.log += "  step " + std::to_string(step_) + ": " + what + "\n"; }
  void fail(const std::string& what) {
    if (!result_.failure.empty()) return;
    result_.failure = "seed " + std::to_string(seed_) + ", step " + std::to_string(step_) + ": " + what;
  }

  // Stream 0 is plain; the others share a prefix with the one before that ends near a page's edge, or anywhere.
  std::shared_ptr<const Stream> shared_stream(int index) {
    constexpr int64_t kEdges[] = {1, 63, 64, 65, 100, 128, 150};
    const uint64_t set = seed_ % (model_.small() ? 8 : 2);  // few enough to remember their plain runs
    Tokens tokens = model_.random_tokens(100 + set, model_.context());
    for (int i = 1; i <= index; ++i) {
      const auto shared = kEdges[(set * kSharedStreams + static_cast<uint64_t>(i)) % std::size(kEdges)];
      const Tokens other = model_.random_tokens(1000 + set * 10 + static_cast<uint64_t>(i), model_.context());
      std::copy(other.begin() + shared, other.end(), tokens.begin() + shared);
    }
    return std::make_shared<Stream>(Stream{tokens, model_.remembered(tokens)});
  }

  static bool shares(const Stream& a, const Stream& b, int64_t length) {
    return std::equal(a.tokens.begin(), a.tokens.begin() + length, b.tokens.begin());
  }

  // Another way to go on from this length: a fresh one as long as the schedule has some left.
  std::shared_ptr<const Stream> other_stream(const std::shared_ptr<const Stream>& stream, int64_t length) {
    if (forks_ < options_.forks) {
      ++forks_;
      const int64_t end = std::min(model_.context(), length + 40 + random_.below(60));
      Tokens tokens(stream->tokens.begin(), stream->tokens.begin() + length);
      const Tokens fresh = model_.random_tokens(random_.next(), end - length);
      tokens.insert(tokens.end(), fresh.begin(), fresh.end());
      streams_.push_back(std::make_shared<Stream>(Stream{tokens, model_.plain(tokens)}));
      return streams_.back();
    }
    std::vector<std::shared_ptr<const Stream>> fitting;
    for (const auto& other : streams_)
      if (static_cast<int64_t>(other->tokens.size()) > length && shares(*other, *stream, length))
        fitting.push_back(other);
    return fitting.empty() ? stream : fitting[pick(fitting.size())];
  }

  static Tokens held_by(const Live& live) {
    return Tokens(live.stream->tokens.begin(), live.stream->tokens.begin() + live.length);
  }
  int64_t room(const Live& live) const { return static_cast<int64_t>(live.stream->tokens.size()) - live.length; }

  // All in memory, or keys and values in the second tier with one or two pages of each layer in memory.
  Sequence fresh_sequence() { return model_.sequence(pool_, kPageRows * tiers_.below(3)); }

  void start() {
    live_.push_back({next_number_++, fresh_sequence(), streams_[pick(kSharedStreams)], 0});
    say("start sequence " + std::to_string(live_.back().number));
  }

  void one_step() {
    const Action action = choose();
    ++result_.actions[static_cast<size_t>(action)];
    switch (action) {
      case Action::Run: run_rows(); break;
      case Action::Start: start(); break;
      case Action::Copy: copy(); break;
      case Action::Drop: drop(pick(live_.size())); break;
      case Action::SaveAndLoad: save_and_load(live_[pick(live_.size())]); break;
      case Action::Checkpoint: checkpoint(); break;
      case Action::Resume: resume(); break;
    }
    if (!live_.empty() && chance(5)) model_.forward(1).settle(live_[pick(live_.size())].sequence);
    for (const Live& live : live_) check_known_state(live);
  }

  Action choose() {
    std::erase_if(live_, [&](const Live& live) { return room(live) == 0; });
    if (live_.empty()) return checkpoints_.empty() || chance(2) ? Action::Start : Action::Resume;
    const int64_t dice = random_.below(100);
    if (dice < 8 && live_.size() < kMaxLive) return Action::Start;
    if (dice < 20 && live_.size() < kMaxLive) return Action::Copy;
    if (dice < 24 && live_.size() > 1) return Action::Drop;
    if (dice < 31) return Action::SaveAndLoad;
    if (dice < 37) return Action::Checkpoint;
    if (dice < 43 && !checkpoints_.empty() && live_.size() < kMaxLive) return Action::Resume;
    return Action::Run;
  }

  // What one sequence does in a call: rows that are right, then wrong guesses that are taken back.
  struct Part {
    Live* live;
    int64_t right, wrong;
    std::optional<CallRows> call;
    Tokens tokens;
  };

  Part plan(Live& live) {
    constexpr int64_t kChunks[] = {1, 2, 7, 16, 17, 63, 64, 65, 128, 512};
    const int64_t kind = random_.below(3);
    if (kind == 0) return {&live, 1, 0, {}, {}};
    if (kind == 1) {
      const int64_t rows = std::min(1 + random_.below(8), live.sequence.max_window());
      const int64_t right = std::min(1 + random_.below(rows), room(live));
      return {&live, right, std::min(rows - right, model_.context() - live.length - right), {}, {}};
    }
    const int64_t most = room(live) > 40 ? room(live) - random_.below(40) : room(live);
    const int64_t rows = std::min(kChunks[pick(std::size(kChunks))], most);
    if (!chance(4)) return {&live, rows, 0, {}, {}};
    // A draft at the end of a prompt: an anchored delta net takes back what lies in its open chunk.
    const int64_t end = live.length + rows, open = model_.anchored() ? 63 - end % 64 : int64_t{8};
    return {&live, rows, std::min({random_.below(9), open, model_.context() - end}), {}, {}};
  }

  void run_rows() {
    std::vector<Live*> chosen;
    for (Live& live : live_) chosen.push_back(&live);
    for (size_t i = chosen.size(); i > 1; --i) std::swap(chosen[i - 1], chosen[pick(i)]);
    chosen.resize(1 + (chance(2) ? pick(chosen.size()) : 0));
    std::vector<Part> parts;
    for (Live* live : chosen) parts.push_back(plan(*live));
    call(parts);
  }

  void run_one(Live& live, int64_t rows) {
    std::vector<Part> parts;
    parts.push_back({&live, rows, 0, {}, {}});
    call(parts);
  }

  void call(std::vector<Part>& parts) {
    const int threads = 1 + static_cast<int>(random_.below(BitsModel::kMaxThreads));
    std::string what = std::to_string(threads) + " threads:";
    std::vector<CallRows*> calls;
    for (Part& part : parts) {
      Live& live = *part.live;
      const auto first = live.stream->tokens.begin() + live.length;
      part.tokens.assign(first, first + part.right);
      for (int64_t i = 0; i < part.wrong; ++i) part.tokens.push_back(wrong_guess(live, part.right, i));
      const auto rows = static_cast<int64_t>(part.tokens.size());
      // All that is right is certain, or less: the results do not depend on it.
      const int64_t least = std::max<int64_t>(1, rows - live.sequence.options().window);
      const int64_t certain = part.wrong == 0 && chance(2) ? rows : least + random_.below(part.right - least + 1);
      part.call.emplace(model_, live.sequence, part.tokens, certain, chance(4) ? random_.below(rows + 1) : rows);
      what += " sequence " + std::to_string(live.number) + " at " + std::to_string(live.length) + " " +
              std::to_string(part.right) + " rows" +
              (part.wrong > 0 ? " and " + std::to_string(part.wrong) + " wrong guesses;" : ";");
    }
    for (Part& part : parts) calls.push_back(&*part.call);
    say(what);
    run_together(model_.forward(threads), calls);
    for (Part& part : parts) {
      check(part, what);
      if (parts.size() > 1) result_.together += part.call->rows();
    }
    for (Part& part : parts) settle(part);
  }

  // The first is not the stream's token.
  int32_t wrong_guess(const Live& live, int64_t right, int64_t index) {
    auto token = static_cast<int32_t>(random_.below(model_.vocabulary()));
    const auto at = static_cast<size_t>(live.length + right);
    if (index == 0 && at < live.stream->tokens.size() && token == live.stream->tokens[at])
      token = (token + 1) % static_cast<int32_t>(model_.vocabulary());
    return token;
  }

  void check(const Part& part, const std::string& what) {
    const Live& live = *part.live;
    std::string differs = part.call->compare(live.stream->plain, live.length, part.right);
    result_.rows += part.right;
    if (differs.empty() && part.wrong > 0 && chance(options_.check_drafts)) {
      Tokens all = held_by(live);
      all.insert(all.end(), part.tokens.begin(), part.tokens.end());
      differs = part.call->compare(model_.plain(all), live.length, part.right + part.wrong);
      result_.rows += part.wrong;
    }
    if (!differs.empty()) fail(what + " of sequence " + std::to_string(live.number) + ", " + differs);
  }

  void settle(Part& part) {
    Live& live = *part.live;
    live.length += part.right;
    result_.rejected += part.wrong;
    if (part.wrong > 0 && damages(Damage::NoTruncate) && room(live) > part.wrong) {
      result_.damaged = true;
      live.length += part.wrong;  // whoever forgets to truncate believes that the guesses were right
      if (room(live) > 0) run_one(live, 1);
      return;
    }
    if (part.wrong > 0) live.sequence.truncate(live.length);
  }

  void copy() {
    Live& source = live_[pick(live_.size())];
    say("copy sequence " + std::to_string(source.number) + " at " + std::to_string(source.length) + " as " +
        std::to_string(next_number_));
    const auto stream = other_stream(source.stream, source.length);
    live_.push_back({next_number_++, source.sequence, stream, source.length});
    damage(live_.back());
  }

  // What memory and file hold there is gone: zeros.
  static void lose_page(const void* place) {
    if (::madvise(const_cast<void*>(place), 1, MADV_REMOVE) != 0) throw Error(ErrorKind::File, "cannot lose a page");
  }

  // Writes that forget who else owns the memory.
  void damage(Live& live) {
    if (live.length < 16 || room(live) == 0) return;
    for (LayerCaches& caches : live.sequence.layers) {
      std::vector<const void*> places;
      if (damages(Damage::LostPage) && caches.k.tiered() && live.length >= kPageRows) {
        for (int64_t row = 0; row < caches.k.length(); row += kPageRows) lose_page(caches.k.row(row));
        result_.damaged = true;
      }
      if (damages(Damage::PageWrite))  // every row: block selection may pass one over
        for (int64_t row = 0; row < caches.k.length(); ++row) places.push_back(caches.k.row(row));
      if (damages(Damage::MatrixWrite) && !caches.delta.empty() && live.length >= 64)
        places.push_back(caches.delta.is_anchored() ? caches.delta.writable(0).state.data
                                                    : caches.delta.matrix(0).data);
      if (damages(Damage::History) && !caches.conv.empty()) places.push_back(caches.conv.last().data);
      if (places.empty() && !result_.damaged) continue;
      for (const void* place : places) {
        auto* bytes = static_cast<unsigned char*>(const_cast<void*>(place));
        bytes[1] ^= 3;  // of a 16-bit float: the upper bits of the mantissa
        bytes[3] ^= 3;
      }
      result_.damaged = true;
      say("damage to sequence " + std::to_string(live.number));
      run_one(live, 1);
      return;
    }
  }

  void drop(size_t index) {
    say("drop sequence " + std::to_string(live_[index].number));
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void save_and_load(Live& live) {
    std::string bytes = model_.saved(live.sequence);
    say("save and load sequence " + std::to_string(live.number) + " at " + std::to_string(live.length) + ", " +
        std::to_string(bytes.size()) + " bytes");
    const uint64_t before = model_.hash(live.sequence);
    if (damages(Damage::ArchiveByte) && live.length > 0 && room(live) > 0) {
      char& middle = bytes[bytes.size() / 2];
      middle = static_cast<char>(middle ^ 0x20);
      result_.damaged = true;
    }
    // Into a fresh sequence, or over one that shares its memory with others.
    Sequence target = chance(2) ? fresh_sequence() : live_[pick(live_.size())].sequence;
    load_into(target, bytes);
    live.sequence = std::move(target);
    if (model_.hash(live.sequence) != before) fail("the loaded state has another hash");
  }

  // Runs a sequence to the next multiple of 64 and keeps a copy from there.
  void checkpoint() {
    Live& live = live_[pick(live_.size())];
    const int64_t missing = 64 - live.length % 64;
    if (missing > room(live)) return run_one(live, 1);
    run_one(live, missing);
    if (checkpoints_.size() == kMaxCheckpoints) checkpoints_.erase(checkpoints_.begin());
    checkpoints_.push_back(live);
    say("checkpoint of sequence " + std::to_string(live.number) + " at " + std::to_string(live.length));
  }

  void resume() {
    const Live& from = checkpoints_[pick(checkpoints_.size())];
    say("resume sequence " + std::to_string(from.number) + " at " + std::to_string(from.length) + " as " +
        std::to_string(next_number_));
    Live live{next_number_++, from.sequence, other_stream(from.stream, from.length), from.length};
    if (damages(Damage::OtherContext)) {
      for (const auto& other : streams_)
        if (static_cast<int64_t>(other->tokens.size()) > live.length && !shares(*other, *live.stream, live.length)) {
          live.stream = other;
          result_.damaged = true;
          break;
        }
    }
    live_.push_back(std::move(live));
    if (result_.damaged && room(live_.back()) > 0) run_one(live_.back(), 1);
  }

  // Sequences that hold the same tokens have the same state, however they came to them.
  void check_known_state(const Live& live) {
    const Tokens held = held_by(live);
    const uint64_t tokens = hash64(held.data(), held.size() * sizeof(int32_t));
    const auto [known, fresh] = states_.emplace(tokens, model_.hash(live.sequence));
    if (!fresh && known->second != model_.hash(live.sequence))
      fail("the state of sequence " + std::to_string(live.number) + " at " + std::to_string(live.length) +
           " is not that of another one with the same tokens");
  }

  void check_end() {
    std::map<Tokens, uint64_t> plain;
    for (const std::vector<Live>* all : {&live_, &checkpoints_})
      for (const Live& live : *all) {
        const Tokens held = held_by(live);
        if (!plain.contains(held)) plain[held] = model_.plain(held).state;
        if (live.sequence.length() != live.length || plain[held] != model_.hash(live.sequence))
          fail("at the end, sequence " + std::to_string(live.number) + " has not the state of a plain run");
      }
  }

  BitsModel& model_;
  ScheduleOptions options_;
  uint64_t seed_;
  Random random_, tiers_;
  PagePool pool_;
  std::vector<std::shared_ptr<const Stream>> streams_;
  std::vector<Live> live_, checkpoints_;
  std::map<uint64_t, uint64_t> states_;  // by tokens
  int next_number_ = 1, step_ = 0, forks_ = 0;
  ScheduleResult result_;
};

}  // namespace

const char* to_string(Damage damage) {
  switch (damage) {
    case Damage::None: return "none";
    case Damage::NoTruncate: return "truncate left out";
    case Damage::PageWrite: return "page written through a copy";
    case Damage::MatrixWrite: return "delta state written through a copy";
    case Damage::History: return "convolution input lost";
    case Damage::ArchiveByte: return "byte of an archive changed";
    case Damage::LostPage: return "page of the file lost";
    case Damage::OtherContext: return "checkpoint of another prefix";
  }
  return "?";
}

ScheduleResult run_schedule(BitsModel& model, uint64_t seed, const ScheduleOptions& options) {
  return Schedule(model, seed, options).run();
}

}  // namespace strata::test
