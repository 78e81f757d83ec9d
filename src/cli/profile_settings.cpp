#include "cli/profile_settings.h"

#include <fmt/format.h>

#include <array>

#include "evidence/profile_report.h"
#include "evidence/profile_trace.h"

namespace strata::cli {
namespace {

constexpr std::array kProfile{
    SettingSpec{.name = "profile",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Profile",
                .help = "after the run print where the time went"},
    SettingSpec{.name = "verify.profile",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = "Profile",
                .help = "after the run print the stages of the verify windows: draft, verify, commit"},
    SettingSpec{.name = "trace",
                .type = SettingType::Path,
                .group = "Profile",
                .help = "write a timeline for Perfetto or chrome://tracing to this file",
                .persistent = false},
    SettingSpec{.name = "trace_events",
                .type = SettingType::Int,
                .default_text = "1000000",
                .min = 1,
                .max = 100000000,
                .group = "Profile",
                .help = "spans that a trace holds at most, 80 bytes of memory each; later ones are only counted"},
};

size_t event_limit(const Settings& settings) {
  return settings.get_text("trace").empty() ? 0 : static_cast<size_t>(settings.get_int("trace_events"));
}

}  // namespace

std::span<const SettingSpec> profile_settings() { return kProfile; }

std::vector<std::string_view> profile_setting_names() {
  std::vector<std::string_view> names;
  for (const SettingSpec& spec : kProfile) names.push_back(spec.name);
  return names;
}

ProfileRun::ProfileRun(const Settings& settings, bool always)
    : tables_(always || settings.get_bool("profile")),
      window_(settings.get_bool("verify.profile")),
      path_(settings.get_text("trace")) {
  if (!path_.empty()) trace_.emplace(path_);
  if (tables_ || window_ || trace_) profiler_ = std::make_unique<Profiler>(event_limit(settings));
}

void ProfileRun::end() {
  if (profiler_ != nullptr) report_ = profiler_->report();
}

std::string ProfileRun::text() const {
  if (!report_) return {};
  if (tables_) return profile_text(*report_);
  if (!window_) return {};
  const std::string text = profile_text(*report_, kVerifyWindow);
  return text.empty() ? "verify window: none ran\n" : text;
}

std::string ProfileRun::json() const {
  return report_ && (tables_ || window_) ? profile_json(*report_) : std::string();
}

void ProfileRun::save(Log& log) {
  if (!trace_ || !report_) return;
  write_trace(*profiler_, *report_, [this](std::string_view text) { trace_->write(text.data(), text.size()); });
  trace_->commit();
  trace_.reset();
  log.info(fmt::format("{}: {} spans", path_, report_->events));
  if (report_->dropped_events > 0)
    log.warn(fmt::format("{} lacks the last {} spans: the limit of {} was reached (--trace-events)", path_,
                         report_->dropped_events, report_->event_limit));
}

}  // namespace strata::cli
