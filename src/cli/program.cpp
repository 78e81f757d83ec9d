// The frame of every command: settings, log, errors and exit codes.
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace strata::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::vector<std::span<const SettingSpec>> all_settings(const Program& program) {
  std::vector<std::span<const SettingSpec>> groups = program.settings;
  for (const Command& command : program.commands) groups.push_back(command.own);
  return groups;
}

int run_command(const CommandLine& line, Settings& settings, const Program& program, std::atomic<bool>& interrupted) {
  std::unique_ptr<std::FILE, CloseFile> log_file;
  if (const std::string& path = settings.get_text("log_file"); !path.empty()) {
    log_file.reset(std::fopen(path.c_str(), "ae"));
    if (log_file == nullptr) throw Error(ErrorKind::File, "cannot open for writing", path);
  }
  const LogLevel level = settings.get_bool("verbose")
                             ? LogLevel::Debug
                             : log_level_from_name(settings.get_text("log_level")).value_or(LogLevel::Info);
  Log log(level, log_file != nullptr ? log_file.get() : stderr);
  CommandContext context{settings, log, line.arguments, interrupted, program};
  return line.command->run(context);
}

void print(const std::string& text, std::FILE* stream) { std::fwrite(text.data(), 1, text.size(), stream); }

int run(const Program& program, const std::vector<std::string>& arguments, const char* const* environment,
        std::atomic<bool>& interrupted) {
  Settings settings(all_settings(program), program.operators);
  if (arguments.empty()) {
    print(help_text(program, nullptr, settings), stderr);
    return exit_code(ErrorKind::Usage);
  }
  const CommandLine line = parse_command_line(program, arguments, settings);
  if (line.action == CommandLine::Action::Print) {
    print(line.text, stdout);
    return 0;
  }
  settings.load_environment(environment);
  if (const std::string& path = settings.get_text("config"); !path.empty()) settings.load_file(path);
  return run_command(line, settings, program, interrupted);
}

// Allocates nothing, so that it works when memory is short.
int report(const char* prefix, const char* message, int code) {
  std::fprintf(stderr, "strata: error: %s", prefix);
  for (; *message != '\0'; ++message) std::fputc(*message == '\n' || *message == '\r' ? ' ' : *message, stderr);
  std::fputc('\n', stderr);
  return code;
}

}  // namespace

int run_program(const Program& program, const std::vector<std::string>& arguments, const char* const* environment,
                std::atomic<bool>& interrupted) {
  try {
    const int code = run(program, arguments, environment, interrupted);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw Error(ErrorKind::File, "cannot write; is the disk full?", "standard output");
    return code;
  } catch (const Error& error) {
    // After Ctrl-C an error is most likely its consequence, such as a read that was cut short.
    return report("", error.what(), exit_code(interrupted ? ErrorKind::Interrupted : error.kind()));
  } catch (const std::bad_alloc&) {
    return report("", "out of memory; use a smaller context, batch or model", exit_code(ErrorKind::Memory));
  } catch (const std::exception& error) {
    return report("internal error: ", error.what(), 1);
  }
}

}  // namespace strata::cli
