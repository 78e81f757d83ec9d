// Profiler: where the time of a run goes. Spans have names and types; a span is opened and closed by the same object.
// A time that cannot be known is missing: never 0, never a wrapped number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

enum class Stage : uint8_t {
  Run,     // from the making of the profiler to its report
  Load,    // model and tokenizer
  Prompt,  // one micro-batch
  Decode,  // one step: choose a token, show it, compute the next logits
  Draft,   // tokens proposed for a verify window
  Verify,  // the forward pass of a verify window
  Commit,  // accepted tokens enter the state, the others leave it
  Count,
};
inline constexpr size_t kStages = static_cast<size_t>(Stage::Count);
std::string_view to_string(Stage stage);

// Nanoseconds of a clock that does not go back; none: never taken.
using Stamp = std::optional<uint64_t>;
// Device timers write 0 where nothing was stamped.
inline Stamp device_stamp(uint64_t raw) { return raw == 0 ? Stamp{} : Stamp{raw}; }

enum class StampDefect : uint8_t {
  None,
  Missing,   // a stamp was never taken, or the span is still open
  Reversed,  // the end lies before the beginning
  Overflow,  // a difference or a sum beyond 63 bits
  Count,
};
inline constexpr size_t kStampDefects = static_cast<size_t>(StampDefect::Count);

struct Elapsed {
  int64_t nanoseconds = 0;  // of no meaning with a defect
  StampDefect defect = StampDefect::None;
};
Elapsed elapsed(Stamp begin, Stamp end);

// Calls of one kind.
struct SpanTotals {
  int64_t calls = 0;
  int64_t known = 0;  // nanoseconds of the calls whose time is known
  std::array<int64_t, kStampDefects> defects{};

  Elapsed add(Stamp begin, Stamp end);
  int64_t unknown() const;  // calls without a time
  std::optional<int64_t> total() const { return unknown() == 0 ? std::optional(known) : std::nullopt; }
};

// Part of a whole in per cent, 0 to 100; anything else is no number and has a reason.
struct Share {
  std::optional<double> percent;
  std::string_view reason = {};  // "missing", "negative", "above the whole", "of nothing"
  bool error() const { return reason == "negative" || reason == "above the whole"; }
};
Share share_of(std::optional<int64_t> part, std::optional<int64_t> whole);

enum class PartKind : uint8_t { Operator, Stage };

struct ProfilePart {
  PartKind kind = PartKind::Operator;
  std::string name;
  std::string arm;      // "host" for work that is no operator, empty for stages
  bool inside = false;  // within another operator, whose time holds it: not summed
  SpanTotals totals;
};

struct StageReport {
  Stage stage = Stage::Run;
  size_t track = 0;  // 0: the host
  std::string track_name;
  SpanTotals spans;
  std::optional<int64_t> whole;  // of a track without spans of this stage: that of the host
  int64_t tokens = 0;
  std::vector<ProfilePart> parts;

  std::optional<int64_t> sum() const;  // of the parts; none when one of them is missing
  std::optional<int64_t> gap() const;  // whole - sum: negative when parts overlap
};

struct ProfileReport {
  Stamp begin, end;                 // of the run
  std::vector<StageReport> stages;  // those that occurred, the run first
  int64_t still_open = 0;           // spans, counted as missing
  int64_t out_of_order = 0;         // spans that closed before one opened inside them
  size_t events = 0, event_limit = 0;
  int64_t dropped_events = 0;

  const StageReport* find(Stage stage, size_t track = 0) const;  // null: did not occur
};

// One bar of a trace.
struct ProfileEvent {
  uint64_t begin = 0, end = 0;
  int64_t tokens = 0;
  uint32_t part = 0;  // in the table of `owner`
  uint16_t depth = 0;
  uint8_t track = 0;
  Stage owner = Stage::Run;  // the stage it is a part of
};

// A span whose stamps were taken elsewhere, for instance by a device. Its track is a timeline of its own beside the
// host's, with the same clock.
struct RecordedSpan {
  std::string_view track;
  Stage stage = Stage::Run;
  std::string_view op = {}, arm = {};  // empty op: the stage itself
  Stamp begin, end;
  int64_t tokens = 0;
};

class ProfileSpan;

// Memory is bounded: one row per (track, stage, operator, arm), and trace events up to a limit. Not thread safe: it
// belongs to one queue.
class Profiler {
 public:
  using Clock = std::function<Stamp()>;
  static Stamp steady_clock();

  static constexpr size_t kMaxTracks = 8;   // further ones share the last
  static constexpr size_t kMaxParts = 128;  // of a stage on a track; further ones are counted as "(others)"
  static constexpr size_t kMaxName = 64;    // bytes of a name that are kept

  explicit Profiler(size_t event_limit = 0, Clock clock = steady_clock);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void record(const RecordedSpan& span);
  ProfileReport report();

  const std::deque<ProfileEvent>& events() const { return events_; }
  const ProfilePart& part(const ProfileEvent& event) const;
  const std::vector<std::string>& tracks() const { return tracks_; }

 private:
  friend class ProfileSpan;
  struct Cell {  // one stage on one track
    SpanTotals spans;
    int64_t tokens = 0;
    std::vector<ProfilePart> parts;
  };

  Cell& cell(size_t track, Stage stage) { return cells_[track * kStages + static_cast<size_t>(stage)]; }
  uint32_t part_of(Cell& cell, PartKind kind, std::string_view name, std::string_view arm, bool inside);
  size_t track_of(std::string_view name);
  Stamp now() noexcept;
  void open(ProfileSpan& span, std::string_view name, std::string_view arm);
  void close(ProfileSpan& span) noexcept;
  void keep(const ProfileEvent& event) noexcept;

  Clock clock_;
  size_t event_limit_;
  int64_t dropped_events_ = 0, out_of_order_ = 0;
  std::vector<std::string> tracks_{"host"};
  std::array<Cell, kMaxTracks * kStages> cells_;
  std::vector<ProfileSpan*> open_;  // innermost last
  std::deque<ProfileEvent> events_;
  Stamp begin_;
};

// Measures from its construction to its end. Without a profiler it does nothing.
class ProfileSpan {
 public:
  // A stage. Inside an open span of the same stage it adds its tokens there and is not measured twice.
  ProfileSpan(Profiler* profiler, Stage stage, int64_t tokens = 0)
      : profiler_(profiler), tokens_(tokens), kind_(PartKind::Stage), stage_(stage) {
    if (profiler_ != nullptr) profiler_->open(*this, to_string(stage), {});
  }
  // An operator of the innermost open stage; arm "host" for other work.
  ProfileSpan(Profiler* profiler, std::string_view op, std::string_view arm) : profiler_(profiler) {
    if (profiler_ != nullptr) profiler_->open(*this, op, arm);
  }
  ~ProfileSpan() {
    if (profiler_ != nullptr) profiler_->close(*this);
  }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

  void add_tokens(int64_t count) { tokens_ += count; }

 private:
  friend class Profiler;
  Profiler* profiler_;
  int64_t tokens_ = 0;
  Stamp begin_;
  uint32_t part_ = 0;
  uint16_t depth_ = 0;
  PartKind kind_ = PartKind::Operator;
  Stage stage_ = Stage::Run, owner_ = Stage::Run;  // what it is, and what it is a part of: the same for an operator
  bool merged_ = false;                            // into an open span of its stage
};

}  // namespace strata
