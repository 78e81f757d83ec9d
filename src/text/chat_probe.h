// What a chat template can do.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "text/chat.h"

namespace strata::text {

inline constexpr std::array<std::string_view, 6> kEfforts = {"minimal", "low", "medium", "high", "xhigh", "max"};

ChatCapabilities probe_chat_template(std::string_view source, const std::string& bos, const std::string& eos,
                                     const TemplateLimits& limits);

}  // namespace strata::text
