// The page: what the program holds of it, and its own tests (*.test.mjs), which need node, the packages of web/, and
// for the browser Chromium. `./run test` fetches them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "server/web_assets.h"
#include "support/process.h"
#include "support/server_process.h"

namespace {

namespace fs = std::filesystem;
using strata::server::web_assets;
using strata::server::WebAsset;

const fs::path kSource = STRATA_SOURCE_DIR;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(WebAssets, AreTheFilesOfTheBuiltPage) {
  std::set<std::string> paths, tags;
  for (const WebAsset& asset : web_assets()) {
    const std::string name = asset.path == "/" ? "index.html" : std::string(asset.path.substr(1));
    EXPECT_EQ(std::string(asset.bytes.begin(), asset.bytes.end()), contents(kSource / "web" / "dist" / name)) << name;
    EXPECT_FALSE(asset.bytes.empty()) << name;
    EXPECT_TRUE(paths.insert(std::string(asset.path)).second) << name;
    EXPECT_TRUE(tags.insert(std::string(asset.etag)).second) << name;
    EXPECT_EQ(asset.etag.size(), 18u) << name;
  }
  EXPECT_EQ(paths, (std::set<std::string>{"/", "/icon.svg", "/page.css", "/page.js"}));
}

TEST(WebAssets, ThePolicyAllowsNothingButThePage) {
  const std::string policy(strata::server::kWebPolicy);
  for (const char* part : {"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
                           "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"})
    EXPECT_NE(policy.find(part), std::string::npos) << part;
  for (const char* part : {"unsafe", "http", "*"}) EXPECT_EQ(policy.find(part), std::string::npos) << part;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "" when no folder of PATH has it.
std::string find_program(const std::string& name) {
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/" + name; ::access(path.c_str(), X_OK) == 0) return path;
  return {};
}

// Why the page's tests cannot run; "" when they can.
std::string missing(const std::string& node) {
  if (node.empty()) return "no node";
  const std::string old = "process.exit(Number(process.versions.node.split('.')[0]) < 18 ? 1 : 0)";
  if (strata::test::run({node, "-e", old}).exit_code != 0) return "node is older than 18";
  if (!fs::exists(kSource / "web" / "node_modules")) return "no packages: npm ci in web/";
  return {};
}

void run_page_test(const std::vector<std::string>& names, const std::string& chromium = {},
                   const std::string& url = {}) {
  const std::string node = find_program("node");
  if (const std::string reason = missing(node); !reason.empty()) GTEST_SKIP() << "skipped: " << reason;
  std::vector<std::string> command{node, "--test"};
  for (const std::string& name : names) command.push_back((kSource / "tests" / "web" / (name + ".test.mjs")).string());
  const strata::test::ProcessResult result =
      strata::test::run(command,
                        {"PATH=" + variable("PATH"), "HOME=" + variable("HOME"), "CHROMIUM=" + chromium,
                         "STRATA_URL=" + url, "SCREENSHOTS=" STRATA_BINARY_DIR "/screenshots"},
                        {}, std::chrono::minutes(5));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out.find("# tests 0"), std::string::npos) << result.out;
}

TEST(WebPage, ReadsStreamsAndMarkdown) { run_page_test({"sse", "markdown"}); }

TEST(WebPage, IsBuiltFromItsSource) { run_page_test({"dist"}); }

TEST(WebPage, WorksInABrowser) {
  const std::string chromium = find_program("chromium");
  if (chromium.empty()) GTEST_SKIP() << "skipped: no chromium";
  run_page_test({"browser"}, chromium);
}

TEST(WebPage, WorksWithTheServer) {
  const std::string chromium = find_program("chromium");
  if (chromium.empty()) GTEST_SKIP() << "skipped: no chromium";
  const strata::test::ServerProcess server({"-m", STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf"});
  run_page_test({"live"}, chromium, server.url() + "/");
  if (HasFailure()) ADD_FAILURE() << server.err();
}

}  // namespace
