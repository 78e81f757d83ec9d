// Files of logits: both forms by hand, written and read back, and what is refused.
#include "measure/logits_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "support/test_files.h"
#include "unit/measure/logits_bytes.h"

namespace strata::test {
namespace {

std::vector<double> row(const LogitsFile& file, int64_t index) {
  std::vector<double> values(static_cast<size_t>(file.header().vocabulary));
  file.log_probabilities(index, values);
  return values;
}

void expect_refused(const std::string& bytes, const std::string& part) {
  const MemoryFile memory(bytes);
  try {
    LogitsFile::open(memory.path());
    FAIL() << "opened: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Format) << error.what();
    EXPECT_EQ(error.where(), memory.path());
    EXPECT_NE(error.message().find(part), std::string::npos) << error.what();
  }
}

TEST(LogitsFile, ReadsAHandMade16BitFile) {
  const MemoryFile memory(CodedFile{}.bytes());
  const LogitsFile file = LogitsFile::open(memory.path());
  EXPECT_EQ(file.form(), LogitsForm::Codes);
  EXPECT_EQ(file.rows(), 1);
  EXPECT_EQ(file.header().layout.first(), 2);
  EXPECT_EQ(file.header().target(0), 1);
  EXPECT_EQ(file.header().position(0), 2);
  EXPECT_EQ(file.known_above(), -16);
  EXPECT_EQ(row(file, 0), (std::vector<double>{-3, -2, -0.5}));
}

TEST(LogitsFile, ReadsAHandMadeFullFile) {
  FullFile made;
  made.logits = {0, std::log(2.f), std::log(5.f)};
  const MemoryFile memory(made.bytes());
  const LogitsFile file = LogitsFile::open(memory.path());
  EXPECT_EQ(file.form(), LogitsForm::Full);
  EXPECT_EQ(file.header().model, 7u);
  EXPECT_EQ(file.header().settings, "a: b\n");
  EXPECT_EQ(std::vector<float>(file.logits(0).begin(), file.logits(0).end()), made.logits);
  const std::vector<double> log_p = row(file, 0);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(log_p[i], std::log(std::array{1., 2., 5.}[i] / 8), 2e-7);  // f32 rounding of ln 2 and ln 5
}

TEST(LogitsFile, TheLayoutOfAnOddChunkOfAPublishedDump) {
  const ChunkLayout layout{2049};  // 4 chunks of 151,936 tokens took 1,244,725,284 bytes
  EXPECT_EQ(20 + 4 * 2049 * 4 + 4 * layout.scored() * (151936 + 4) * 2, 1244725284);
  EXPECT_EQ(ChunkLayout{kMinChunk}.scored(), 1);
}

struct Written {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  LogitsHeader header;
};
Written random_rows(int64_t context, int64_t chunks, int64_t vocabulary, double spread) {
  Written made;
  Random random(3);
  for (int64_t i = 0; i < context * chunks; ++i) made.tokens.push_back(static_cast<int32_t>(random.below(vocabulary)));
  made.header = {
      .layout = {context}, .vocabulary = vocabulary, .tokens = made.tokens, .model = 9, .settings = "x: y\n"};
  for (int64_t i = 0; i < made.header.planned_rows() * vocabulary; ++i)
    made.logits.push_back(static_cast<float>(spread * (static_cast<double>(random.below(1 << 20)) / (1 << 20) - 0.5)));
  return made;
}

TEST(LogitsWriter, FullFormKeepsEveryBitAndMayEndEarly) {
  const TempFolder folder;
  const Written made = random_rows(7, 2, 5, 40);
  for (const int64_t kept : {made.header.planned_rows(), int64_t{2}}) {
    const std::string path = folder.file("full");
    LogitsWriter writer(path, LogitsForm::Full, made.header);
    ThreadPool pool(2);
    const std::span<const float> all(made.logits);
    writer.add(all.first(5), pool);
    EXPECT_FALSE(std::filesystem::exists(path) && kept > 2);  // nothing under its name before the end
    writer.add(all.subspan(5, static_cast<size_t>(kept - 1) * 5), pool);
    writer.finish();
    const LogitsFile file = LogitsFile::open(path);
    EXPECT_EQ(file.rows(), kept);
    EXPECT_EQ(file.header().planned_rows(), 6);
    EXPECT_EQ(file.header().settings, "x: y\n");
    for (int64_t i = 0; i < kept; ++i)
      EXPECT_EQ(std::memcmp(file.logits(i).data(), made.logits.data() + i * 5, 20), 0) << i;
  }
}

TEST(LogitsWriter, CodesAreWithinHalfAStepAndCutAt16Nats) {
  const TempFolder folder;
  const Written made = random_rows(9, 1, 7, 40);  // 4 rows; 40 wide: part of most rows lies below the cut
  ThreadPool pool(1);
  LogitsWriter writer(folder.file("codes"), LogitsForm::Codes, made.header);
  writer.add(made.logits, pool);
  writer.finish();
  const LogitsFile file = LogitsFile::open(folder.file("codes"));
  ASSERT_EQ(file.rows(), 4);
  int cut = 0;
  for (int64_t i = 0; i < 4; ++i) {
    std::vector<double> exact(7);
    ASSERT_TRUE(log_softmax(std::span<const float>(made.logits).subspan(static_cast<size_t>(i) * 7, 7), exact));
    const double top = *std::max_element(exact.begin(), exact.end());
    const std::vector<double> coded = row(file, i);
    for (size_t t = 0; t < 7; ++t) {
      cut += exact[t] < top - 16;
      // half a step of 16 / 65535, and f32 roundings of values below 64
      EXPECT_NEAR(coded[t], std::max(exact[t], top - 16), 0.5 * 16 / 65535 + 1e-5) << i << " " << t;
    }
  }
  EXPECT_GT(cut, 0);
}

TEST(LogitsWriter, A16BitFileIsWholeOrNotThere) {
  const TempFolder folder;
  const Written made = random_rows(9, 1, 7, 4);
  ThreadPool pool(1);
  {
    LogitsWriter writer(folder.file("codes"), LogitsForm::Codes, made.header);
    writer.add(std::span<const float>(made.logits).first(7), pool);
    EXPECT_THROW(writer.finish(), Error);
  }
  EXPECT_TRUE(folder.empty());
  LogitsWriter writer(folder.file("codes"), LogitsForm::Codes, made.header);
  std::vector<float> bad(7, NAN);
  EXPECT_THROW(writer.add(bad, pool), Error);
}

TEST(LogitsFile, RefusesWhatIsNoFileOfLogits) {
  expect_refused("", "neither");
  expect_refused("GGUF and more", "neither");
  const TempFolder folder;
  EXPECT_THROW(LogitsFile::open(folder.file("none")), Error);
}

// Cut anywhere, or with something behind its end.
TEST(LogitsFile, RefusesEveryOtherLength) {
  for (const std::string& whole : {CodedFile{}.bytes(), FullFile{}.bytes()}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      const MemoryFile memory(std::string_view(whole).substr(0, length));
      EXPECT_THROW(LogitsFile::open(memory.path()), Error) << length;
    }
    expect_refused(whole + '\0', whole[0] == '_' ? "asks for" : "end mark");
  }
}

TEST(LogitsFile, RefusesImpossibleHeaders) {
  const auto coded = [](const std::function<void(CodedFile&)>& change, const std::string& part) {
    CodedFile made;
    change(made);
    expect_refused(made.bytes(), part);
  };
  coded([](CodedFile& f) { f.context = 0xffffffff; }, "4294967295 tokens");
  coded([](CodedFile& f) { f.context = 0x7fffffff; }, "asks for");
  coded([](CodedFile& f) { f.context = 2; }, "chunk of 2");
  coded([](CodedFile& f) { f.vocabulary = -1; }, "vocabulary of 0");
  coded([](CodedFile& f) { f.vocabulary = 0x7fffffff; }, "asks for");
  coded([](CodedFile& f) { f.chunks = -5; }, "0 chunks");
  coded([](CodedFile& f) { f.chunks = 0x7fffffff; }, "asks for");
  coded([](CodedFile& f) { f.context = f.vocabulary = f.chunks = 0x7fffffff; }, "too much");
  coded([](CodedFile& f) { f.tokens[2] = 3; }, "token 2 is 3");
  coded([](CodedFile& f) { f.tokens[2] = -1; }, "token 2 is -1");

  const auto full = [](const std::function<void(FullFile&)>& change, const std::string& part) {
    FullFile made;
    change(made);
    expect_refused(made.bytes(), part);
  };
  full([](FullFile& f) { f.version = 2; }, "version 2");
  full([](FullFile& f) { f.context = 0xffffffff; }, "4294967295");
  full([](FullFile& f) { f.context = f.chunks = 0x7fffffff; }, "asks for");
  full([](FullFile& f) { f.vocabulary = 0x7fffffff; }, "asks for");
  full([](FullFile& f) { f.rows = 2; }, "2 of 1 positions");
  full([](FullFile& f) { f.rows = 0; }, "asks for");
  full([](FullFile& f) { f.rows = ~uint64_t{0}; }, "positions");
  full([](FullFile& f) { f.tokens[3] = 9; }, "token 3 is 9");
  std::string long_settings = FullFile{}.bytes();
  long_settings[35] = '\x7f';  // the highest byte of their length
  expect_refused(long_settings, "settings");
}

TEST(LogitsFile, RefusesRowsThatAreNoProbabilities) {
  const auto refuses = [](const std::string& bytes) {
    const MemoryFile memory(bytes);
    const LogitsFile file = LogitsFile::open(memory.path());
    try {
      row(file, 0);
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("chunk 1, position 2"), std::string::npos) << error.what();
    }
  };
  const float nan = NAN, infinite = INFINITY;
  for (const float bad : {nan, infinite}) {
    refuses(CodedFile{.low = bad}.bytes());
    refuses(CodedFile{.scale = bad}.bytes());
    FullFile made;
    made.logits[1] = bad;
    refuses(made.bytes());
  }
  refuses(CodedFile{.scale = -1}.bytes());
  FullFile none;
  none.logits = {-infinite, -infinite, -infinite};
  refuses(none.bytes());
}

TEST(LogitsFile, SaysWhenItBecameShorter) {
  MemoryFile memory(FullFile{}.bytes());
  const LogitsFile file = LogitsFile::open(memory.path());
  file.check_size();
  memory.resize(10);
  EXPECT_THROW(file.check_size(), Error);
}

}  // namespace
}  // namespace strata::test
