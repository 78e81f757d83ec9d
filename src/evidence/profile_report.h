// A profile as tables for people and as JSON for programs.
#pragma once

#include <span>
#include <string>

#include "base/profile.h"

namespace strata {

// The stages of a verify window.
inline constexpr Stage kVerifyWindow[] = {Stage::Draft, Stage::Verify, Stage::Commit};

// One table per stage, each with the sum of its parts, the whole, and the gap between them. A figure with a call whose
// time is unknown reads "missing"; a share below 0 or above 100 per cent reads "error". `only`: these stages, empty for
// all.
std::string profile_text(const ProfileReport& report, std::span<const Stage> only = {});

// One JSON object: "stages", "trace", "still_open", "out_of_order". What is missing or an error is null.
std::string profile_json(const ProfileReport& report);

}  // namespace strata
