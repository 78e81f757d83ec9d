// The direction of dependence between the rooms of src/, and what must not appear in them: scans the sources.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kSource = STRATA_SOURCE_DIR "/src";

// What each room may include, apart from itself.
const std::map<std::string, std::set<std::string>> kMayUse = {
    {"base", {}},
    {"gguf", {"base"}},
    {"cache", {"base", "device"}},
    {"text", {"base"}},
    {"device", {"base"}},
    {"evidence", {"base", "device"}},
    {"ops", {"base", "gguf", "device", "evidence"}},
    {"model", {"base", "gguf", "cache", "device", "ops"}},
    {"runtime", {"base", "gguf", "cache", "text", "device", "ops", "model"}},
    {"measure", {"base", "gguf", "cache", "text", "device", "evidence", "ops", "model", "runtime"}},
    {"server", {"base", "gguf", "text", "device", "evidence", "model", "runtime"}},
    {"cli", {"base", "gguf", "text", "device", "evidence", "ops", "model", "runtime", "measure", "server"}},
};

const std::set<std::string> kGenerated = {"version_commit.h", "source_hashes.h"};

struct Line {
  std::string file;
  int number;
  std::string text;
};

std::vector<Line> source_lines() {
  std::vector<Line> lines;
  for (const auto& entry : fs::recursive_directory_iterator(kSource)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
    std::ifstream file(entry.path());
    int number = 0;
    for (std::string text; std::getline(file, text);)
      lines.push_back({fs::relative(entry.path(), kSource).string(), ++number, text});
  }
  return lines;
}

std::string room_of(const std::string& path) { return path.substr(0, path.find('/')); }

// Empty when the include is allowed.
std::string forbidden(const std::string& file, const std::string& included) {
  const auto rule = kMayUse.find(room_of(file));
  if (rule == kMayUse.end()) return "unknown room";
  const std::string room = room_of(included);
  if (room == rule->first || rule->second.contains(room)) return {};
  return kMayUse.contains(room) ? room_of(file) + " must not use " + room : "not a path from src/";
}

TEST(House, IncludesFollowTheDirection) {
  const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  int checked = 0;
  for (const Line& line : source_lines()) {
    std::smatch match;
    if (!std::regex_search(line.text, match, include) || match[1].str().find(".inc") != std::string::npos) continue;
    if (kGenerated.contains(match[1].str())) continue;
    ++checked;
    EXPECT_EQ(forbidden(line.file, match[1]), "") << "src/" << line.file << ":" << line.number << ": " << line.text;
  }
  EXPECT_GT(checked, 200);
}

TEST(House, TheRuleItselfRefuses) {
  EXPECT_EQ(forbidden("ops/norm/cpu.cpp", "base/fmath.h"), "");
  EXPECT_NE(forbidden("ops/norm/cpu.cpp", "model/spec.h"), "");
  EXPECT_NE(forbidden("gguf/quant.cpp", "ops/norm/norm.h"), "");
  EXPECT_NE(forbidden("text/bpe.cpp", "gguf/gguf.h"), "");
  EXPECT_NE(forbidden("base/log.h", "device/device.h"), "");
}

TEST(House, FilesStayShort) {
  std::map<std::string, int> length;
  for (const Line& line : source_lines()) length[line.file] = line.number;
  for (const auto& [file, lines] : length) EXPECT_LE(lines, 620) << "src/" << file;
}

// Settings come from the registry, errors are exceptions, checks are code.
TEST(House, NoGetenvExitOrAssert) {
  const std::regex call("(^|[^_.A-Za-z0-9:>])(std::)?(getenv|exit|abort|_exit|assert)\\s*\\(");
  for (const Line& line : source_lines()) {
    const std::string code = line.text.substr(0, line.text.find("//"));
    EXPECT_FALSE(std::regex_search(code, call)) << "src/" << line.file << ":" << line.number << ": " << line.text;
  }
}

}  // namespace
