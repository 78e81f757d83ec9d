// Settings of the commands that hold a conversation, and how a reply is shown.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "text/chat.h"
#include "text/reply_parser.h"

namespace strata::cli {

std::span<const SettingSpec> chat_settings();  // system, think, reasoning_effort, chat_template_kwargs, show_thinking
std::vector<std::string_view> chat_setting_names();

// System turn, thinking mode and template arguments of the settings; no user turn yet.
text::ChatRequest chat_request(const Settings& settings);

// Writes a reply to standard output while it is generated: thoughts dimmed on a terminal and left out elsewhere (unless
// asked for), calls as one line each.
class ReplyPrinter {
 public:
  explicit ReplyPrinter(const Settings& settings);
  void show(const text::ReplyEvent& event);

 private:
  void set_dim(bool dim);
  bool terminal_, show_thinking_, dim_ = false;
};

}  // namespace strata::cli
