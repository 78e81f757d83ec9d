#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() : folder_(fs::temp_directory_path() / ("strata_files_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string create(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  fs::path folder_;
};

template <typename Action>
void expect_file_error(Action action, const std::string& path) {
  try {
    action();
    ADD_FAILURE() << "no error for " << path;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::File) << error.what();
    EXPECT_EQ(error.where(), path);
    EXPECT_FALSE(error.message().empty());
  }
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(FileTest, MapsWholeFilesAndEmptyOnes) {
  const MappedFile file(create("a", "hello"));
  EXPECT_EQ(text_of(file), "hello");
  EXPECT_EQ(file.size(), 5u);
  EXPECT_EQ(file.path(), path("a"));
  EXPECT_EQ(MappedFile(create("empty", "")).size(), 0u);
}

TEST_F(FileTest, RefusesWhatIsNoRegularFile) {
  expect_file_error([&] { MappedFile file(path("absent")); }, path("absent"));
  expect_file_error([&] { MappedFile file(folder_.string()); }, folder_.string());
  expect_file_error([&] { MappedFile file("/dev/null"); }, "/dev/null");
}

TEST_F(FileTest, MovesTakeTheMappingAlong) {
  MappedFile first(create("a", "hello"));
  MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second), "hello");
  MappedFile third(create("b", "other"));
  third = std::move(second);
  EXPECT_EQ(text_of(third), "hello");
}

TEST_F(FileTest, ShrinkingIsVisible) {
  const MappedFile file(create("a", "hello"));
  EXPECT_EQ(file.size_on_disk(), 5u);
  fs::resize_file(path("a"), 2);
  EXPECT_EQ(file.size_on_disk(), 2u);
  EXPECT_EQ(file.size(), 5u);
}

TEST_F(FileTest, ReadFileKeepsToItsLimit) {
  const std::string text(200000, 'x');
  create("a", text);
  EXPECT_EQ(read_file(path("a"), text.size()), text);
  expect_file_error([&] { read_file(path("a"), text.size() - 1); }, path("a"));
  expect_file_error([&] { read_file(path("absent"), 10); }, path("absent"));
  expect_file_error([&] { read_file("/dev/zero", 1000); }, "/dev/zero");
}

TEST_F(FileTest, CommittedOutputHasItsNameAndNothingElse) {
  OutputFile output(path("out"));
  EXPECT_FALSE(fs::exists(path("out")));
  output.write("abc", 3);
  output.pad_to(8);
  EXPECT_EQ(output.position(), 8u);
  output.pad_to(8);
  output.write("d", 1);
  output.write(nullptr, 0);
  EXPECT_EQ(output.position(), 9u);
  output.commit();
  EXPECT_EQ(read_file(path("out"), 100), std::string("abc\0\0\0\0\0d", 9));
  EXPECT_FALSE(fs::exists(path("out.partial")));
}

// Bytes of files that are mapped and in memory.
size_t mapped_bytes() {
  size_t all = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> all >> resident >> shared;
  return shared * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(FileTest, ReadsAhead) {
  constexpr size_t kSize = (size_t{8} << 20) + 5, kHalf = size_t{4} << 20, kNoise = size_t{1} << 20;
  const MappedFile file(create("large", std::string(kSize, 'x')));
  const size_t before = mapped_bytes();
  file.read_ahead(0, kHalf);
  const size_t first = mapped_bytes();
  EXPECT_GE(first, before + kHalf);
  EXPECT_LT(first, before + kHalf + kNoise);  // the system maps a few pages around; code of this test is mapped too
  file.read_ahead(kHalf, kSize);              // beyond the end: up to it
  file.read_ahead(kSize, 1);
  EXPECT_GE(mapped_bytes(), before + kSize);
  EXPECT_EQ(text_of(file), std::string(kSize, 'x'));
  MappedFile().read_ahead(0, 100);
}

TEST_F(FileTest, ReadingAheadSurvivesAFileThatShrank) {
  const MappedFile file(create("shrinks", std::string(size_t{1} << 20, 'x')));
  fs::resize_file(path("shrinks"), 10);
  file.read_ahead(0, size_t{1} << 20);
  EXPECT_EQ(file.size_on_disk(), 10u);
}

TEST_F(FileTest, PadsMoreThanOneBuffer) {
  OutputFile output(path("out"));
  output.write("a", 1);
  output.pad_to(10000);
  output.commit();
  EXPECT_EQ(read_file(path("out"), 20000), "a" + std::string(9999, '\0'));
}

TEST_F(FileTest, UncommittedOutputLeavesNothingAndKeepsTheOldFile) {
  create("out", "old");
  {
    OutputFile output(path("out"));
    output.write("new", 3);
  }
  EXPECT_EQ(read_file(path("out"), 100), "old");
  EXPECT_FALSE(fs::exists(path("out.partial")));
}

TEST_F(FileTest, OutputErrorsNameThePath) {
  const std::string nowhere = path("no/such/folder");
  expect_file_error([&] { OutputFile output(nowhere); }, nowhere);
  // A folder of that name cannot be replaced; the partial file goes all the same.
  fs::create_directories(path("taken/inside"));
  expect_file_error(
      [&] {
        OutputFile output(path("taken"));
        output.write("x", 1);
        output.commit();
      },
      path("taken"));
  EXPECT_FALSE(fs::exists(path("taken.partial")));
}

}  // namespace
}  // namespace strata
