// The examples of docs/server.md against a running server: blocks of sh with the text that follows them, and blocks of
// python where the clients that they use are installed (TEST_PYTHON names an interpreter that has them).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "support/server_process.h"
#include "support/test_files.h"

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
      std::smatch module;
      ASSERT_TRUE(std::regex_search(text, module, std::regex("^(from|import) ([a-z]+)")));
      if (run({python, "-c", "import " + module[2].str()}).exit_code != 0) continue;
      const ProcessResult result = run({python, "-c", text});
      EXPECT_EQ(result.exit_code, 0) << result.err;
      EXPECT_NE(result.out.find("The ls command is used to list directory contents."), std::string::npos) << result.out;
      ++scripts;
    }
  }
  EXPECT_GE(shell, 7);
  if (std::filesystem::exists(python)) {
    EXPECT_GE(scripts, 1);  // the one that needs no client
  }
  std::printf("%d examples of the shell, %d of python\n", shell, scripts);
}

// The official npm clients of the OpenAI and Anthropic APIs, where `./run test` has fetched them.
TEST(ServerDocs, TheOfficialClientsWork) {
  const std::filesystem::path folder = STRATA_SOURCE_DIR "/build/clients";
  const std::string node = "/usr/bin/node";
  if (!std::filesystem::exists(node)) GTEST_SKIP() << "skipped: no node";
  if (!std::filesystem::exists(folder / "node_modules" / "openai")) GTEST_SKIP() << "skipped: no packages: ./run test";
  // Beside its packages, where node looks for them.
  const std::string script = (folder / "clients.mjs").string();
  std::filesystem::copy_file(STRATA_SOURCE_DIR "/tests/e2e/server/clients.mjs", script,
                             std::filesystem::copy_options::overwrite_existing);
  const ServerProcess server({"--draft", "auto"});
  const ProcessResult result = run({node, script, server.url()}, {"PATH=/usr/bin:/bin"}, {}, std::chrono::minutes(2));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("ok   openai: chat"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("ok   anthropic: messages"), std::string::npos) << result.out;
}

// The README's third command, with nothing to build: the page at the address that it prints.
TEST(ServerDocs, TheThirdCommandOfTheReadmeShowsThePage) {
  if (!std::filesystem::exists(STRATA_SOURCE_DIR "/build/release/strata")) GTEST_SKIP() << "skipped: no release build";
  std::ifstream file(STRATA_SOURCE_DIR "/README.md");
  std::vector<std::string> commands;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("    ./run ")) commands.push_back(line.substr(4, line.find(" #") - 4));
  ASSERT_GE(commands.size(), 3u);
  const TempFolder tools;
  for (const char* name : {"cmake", "apt-get"}) {
    std::filesystem::permissions(tools.write(name, "#!/bin/sh\n"), std::filesystem::perms::owner_all);
  }
  const Process server({"/bin/bash", "-c", "cd " STRATA_SOURCE_DIR " && exec " + commands[2] + " --port 0"},
                       {"PATH=" + tools.file("") + ":/usr/bin:/bin"});
  std::smatch found;
  std::string out;
  for (int i = 0; i < 500 && !std::regex_search(out, found, std::regex("http://127\\.0\\.0\\.1:([0-9]+)\n")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    out = server.out();
  }
  ASSERT_EQ(found.size(), 2u) << out << server.err();
  const RawConnection client(std::stoi(found[1]));
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string page = client.receive();
  EXPECT_NE(page.find(" 200 "), std::string::npos);
  EXPECT_NE(page.find("<title>Strata</title>"), std::string::npos);
}

}  // namespace
}  // namespace strata::test
