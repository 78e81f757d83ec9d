// Odd but legal files: a strict reader must still open all of them.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "support/gguf_builder.h"
#include "support/gguf_open.h"

namespace strata::test {
namespace {

using gguf::File;

TEST(ContainerLayout, EmptyFileOf24Bytes) {
  GgufBuilder builder;
  const MemoryFile memory(builder.build().substr(0, 24));
  const File file = File::open(memory.path());
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_EQ(file.find("k"), nullptr);
  EXPECT_EQ(file.find_tensor("t"), nullptr);
}

TEST(ContainerLayout, MetadataWithoutPadding) {
  GgufBuilder builder;
  builder.key("k", raw_scalar<uint8_t>(kU8, 7));
  builder.alignment = 1;
  const MemoryFile memory(builder.build());
  EXPECT_EQ(File::open(memory.path()).get_uint("k", 0, 9), 7u);
}

TEST(ContainerLayout, CustomAlignments) {
  for (const uint32_t alignment : {8u, 16u, 64u, 4096u, 1u << 20}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.key("general.alignment", raw_scalar<uint32_t>(kU32, alignment));
    builder.tensor("a", 24, {3}, 3, 'a').tensor("b", 24, {5}, 5, 'b');
    const MemoryFile memory(builder.build());
    const File file = File::open(memory.path());
    EXPECT_EQ(file.tensors()[1].offset, alignment);
    EXPECT_EQ(static_cast<char>(file.data(file.tensors()[1])[4]), 'b');
  }
}

TEST(ContainerLayout, GapsAndAnyOrder) {
  GgufBuilder builder;
  builder.tensors = {{"late", {2}, 24, 512}, {"early", {2}, 24, 0}, {"middle", {32}, 24, 96}, {"next", {1}, 24, 128}};
  builder.data.assign(514, '-');
  builder.data.replace(512, 2, "LL").replace(0, 2, "EE").replace(96, 1, "M").replace(128, 1, "N");
  const MemoryFile memory(builder.build());
  const File file = File::open(memory.path());
  const auto first = [&](const char* name) { return static_cast<char>(*file.data(*file.find_tensor(name))); };
  EXPECT_EQ(first("late"), 'L');
  EXPECT_EQ(first("early"), 'E');
  EXPECT_EQ(first("middle"), 'M');
  EXPECT_EQ(first("next"), 'N');
  EXPECT_EQ(file.tensors()[0].name, "late") << "tensors keep the order of the file";
}

TEST(ContainerLayout, OneToFourDims) {
  GgufBuilder builder;
  builder.tensor("d1", 0, {3}, 12).tensor("d2", 0, {3, 2}, 24).tensor("d3", 0, {3, 2, 1}, 24);
  builder.tensor("d4", 0, {1, 2, 1, 4}, 32);
  const MemoryFile memory(builder.build());
  const File file = File::open(memory.path());
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(file.tensors()[i].dims, i + 1);
  EXPECT_EQ(file.tensors()[0].ne[3], 1u);
  EXPECT_EQ(file.tensors()[3].elements(), 8u);
  EXPECT_EQ(file.tensors()[3].bytes, 32u);
}

// Every type with the smallest shape: one block, nothing after it.
TEST(ContainerLayout, EveryTypeAtTheEndOfTheFile) {
  for (const DTypeInfo& type : all_dtypes()) {
    GgufBuilder builder;
    builder.tensor("w", static_cast<uint32_t>(type.type), {type.block_elements}, type.block_bytes);
    const MemoryFile memory(builder.build());
    const File file = File::open(memory.path());
    EXPECT_EQ(file.tensors()[0].type, type.type);
    EXPECT_EQ(file.tensors()[0].bytes, type.block_bytes) << type.name;
  }
}

TEST(ContainerLayout, LongestNamesAndAnyBytesInStrings) {
  GgufBuilder builder;
  const std::string name(63, 'n');
  const std::string key(65535, 'k');
  const std::string text("\0\xff\xfe\n\x80", 5);
  builder.key(key, raw_string(text)).key("\xc3\xa9", raw_string("")).tensor(name, 24, {1}, 1);
  const MemoryFile memory(builder.build());
  const File file = File::open(memory.path());
  EXPECT_EQ(file.get_string(key), text);
  EXPECT_EQ(file.get_string("\xc3\xa9"), "");
  EXPECT_NE(file.find_tensor(name), nullptr);
}

TEST(ContainerLayout, TrailingBytesAreIgnored) {
  GgufBuilder builder;
  builder.tensor("w", 24, {1}, 1);
  const MemoryFile memory(builder.build() + "anything");
  EXPECT_EQ(File::open(memory.path()).data_bytes(), 1u);
}

size_t resident_bytes() {
  size_t total = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

// Opening maps the file and reads its head. 2 GiB of holes would take hundreds of MiB of page cache if they were read.
TEST(ContainerLayout, LargeFileIsNotRead) {
  const TempFolder folder;
  GgufBuilder builder;
  constexpr uint64_t kBytes = 2ull << 30;
  builder.tensors = {{"w", {kBytes}, 24, 0}};
  const std::string head = builder.build();
  const std::string path = folder.write("large.gguf", head);
  std::filesystem::resize_file(path, head.size() + kBytes);
  const size_t before = resident_bytes();
  const File file = File::open(path);
  EXPECT_EQ(file.data_bytes(), kBytes);
  EXPECT_LT(resident_bytes(), before + (4u << 20)) << "a few pages around the head, with the reader's own memory";
}

TEST(ContainerLayout, ShrunkFileIsNoticed) {
  GgufBuilder builder;
  builder.tensor("w", 24, {8192}, 8192);
  MemoryFile memory(builder.build());
  const File file = File::open(memory.path());
  file.check_sizes();
  memory.resize(100);
  EXPECT_THROW(file.check_sizes(), Error);
}

TEST(ContainerLayout, VocabularyOf150000ParsesFast) {
  std::vector<std::string> tokens(150000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "token " + std::to_string(i * 7919);
  GgufBuilder builder;
  builder.key("tokenizer.ggml.tokens", raw_strings(tokens)).key("tokenizer.ggml.merges", raw_strings(tokens));
  builder.key("tokenizer.ggml.token_type", raw_array<int32_t>(kI32, std::vector<int32_t>(tokens.size(), 1)));
  const MemoryFile memory(builder.build());
  const auto start = std::chrono::steady_clock::now();
  const File file = File::open(memory.path());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(*file.get_strings("tokenizer.ggml.tokens"), tokens);
  std::printf("150000 tokens and merges parsed in %.1f ms\n", took.count());
  EXPECT_LT(took.count(), 1500) << "a few ms on an idle machine, tens under sanitizers; a quadratic step: minutes";
}

// Files written by others, where they are at hand.
TEST(ContainerLayout, FilesOfOtherWriters) {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"/models", "/../shared/models", "/../shared/fixtures/gguf-peer"}) {
    const std::filesystem::path path = std::string(STRATA_SOURCE_DIR) + folder;
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  }
  if (paths.empty()) GTEST_SKIP() << "no GGUF files beside the sources";
  for (const auto& path : paths) {
    const File file = File::open(path.string());
    EXPECT_TRUE(file.get_string("general.architecture").has_value()) << path;
    EXPECT_GT(file.tensors().size(), 10u) << path;
    EXPECT_LE(file.data_bytes(), file.file_bytes());
  }
  std::printf("files opened: %zu\n", paths.size());
}

}  // namespace
}  // namespace strata::test
