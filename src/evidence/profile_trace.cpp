#include "evidence/profile_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace strata {
namespace {

constexpr size_t kMaxLines = 64;  // of a trace; bars that need more are not drawn

struct Bar {
  uint64_t begin, end;
  const ProfileEvent* event;  // null: the whole run
  size_t track;
  int depth;
  size_t line = 0;
};

// By track and time; of bars that begin together the outer one first.
std::vector<Bar> sorted_bars(const Profiler& profiler, const ProfileReport& report) {
  std::vector<Bar> bars;
  bars.reserve(profiler.events().size() + 1);
  if (elapsed(report.begin, report.end).defect == StampDefect::None)
    bars.push_back({*report.begin, *report.end, nullptr, 0, -1});
  for (const ProfileEvent& event : profiler.events())
    bars.push_back({event.begin, event.end, &event, event.track, event.depth});
  std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) {
    if (a.track != b.track) return a.track < b.track;
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end != b.end ? a.end > b.end : a.depth < b.depth;
  });
  return bars;
}

// Gives each bar the first line of its track where it nests, or kMaxLines. Returns the track of every line.
std::vector<size_t> place(std::vector<Bar>& bars) {
  struct Line {
    size_t track;
    std::vector<uint64_t> ends;  // of the bars that hold the current moment, outermost first
  };
  std::vector<Line> lines;
  for (Bar& bar : bars) {
    for (bar.line = 0; bar.line < lines.size(); ++bar.line) {
      Line& line = lines[bar.line];
      if (line.track != bar.track) continue;
      while (!line.ends.empty() && line.ends.back() <= bar.begin) line.ends.pop_back();
      if (line.ends.empty() || line.ends.back() >= bar.end) break;
    }
    if (bar.line == kMaxLines) continue;
    if (bar.line == lines.size()) lines.push_back({bar.track, {}});
    lines[bar.line].ends.push_back(bar.end);
  }
  std::vector<size_t> tracks;
  for (const Line& line : lines) tracks.push_back(line.track);
  return tracks;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string bar_json(const Bar& bar, const Profiler& profiler, uint64_t origin) {
  std::string name = "\"run\"", kind = "stage", details;
  if (bar.event != nullptr) {
    const ProfilePart& part = profiler.part(*bar.event);
    name = json_string(part.name);
    if (part.kind == PartKind::Operator) {
      kind = "operator";
      details = fmt::format(R"("arm":{},"stage":"{}")", json_string(part.arm), to_string(bar.event->owner));
    } else if (bar.event->tokens > 0) {
      details = fmt::format(R"("tokens":{})", bar.event->tokens);
    }
  }
  return fmt::format(R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}}}})",
                     bar.line + 1, microseconds(bar.begin - origin), microseconds(bar.end - bar.begin), name, kind,
                     details);
}

std::string line_json(size_t line, const std::string& name) {
  return fmt::format(R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":{1}}}}},)"
                     "\n"
                     R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
                     line + 1, json_string(name));
}

}  // namespace

void write_trace(const Profiler& profiler, const ProfileReport& report,
                 const std::function<void(std::string_view)>& sink) {
  std::vector<Bar> bars = sorted_bars(profiler, report);
  const size_t total = bars.size();
  const std::vector<size_t> tracks = place(bars);
  std::erase_if(bars, [](const Bar& bar) { return bar.line == kMaxLines; });
  const size_t undrawn = total - bars.size();
  uint64_t origin = bars.empty() ? 0 : bars.front().begin;
  for (const Bar& bar : bars) origin = std::min(origin, bar.begin);

  sink(fmt::format(R"({{"displayTimeUnit":"ns",
"otherData":{{"events":{},"dropped_events":{},"event_limit":{},"undrawn_events":{},"spans_still_open":{}}},
"traceEvents":[
)",
                   report.events, report.dropped_events, report.event_limit, undrawn, report.still_open));
  sink(R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"strata"}})");
  for (size_t line = 0; line < tracks.size(); ++line) {
    const auto before = std::count(tracks.begin(), tracks.begin() + static_cast<std::ptrdiff_t>(line), tracks[line]);
    const std::string& name = profiler.tracks()[tracks[line]];
    sink(",\n" + line_json(line, before == 0 ? name : fmt::format("{} ({})", name, before + 1)));
  }
  std::string chunk;
  for (const Bar& bar : bars) {
    chunk += ",\n" + bar_json(bar, profiler, origin);
    if (chunk.size() < 65536) continue;
    sink(chunk);
    chunk.clear();
  }
  sink(chunk + "\n]}\n");
}

}  // namespace strata
