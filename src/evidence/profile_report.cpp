#include "evidence/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace strata {
namespace {

using nlohmann::ordered_json;

double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

std::string ms_text(std::optional<int64_t> nanoseconds) {
  return nanoseconds ? fmt::format("{:.3f}", milliseconds(*nanoseconds)) : std::string("missing");
}

std::string share_text(const Share& share) {
  if (share.percent) return fmt::format("{:.1f} %", *share.percent);
  if (share.error()) return "error";
  return share.reason == "missing" ? "missing" : "-";
}

std::string per_token_text(std::optional<int64_t> nanoseconds, int64_t tokens) {
  if (tokens <= 0) return {};
  return nanoseconds ? fmt::format("{:.1f}", static_cast<double>(*nanoseconds) / 1e3 / static_cast<double>(tokens))
                     : std::string("missing");
}

std::string row(std::string_view name, std::string_view arm, const std::string& calls, const std::string& ms,
                const std::string& share, const std::string& per_token) {
  std::string line = fmt::format("  {:<22} {:<12} {:>9} {:>12} {:>9} {:>12}", name, arm, calls, ms, share, per_token);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

// "2 of 10 calls of matmul have no time: 1 missing, 1 reversed; the others took 3.200 ms"
std::string unknown_text(const std::string& name, const SpanTotals& totals) {
  if (totals.unknown() == 0) return {};
  std::string kinds;
  for (const auto& [defect, word] :
       {std::pair(StampDefect::Missing, "missing"), std::pair(StampDefect::Reversed, "reversed"),
        std::pair(StampDefect::Overflow, "beyond 63 bits")})
    if (const int64_t count = totals.defects[static_cast<size_t>(defect)]; count > 0)
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, word);
  return fmt::format("  {} of {} calls of {} have no time: {}; the others took {:.3f} ms\n", totals.unknown(),
                     totals.calls, name, kinds, milliseconds(totals.known));
}

// Longest first; what has no time stands at the head, where it is seen.
std::vector<ProfilePart> sorted(std::vector<ProfilePart> parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const ProfilePart& a, const ProfilePart& b) {
    const bool a_unknown = a.totals.unknown() > 0, b_unknown = b.totals.unknown() > 0;
    if (a_unknown != b_unknown) return a_unknown;
    return a.totals.known > b.totals.known;
  });
  return parts;
}

std::string heading(const StageReport& stage) {
  std::string text(to_string(stage.stage));
  if (stage.track != 0) text += " on " + stage.track_name;
  if (stage.stage != Stage::Run && stage.spans.calls > 0)
    text += fmt::format(": {} call{}", stage.spans.calls, stage.spans.calls == 1 ? "" : "s");
  if (stage.tokens > 0) {
    text += fmt::format(", {} token{}", stage.tokens, stage.tokens == 1 ? "" : "s");
    if (stage.whole)
      text += fmt::format(", {:.3f} ms per token", milliseconds(*stage.whole) / static_cast<double>(stage.tokens));
  }
  return text + "\n";
}

std::string stage_text(const StageReport& stage) {
  std::string text = heading(stage), notes;
  text += row(stage.stage == Stage::Run ? "stage" : "part", "arm", "calls", "ms", "share",
              stage.tokens > 0 ? "us per token" : "");
  for (const ProfilePart& part : sorted(stage.parts)) {
    const std::optional<int64_t> total = part.totals.total();
    text += row((part.inside ? "(" + part.name + ")" : part.name), part.arm, std::to_string(part.totals.calls),
                ms_text(total), part.inside ? "inside" : share_text(share_of(total, stage.whole)),
                per_token_text(total, stage.tokens));
    notes += unknown_text(part.name, part.totals);
  }
  const std::optional<int64_t> sum = stage.sum(), gap = stage.gap();
  text += row("sum of parts", "", "", ms_text(sum), share_text(share_of(sum, stage.whole)),
              per_token_text(sum, stage.tokens));
  text += row("whole", "", "", ms_text(stage.whole), "", per_token_text(stage.whole, stage.tokens));
  text += row("gap", "", "", ms_text(gap), share_text(share_of(gap, stage.whole)), per_token_text(gap, stage.tokens));
  if (gap && *gap < 0) notes += "  error: the parts are longer than the whole; some overlap\n";
  if (stage.track != 0 && stage.spans.calls == 0) notes += "  the whole is that of the host\n";
  return text + notes;
}

ordered_json ms_json(std::optional<int64_t> nanoseconds) {
  return nanoseconds ? ordered_json(milliseconds(*nanoseconds)) : ordered_json(nullptr);
}

void add_share(ordered_json& object, const Share& share) {
  object["share"] = share.percent ? ordered_json(*share.percent / 100) : ordered_json(nullptr);
  if (!share.percent) object["share_reason"] = share.reason;
}

void add_totals(ordered_json& object, const SpanTotals& totals) {
  object["calls"] = totals.calls;
  object["ms"] = ms_json(totals.total());
  if (totals.unknown() == 0) return;
  object["known_ms"] = milliseconds(totals.known);
  object["missing"] = totals.defects[static_cast<size_t>(StampDefect::Missing)];
  object["reversed"] = totals.defects[static_cast<size_t>(StampDefect::Reversed)];
  object["overflow"] = totals.defects[static_cast<size_t>(StampDefect::Overflow)];
}

ordered_json stage_json(const StageReport& stage) {
  ordered_json object{{"stage", to_string(stage.stage)}, {"track", stage.track_name}};
  add_totals(object, stage.spans);
  object["tokens"] = stage.tokens;
  object["whole_ms"] = ms_json(stage.whole);
  object["sum_ms"] = ms_json(stage.sum());
  object["gap_ms"] = ms_json(stage.gap());
  if (stage.tokens > 0 && stage.whole)
    object["ms_per_token"] = milliseconds(*stage.whole) / static_cast<double>(stage.tokens);
  object["parts"] = ordered_json::array();
  for (const ProfilePart& part : sorted(stage.parts)) {
    ordered_json one{{"kind", part.kind == PartKind::Stage ? "stage" : "operator"}, {"name", part.name}};
    if (!part.arm.empty()) one["arm"] = part.arm;
    if (part.inside) one["inside"] = true;
    add_totals(one, part.totals);
    if (!part.inside) add_share(one, share_of(part.totals.total(), stage.whole));
    object["parts"].push_back(std::move(one));
  }
  return object;
}

}  // namespace

std::string profile_text(const ProfileReport& report, std::span<const Stage> only) {
  std::string text;
  for (const StageReport& stage : report.stages) {
    if (!only.empty() && std::find(only.begin(), only.end(), stage.stage) == only.end()) continue;
    text += (text.empty() ? "" : "\n") + stage_text(stage);
  }
  if (report.still_open > 0) text += fmt::format("\n{} spans are still open: missing\n", report.still_open);
  if (report.out_of_order > 0)
    text += fmt::format("\n{} spans closed before a span that opened inside them\n", report.out_of_order);
  return text;
}

std::string profile_json(const ProfileReport& report) {
  ordered_json document{{"stages", ordered_json::array()}};
  for (const StageReport& stage : report.stages) document["stages"].push_back(stage_json(stage));
  document["still_open"] = report.still_open;
  document["out_of_order"] = report.out_of_order;
  if (report.event_limit > 0)
    document["trace"] = {{"events", report.events}, {"dropped", report.dropped_events}, {"limit", report.event_limit}};
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace strata
