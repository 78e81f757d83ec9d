// The only file that sees CLI11, which is slow to compile.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/settings_text.h"
#include "cli/common_settings.h"
#include "cli/version.h"

namespace strata::cli {
namespace {

using Specs = std::vector<const SettingSpec*>;

constexpr size_t kLeftColumn = 32;
constexpr size_t kWidth = 110;
constexpr std::string_view kLastGroup = "Common";

bool takes_value(const SettingSpec& spec) { return spec.type != SettingType::Bool; }
bool is_long(std::string_view flag) { return flag.starts_with("--"); }

// CLI11 knows `-x` and `--xyz`, but not the customary `-ngl`; canonical() rewrites those.
bool known_to_cli11(std::string_view flag) { return is_long(flag) || flag.size() == 2; }

std::vector<std::string> cli11_names(const SettingSpec& spec) {
  std::vector<std::string> names;
  for (std::string& flag : flag_names(spec))
    if (known_to_cli11(flag)) names.push_back(std::move(flag));
  if (names.empty()) names = flag_names({.name = spec.name});
  return names;
}

std::string display_name(const SettingSpec& spec) {
  const std::vector<std::string> flags = flag_names(spec);
  const auto found = std::find_if(flags.begin(), flags.end(), is_long);
  return found != flags.end() ? *found : flags.front();
}

// `--no-x` of a switch `--x`.
std::optional<std::string> negated(const SettingSpec& spec) {
  const std::string flag = display_name(spec);
  if (takes_value(spec) || !is_long(flag) || flag.starts_with("--no-")) return std::nullopt;
  return "--no-" + flag.substr(2);
}

const SettingSpec* find_flag(const Specs& specs, std::string_view flag) {
  for (const SettingSpec* spec : specs) {
    const std::vector<std::string> flags = flag_names(*spec);
    if (std::find(flags.begin(), flags.end(), flag) != flags.end()) return spec;
  }
  return nullptr;
}

std::string_view value_name(const SettingSpec& spec) {
  switch (spec.type) {
    case SettingType::Bool: return "";
    case SettingType::Int: return " N";
    case SettingType::Real: return " X";
    case SettingType::Text: return " TEXT";
    case SettingType::Choice: return " NAME";
    case SettingType::Path: return " PATH";
    case SettingType::Ints: return " N,...";
    case SettingType::Choices: return " NAME,...";
  }
  return "";
}

std::string left_text(const SettingSpec& spec) {
  const std::vector<std::string> flags = flag_names(spec);
  std::string text = is_long(flags.front()) ? "    " : "";
  text += fmt::format("{}", fmt::join(flags, ", "));
  if (spec.default_text == "true")
    if (const auto off = negated(spec)) text += ", " + *off;
  text += value_name(spec);
  return text;
}

std::string right_text(const SettingSpec& spec) {
  std::string text(spec.help);
  if (const std::string allowed = allowed_values(spec); takes_value(spec) && !allowed.empty())
    text += " (" + allowed + ")";
  if (spec.repeatable) text += " (repeatable)";
  if (!spec.default_text.empty()) text += fmt::format(" (default: {})", spec.default_text);
  if (spec.name != "arm") text += fmt::format(" (env: {})", variable_name(spec.name));
  return text;
}

// Up to the next space; a remark in brackets is not torn apart, so that `(env: NAME)` can be searched for.
size_t word_length(std::string_view text) {
  const size_t close = text.starts_with('(') ? text.find(')') : std::string_view::npos;
  if (close != std::string_view::npos && close < kWidth - kLeftColumn) return close + 1;
  return std::min(text.find(' '), text.size());
}

// Two columns, the right one wrapped at spaces.
std::string row(const std::string& left, std::string_view right) {
  std::string text = "  " + left;
  size_t column = text.size();
  if (column + 2 > kLeftColumn) {
    text += '\n';
    column = 0;
  }
  text.append(kLeftColumn - column, ' ');
  column = kLeftColumn;
  bool first = true;
  while (!right.empty()) {
    const size_t end = word_length(right);
    if (!first && column + 1 + end > kWidth) {
      text += '\n' + std::string(kLeftColumn, ' ');
      column = kLeftColumn;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += right.substr(0, end);
    column += end;
    right.remove_prefix(std::min(end + 1, right.size()));
    first = false;
  }
  return text + '\n';
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(const Command* command) : command_(command) {}

  std::string make_usage(const CLI::App*, std::string name) const override {
    std::string usage = "\nUsage: " + name;
    if (command_ == nullptr) return usage + " COMMAND [options]\n\n";
    usage += " [options]";
    const Positional& positional = command_->positional;
    if (positional.max > 0) {
      const std::string more =
          std::string(positional.name) + (positional.max > std::max<size_t>(1, positional.min) ? "..." : "");
      usage += positional.min == 0 ? " [" + more + "]" : " " + more;
      return usage + "\n\n" + row(std::string(positional.name), positional.help) + "\n";
    }
    return usage + "\n\n";
  }

  std::string make_group(std::string group, bool, std::vector<const CLI::Option*> options) const override {
    std::string text = group + ":\n";
    for (const CLI::Option* option : options) text += row(option->get_option_text(), option->get_description());
    return text;
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return row(command->get_name(), command->get_description());
  }

  std::string make_footer(const CLI::App*) const override {
    return command_ == nullptr ? "strata COMMAND --help lists the options of a command.\n" : "";
  }

 private:
  const Command* command_;
};

struct Parser {
  std::string help() const {
    std::string text = app->help();
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

  std::unique_ptr<CLI::App> app;
  std::vector<std::pair<const SettingSpec*, CLI::Option*>> options;
};

std::string program_name(const Command* command) {
  return command == nullptr ? "strata" : "strata " + std::string(command->name);
}

Parser make_parser(const Program& program, const Command* command, const Specs& specs) {
  Parser parser;
  const std::string summary =
      command == nullptr ? "Strata runs long-context hybrid language models." : std::string(command->summary);
  parser.app = std::make_unique<CLI::App>(summary, program_name(command));
  CLI::App& app = *parser.app;
  app.formatter(std::make_shared<HelpFormatter>(command));
  app.allow_extras();
  app.set_help_flag();  // added again below, so that its group comes last
  for (const SettingSpec* spec : specs) {
    std::string names = fmt::format("{}", fmt::join(cli11_names(*spec), ","));
    if (const auto off = negated(*spec)) names += ",!" + *off;
    CLI::Option* option = nullptr;
    if (takes_value(*spec)) {
      option = app.add_option(names, CLI::callback_t([](const CLI::results_t&) { return true; }));
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      option = app.add_flag(names);
    }
    option->group(std::string(spec->group))->description(right_text(*spec))->option_text(left_text(*spec));
    parser.options.emplace_back(spec, option);
  }
  app.set_help_flag("-h,--help", "print this help")->group(std::string(kLastGroup))->option_text("-h, --help");
  app.set_version_flag("--version", "strata " + version_text())
      ->description("print the version")
      ->group(std::string(kLastGroup))
      ->option_text("    --version");
  if (command == nullptr)
    for (const Command& each : program.commands)
      app.add_subcommand(std::string(each.name), std::string(each.summary))->group("Commands");
  return parser;
}

// Rewrites what CLI11 cannot read: single-dash names of several letters, and `--flag=` with an empty value.
std::vector<std::string> canonical(const std::vector<std::string>& arguments, const Specs& specs) {
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      result.insert(result.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    const size_t equals = is_long(argument) ? argument.find('=') : std::string::npos;
    const std::string flag = argument.substr(0, equals);
    const SettingSpec* spec = find_flag(specs, flag);
    if (spec == nullptr || (equals != std::string::npos && equals + 1 < argument.size())) {
      result.push_back(argument);
      continue;
    }
    result.push_back(known_to_cli11(flag) ? flag : cli11_names(*spec).front());
    if (!takes_value(*spec)) continue;
    if (equals != std::string::npos) {
      result.emplace_back();
    } else if (i + 1 < arguments.size()) {
      result.push_back(arguments[++i]);
    } else {
      throw Error(ErrorKind::Usage, fmt::format("option {} needs a value ({})", flag, value_name(*spec).substr(1)));
    }
  }
  return result;
}

[[noreturn]] void unknown_option(const std::string& argument, const Command* command, const Specs& specs) {
  std::vector<std::string> known{"--help", "--version"};
  for (const SettingSpec* spec : specs) {
    for (std::string& flag : flag_names(*spec)) known.push_back(std::move(flag));
    if (auto off = negated(*spec)) known.push_back(std::move(*off));
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = fmt::format("; see {} --help", program_name(command));
  throw Error(ErrorKind::Usage, "unknown option " + quoted_text(name) + hint);
}

// Splits what CLI11 left over into unknown options, which are errors, and positional arguments.
std::vector<std::string> positional_arguments(const std::vector<std::string>& rest, const Command* command,
                                              const Specs& specs) {
  std::vector<std::string> arguments;
  bool only_positional = false;
  for (const std::string& argument : rest) {
    if (!only_positional && argument == "--")
      only_positional = true;
    else if (!only_positional && argument.size() > 1 && argument.front() == '-')
      unknown_option(argument, command, specs);
    else
      arguments.push_back(argument);
  }
  const Positional positional = command == nullptr ? Positional{} : command->positional;
  if (arguments.size() > positional.max)
    throw Error(ErrorKind::Usage, fmt::format("unexpected argument {}; see {} --help",
                                              quoted_text(arguments[positional.max]), program_name(command)));
  if (arguments.size() < positional.min)
    throw Error(ErrorKind::Usage, fmt::format("{} is missing; see {} --help", positional.name, program_name(command)));
  return arguments;
}

// Takes the command word out of `arguments`: the first that is neither an option nor the value of a common one. A name
// with a dash may also be written as two words.
const Command* take_command(const Program& program, std::vector<std::string>& arguments, const Specs& common) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i].starts_with('-')) {
      const SettingSpec* spec = find_flag(common, arguments[i]);
      if (spec != nullptr && takes_value(*spec)) ++i;
      continue;
    }
    std::vector<std::string> names;
    for (const Command& command : program.commands)
      if (i + 1 < arguments.size() && command.name == arguments[i] + "-" + arguments[i + 1]) {
        const auto first = arguments.begin() + static_cast<std::ptrdiff_t>(i);
        arguments.erase(first, first + 2);
        return &command;
      }
    for (const Command& command : program.commands) {
      if (command.name == arguments[i]) {
        arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
        return &command;
      }
      names.emplace_back(command.name);
    }
    std::string hint = did_you_mean(arguments[i], names);
    if (hint.empty()) hint = "; see strata --help";
    throw Error(ErrorKind::Usage, "unknown command " + quoted_text(arguments[i]) + hint);
  }
  return nullptr;
}

}  // namespace

std::vector<const SettingSpec*> accepted_settings(const Command* command, const Settings& settings) {
  Specs specs;
  const auto accept = [&](std::string_view name) {
    const SettingSpec* spec = settings.find(name);
    if (spec == nullptr) throw Error(ErrorKind::Argument, "no setting is named " + quoted_text(name));
    specs.push_back(spec);
  };
  if (command != nullptr) {
    for (const SettingSpec& spec : command->own) accept(spec.name);
    for (const std::string_view name : command->settings) accept(name);
  }
  for (const std::string_view name : kEverywhere) accept(name);
  // Groups appear in the order of their first option; the common one closes the list.
  std::stable_partition(specs.begin(), specs.end(), [](const SettingSpec* spec) { return spec->group != kLastGroup; });
  return specs;
}

std::string help_text(const Program& program, const Command* command, const Settings& settings) {
  return make_parser(program, command, accepted_settings(command, settings)).help();
}

CommandLine parse_command_line(const Program& program, const std::vector<std::string>& arguments, Settings& settings) {
  CommandLine line;
  std::vector<std::string> rest = arguments;
  line.command = take_command(program, rest, accepted_settings(nullptr, settings));
  const Specs specs = accepted_settings(line.command, settings);
  Parser parser = make_parser(program, line.command, specs);
  rest = canonical(rest, specs);
  std::reverse(rest.begin(), rest.end());  // the order in which CLI11 takes a vector
  try {
    parser.app->parse(std::move(rest));
  } catch (const CLI::CallForHelp&) {
    return {.action = CommandLine::Action::Print, .text = parser.help()};
  } catch (const CLI::CallForVersion& version) {
    return {.action = CommandLine::Action::Print, .text = std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::Usage, error.what());
  }
  line.arguments = positional_arguments(parser.app->remaining(), line.command, specs);
  if (line.command == nullptr) throw Error(ErrorKind::Usage, "no command given; see strata --help");
  for (const auto& [spec, option] : parser.options)
    for (const std::string& value : option->results())
      settings.set(spec->name, value, SettingOrigin::Flag, display_name(*spec));
  return line;
}

}  // namespace strata::cli
