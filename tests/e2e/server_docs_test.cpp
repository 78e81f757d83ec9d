// The examples of docs/server.md against a running server: blocks of sh with the text that follows them, and blocks of
// python where the clients that they use are installed (TEST_PYTHON names an interpreter that has them).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "support/server_process.h"

namespace strata::test {
namespace {

struct Block {
  std::string language, text;
  int line;
};

std::vector<Block> blocks_of(const std::string& path) {
  std::vector<Block> blocks;
  std::ifstream file(path);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), "", number});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

TEST(ServerDocs, ExamplesWork) {
  const ServerProcess server;
  const std::string python = std::getenv("TEST_PYTHON") != nullptr ? std::getenv("TEST_PYTHON") : "/usr/bin/python3";
  const std::vector<Block> blocks = blocks_of(STRATA_SOURCE_DIR "/docs/server.md");
  int shell = 0, scripts = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string text =
        std::regex_replace(blocks[i].text, std::regex("http://127\\.0\\.0\\.1:8080"), server.url());
    SCOPED_TRACE("docs/server.md:" + std::to_string(blocks[i].line));
    if (blocks[i].language == "sh") {
      const ProcessResult result = run({"/bin/bash", "-e", "-o", "pipefail"}, {"PATH=/usr/bin:/bin"}, text);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      ASSERT_LT(i + 1, blocks.size());
      ASSERT_EQ(blocks[i + 1].language, "text");
      std::string out = result.out;
      if (!out.ends_with("\n")) out += "\n";
      EXPECT_EQ(out, blocks[i + 1].text);
      ++shell;
    } else if (blocks[i].language == "python") {
      const std::string module = text.substr(5, text.find(' ', 5) - 5);
      if (run({python, "-c", "import " + module}).exit_code != 0) continue;
      const ProcessResult result = run({python, "-c", text});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_NE(result.out.find("The ls command is used to list directory contents."), std::string::npos) << result.out;
      ++scripts;
    }
  }
  EXPECT_GE(shell, 6);
  std::printf("%d examples of the shell, %d of python\n", shell, scripts);
}

}  // namespace
}  // namespace strata::test
