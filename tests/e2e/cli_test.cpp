// The built program from outside: exit codes, messages, help, settings and their precedence, Ctrl-C.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/process.h"

namespace strata::test {
namespace {

ProcessResult strata(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), STRATA_BINARY_DIR "/strata");
  return run(arguments, environment);
}

void expect_usage_error(const ProcessResult& result, const std::string& message) {
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "strata: error: " + message + "\n");
  EXPECT_EQ(result.out, "");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class TempFile {
 public:
  explicit TempFile(const std::string& name, const std::string& text = {})
      : path_(std::filesystem::temp_directory_path() / (name + "_" + std::to_string(::getpid()))) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The line of `strata config` that begins with "NAME =", spaces before the comment shortened.
std::string config_line(const ProcessResult& result, const std::string& name) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const size_t start = ("\n" + result.out).find("\n" + name + " =");
  if (start == std::string::npos) return {};
  std::string line = result.out.substr(start, result.out.find('\n', start) - start);
  line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
  return line;
}

TEST(Cli, NoArgumentsPrintHelpAndAreWrongUsage) {
  const ProcessResult result = strata({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "Usage: strata COMMAND"));
}

TEST(Cli, HelpListsCommands) {
  for (const char* flag : {"--help", "-h"}) {
    const ProcessResult result = strata({flag});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    for (const char* command : {"\n  config ", "\n  completion "})
      EXPECT_TRUE(contains(result.out, command)) << command;
  }
}

TEST(Cli, HelpShowsDefaultAllowedValuesAndVariable) {
  const ProcessResult result = strata({"config", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* part : {"Usage: strata config [options]", "-t, --threads N", "(0 to 1024)", "(default: 0)",
                           "(env: STRATA_THREADS)", "(error, warn, info, trace or debug)", "(env: STRATA_LOG_LEVEL)"})
    EXPECT_TRUE(contains(result.out, part)) << part;
}

TEST(Cli, HelpNeedsNoSoundEnvironment) {
  EXPECT_EQ(strata({"--help"}, {"STRATA_NONSENSE=1"}).exit_code, 0);
  EXPECT_EQ(strata({"--version"}, {"STRATA_NONSENSE=1"}).exit_code, 0);
}

TEST(Cli, Version) {
  const ProcessResult result = strata({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out.rfind("strata ", 0), 0u) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
}

TEST(Cli, WrongUsageIsOneLineWithTheNearestName) {
  expect_usage_error(strata({"confg"}), "unknown command \"confg\"; did you mean config?");
  expect_usage_error(strata({"frobnicate"}), "unknown command \"frobnicate\"; see strata --help");
  expect_usage_error(strata({"config", "--theads", "3"}), "unknown option \"--theads\"; did you mean --threads?");
  expect_usage_error(strata({"config", "--frobnicate=1"}), "unknown option \"--frobnicate\"; see strata config --help");
  expect_usage_error(strata({"config", "--threads"}), "option --threads needs a value (N)");
  expect_usage_error(strata({"config", "--threads", "x"}),
                     "--threads: threads cannot be \"x\": not a whole number of 64 bits; allowed: 0 to 1024");
  expect_usage_error(strata({"config", "extra"}), "unexpected argument \"extra\"; see strata config --help");
  expect_usage_error(strata({"completion"}), "SHELL is missing; see strata completion --help");
  expect_usage_error(strata({"-v"}), "no command given; see strata --help");
}

TEST(Cli, UnknownOrWrongVariable) {
  expect_usage_error(strata({"config"}, {"STRATA_THREDS=3"}),
                     "unknown environment variable \"STRATA_THREDS\"; did you mean STRATA_THREADS?");
  expect_usage_error(strata({"config"}, {"STRATA_THREADS=-3"}),
                     "STRATA_THREADS: threads cannot be \"-3\": out of range; allowed: 0 to 1024");
  EXPECT_EQ(strata({"config"}, {"STRATAGEM=3", "OTHER=1"}).exit_code, 0);
}

TEST(Cli, ConfigShowsOriginAndPrecedence) {
  const TempFile file("settings", "threads = 3\nlog_level = warn # quiet\n");
  const std::vector<std::string> with_file{"config", "--config", file.path()};
  EXPECT_EQ(config_line(strata({"config"}), "threads"), "threads = 0 # default");
  EXPECT_EQ(config_line(strata(with_file), "threads"), "threads = 3 # file " + file.path() + ":1");
  EXPECT_EQ(config_line(strata({"config"}, {"STRATA_CONFIG=" + file.path()}), "log_level"),
            "log_level = warn # file " + file.path() + ":2");
  EXPECT_EQ(config_line(strata(with_file, {"STRATA_THREADS=5"}), "threads"),
            "threads = 5 # environment STRATA_THREADS");
  std::vector<std::string> with_flag = with_file;
  with_flag.insert(with_flag.end(), {"-t", "7"});
  EXPECT_EQ(config_line(strata(with_flag, {"STRATA_THREADS=5"}), "threads"), "threads = 7 # flag --threads");
}

TEST(Cli, ConfigReadsItsOwnOutput) {
  const std::vector<std::string> environment{"STRATA_STRICT_ARMS=1", "STRATA_LOG_FILE=/tmp/a #b", "STRATA_THREADS=9"};
  const TempFile file("settings", strata({"config"}, environment).out);
  const ProcessResult result = strata({"config", "--config", file.path()});
  EXPECT_EQ(config_line(result, "strict_arms").substr(0, 20), "strict_arms = true #");
  EXPECT_EQ(config_line(result, "threads").substr(0, 13), "threads = 9 #");
  EXPECT_EQ(config_line(result, "log_file").substr(0, 25), "log_file = \"/tmp/a #b\" # ");
  std::filesystem::remove("/tmp/a #b");
}

TEST(Cli, ConfigAsJson) {
  const ProcessResult result = strata({"config", "--json"}, {"STRATA_THREADS=9"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.out, "\"threads\": {\n    \"value\": 9,\n    \"origin\": \"environment\"")) << result.out;
}

TEST(Cli, GlobalOptionsStandBeforeOrAfterTheCommand) {
  EXPECT_EQ(config_line(strata({"--log-level", "error", "config"}), "log_level"),
            "log_level = error # flag --log-level");
  EXPECT_EQ(config_line(strata({"config", "--log-level=error"}), "log_level"), "log_level = error # flag --log-level");
}

TEST(Cli, FilesThatFail) {
  const ProcessResult absent = strata({"config", "--config", "/absent/strata.conf"});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_EQ(absent.err, "strata: error: /absent/strata.conf: cannot open: No such file or directory\n");
  EXPECT_EQ(strata({"config", "--log-file", "/absent/log"}).exit_code, 1);
  const TempFile file("settings", "threads = 1\nthraeds = 2\n");
  expect_usage_error(strata({"config", "--config", file.path()}),
                     file.path() + ":2: unknown setting \"thraeds\"; did you mean threads?");
}

TEST(Cli, FullDiskIsAnError) {
  const std::string command = STRATA_BINARY_DIR "/strata config > /dev/full";
  const ProcessResult result = run({"/bin/sh", "-c", command});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "strata: error: standard output: cannot write; is the disk full?\n");
}

TEST(Cli, BashCompletionIsValidAndCompletes) {
  const ProcessResult script = strata({"completion", "bash"});
  ASSERT_EQ(script.exit_code, 0);
  const auto complete = [&](const std::string& words, int index) {
    return run({"/bin/bash", "-c",
                script.out + "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(index) +
                    "; _strata; echo \"${COMPREPLY[@]}\""})
        .out;
  };
  EXPECT_EQ(complete("strata conf", 1), "config\n");
  EXPECT_EQ(complete("strata config --th", 2), "--threads\n");
  EXPECT_EQ(complete("strata config --log-level tr", 3), "trace\n");
  EXPECT_EQ(strata({"completion", "fish"}).exit_code, 2);
}

// A config file that is a pipe with an idle writer keeps the program waiting in a read.
TEST(Cli, CtrlCEndsWith130) {
  const std::string pipe = std::filesystem::temp_directory_path() / ("pipe_" + std::to_string(::getpid()));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Process process({STRATA_BINARY_DIR "/strata", "config", "--config", pipe});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int writer = -1;  // opens only once the program has opened its end
  while ((writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::filesystem::remove(pipe);
  ASSERT_GE(writer, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // from its open() to its read(): microseconds
  process.send(SIGINT);
  const ProcessResult result = process.wait(std::chrono::seconds(20));
  ::close(writer);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(ProcessHelper, ReportsSignalsTimeAndInput) {
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -TERM $$"}).signal, SIGTERM);
  EXPECT_EQ(run({"/bin/sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(run({"/bin/cat"}, {}, std::string(200000, 'x')).out, std::string(200000, 'x'));
  EXPECT_EQ(run({"/bin/sh", "-c", "echo $ONLY; echo err >&2"}, {"ONLY=this"}).out, "this\n");
  const ProcessResult slow = run({"/bin/sleep", "30"}, {}, {}, std::chrono::milliseconds(50));
  EXPECT_TRUE(slow.timed_out);
  EXPECT_EQ(slow.signal, SIGKILL);
  EXPECT_THROW(run({"/absent/program"}), std::runtime_error);
}

}  // namespace
}  // namespace strata::test
