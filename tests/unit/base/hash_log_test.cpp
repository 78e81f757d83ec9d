#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/log.h"

namespace strata {
namespace {

// Values that the XXH3 specification's reference implementation gives; records and state files depend on them.
TEST(Hash, KnownValues) {
  EXPECT_EQ(hash64("", 0), 0x2d06800538d394c2u);
  EXPECT_EQ(hash64("", 0, 1), 0x4dc5b0cc826f6703u);
  EXPECT_NE(hash64("a", 1), hash64("b", 1));
  EXPECT_NE(hash64("a", 1), hash64("a", 1, 1));
}

TEST(Hash, HexHasSixteenDigits) {
  EXPECT_EQ(hash_hex(0), "0000000000000000");
  EXPECT_EQ(hash_hex(0x0123456789abcdefu), "0123456789abcdef");
  EXPECT_EQ(hash_hex(0xfedcba9876543210u), "fedcba9876543210");
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class LogTest : public ::testing::Test {
 protected:
  std::string written() {
    std::rewind(file_.get());
    std::string text(65536, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }
  std::unique_ptr<std::FILE, CloseFile> file_{std::tmpfile()};
};

TEST_F(LogTest, LevelsDecideWhatIsWritten) {
  Log log(LogLevel::Warn, file_.get());
  log.error("one");
  log.warn("two");
  log.info("three");
  log.set_level(LogLevel::Debug);
  log.info("four");
  log.write(LogLevel::Trace, "five");
  log.debug("six");
  EXPECT_EQ(written(), "error: one\nwarn: two\ninfo: four\ntrace: five\ndebug: six\n");
}

TEST_F(LogTest, NamesOfLevels) {
  EXPECT_EQ(log_level_from_name("error"), LogLevel::Error);
  EXPECT_EQ(log_level_from_name("debug"), LogLevel::Debug);
  for (const char* name : {"", "Error", "verbose", "infos"}) EXPECT_EQ(log_level_from_name(name), std::nullopt) << name;
}

TEST_F(LogTest, LinesOfSeveralThreadsStayWhole) {
  Log log(LogLevel::Info, file_.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 100; ++i) log.info(std::string(20, static_cast<char>('a' + t)));
    });
  for (std::thread& thread : threads) thread.join();
  const std::string text = written();
  int lines = 0;
  for (size_t start = 0; start < text.size(); ++lines) {
    const size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    ASSERT_EQ(line.size(), 26u);
    EXPECT_EQ(line, "info: " + std::string(20, line.back()));
    start = end + 1;
  }
  EXPECT_EQ(lines, 400);
}

}  // namespace
}  // namespace strata
