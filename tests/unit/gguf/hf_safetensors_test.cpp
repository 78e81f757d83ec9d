#include "gguf/hf/json_text.h"
#include "gguf/hf/safetensors.h"
#include "unit/gguf/hf_test_util.h"

namespace strata::gguf::hf {
namespace {

using testing::expect_error;
using testing::safetensors_bytes;
using testing::TempDir;
using testing::TinyCheckpoint;

std::vector<SourceTensor> parse(const std::string& bytes) {
  return parse_safetensors_header(std::as_bytes(std::span(bytes.data(), bytes.size())), "tiny.safetensors");
}

std::string one(const std::string& entry, size_t data = 16) {
  return safetensors_bytes("{\"a\":" + entry + "}", std::string(data, 'x'));
}

void refused(const std::string& bytes, const std::string& part) {
  expect_error(ErrorKind::Format, part, [&] { parse(bytes); });
}

TEST(HfSafetensors, ReadsTypesShapesAndOffsets) {
  const auto tensors = parse(
      safetensors_bytes(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
                        R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                        R"("z":{"dtype":"I64","shape":[0],"data_offsets":[16,16]}}  )",
                        std::string(16, 'x')));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].elements, 1u);
  EXPECT_EQ(tensors[1].type, SourceType::BF16);
  EXPECT_EQ(tensors[1].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(tensors[1].offset, tensors[0].offset + 4);
  EXPECT_EQ(tensors[2].bytes, 0u);
}

TEST(HfSafetensors, EveryTruncationIsRefused) {
  const std::string whole = one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})");
  EXPECT_EQ(parse(whole).size(), 1u);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse(whole.substr(0, size)), Error) << "truncated to " << size << " bytes";
}

TEST(HfSafetensors, RefusesHostileHeaderLengths) {
  for (const uint64_t length : {uint64_t{17}, uint64_t{100'000'001}, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::string bytes(24, '{');
    std::memcpy(bytes.data(), &length, 8);
    refused(bytes, "states a header of");
  }
}

TEST(HfSafetensors, RefusesWrongExtents) {
  refused(one(R"({"dtype":"F32","shape":[4],"data_offsets":[16,0]})"), "tensor a ends before it begins");
  refused(one(R"({"dtype":"F32","shape":[4],"data_offsets":[4,20]})"), "truncated");
  refused(one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,18446744073709551615]})"), "truncated");
  refused(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,16]})"), "its dtype and shape need 12");
  refused(one(R"({"dtype":"F16","shape":[4],"data_offsets":[0,16]})"), "its dtype and shape need 8");
  refused(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]})"), "too many elements");
  refused(one(R"({"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,16]})"), "too many bytes");
  refused(one(R"({"dtype":"F12","shape":[4],"data_offsets":[0,16]})"), "unknown dtype");
  refused(safetensors_bytes(R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},)"
                            R"("b":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})",
                            std::string(16, 'x')),
          "tensors a and b overlap");
  refused(safetensors_bytes(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                            R"("a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})",
                            std::string(16, 'x')),
          "tensor a occurs twice");
}

TEST(HfSafetensors, RefusesWrongJson) {
  refused(safetensors_bytes("[]", ""), "holds a list");
  refused(safetensors_bytes("3", ""), "holds a number");
  refused(safetensors_bytes("{\"a\"", ""), "invalid JSON at byte");
  refused(safetensors_bytes("{\"\xff\":{}}", ""), "invalid JSON at byte");
  refused(one("[]"), "holds a list");
  refused(one("null"), "holds null");
  refused(one("{}"), "needs dtype, shape and two data_offsets");
  refused(one(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})"), "needs dtype");
  refused(one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})"), "more than two");
  refused(one(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})"), "negative number");
  refused(one(R"({"dtype":"U8","shape":[1.5],"data_offsets":[0,1]})"), "fraction");
  refused(one(R"({"dtype":"U8","shape":[[1]],"data_offsets":[0,1]})"), "holds a list");
  refused(one(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})"), "more than 8 dimensions");
  refused(one(R"({"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]})"), "states shape twice");
  refused(one(R"({"dtype":"U8","shape":[1],"extra":1,"data_offsets":[0,1]})"), "unknown field");
  refused(one(R"({"dtype":{"x":1},"shape":[1],"data_offsets":[0,1]})"), "holds an object");
  refused(safetensors_bytes(R"({"a\nb":{}})", ""), "control characters");
  refused(safetensors_bytes("{\"\":{}}", ""), "empty");
  std::string long_name(2000, 'n');
  long_name.replace(0, 2, "{\"");
  refused(safetensors_bytes(long_name + "\":{}}", ""), "longer than");
}

TEST(HfSafetensors, DeepNestingIsRefusedWithoutRecursion) {
  const std::string deep(1'000'000, '[');
  std::string header = "{\"a\":";
  refused(safetensors_bytes(header.append(deep), ""), "holds a list");
  expect_error(ErrorKind::Format, "deeper than 64", [&] { check_json_depth(deep, 64, "config.json"); });
  EXPECT_NO_THROW(check_json_depth(R"({"a":"[[[[[[","b\"":[{}]})", 3, "config.json"));
  TempDir dir;
  header = "{\"metadata\":";
  dir.write("model.safetensors.index.json", header.append(deep));
  expect_error(ErrorKind::Format, "nests deeper", [&] { Checkpoint::open(dir.path()); });
}

TEST(HfCheckpoint, ReadsShardsThroughTheIndex) {
  TempDir dir;
  TinyCheckpoint first, second;
  first.f32("x", {2}, {1, 2});
  second.f32("y", {3}, {3, 4, 5});
  dir.write("one.safetensors", first.bytes());
  dir.write("two.safetensors", second.bytes());
  auto index = [&](const std::string& map) {
    dir.write("model.safetensors.index.json",
              R"({"metadata":{"total_size":20,"more":[1.5,{}]},"weight_map":)" + map + "}");
  };
  index(R"({"y":"two.safetensors","x":"one.safetensors"})");
  const Checkpoint checkpoint = Checkpoint::open(dir.path());
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  float values[3];
  std::memcpy(values, checkpoint.data(checkpoint.tensors()[1]).data(), 12);
  EXPECT_EQ(values[2], 5.0f);

  auto fails = [&](ErrorKind kind, const std::string& map, const std::string& part) {
    index(map);
    expect_error(kind, part, [&] { Checkpoint::open(dir.path()); });
  };
  fails(ErrorKind::Format, R"({"y":"one.safetensors","x":"two.safetensors"})", "does not hold it");
  fails(ErrorKind::Format, R"({"q":"one.safetensors"})", "places tensor q in one.safetensors");
  fails(ErrorKind::File, R"({"x":"three.safetensors"})", "three.safetensors");
  fails(ErrorKind::Format, R"({"x":"../one.safetensors"})", "outside the directory");
  fails(ErrorKind::Format, R"({"x":".."})", "outside the directory");
  fails(ErrorKind::Format, R"({"x":1})", "instead of a file name");
  fails(ErrorKind::Format, R"(["x"])", "instead of a file name");
  fails(ErrorKind::Format, R"({"x":{"y":"one.safetensors"}})", "nests");
  fails(ErrorKind::Format, R"({})", "lists no tensors");
  dir.write("two.safetensors", first.bytes());
  fails(ErrorKind::Format, R"({"x":"one.safetensors","x":"two.safetensors"})", "occurs twice");
}

TEST(HfCheckpoint, NamesWhatIsMissing) {
  TempDir dir;
  expect_error(ErrorKind::File, "neither model.safetensors nor", [&] { Checkpoint::open(dir.path()); });
  expect_error(ErrorKind::File, "is not a directory", [&] { Checkpoint::open(dir.file("absent")); });
}

TEST(HfCheckpoint, AShrunkFileIsAnErrorNotASignal) {
  TempDir dir;
  TinyCheckpoint tiny;
  tiny.fill("x", {100'000});
  dir.write("model.safetensors", tiny.bytes());
  const Checkpoint checkpoint = Checkpoint::open(dir.path());
  EXPECT_EQ(checkpoint.data(checkpoint.tensors()[0]).size(), 400'000u);
  std::filesystem::resize_file(dir.file("model.safetensors"), 4096);
  expect_error(ErrorKind::File, "shrank", [&] { checkpoint.data(checkpoint.tensors()[0]); });
}

}  // namespace
}  // namespace strata::gguf::hf
