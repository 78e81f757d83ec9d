// A profile as a timeline in the Chrome trace event format, which Perfetto and chrome://tracing open.
#pragma once

#include <functional>
#include <string_view>

#include "base/profile.h"

namespace strata {

// One JSON object, handed to `sink` piece by piece. Bars of one line nest: what would overlap another bar without lying
// inside it gets a line of its own.
void write_trace(const Profiler& profiler, const ProfileReport& report,
                 const std::function<void(std::string_view)>& sink);

}  // namespace strata
