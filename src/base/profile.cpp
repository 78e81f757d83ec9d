#include "base/profile.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace strata {
namespace {

constexpr std::string_view kOthers = "(others)";

}  // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::Run: return "run";
    case Stage::Load: return "load";
    case Stage::Prompt: return "prompt";
    case Stage::Decode: return "decode";
    case Stage::Draft: return "draft";
    case Stage::Verify: return "verify";
    case Stage::Commit: return "commit";
    case Stage::Count: break;
  }
  return "unknown";
}

Elapsed elapsed(Stamp begin, Stamp end) {
  if (!begin || !end) return {0, StampDefect::Missing};
  if (*end < *begin) return {0, StampDefect::Reversed};
  const uint64_t difference = *end - *begin;
  if (difference > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return {0, StampDefect::Overflow};
  return {static_cast<int64_t>(difference), StampDefect::None};
}

Elapsed SpanTotals::add(Stamp begin, Stamp end) {
  ++calls;
  const Elapsed one = elapsed(begin, end);
  int64_t sum = 0;
  if (one.defect != StampDefect::None)
    ++defects[static_cast<size_t>(one.defect)];
  else if (__builtin_add_overflow(known, one.nanoseconds, &sum))
    ++defects[static_cast<size_t>(StampDefect::Overflow)];
  else
    known = sum;
  return one;
}

int64_t SpanTotals::unknown() const {
  int64_t count = 0;
  for (const int64_t one : defects) count += one;
  return count;
}

Share share_of(std::optional<int64_t> part, std::optional<int64_t> whole) {
  if (!part || !whole) return {{}, "missing"};
  if (*part < 0 || *whole < 0) return {{}, "negative"};
  if (*part > *whole) return {{}, "above the whole"};
  if (*whole == 0) return {{}, "of nothing"};
  return {100 * (static_cast<double>(*part) / static_cast<double>(*whole)), {}};
}

std::optional<int64_t> StageReport::sum() const {
  int64_t sum = 0;
  for (const ProfilePart& part : parts) {
    if (part.inside) continue;
    const std::optional<int64_t> total = part.totals.total();
    if (!total || __builtin_add_overflow(sum, *total, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> StageReport::gap() const {
  const std::optional<int64_t> parts_sum = sum();
  int64_t difference = 0;
  if (!whole || !parts_sum || __builtin_sub_overflow(*whole, *parts_sum, &difference)) return std::nullopt;
  return difference;
}

const StageReport* ProfileReport::find(Stage stage, size_t track) const {
  for (const StageReport& one : stages)
    if (one.stage == stage && one.track == track) return &one;
  return nullptr;
}

Stamp Profiler::steady_clock() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

Profiler::Profiler(size_t event_limit, Clock clock) : clock_(std::move(clock)), event_limit_(event_limit) {
  open_.reserve(16);
  begin_ = now();
}

Profiler::~Profiler() {
  for (ProfileSpan* span : open_) span->profiler_ = nullptr;
}

// A clock that fails leaves a stamp that was not taken.
Stamp Profiler::now() noexcept {
  try {
    return clock_();
  } catch (...) {
    return std::nullopt;
  }
}

uint32_t Profiler::part_of(Cell& cell, PartKind kind, std::string_view name, std::string_view arm, bool inside) {
  name = name.substr(0, kMaxName);
  arm = arm.substr(0, kMaxName);
  const auto matches = [&](const ProfilePart& part) {
    return part.kind == kind && part.inside == inside && part.name == name && part.arm == arm;
  };
  const auto found = std::find_if(cell.parts.begin(), cell.parts.end(), matches);
  if (found != cell.parts.end()) return static_cast<uint32_t>(found - cell.parts.begin());
  // Two rows stay free for what does not fit, within operators and outside.
  if (name != kOthers && cell.parts.size() >= kMaxParts - 2)
    return part_of(cell, PartKind::Operator, kOthers, {}, inside);
  cell.parts.push_back({kind, std::string(name), std::string(arm), inside, {}});
  return static_cast<uint32_t>(cell.parts.size() - 1);
}

size_t Profiler::track_of(std::string_view name) {
  name = name.substr(0, kMaxName);
  const auto found = std::find(tracks_.begin() + 1, tracks_.end(), name);
  if (found != tracks_.end()) return static_cast<size_t>(found - tracks_.begin());
  if (tracks_.size() == kMaxTracks) return kMaxTracks - 1;
  tracks_.emplace_back(tracks_.size() + 1 == kMaxTracks ? kOthers : name);
  return tracks_.size() - 1;
}

void Profiler::open(ProfileSpan& span, std::string_view name, std::string_view arm) {
  const ProfileSpan* parent = nullptr;
  span.merged_ = span.kind_ == PartKind::Stage && span.stage_ == Stage::Run;  // which the profiler itself measures
  for (const ProfileSpan* outer : open_) {
    if (outer->merged_) continue;
    parent = outer;
    if (span.kind_ == PartKind::Stage && outer->kind_ == PartKind::Stage && outer->stage_ == span.stage_)
      span.merged_ = true;
  }
  if (!span.merged_) {
    span.owner_ = parent == nullptr ? Stage::Run : parent->stage_;
    if (span.kind_ == PartKind::Operator) span.stage_ = span.owner_;
    const bool inside = parent != nullptr && parent->kind_ == PartKind::Operator;
    span.part_ = part_of(cell(0, span.owner_), span.kind_, name, arm, inside);
  }
  span.depth_ = static_cast<uint16_t>(std::min<size_t>(open_.size(), UINT16_MAX));
  open_.push_back(&span);
  span.begin_ = now();  // last, so that the work above is no part of the span
}

void Profiler::close(ProfileSpan& span) noexcept {
  const Stamp end = now();
  if (open_.back() != &span) ++out_of_order_;
  std::erase(open_, &span);
  if (span.kind_ == PartKind::Stage) cell(0, span.stage_).tokens += span.tokens_;
  if (span.merged_) return;
  if (span.kind_ == PartKind::Stage) cell(0, span.stage_).spans.add(span.begin_, end);
  const Elapsed time = cell(0, span.owner_).parts[span.part_].totals.add(span.begin_, end);
  if (time.defect == StampDefect::None)
    keep({*span.begin_, *end, span.tokens_, span.part_, span.depth_, 0, span.owner_});
}

void Profiler::record(const RecordedSpan& span) {
  const size_t track = track_of(span.track);
  const bool stage = span.op.empty();
  if (stage && span.stage == Stage::Run) {  // part of nothing
    cell(track, Stage::Run).spans.add(span.begin, span.end);
    return;
  }
  const Stage owner = stage ? Stage::Run : span.stage;
  const uint32_t part = part_of(cell(track, owner), stage ? PartKind::Stage : PartKind::Operator,
                                stage ? to_string(span.stage) : span.op, span.arm, false);
  const Elapsed time = cell(track, owner).parts[part].totals.add(span.begin, span.end);
  if (stage) {
    cell(track, span.stage).spans.add(span.begin, span.end);
    cell(track, span.stage).tokens += span.tokens;
  }
  if (time.defect == StampDefect::None)
    keep({*span.begin, *span.end, span.tokens, part, static_cast<uint16_t>(stage ? 0 : 1), static_cast<uint8_t>(track),
          owner});
}

void Profiler::keep(const ProfileEvent& event) noexcept {
  if (event_limit_ == 0) return;
  if (events_.size() < event_limit_) {
    try {
      events_.push_back(event);
      return;
    } catch (...) {  // memory is short: as if the limit were reached
    }
  }
  ++dropped_events_;
}

const ProfilePart& Profiler::part(const ProfileEvent& event) const {
  return cells_[event.track * kStages + static_cast<size_t>(event.owner)].parts[event.part];
}

ProfileReport Profiler::report() {
  ProfileReport report;
  report.begin = begin_;
  report.end = now();
  report.still_open = static_cast<int64_t>(open_.size());
  report.out_of_order = out_of_order_;
  report.events = events_.size();
  report.event_limit = event_limit_;
  report.dropped_events = dropped_events_;

  auto cells = cells_;
  cells[static_cast<size_t>(Stage::Run)].spans.add(report.begin, report.end);
  for (const ProfileSpan* span : open_) {
    Cell& own = cells[static_cast<size_t>(span->stage_)];
    if (span->kind_ == PartKind::Stage) own.tokens += span->tokens_;
    if (span->merged_) continue;
    if (span->kind_ == PartKind::Stage) own.spans.add(span->begin_, std::nullopt);
    cells[static_cast<size_t>(span->owner_)].parts[span->part_].totals.add(span->begin_, std::nullopt);
  }
  for (size_t track = 0; track < tracks_.size(); ++track)
    for (size_t stage = 0; stage < kStages; ++stage) {
      Cell& one = cells[track * kStages + stage];
      if (one.spans.calls == 0 && one.parts.empty()) continue;
      const SpanTotals& measured = one.spans.calls > 0 ? one.spans : cells[stage].spans;
      const std::optional<int64_t> whole = measured.calls > 0 ? measured.total() : std::nullopt;
      report.stages.push_back(
          {static_cast<Stage>(stage), track, tracks_[track], one.spans, whole, one.tokens, std::move(one.parts)});
    }
  return report;
}

}  // namespace strata
