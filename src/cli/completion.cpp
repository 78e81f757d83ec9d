// strata completion bash: a script for the shell to source.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/settings_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"

namespace strata::cli {
namespace {

std::string options_of(const Command& command, const Settings& settings) {
  std::string text = "--help --version";
  for (const SettingSpec* spec : accepted_settings(&command, settings))
    for (const std::string& flag : flag_names(*spec)) text += " " + flag;
  return text;
}

// After a flag with choices the choices, else options of the command or file names.
std::string bash_script(const Program& program, const Settings& settings) {
  std::string commands, cases, choices;
  for (const Command& command : program.commands) {
    commands += fmt::format(" {}", command.name);
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command.name, options_of(command, settings));
    for (const SettingSpec* spec : accepted_settings(&command, settings))
      if (spec->type == SettingType::Choice || spec->type == SettingType::Choices)
        for (const std::string& flag : flag_names(*spec))
          choices +=
              fmt::format("    {}:{}) words=\"{}\" ;;\n", command.name, flag, fmt::join(choice_names(*spec), " "));
  }
  return fmt::format(R"(# bash completion of strata; load it with: source <(strata completion bash)
_strata() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
  local options="" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$word"))
    return
  fi
  case "$command" in
{}  esac
  case "$command:$before" in
{}  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  fi
}}
complete -o default -F _strata strata
)",
                     commands.substr(1), cases, choices);
}

int run(CommandContext& context) {
  const std::string& shell = context.arguments.front();
  if (shell != "bash")
    throw Error(ErrorKind::Usage, "no completion for shell " + quoted_text(shell) + "; there is bash");
  const std::string script = bash_script(context.program, context.settings);
  std::fwrite(script.data(), 1, script.size(), stdout);
  return 0;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "Print a completion script for a shell.",
          .positional = {.name = "SHELL", .help = "bash", .min = 1, .max = 1},
          .run = run};
}

}  // namespace strata::cli
