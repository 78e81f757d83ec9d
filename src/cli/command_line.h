// From arguments to a command, its positional arguments and the settings that flags give; and help.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "cli/command.h"

namespace strata::cli {

struct CommandLine {
  enum class Action { Run, Print };
  Action action = Action::Run;
  const Command* command = nullptr;         // Run: never null
  std::vector<std::string> arguments = {};  // Run: positional ones
  std::string text = {};                    // Print: help or version
};

// Sets what flags say, with origin Flag. Error{Usage} for unknown commands and options, with the nearest known name.
CommandLine parse_command_line(const Program& program, const std::vector<std::string>& arguments, Settings& settings);

// Help of one command; of the program when command is null.
std::string help_text(const Program& program, const Command* command, const Settings& settings);

// The settings that a command takes as flags, its own first.
std::vector<const SettingSpec*> accepted_settings(const Command* command, const Settings& settings);

}  // namespace strata::cli
