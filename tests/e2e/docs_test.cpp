// Every command of the README and of docs/ is run, and its output compared with the page. Blocks begin with ```console;
// numbers may differ (rates, sizes), and under ```console varies only success is asked for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "support/process.h"

namespace strata::test {
namespace {

const std::string kRoot = STRATA_SOURCE_DIR;

struct Shown {
  std::string where, command, output;
  bool varies = false;
};

std::vector<Shown> commands_of(const std::filesystem::path& page) {
  std::vector<Shown> list;
  std::ifstream file(page);
  bool inside = false, varies = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside && line.starts_with("```console");
      varies = line == "```console varies";
    } else if (inside && line.starts_with("$ ")) {
      list.push_back({page.filename().string() + ":" + std::to_string(number), line.substr(2), "", varies});
    } else if (inside && !list.empty()) {
      list.back().output += line + "\n";
    }
  }
  return list;
}

std::string comparable(std::string text) {
  text = std::regex_replace(text, std::regex("arms: .*"), "arms: (those of this processor)");
  text = std::regex_replace(text, std::regex("[0-9]+(\\.[0-9]+)?"), "#");
  return std::regex_replace(text, std::regex("[ \t]+\n"), "\n");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(Docs, CommandsPrintWhatThePagesShow) {
  std::vector<std::filesystem::path> pages{kRoot + "/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  int count = 0;
  for (const auto& page : pages)
    for (const Shown& shown : commands_of(page)) {
      SCOPED_TRACE(shown.where + ": " + shown.command);
      const std::string command = replaced(shown.command, "build/release/strata", STRATA_BINARY_DIR "/strata");
      const ProcessResult result =
          run({"/bin/bash", "-c", "cd '" + kRoot + "' && { " + command + "\n} 2>&1"}, {"PATH=/usr/bin:/bin"});
      if (shown.varies)
        EXPECT_EQ(result.exit_code, 0) << result.out;
      else
        EXPECT_EQ(comparable(result.out), comparable(shown.output));
      ++count;
    }
  EXPECT_GE(count, 9);
}

}  // namespace
}  // namespace strata::test
