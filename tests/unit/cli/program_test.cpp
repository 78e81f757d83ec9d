// The frame around commands, with commands made for the purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/settings_text.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/common_settings.h"

namespace strata::cli {
namespace {

constexpr std::array kProbe{
    SettingSpec{.name = "layers",
                .flags = "-ngl,--gpu-layers",
                .type = SettingType::Int,
                .default_text = "0",
                .min = 0,
                .max = 99},
    SettingSpec{.name = "predict", .flags = "-n,--predict", .type = SettingType::Int, .default_text = "-1"},
    SettingSpec{.name = "prompt", .flags = "-p,--prompt", .persistent = false},
    SettingSpec{.name = "stop", .repeatable = true},
    SettingSpec{.name = "cache", .type = SettingType::Bool, .default_text = "true", .help = "reuse prompts"},
    SettingSpec{.name = "no_offload", .flags = "-nkvo", .type = SettingType::Bool, .default_text = "false"},
};

int print_probe(CommandContext& context) {
  const Settings& settings = context.settings;
  std::string text = std::to_string(settings.get_int("layers")) + " " + std::to_string(settings.get_int("predict")) +
                     " <" + settings.get_text("prompt") + ">" + (settings.get_bool("cache") ? " cache" : "") +
                     (settings.get_bool("no_offload") ? " host" : "");
  for (const std::string& stop : settings.get_texts("stop")) text += " stop:" + stop;
  for (const std::string& argument : context.arguments) text += " [" + argument + "]";
  if (!settings.get_text("arm.matmul").empty()) text += " arm:" + settings.get_text("arm.matmul");
  std::fputs((text + "\n").c_str(), stdout);
  return 0;
}

int fail(CommandContext& context) {
  const std::string& how = context.arguments.front();
  if (how == "memory") throw std::bad_alloc();
  if (how == "length") throw std::length_error("two\nlines");
  for (const ErrorKind kind : {ErrorKind::Usage, ErrorKind::File, ErrorKind::Evidence, ErrorKind::Interrupted})
    if (how == to_string(kind)) throw Error(kind, "reason", "place");
  return std::stoi(how);
}

int log_all(CommandContext& context) {
  context.log.info("info line");
  context.log.debug("debug line");
  return 0;
}

Program probe_program() {
  return {
      .commands = {{.name = "probe",
                    .summary = "Print what was given.",
                    .own = kProbe,
                    .settings = {"arm"},
                    .positional = {.name = "WORD", .help = "any word", .max = 3},
                    .run = print_probe},
                   {.name = "fail", .summary = "Fail.", .positional = {.name = "HOW", .min = 1, .max = 1}, .run = fail},
                   {.name = "log", .summary = "Log.", .run = log_all}},
      .settings = {common_settings()},
      .operators = {"matmul"}};
}

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result run(const std::vector<std::string>& arguments, bool interrupted = false) {
  const char* environment[] = {nullptr};
  std::atomic<bool> flag{interrupted};
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run_program(probe_program(), arguments, environment, flag);
  const std::string out = ::testing::internal::GetCapturedStdout();
  return {code, out, ::testing::internal::GetCapturedStderr()};
}

std::string probe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "probe");
  const Result result = run(arguments);
  return result.code == 0 ? result.out : result.err;
}

TEST(CommandLine, FormsOfOptions) {
  EXPECT_EQ(probe({}), "0 -1 <> cache\n");
  for (const std::vector<std::string>& form : std::vector<std::vector<std::string>>{
           {"-n", "5"}, {"-n5"}, {"--predict", "5"}, {"--predict=5"}, {"-n", "4", "-n", "5"}})
    EXPECT_EQ(probe(form), "0 5 <> cache\n");
  EXPECT_EQ(probe({"-n", "-1"}), "0 -1 <> cache\n");
}

TEST(CommandLine, SingleDashNamesOfSeveralLetters) {
  EXPECT_EQ(probe({"-ngl", "7", "-n", "3", "-nkvo"}), "7 3 <> cache host\n");
  EXPECT_EQ(probe({"-ngl"}), "strata: error: option -ngl needs a value (N)\n");
  EXPECT_EQ(probe({"-nglx", "7"}),
            "strata: error: --predict: predict cannot be \"glx\": not a whole number of 64 bits\n");
}

TEST(CommandLine, ValuesAreTakenAsTheyAre) {
  for (const char* value : {"", " ", "-", "--", "-n", "-ngl", "--predict", "[a,b]", "a,b", "a\nb", "probe", "++", "{}",
                            "\"q\"", "%x", "=", "--no-such=1", "\xff\xfe"}) {
    EXPECT_EQ(probe({"-p", value}), "0 -1 <" + std::string(value) + "> cache\n");
    EXPECT_EQ(probe({"--prompt=" + std::string(value)}), "0 -1 <" + std::string(value) + "> cache\n");
  }
}

TEST(CommandLine, ListsKeepOrder) {
  EXPECT_EQ(probe({"--stop", "[x]", "-n", "2", "--stop", "", "--stop", "z"}), "0 2 <> cache stop:[x] stop: stop:z\n");
}

TEST(CommandLine, Switches) {
  EXPECT_EQ(probe({"--no-cache"}), "0 -1 <>\n");
  EXPECT_EQ(probe({"--cache=off"}), "0 -1 <>\n");
  EXPECT_EQ(probe({"--no-cache", "--cache"}), "0 -1 <> cache\n");
  EXPECT_EQ(probe({"--cache=maybe"}),
            "strata: error: --cache: cache cannot be \"maybe\": neither true nor false; allowed: "
            "true/on/enabled/1 or false/off/disabled/0\n");
}

TEST(CommandLine, PositionalArguments) {
  EXPECT_EQ(probe({"a", "-n", "2", "[b,c]", "--", "-n"}), "0 2 <> cache [a] [[b,c]] [-n]\n");
  EXPECT_EQ(probe({"-", "", "++"}), "0 -1 <> cache [-] [] [++]\n");
  EXPECT_EQ(probe({"probe", "fail"}), "0 -1 <> cache [probe] [fail]\n");
  EXPECT_EQ(probe({"a", "b", "c", "d"}), "strata: error: unexpected argument \"d\"; see strata probe --help\n");
}

TEST(CommandLine, Arms) {
  EXPECT_EQ(probe({"--arm", "matmul=avx2"}), "0 -1 <> cache arm:avx2\n");
  EXPECT_EQ(probe({"--arm", "matmlu=avx2"}),
            "strata: error: --arm: unknown operator \"matmlu\"; did you mean matmul?\n");
}

TEST(CommandLine, OptionOfAnotherCommandIsUnknown) {
  EXPECT_EQ(run({"fail", "--predict", "3", "1"}).err,
            "strata: error: unknown option \"--predict\"; see strata fail --help\n");
}

TEST(CommandLine, Help) {
  const std::string help = probe({"--help"});
  for (const char* part : {"Print what was given.\n\nUsage: strata probe [options] [WORD...]\n", "\n  WORD ",
                           "any word", "  -ngl, --gpu-layers N", "(0 to 99) (default: 0) (env: STRATA_LAYERS)",
                           "      --cache, --no-cache", "reuse prompts (default: true) (env: STRATA_CACHE)",
                           "(repeatable)", "\nGeneral:\n", "\nArms:\n", "\nCommon:\n"})
    EXPECT_NE(help.find(part), std::string::npos) << part << "\nin\n" << help;
  EXPECT_LT(help.find("\nGeneral:\n"), help.find("\nCommon:\n"));
}

TEST(Program, ExitCodesOfErrors) {
  EXPECT_EQ(run({"fail", "0"}).code, 0);
  EXPECT_EQ(run({"fail", "3"}).code, 3);
  const auto expect = [](const char* how, int code, const std::string& message) {
    const Result result = run({"fail", how});
    EXPECT_EQ(result.code, code) << how;
    EXPECT_EQ(result.err, "strata: error: " + message + "\n");
  };
  expect("usage", 2, "place: reason");
  expect("file", 1, "place: reason");
  expect("evidence", 3, "place: reason");
  expect("interrupted", 130, "place: reason");
  expect("memory", 1, "out of memory; use a smaller context, batch or model");
  expect("length", 1, "internal error: two lines");
}

TEST(Program, ErrorAfterCtrlCIsAnInterruption) {
  EXPECT_EQ(run({"fail", "file"}, true).code, 130);
  EXPECT_EQ(run({"fail", "0"}, true).code, 0);  // it finished all the same
}

TEST(Program, LogLevels) {
  EXPECT_EQ(run({"log"}).err, "info: info line\n");
  EXPECT_EQ(run({"log", "--log-level", "error"}).err, "");
  EXPECT_EQ(run({"log", "-v"}).err, "info: info line\ndebug: debug line\n");
}

// Building the parser of a command fails when two of its options share a name.
TEST(Program, EveryCommandExplainsEveryOption) {
  const Program program = strata_program();
  std::vector<std::span<const SettingSpec>> groups = program.settings;
  for (const Command& command : program.commands) groups.push_back(command.own);
  const Settings settings(groups, program.operators);
  for (const Command& command : program.commands) {
    const std::string help = help_text(program, &command, settings);
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_NE(command.run, nullptr) << command.name;
    for (const SettingSpec* spec : accepted_settings(&command, settings)) {
      EXPECT_FALSE(spec->help.empty()) << spec->name;
      if (spec->name == "arm") continue;
      EXPECT_NE(help.find("(env: " + variable_name(spec->name) + ")"), std::string::npos) << spec->name;
    }
  }
}

}  // namespace
}  // namespace strata::cli
