// Sets of split files: opened from any shard, and refused by name when they do not belong together.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/gguf_builder.h"
#include "support/gguf_open.h"

namespace strata::test {
namespace {

using gguf::File;

std::string shard_name(const std::string& prefix, int number, int count) {
  char name[64];
  std::snprintf(name, sizeof name, "%s-%05d-of-%05d.gguf", prefix.c_str(), number, count);
  return name;
}

// Three shards of two tensors each; the second shard has an alignment of its own.
std::vector<GgufBuilder> three_shards() {
  std::vector<GgufBuilder> shards(3);
  for (uint16_t i = 0; i < 3; ++i) {
    GgufBuilder& shard = shards[i];
    if (i == 0) shard.key("general.architecture", raw_string("llama")).key("llama.block_count", raw_scalar(kU32, 2u));
    shard.key("split.no", raw_scalar<uint16_t>(kU16, i)).key("split.count", raw_scalar<uint16_t>(kU16, 3));
    shard.key("split.tensors.count", raw_scalar<int32_t>(kI32, 6));
    if (i == 1) shard.key("general.alignment", raw_scalar<uint32_t>(kU32, 64)).alignment = 64;
    for (const char* part : {"a", "b"})
      shard.tensor(part + std::to_string(i), 24, {100}, 100, static_cast<char>(part[0] + 3 * i));
  }
  return shards;
}

void write_shards(const TempFolder& folder, const std::vector<GgufBuilder>& shards, const std::string& prefix = "m") {
  for (size_t i = 0; i < shards.size(); ++i)
    folder.write(shard_name(prefix, static_cast<int>(i) + 1, 3), shards[i].build());
}

void expect_whole(const File& file) {
  ASSERT_EQ(file.tensors().size(), 6u);
  EXPECT_EQ(file.get_string("general.architecture"), "llama");
  EXPECT_EQ(file.data_bytes(), 600u);
  for (int i = 0; i < 3; ++i) {
    const gguf::TensorInfo* tensor = file.find_tensor("b" + std::to_string(i));
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->shard, static_cast<uint32_t>(i));
    EXPECT_EQ(static_cast<char>(file.data(*tensor)[99]), static_cast<char>('b' + 3 * i));
  }
}

TEST(ContainerSplit, OpensFromAnyShard) {
  const TempFolder folder;
  write_shards(folder, three_shards());
  for (int number = 1; number <= 3; ++number) {
    const File file = File::open(folder.file(shard_name("m", number, 3)));
    expect_whole(file);
    EXPECT_EQ(file.path(), folder.file(shard_name("m", 1, 3)));
  }
}

TEST(ContainerSplit, OpensThroughAParentFolder) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("inner"));
  write_shards(folder, three_shards(), "inner/m");
  expect_whole(File::open(folder.file("inner/../inner/" + shard_name("m", 1, 3))));
}

TEST(ContainerSplit, SetOfOneNeedsNoSpecialName) {
  const TempFolder folder;
  GgufBuilder shard;
  shard.key("split.no", raw_scalar<uint16_t>(kU16, 0)).key("split.count", raw_scalar<uint16_t>(kU16, 1));
  const File file = File::open(folder.write("any.gguf", shard.build()));
  EXPECT_EQ(file.get_uint("split.count", 0, 9), 1u);
}

// The message of opening the set from its first shard. The damage is done to the shards before they are written.
std::string refusal(const std::function<void(std::vector<GgufBuilder>&)>& damage, int open_from = 1) {
  const TempFolder folder;
  std::vector<GgufBuilder> shards = three_shards();
  damage(shards);
  write_shards(folder, shards);
  const std::optional<Error> error = open_error(folder.file(shard_name("m", open_from, 3)));
  return error ? error->what() : "opened";
}

void set(GgufBuilder& shard, const std::string& key, const GgufBytes& value) {
  for (RawKey& k : shard.keys)
    if (k.key == key) k.value = value;
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(ContainerSplit, WrongCounts) {
  expect_contains(refusal([](auto& s) { set(s[0], "split.count", raw_scalar<uint16_t>(kU16, 4)); }),
                  {"key 'split.no'", "rename it to NAME-00001-of-00004.gguf"});
  expect_contains(refusal([](auto& s) { set(s[2], "split.count", raw_scalar<uint16_t>(kU16, 2)); }),
                  {"m-00003-of-00003.gguf", "key 'split.count'", "2, expected 3"});
  expect_contains(refusal([](auto& s) { set(s[0], "split.count", raw_scalar<uint16_t>(kU16, 65535)); }),
                  {"key 'split.count'", "65535 shards are above the limit of 1024"});
  expect_contains(refusal([](auto& s) { set(s[0], "split.count", raw_scalar<int16_t>(kI16, -1)); }),
                  {"key 'split.count'", "not negative"});
  expect_contains(refusal([](auto& s) { set(s[0], "split.count", raw_string("3")); }), {"expected an integer"});
  expect_contains(refusal([](auto& s) { set(s[0], "split.tensors.count", raw_scalar<int32_t>(kI32, 7)); }),
                  {"key 'split.tensors.count'", "differs from"});
  expect_contains(refusal([](auto& s) {
                    for (auto& shard : s) set(shard, "split.tensors.count", raw_scalar<int32_t>(kI32, 5));
                  }),
                  {"split.tensors.count", "5, but the shards have 6 tensors"});
  expect_contains(refusal([](auto& s) { set(s[0], "split.no", raw_scalar<uint16_t>(kU16, 3)); }),
                  {"key 'split.no'", "3, expected less than 3"});
}

TEST(ContainerSplit, MissingShard) {
  const TempFolder folder;
  write_shards(folder, three_shards());
  std::filesystem::remove(folder.file(shard_name("m", 2, 3)));
  std::optional<Error> error = open_error(folder.file(shard_name("m", 1, 3)));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::File);
  expect_contains(error->what(), {"m-00002-of-00003.gguf", "shard 2 of 3", "cannot open"});
  std::filesystem::remove(folder.file(shard_name("m", 1, 3)));
  error = open_error(folder.file(shard_name("m", 3, 3)));
  ASSERT_TRUE(error.has_value());
  expect_contains(error->what(), {"m-00001-of-00003.gguf", "shard 1 of 3", "cannot open"});
}

TEST(ContainerSplit, OneShardTwice) {
  expect_contains(refusal([](auto& s) { s[2] = s[1]; }), {"m-00003-of-00003.gguf", "key 'split.no'", "1, expected 2"});
  expect_contains(refusal([](auto& s) { s[1] = s[0]; }), {"m-00002-of-00003.gguf", "key 'split.no'", "0, expected 1"});
  expect_contains(refusal([](auto& s) { s[2].tensors[1].name = "a0"; }),
                  {"m-00003-of-00003.gguf", "tensor 'a0'", "duplicate tensor name", "m-00001-of-00003.gguf"});
}

TEST(ContainerSplit, DifferingMetadata) {
  expect_contains(refusal([](auto& s) { s[1].key("general.architecture", raw_string("qwen3")); }),
                  {"m-00002-of-00003.gguf", "key 'general.architecture'", "differs from the value in"});
  EXPECT_EQ(refusal([](auto& s) { s[1].key("general.architecture", raw_string("llama")); }), "opened");
  EXPECT_EQ(refusal([](auto& s) { s[2].key("general.note", raw_string("only here")); }), "opened");
}

TEST(ContainerSplit, WrongNames) {
  const TempFolder folder;
  const std::string bytes = three_shards()[1].build();
  for (const char* name : {"m.gguf", "-00002-of-00003.gguf", "m-00003-of-00003.gguf", "m-00002-of-00004.gguf",
                           "m-0002-of-0003.gguf", "m-00002-of-0000x.gguf", "m-00002-of-00003.bin"}) {
    const std::optional<Error> error = open_error(folder.write(name, bytes));
    ASSERT_TRUE(error.has_value()) << name;
    if (std::string_view(name).front() == '-') continue;  // the folder is then the prefix; shard 1 is missing
    expect_contains(error->what(), {"shard 2 of 3", "rename it to NAME-00002-of-00003.gguf"});
  }
}

TEST(ContainerSplit, DamagedMember) {
  expect_contains(refusal([](auto& s) { s[2].data.pop_back(); }), {"m-00003-of-00003.gguf", "tensor 'b2'", "beyond"});
  expect_contains(refusal([](auto& s) { s[1].magic = "GGML"; }, 3), {"m-00002-of-00003.gguf", "not a GGUF file"});
}

TEST(ContainerSplit, LimitsHoldForTheWholeSet) {
  const TempFolder folder;
  write_shards(folder, three_shards());
  const std::string path = folder.file(shard_name("m", 1, 3));
  gguf::Limits limits;
  limits.max_tensors = 5;
  expect_contains(open_error(path, limits).value().what(), {"m-00003-of-00003.gguf", "6 tensors", "limit of 5"});
  limits = {};
  limits.max_metadata = 8 * sizeof(gguf::KeyValue);  // the first shard has five keys, the second four
  expect_contains(open_error(path, limits).value().what(), {"m-00002-of-00003.gguf", "metadata is larger"});
  limits = {};
  limits.max_shards = 2;
  expect_contains(open_error(path, limits).value().what(), {"3 shards are above the limit of 2"});
}

}  // namespace
}  // namespace strata::test
