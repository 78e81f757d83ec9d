// Malformed containers: each is refused with one Error that says what is wrong, and where.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "support/gguf_builder.h"
#include "support/gguf_open.h"

namespace strata::test {
namespace {

constexpr uint64_t kHuge = UINT64_MAX;
constexpr uint32_t kF32Type = 0;
constexpr uint32_t kQ4KType = 12;
constexpr uint32_t kI8Type = 24;

struct Case {
  std::string name;
  std::string bytes;
  std::vector<std::string> expected;  // parts of the message
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// A small valid file to break: one key, one tensor of four f32.
GgufBuilder small() {
  GgufBuilder file;
  file.key("general.architecture", raw_string("llama"));
  file.tensor("w", kF32Type, {4}, 16);
  return file;
}

std::string changed(const std::function<void(GgufBuilder&)>& change) {
  GgufBuilder file = small();
  change(file);
  return file.build();
}

std::string with_key(const std::string& key, const GgufBytes& value) {
  return changed([&](GgufBuilder& f) { f.key(key, value); });
}

std::string with_alignment(uint32_t alignment) { return with_key("general.alignment", raw_scalar(kU32, alignment)); }

std::string with_tensor(const RawTensor& tensor, size_t data_bytes = 4096) {
  GgufBuilder file;
  file.tensors.push_back(tensor);
  file.data.assign(data_bytes, '\0');
  return file.build();
}

std::string with_offset(uint64_t offset) {
  return changed([&](GgufBuilder& f) { f.tensors[0].offset = offset; });
}

std::vector<Case> header_cases() {
  std::string big_endian = patched<uint32_t>(small().build(), 4, 0x03000000u);
  return {
      {"EmptyBytes", "", {"byte 0", "empty"}},
      {"ThreeBytes", "GGU", {"byte 0", "3 bytes"}},
      {"BadMagic", changed([](GgufBuilder& f) { f.magic = "GGML"; }), {"magic 'GGML'", "expected 'GGUF'"}},
      {"BinaryMagic",
       changed([](GgufBuilder& f) {
         f.magic = {"\x1b[2\0", 4};
       }),
       {"magic '\\x1b[2\\x00'"}},
      {"Version0", changed([](GgufBuilder& f) { f.version = 0; }), {"byte 4", "unknown GGUF version 0"}},
      {"Version1", changed([](GgufBuilder& f) { f.version = 1; }), {"version 1", "convert"}},
      {"Version2", changed([](GgufBuilder& f) { f.version = 2; }), {"version 2", "convert"}},
      {"Version4", changed([](GgufBuilder& f) { f.version = 4; }), {"unknown GGUF version 4", "expected 3"}},
      {"BigEndian", big_endian, {"byte 4", "big-endian file"}},
      {"ReversedMagic", changed([](GgufBuilder& f) { f.magic = "FUGG"; }), {"big-endian file"}},
      {"TensorCountHuge", changed([](GgufBuilder& f) { f.tensor_count = kHuge; }), {"byte 8", "tensor count", "fit"}},
      {"KeyCountHuge", changed([](GgufBuilder& f) { f.key_count = kHuge; }), {"byte 16", "key count", "fit"}},
      {"TensorCountOneMore", changed([](GgufBuilder& f) { f.tensor_count = 2; }), {"byte 102", "empty name"}},
      {"KeyCountOneMore", changed([](GgufBuilder& f) { f.key_count = 2; }), {"byte"}},
  };
}

std::vector<Case> key_cases() {
  return {
      {"KeyLengthHuge", changed([](GgufBuilder& f) { f.keys[0].key_length = kHuge; }), {"byte 24", "key length"}},
      {"KeyAboveLimit", with_key(std::string(70000, 'k'), raw_scalar<uint8_t>(kU8, 1)), {"key length", "65535"}},
      {"EmptyKey", with_key("", raw_scalar<uint8_t>(kU8, 1)), {"byte 69", "empty name"}},
      {"KeyWithNul", with_key({"a\0b", 3}, raw_scalar<uint8_t>(kU8, 1)), {"key 'a\\x00b'", "control"}},
      {"KeyWithEscape", with_key("\x1b[31m", raw_scalar<uint8_t>(kU8, 1)), {"\\x1b[31m", "control"}},
      {"DuplicateKey",
       with_key("general.architecture", raw_string("qwen3")),
       {"byte 69", "key 'general.architecture'", "duplicate key", "byte 24"}},
      {"UnknownValueType", with_key("k", raw_scalar<uint32_t>(13, 1)), {"key 'k'", "unknown value type 13"}},
      {"ValueTypeHuge", with_key("k", raw_scalar<uint32_t>(UINT32_MAX, 1)), {"unknown value type 4294967295"}},
      {"StringLengthHuge", with_key("k", raw_string("v", kHuge)), {"key 'k'", "string length", "fit"}},
      {"StringWrapsPosition", with_key("k", raw_string("v", kHuge - 8)), {"key 'k'", "string length"}},
      {"BoolTwo", with_key("k", raw_scalar<uint8_t>(kBool, 2)), {"key 'k'", "bool has the value 2"}},
      {"BoolArrayTwo", with_key("k", raw_array<uint8_t>(kBool, {1, 2})), {"key 'k'", "bool has the value 2"}},
      {"ArrayCountHuge", with_key("k", raw_array<uint32_t>(kU32, {1}, kHuge)), {"key 'k'", "array count"}},
      {"ArrayBytesWrap", with_key("k", raw_array<uint64_t>(kU64, {1}, (1ull << 61) + 1)), {"array count"}},
      {"StringArrayCountHuge", with_key("k", raw_strings({"a"}, kHuge)), {"key 'k'", "array count"}},
      {"ArrayTypeUnknown", with_key("k", raw_array<uint8_t>(77, {1})), {"unknown array element type 77"}},
      {"ArrayOfArrays", with_key("k", raw_array<uint32_t>(kArray, {kU8, 0, 0})), {"key 'k'", "array of arrays"}},
      {"Alignment0", with_alignment(0), {"key 'general.alignment'", "alignment 0", "power of two"}},
      {"Alignment3", with_alignment(3), {"alignment 3"}},
      {"Alignment4", with_alignment(4), {"alignment 4", "from 8"}},
      {"Alignment13", with_alignment(13), {"alignment 13"}},
      {"Alignment2To31", with_alignment(1u << 31), {"alignment 2147483648"}},
      {"AlignmentAsU64", with_key("general.alignment", raw_scalar<uint64_t>(kU64, 32)), {"type u64", "expected u32"}},
      {"AlignmentAsString", with_key("general.alignment", raw_string("32")), {"type string", "expected u32"}},
      {"AlignmentTwice",
       changed([](GgufBuilder& f) {
         for (int i = 0; i < 2; ++i) f.key("general.alignment", raw_scalar<uint32_t>(kU32, 32));
       }),
       {"key 'general.alignment'", "duplicate key"}},
  };
}

std::vector<Case> tensor_cases() {
  constexpr uint64_t kHalf = (1ull << 63) - 1;
  const std::string long_name(64, 'n');
  return {
      {"NameOf64", with_tensor({long_name, {4}}), {"tensor name length 64", "limit of 63"}},
      {"NameHuge", with_tensor({"w", {4}, 0, 0, kHuge}), {"tensor name length", "fit"}},
      {"NameEmpty", with_tensor({"", {4}}), {"empty name"}},
      {"NameWithNewline", with_tensor({"a\nb", {4}}), {"tensor 'a\\x0ab'", "control"}},
      {"DuplicateTensor",
       changed([](GgufBuilder& f) { f.tensor("w", kF32Type, {4}, 16); }),
       {"tensor 'w'", "duplicate tensor name"}},
      {"Dims0", with_tensor({"w", {}, 0, 0}), {"tensor 'w'", "0 dims", "expected 1 to 4"}},
      {"Dims5", with_tensor({"w", {1, 1, 1, 1, 1}}), {"tensor 'w'", "5 dims"}},
      {"Dims9", with_tensor({"w", {1, 1, 1, 1, 1, 1, 1, 1, 1}}), {"9 dims"}},
      {"DimsHuge", with_tensor({"w", {1}, 0, 0, {}, UINT32_MAX}), {"4294967295 dims"}},
      {"DimNegative", with_tensor({"w", {kHuge}, kI8Type}), {"tensor 'w'", "too many elements"}},
      {"DimZero", with_tensor({"w", {4, 0, 4}}), {"tensor 'w'", "dim 1 is zero", "at least 1"}},
      {"DimZeroAfterOverflow", with_tensor({"w", {kHalf, kHalf, 0}}), {"tensor 'w'"}},
      {"ElementsOverflow", with_tensor({"w", {kHalf, 2, 1, 1}, kI8Type}), {"tensor 'w'", "too many elements"}},
      {"ElementsWrapToSmall", with_tensor({"w", {1ull << 32, 1ull << 32, 1, 4}, kI8Type}), {"too many elements"}},
      {"BytesOverflow", with_tensor({"w", {1ull << 62}}), {"tensor 'w'", "too large"}},
      {"BytesWrapToSmall", with_tensor({"w", {(1ull << 62) + 1}, 28}), {"too large"}},
      {"TypeUnknown", with_tensor({"w", {4}, 43}), {"tensor 'w'", "unknown or retired tensor type 43"}},
      {"TypeActivationOnly", with_tensor({"w", {256}, 15}), {"tensor type 15"}},
      {"TypeHuge", with_tensor({"w", {4}, UINT32_MAX}), {"tensor type 4294967295"}},
      {"PartialBlock", with_tensor({"w", {257}, kQ4KType}), {"dim 0 is 257", "256", "Q4_K"}},
      {"PartialBlockWhole2D", with_tensor({"w", {128, 2}, kQ4KType}), {"dim 0 is 128", "256"}},
      {"OffsetBeyondEnd", with_offset(32), {"tensor 'w'", "beyond the end"}},
      {"OffsetHuge", with_offset(kHuge - 31), {"tensor 'w'", "beyond the end"}},
      {"OffsetWraps", with_offset(kHuge - 15), {"tensor 'w'", "offset 18446744073709551600"}},
      {"OffsetUnaligned", with_tensor({"w", {4}, 0, 16}), {"tensor 'w'", "offset 16", "alignment 32"}},
      {"TooLittleData", changed([](GgufBuilder& f) { f.data.pop_back(); }), {"tensor 'w'", "beyond the end"}},
      {"NoData", changed([](GgufBuilder& f) { f.data.clear(); }), {"tensor 'w'", "beyond the end"}},
      {"Overlap",
       changed([](GgufBuilder& f) { f.tensor("v", kF32Type, {4}, 0).tensors[1].offset = 0; }),
       {"tensor 'v'", "overlaps the tensor 'w'", "at least 16"}},
      {"OverlapByOneByte",
       changed([](GgufBuilder& f) {
         f.tensors[0].offset = 32;
         f.tensor("v", kI8Type, {33}, 48).tensors[1].offset = 0;
       }),
       {"tensor 'w'", "overlaps the tensor 'v'", "at least 33"}},
      {"CustomAlignmentUnaligned",
       changed([](GgufBuilder& f) {
         f.key("general.alignment", raw_scalar<uint32_t>(kU32, 64));
         f.alignment = 64;
         f.tensors[0].offset = 32;
         f.data.resize(256);
       }),
       {"offset 32", "alignment 64"}},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = header_cases();
  for (const auto& more : {key_cases(), tensor_cases()}) cases.insert(cases.end(), more.begin(), more.end());
  for (const uint32_t id : {4u, 5u, 9u, 31u, 32u, 33u, 36u, 37u, 38u})
    cases.push_back(
        {"RetiredType" + std::to_string(id), with_tensor({"w", {256}, id}), {"tensor type " + std::to_string(id)}});
  return cases;
}

class ContainerHostile : public testing::TestWithParam<Case> {};

TEST_P(ContainerHostile, IsRefusedByName) {
  const std::optional<Error> error = bytes_error(GetParam().bytes);
  ASSERT_TRUE(error.has_value()) << "was opened";
  EXPECT_EQ(error->kind(), ErrorKind::Format);
  for (const std::string& part : GetParam().expected)
    EXPECT_NE(std::string(error->what()).find(part), std::string::npos)
        << "'" << part << "' is not in: " << error->what();
}

INSTANTIATE_TEST_SUITE_P(Section9, ContainerHostile, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

// The file that the cases break is itself fine: none of them is refused for another reason than its own.
TEST(ContainerHostileBase, SmallFileIsValid) {
  const MemoryFile memory(small().build());
  EXPECT_EQ(gguf::File::open(memory.path()).tensors().size(), 1u);
}

TEST(ContainerHostileBase, MissingFilesAndFoldersAreFileErrors) {
  const TempFolder folder;
  for (const std::string& path : {folder.file("missing.gguf"), folder.file("")}) {
    const std::optional<Error> error = open_error(path);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::File) << error->what();
  }
}

// One of everything that has a count or a length.
GgufBuilder varied() {
  GgufBuilder file;
  file.key("s", raw_string("text")).key("n", raw_array<uint16_t>(kU16, {1, 2, 3}));
  file.key("t", raw_strings({"a", "", "ccc"})).key("b", raw_array<uint8_t>(kBool, {0, 1}));
  file.key("f", raw_scalar(kF32, 1.5f)).key("d", raw_array<double>(kF64, {0.5}));
  file.tensor("first", kF32Type, {2, 3}, 24).tensor("second", kQ4KType, {256, 1, 2}, 288);
  return file;
}

constexpr uint64_t kCounts[] = {kHuge, kHuge - 7, 1ull << 63, 1ull << 61, 1ull << 32, 0xffffffff};

TEST(ContainerHostileCounts, EveryCountIsBounded) {
  const std::string bytes = varied().build();
  ASSERT_FALSE(bytes_error(bytes).has_value());
  size_t fields = 0;
  for (const GgufField& field : varied().fields()) {
    if (!field.counts) continue;
    ++fields;
    for (const uint64_t count : kCounts) {
      const std::string broken = field.size == 4 ? patched<uint32_t>(bytes, field.at, static_cast<uint32_t>(count | 8))
                                                 : patched<uint64_t>(bytes, field.at, count);
      EXPECT_TRUE(bytes_error(broken).has_value()) << field.what << " at " << field.at << " = " << count;
    }
  }
  // 2 in the header, 6 keys, 4 arrays, 4 strings, and a name and dims for each of 2 tensors.
  EXPECT_EQ(fields, 2u + 6u + 4u + 4u + 4u);
}

TEST(ContainerHostileCounts, LengthOneTooLongIsRefused) {
  GgufBuilder file;
  file.key("k", raw_string("text", 5));
  file.alignment = 1;  // nothing follows the string
  const std::optional<Error> error = bytes_error(file.build());
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(std::string(error->what()).find("string length 5 does not fit the file: 4 bytes left"), std::string::npos)
      << error->what();
}

// 2^32 of anything in a file of less than 64 bytes costs nothing: far less than a second even under sanitizers.
TEST(ContainerHostileCounts, CostsNoMoreThanTheFile) {
  const auto start = std::chrono::steady_clock::now();
  for (const uint32_t element : {kU8, kU64, kString, kF64}) {
    GgufBuilder file;
    file.key("k", raw_array<uint8_t>(element, {}, 1ull << 32));
    ASSERT_LE(file.build().size(), 64u);
    EXPECT_TRUE(bytes_error(file.build()).has_value());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(ContainerHostileTruncation, EveryPrefixIsRefused) {
  const std::string bytes = varied().build();
  MemoryFile memory;
  for (size_t size = 0; size < bytes.size(); ++size) {
    memory.assign(std::string_view(bytes).substr(0, size));
    EXPECT_TRUE(open_error(memory.path()).has_value()) << "cut at byte " << size;
  }
  RecordProperty("cases", static_cast<int>(bytes.size()));
  std::printf("truncations refused: %zu\n", bytes.size());
}

TEST(ContainerHostileLimits, AreNamed) {
  const std::string bytes = varied().build();
  const auto message = [&](const gguf::Limits& limits) {
    const std::optional<Error> error = bytes_error(bytes, limits);
    return error ? std::string(error->what()) : std::string("opened");
  };
  gguf::Limits limits;
  limits.max_keys = 5;
  EXPECT_NE(message(limits).find("key count 6 is above the limit of 5"), std::string::npos) << message(limits);
  limits = {};
  limits.max_tensors = 1;
  EXPECT_NE(message(limits).find("tensor count 2 is above the limit of 1"), std::string::npos) << message(limits);
  limits = {};
  limits.max_string = 3;
  EXPECT_NE(message(limits).find("string length 4 is above the limit of 3"), std::string::npos) << message(limits);
  limits = {};
  limits.max_metadata = 6 * sizeof(gguf::KeyValue) + 100;  // room for the keys, not for the array of three strings
  EXPECT_NE(message(limits).find("key 't'): metadata is larger than the limit"), std::string::npos) << message(limits);
}

TEST(ContainerHostileLimits, StringOf100MegabytesIsRefused) {
  const std::string bytes = with_key("k", raw_string(std::string(100u << 20, 'x')));
  const std::optional<Error> error = bytes_error(bytes);
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(std::string(error->what()).find("string length 104857600 is above the limit"), std::string::npos);
}

}  // namespace
}  // namespace strata::test
