// Typed access to metadata: absent, of another type, out of range.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/gguf_builder.h"
#include "support/gguf_open.h"

namespace strata::test {
namespace {

using gguf::File;

class ContainerAccess : public testing::Test {
 protected:
  ContainerAccess() : memory_(bytes()), file_(File::open(memory_.path())) {}

  static std::string bytes() {
    GgufBuilder file;
    file.key("u8", raw_scalar<uint8_t>(kU8, 200)).key("u16", raw_scalar<uint16_t>(kU16, 300));
    file.key("u32", raw_scalar<uint32_t>(kU32, 70000)).key("u64", raw_scalar<uint64_t>(kU64, UINT64_MAX));
    file.key("i8", raw_scalar<int8_t>(kI8, -3)).key("i16", raw_scalar<int16_t>(kI16, 5));
    file.key("i32", raw_scalar<int32_t>(kI32, 6)).key("i64", raw_scalar<int64_t>(kI64, INT64_MIN));
    file.key("f32", raw_scalar<float>(kF32, 0.5f)).key("f64", raw_scalar<double>(kF64, 0.25));
    file.key("nan", raw_scalar<float>(kF32, NAN)).key("inf", raw_scalar<double>(kF64, INFINITY));
    file.key("true", raw_scalar<uint8_t>(kBool, 1)).key("false", raw_scalar<uint8_t>(kBool, 0));
    file.key("text", raw_string("words")).key("texts", raw_strings({"a", "b"}));
    file.key("u32s", raw_array<uint32_t>(kU32, {1, 2, 3})).key("i32s", raw_array<int32_t>(kI32, {-1, 4}));
    file.key("u64s", raw_array<uint64_t>(kU64, {UINT64_MAX})).key("bools", raw_array<uint8_t>(kBool, {1, 0}));
    file.key("f32s", raw_array<float>(kF32, {1.5f, -2.0f})).key("nans", raw_array<float>(kF32, {1.0f, NAN}));
    file.key("none", raw_array<uint32_t>(kU32, {}));
    return file.build();
  }

  template <typename F>
  void refused(const std::string& part, F&& access) const {
    try {
      access();
      ADD_FAILURE() << "accepted, expected: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Format);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  MemoryFile memory_;
  File file_;
};

TEST_F(ContainerAccess, AbsentIsEmpty) {
  EXPECT_FALSE(file_.get_uint("x", 0, 1).has_value());
  EXPECT_FALSE(file_.get_real("x").has_value());
  EXPECT_FALSE(file_.get_bool("x").has_value());
  EXPECT_FALSE(file_.get_string("x").has_value());
  EXPECT_FALSE(file_.get_uints("x", 0, 1).has_value());
  EXPECT_FALSE(file_.get_ints("x", 0, 1).has_value());
  EXPECT_FALSE(file_.get_reals("x").has_value());
  EXPECT_EQ(file_.get_strings("x"), nullptr);
}

TEST_F(ContainerAccess, IntegersOfEveryType) {
  EXPECT_EQ(file_.get_uint("u8", 0, 200), 200u);
  EXPECT_EQ(file_.get_uint("u16", 300, 300), 300u);
  EXPECT_EQ(file_.get_uint("u32", 0, UINT64_MAX), 70000u);
  EXPECT_EQ(file_.get_uint("u64", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(file_.get_uint("i16", 0, 9), 5u);
  EXPECT_EQ(file_.get_uint("i32", 0, 9), 6u);
}

TEST_F(ContainerAccess, IntegersOutOfRange) {
  refused("(key 'u8'): value 200 is out of range, expected 0 to 199", [&] { file_.get_uint("u8", 0, 199); });
  refused("value 200 is out of range, expected 201 to 255", [&] { file_.get_uint("u8", 201, 255); });
  refused("value -3 is out of range", [&] { file_.get_uint("i8", 0, UINT64_MAX); });
  refused("value -9223372036854775808 is out of range", [&] { file_.get_uint("i64", 0, UINT64_MAX); });
  refused("value 3 is out of range, expected 0 to 2", [&] { file_.get_uints("u32s", 0, 2); });
  refused("value 18446744073709551615 is out of range", [&] { file_.get_ints("u64s", INT64_MIN, INT64_MAX); });
  refused("value -1 is out of range, expected 0 to 9", [&] { file_.get_ints("i32s", 0, 9); });
}

TEST_F(ContainerAccess, WrongTypes) {
  refused("(key 'f32'): value of type f32, expected an integer", [&] { file_.get_uint("f32", 0, 1); });
  refused("type string", [&] { file_.get_uint("text", 0, 1); });
  refused("type bool", [&] { file_.get_uint("true", 0, 1); });
  refused("type array of u32", [&] { file_.get_uint("u32s", 0, 9); });
  refused("type array of f32", [&] { file_.get_uints("f32s", 0, 9); });
  refused("type array of string", [&] { file_.get_ints("texts", 0, 9); });
  refused("type u32, expected reals", [&] { file_.get_real("u32"); });
  refused("type array of f32, expected a real", [&] { file_.get_real("f32s"); });
  refused("type array of u32, expected reals", [&] { file_.get_reals("u32s"); });
  refused("type u8, expected bool", [&] { file_.get_bool("u8"); });
  refused("type array of bool, expected bool", [&] { file_.get_bool("bools"); });
  refused("type u8, expected string", [&] { file_.get_string("u8"); });
  refused("type array of string, expected string", [&] { file_.get_string("texts"); });
  refused("type string, expected array of strings", [&] { file_.get_strings("text"); });
  refused("type array of u32, expected array of strings", [&] { file_.get_strings("u32s"); });
}

TEST_F(ContainerAccess, RealsAreFinite) {
  EXPECT_EQ(file_.get_real("f32"), 0.5);
  EXPECT_EQ(file_.get_real("f64"), 0.25);
  EXPECT_EQ(file_.get_reals("f32s"), (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(file_.get_reals("f32"), std::vector<double>{0.5});
  refused("value nan is not finite", [&] { file_.get_real("nan"); });
  refused("value inf is not finite", [&] { file_.get_real("inf"); });
  refused("value nan is not finite", [&] { file_.get_reals("nans"); });
}

TEST_F(ContainerAccess, BoolsStringsAndArrays) {
  EXPECT_EQ(file_.get_bool("true"), true);
  EXPECT_EQ(file_.get_bool("false"), false);
  EXPECT_EQ(file_.get_string("text"), "words");
  EXPECT_EQ(*file_.get_strings("texts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(file_.get_uints("u32s", 1, 3), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(file_.get_uints("bools", 0, 1), (std::vector<uint64_t>{1, 0}));
  EXPECT_EQ(file_.get_uints("u8", 0, 255), std::vector<uint64_t>{200});
  EXPECT_EQ(file_.get_uints("none", 0, 1), std::vector<uint64_t>{});
  EXPECT_EQ(file_.get_ints("i32s", -1, 4), (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(file_.get_ints("u32s", -1, 4), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(file_.get_ints("i64", INT64_MIN, 0), std::vector<int64_t>{INT64_MIN});
}

TEST(ContainerText, PrintableEscapesAndCuts) {
  EXPECT_EQ(gguf::printable("plain text"), "plain text");
  EXPECT_EQ(gguf::printable({"a\0\n\x1b\x7f\xff\\", 7}), "a\\x00\\x0a\\x1b\\x7f\\xff\\x5c");
  EXPECT_EQ(gguf::printable("abcdef", 3), "abc...");
  EXPECT_EQ(gguf::printable("abc", 3), "abc");
}

}  // namespace
}  // namespace strata::test
