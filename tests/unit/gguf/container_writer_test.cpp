// What the writer writes, the reader reads: every type of value and of tensor. And the writer's refusals.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/gguf.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

using gguf::File;
using gguf::Value;
using gguf::ValueType;
using gguf::Writer;

Value scalar(ValueType type, uint64_t u, int64_t i, double f) {
  Value value;
  value.type = type;
  value.u = u;
  value.i = i;
  value.f = f;
  return value;
}

Value array(ValueType element) {
  Value value;
  value.type = ValueType::Array;
  value.element = element;
  return value;
}

// Every type as a scalar and as an array, at both ends of its range; arrays also empty.
std::vector<gguf::KeyValue> every_value() {
  std::vector<gguf::KeyValue> all;
  const auto add = [&](Value value) {
    const std::string key = "key." + std::to_string(all.size());
    all.push_back({key, std::move(value)});
  };
  const auto unsigneds = [&](ValueType type, uint64_t most) {
    add(scalar(type, 0, 0, 0));
    add(scalar(type, most, 0, 0));
    add(array(type));
    Value several = array(type);
    several.us = {most, 0, 1};
    add(several);
  };
  const auto signeds = [&](ValueType type, int64_t least) {
    add(scalar(type, 0, least, 0));
    add(scalar(type, 0, -(least + 1), 0));
    add(array(type));
    Value several = array(type);
    several.is = {least, -1, 0, -(least + 1)};
    add(several);
  };
  unsigneds(ValueType::U8, 0xff);
  unsigneds(ValueType::U16, 0xffff);
  unsigneds(ValueType::U32, 0xffffffff);
  unsigneds(ValueType::U64, UINT64_MAX);
  unsigneds(ValueType::Bool, 1);
  signeds(ValueType::I8, -128);
  signeds(ValueType::I16, -32768);
  signeds(ValueType::I32, std::numeric_limits<int32_t>::min());
  signeds(ValueType::I64, std::numeric_limits<int64_t>::min());
  for (const ValueType type : {ValueType::F32, ValueType::F64}) {
    add(scalar(type, 0, 0, -0.375));
    add(scalar(type, 0, 0, std::numeric_limits<double>::infinity()));
    add(array(type));
    Value several = array(type);
    several.fs = {0.5, -1.25e9, type == ValueType::F32 ? std::numeric_limits<float>::max() : 1e300};
    add(several);
  }
  add(Value::of_string(""));
  add(Value::of_string(std::string("NUL \0 and invalid UTF-8 \xff\xc0", 26)));
  add(Value::of_strings({}));
  add(Value::of_strings({"a", "", std::string("\0", 1), "\xf0\x9f\xa6\x99"}));
  return all;
}

TEST(ContainerWriter, EveryValueComesBack) {
  const TempFolder folder;
  const std::vector<gguf::KeyValue> values = every_value();
  Writer writer(folder.file("v.gguf"));
  for (const auto& [key, value] : values) writer.add(key, value);
  writer.begin_data();
  writer.commit();
  const File file = File::open(folder.file("v.gguf"));
  ASSERT_EQ(file.metadata().size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(file.metadata()[i].key, values[i].key);
    EXPECT_TRUE(file.metadata()[i].value == values[i].value) << values[i].key;
    EXPECT_EQ(file.find(values[i].key), &file.metadata()[i].value);
  }
}

TEST(ContainerWriter, MakersGiveTheirTypes) {
  EXPECT_EQ(Value::of_u16(7).type, ValueType::U16);
  EXPECT_EQ(Value::of_u32(7).u, 7u);
  EXPECT_EQ(Value::of_u64(UINT64_MAX).u, UINT64_MAX);
  EXPECT_EQ(Value::of_i32(-7).i, -7);
  EXPECT_EQ(Value::of_f32(0.5f).f, 0.5);
  EXPECT_EQ(Value::of_bool(true).u, 1u);
  EXPECT_EQ(Value::of_u32s({1, 2}).element, ValueType::U32);
  EXPECT_EQ(Value::of_u64s({1, 2}).array_size(), 2u);
  EXPECT_EQ(Value::of_i32s({-1}).element, ValueType::I32);
  EXPECT_EQ(Value::of_f32s({1.0, 2.0, 3.0}).array_size(), 3u);
  EXPECT_EQ(Value::of_bools({1, 0}).element, ValueType::Bool);
  EXPECT_EQ(Value::of_strings({"a"}).array_size(), 1u);
  EXPECT_EQ(Value::of_string("abc").array_size(), 0u);
}

std::vector<uint8_t> pattern(size_t bytes, size_t seed) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i * 31 + seed * 7 + 1);
  return data;
}

// One tensor of every type, in pieces of odd sizes, at an alignment.
void write_every_type(const std::string& path, uint32_t alignment) {
  Writer writer(path, alignment);
  for (const DTypeInfo& type : all_dtypes()) {
    const uint64_t ne[] = {type.block_elements * 3ull, 5};
    writer.add_tensor("t." + std::string(type.name), type.type, ne);
  }
  writer.begin_data();
  for (size_t i = 0; i < writer.tensors().size(); ++i) {
    const std::vector<uint8_t> data = pattern(writer.tensors()[i].bytes, i);
    for (size_t done = 0; done < data.size();) {
      const size_t piece = std::min<size_t>(data.size() - done, 1 + done * 2);
      writer.write(data.data() + done, piece);
      done += piece;
    }
  }
  writer.commit();
}

TEST(ContainerWriter, EveryTensorTypeComesBack) {
  const TempFolder folder;
  for (const uint32_t alignment : {8u, 32u, 64u, 4096u}) {
    const std::string path = folder.file("t.gguf");
    write_every_type(path, alignment);
    const File file = File::open(path);
    EXPECT_EQ(file.find("general.alignment") != nullptr, alignment != 32);
    EXPECT_EQ(file.file_bytes() % alignment, 0u) << "the last tensor is padded too";
    ASSERT_EQ(file.tensors().size(), all_dtypes().size);
    uint64_t total = 0;
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      const gguf::TensorInfo& tensor = file.tensors()[i];
      const DTypeInfo& type = all_dtypes().data[i];
      EXPECT_EQ(tensor.type, type.type);
      EXPECT_EQ(tensor.bytes, 15u * type.block_bytes);
      EXPECT_EQ(tensor.elements(), 15u * type.block_elements);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(file.data(tensor)) % alignment, 0u);
      EXPECT_EQ(std::memcmp(file.data(tensor), pattern(tensor.bytes, i).data(), tensor.bytes), 0) << tensor.name;
      EXPECT_EQ(file.find_tensor(tensor.name), &tensor);
      total += tensor.bytes;
    }
    EXPECT_EQ(file.data_bytes(), total);
  }
}

TEST(ContainerWriter, EmptyFileIsValid) {
  const TempFolder folder;
  Writer writer(folder.file("e.gguf"));
  writer.begin_data();
  writer.commit();
  const File file = File::open(folder.file("e.gguf"));
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_TRUE(file.tensors().empty());
  EXPECT_EQ(file.data_bytes(), 0u);
}

template <typename F>
std::string refusal(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "accepted";
}

template <typename F>
void expect_refusal(const std::string& part, F&& f) {
  const std::string text = refusal(ErrorKind::Argument, f);
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(ContainerWriter, RefusesWrongDescriptions) {
  const TempFolder folder;
  const uint64_t four[] = {4};
  const uint64_t zero[] = {4, 0};
  const uint64_t five_dims[] = {1, 1, 1, 1, 1};
  const uint64_t huge[] = {1ull << 40, 1ull << 40};
  expect_refusal("alignment 48", [&] { Writer(folder.file("w"), 48); });
  Writer writer(folder.file("w"));
  writer.add("k", Value::of_u32(1));
  writer.add_tensor("t", DType::F32, four);
  expect_refusal("'k': key added twice", [&] { writer.add("k", Value::of_u32(2)); });
  expect_refusal("empty name", [&] { writer.add("", Value::of_u32(2)); });
  expect_refusal("control", [&] { writer.add("a\tb", Value::of_u32(2)); });
  expect_refusal("argument of the writer", [&] { writer.add("general.alignment", Value::of_u32(64)); });
  expect_refusal("array of arrays", [&] { writer.add("n", array(ValueType::Array)); });
  expect_refusal("'t': tensor added twice", [&] { writer.add_tensor("t", DType::F32, four); });
  expect_refusal("64 bytes", [&] { writer.add_tensor(std::string(64, 'n'), DType::F32, four); });
  expect_refusal("dim 1 is zero", [&] { writer.add_tensor("z", DType::F32, zero); });
  expect_refusal("5 dims", [&] { writer.add_tensor("z", DType::F32, five_dims); });
  expect_refusal("0 dims", [&] { writer.add_tensor("z", DType::F32, {}); });
  expect_refusal("too many elements", [&] { writer.add_tensor("z", DType::F32, huge); });
  expect_refusal("Q4_K", [&] { writer.add_tensor("z", DType::Q4_K, four); });
}

TEST(ContainerWriter, RefusesNumbersThatDoNotFit) {
  const TempFolder folder;
  Value floats = array(ValueType::F32);
  floats.fs = {1.0, 1e39};
  for (const Value& value :
       {scalar(ValueType::U8, 256, 0, 0), scalar(ValueType::Bool, 2, 0, 0), scalar(ValueType::I16, 0, 32768, 0),
        scalar(ValueType::F32, 0, 0, -1e39), Value::of_u32s({1ull << 32}), Value::of_i32s({-(1ll << 31) - 1}),
        Value::of_bools({0, 3}), floats}) {
    Writer writer(folder.file("w"));
    writer.add("k", value);
    expect_refusal("'k': a number does not fit", [&] { writer.begin_data(); });
  }
}

TEST(ContainerWriter, RefusesTooManyAndTooFewBytes) {
  const TempFolder folder;
  const uint64_t four[] = {4};
  const float data[5] = {};
  {
    Writer writer(folder.file("w"));
    writer.add_tensor("t", DType::F32, four);
    writer.add_tensor("u", DType::F32, four);
    expect_refusal("before begin_data", [&] { writer.write(data, 4); });
    expect_refusal("before begin_data", [&] { writer.commit(); });
    writer.begin_data();
    expect_refusal("begin_data() called twice", [&] { writer.begin_data(); });
    expect_refusal("after begin_data", [&] { writer.add("k", Value::of_u32(1)); });
    expect_refusal("after begin_data", [&] { writer.add_tensor("v", DType::F32, four); });
    expect_refusal("'t': 20 bytes given, only 16 of 16", [&] { writer.write(data, 20); });
    writer.write(data, 16);
    writer.write(data, 12);
    expect_refusal("'u': 12 of 16 bytes given", [&] { writer.commit(); });
    expect_refusal("'u': 5 bytes given, only 4 of 16", [&] { writer.write(data, 5); });
    writer.write(data, 4);
    writer.write(data, 0);
    expect_refusal("1 bytes given after the last tensor", [&] { writer.write(data, 1); });
  }
  EXPECT_TRUE(folder.empty()) << "nothing is left behind without commit";
}

TEST(ContainerWriter, KeepsThePreviousFileWithoutCommit) {
  const TempFolder folder;
  folder.write("w", "previous");
  {
    Writer writer(folder.file("w"));
    writer.begin_data();
  }
  EXPECT_EQ(std::filesystem::file_size(folder.file("w")), 8u);
}

TEST(ContainerWriter, NamesAMissingFolder) {
  const TempFolder folder;
  const std::string text = refusal(ErrorKind::File, [&] { Writer(folder.file("missing/w.gguf")); });
  EXPECT_NE(text.find("missing/w.gguf: cannot create"), std::string::npos) << text;
}

// A limit on file sizes stands for a full disk: writing fails in the same way.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(ContainerWriter, AFailedWriteLeavesNothing) {
  const TempFolder folder;
  const uint64_t ne[] = {1 << 20};
  const std::vector<float> data(ne[0]);
  {
    Writer writer(folder.file("w"));
    writer.add_tensor("t", DType::F32, ne);
    writer.begin_data();
    const FileSizeLimit limit(1 << 16);
    const std::string text = refusal(ErrorKind::File, [&] { writer.write(data.data(), data.size() * sizeof(float)); });
    EXPECT_NE(text.find("cannot write"), std::string::npos) << text;
    EXPECT_TRUE(folder.empty());
    expect_refusal("the file is closed", [&] { writer.write(data.data(), 4); });
  }
  EXPECT_TRUE(folder.empty());
}

}  // namespace
}  // namespace strata::test
