// Settings of the profiler, and what a command makes of them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/profile.h"
#include "base/settings.h"

namespace strata::cli {

std::span<const SettingSpec> profile_settings();  // profile, verify.profile, trace, trace_events
std::vector<std::string_view> profile_setting_names();

// The profiler that the settings ask for. Made before the engine, so that it outlives it and sees it load.
class ProfileRun {
 public:
  ProfileRun(const Settings& settings, bool always);  // Error{File} when the trace cannot be written

  Profiler* profiler() { return profiler_.get(); }  // null: nothing is asked for
  void end();                                       // of what is measured
  std::string text() const;                         // the tables asked for; empty: none
  std::string json() const;                         // empty: none asked for
  void save(Log& log);                              // the trace, where one is asked for

 private:
  bool tables_, window_;
  std::string path_;
  std::unique_ptr<Profiler> profiler_;
  std::optional<OutputFile> trace_;
  std::optional<ProfileReport> report_;
};

}  // namespace strata::cli
