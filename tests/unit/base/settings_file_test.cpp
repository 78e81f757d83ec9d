#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/settings.h"
#include "base/settings_text.h"

namespace strata {
namespace {

constexpr std::array kSpecs{
    SettingSpec{.name = "threads", .type = SettingType::Int, .default_text = "0", .min = 0, .max = 64},
    SettingSpec{.name = "system"},
    SettingSpec{.name = "stop", .repeatable = true},
    SettingSpec{.name = "prompt", .flags = "-p,--prompt", .persistent = false},
};

class SettingsFile : public ::testing::Test {
 protected:
  SettingsFile() : path_(std::filesystem::temp_directory_path() / ("settings_" + std::to_string(::getpid()))) {}
  ~SettingsFile() override { std::filesystem::remove(path_); }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  void load(const std::string& text, Settings& settings) const {
    write(text);
    settings.load_file(path_.string());
  }

  // What follows the path in the error that loading `text` raises: ":LINE: message".
  std::string refused(const std::string& text) const {
    Settings settings({kSpecs});
    try {
      load(text, settings);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      const std::string message = error.what();
      EXPECT_EQ(message.rfind(path_.string(), 0), 0u) << message;
      return message.substr(path_.string().size());
    }
    ADD_FAILURE() << "accepted: " << text;
    return {};
  }

  std::string loaded(const std::string& value) const {
    Settings settings({kSpecs});
    load("system = " + value, settings);
    return settings.get_text("system");
  }

  std::filesystem::path path_;
};

TEST_F(SettingsFile, LinesCommentsAndLists) {
  Settings settings({kSpecs});
  load("# head\r\n\n  threads=4   # four\r\nstop = one\nstop = two\n\tsystem\t=\tYou are C#, not C", settings);
  EXPECT_EQ(settings.get_int("threads"), 4);
  const std::vector<std::string> stops{"one", "two"};
  EXPECT_EQ(settings.get_texts("stop"), stops);
  EXPECT_EQ(settings.get_text("system"), "You are C#, not C");
  EXPECT_EQ(settings.origin("threads"), SettingOrigin::File);
  EXPECT_EQ(settings.effective().front().source, path_.string() + ":3");
}

TEST_F(SettingsFile, QuotedValues) {
  EXPECT_EQ(loaded(R"("a # b"  # comment)"), "a # b");
  EXPECT_EQ(loaded(R"("\n\r\t\"\\\x41\x7f")"), "\n\r\t\"\\A\x7f");
  EXPECT_EQ(loaded(R"("")"), "");
  EXPECT_EQ(loaded(R"("a = b")"), "a = b");
}

TEST_F(SettingsFile, ErrorsNameFileAndLine) {
  EXPECT_EQ(refused("threads = 1\n\nthraeds = 2\n"), ":3: unknown setting \"thraeds\"; did you mean threads?");
  EXPECT_EQ(refused("threads = 65"), ":1: threads cannot be \"65\": out of range; allowed: 0 to 64");
  EXPECT_EQ(refused("threads = 1\nthreads = 1"), ":2: \"threads\" already stands in line 1");
  EXPECT_EQ(refused("threads 1"), ":1: expected key = value, found \"threads 1\"");
  EXPECT_EQ(refused("prompt = x"), ":1: prompt cannot stand in a config file; use --prompt or STRATA_PROMPT");
  EXPECT_EQ(refused("= x"), ":1: unknown setting \"\"");
  EXPECT_EQ(refused("[section]"), ":1: expected key = value, found \"[section]\"");
  for (const char* bad : {R"(")", R"("a)", R"("a\)", R"("a\")", R"("\q")", R"("\x4")", R"("\x4g")", R"("a" b)"})
    refused(std::string("system = ") + bad);
}

TEST_F(SettingsFile, FileThatCannotBeRead) {
  Settings settings({kSpecs});
  const auto kind_of = [&](const std::string& path) {
    try {
      settings.load_file(path);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::Interrupted;
  };
  EXPECT_EQ(kind_of(path_.string() + ".absent"), ErrorKind::File);
  EXPECT_EQ(kind_of(path_.parent_path().string()), ErrorKind::File);  // a directory
  write(std::string((1u << 20) + 1, '#'));
  EXPECT_EQ(kind_of(path_.string()), ErrorKind::File);  // above the limit of 1 MiB
  write(std::string(1u << 20, '#'));
  EXPECT_NO_THROW(settings.load_file(path_.string()));
}

TEST_F(SettingsFile, WrittenValuesAreReadBack) {
  for (const char* value : {"plain", "", " ", "#", "a #b", "a#b", "\"", "\"a\"", "a\nb", "\t", "\\n", "x \\", "\r"})
    EXPECT_EQ(loaded(config_text(value)), value);
  EXPECT_TRUE(rc::check("any bytes", [this] {
    const std::string value = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    RC_ASSERT(loaded(config_text(value)) == value);
  }));
}

TEST_F(SettingsFile, AnyBytesAreReadOrRefused) {
  EXPECT_TRUE(rc::check("any bytes", [this] {
    const std::string text = *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
        {{1, rc::gen::arbitrary<char>()}, {3, rc::gen::element('=', '"', '\\', '#', '\n', 'x', ' ', '4')}}));
    Settings settings({kSpecs});
    try {
      load("system=" + text, settings);
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::Usage);
    }
  }));
}

}  // namespace
}  // namespace strata
