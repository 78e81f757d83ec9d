// What a subcommand is, and how the program runs one. To add a command: one file that defines `Command x_command()`,
// its declaration in commands.h and its line in commands.cpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/settings.h"

namespace strata::cli {

struct Program;

struct CommandContext {
  Settings& settings;
  Log& log;
  const std::vector<std::string>& arguments;  // what is neither an option nor the value of one
  std::atomic<bool>&
      interrupted;  // set by Ctrl-C: stop soon and throw Error{Interrupted}, or handle it and clear the flag
  const Program& program;
};

struct Positional {
  std::string_view name = {};  // "FILE"
  std::string_view help = {};
  size_t min = 0;
  size_t max = 0;
};

struct Command {
  std::string_view name;
  std::string_view summary;
  std::span<const SettingSpec> own = {};        // settings that belong to this command alone
  std::vector<std::string_view> settings = {};  // names of shared settings it takes as well; "arm" for --arm
  Positional positional = {};
  int (*run)(CommandContext&) = nullptr;  // returns the exit code
};

struct Program {
  std::vector<Command> commands;
  std::vector<std::span<const SettingSpec>> settings;  // shared ones: common_settings() and those of the rooms
  std::vector<std::string> operators;                  // each has a setting arm.<operator>
};

// Runs the command that `arguments` name. Errors become one line on standard error and their exit code.
int run_program(const Program& program, const std::vector<std::string>& arguments, const char* const* environment,
                std::atomic<bool>& interrupted);

}  // namespace strata::cli
