#include "base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace strata {
namespace {

constexpr ErrorKind kKinds[] = {ErrorKind::Usage,  ErrorKind::File,     ErrorKind::Format,
                                ErrorKind::Model,  ErrorKind::Argument, ErrorKind::Device,
                                ErrorKind::Memory, ErrorKind::Evidence, ErrorKind::Interrupted};

TEST(Error, OneLineWithPlaceFirst) {
  const Error error(ErrorKind::File, "cannot open", "a.gguf");
  EXPECT_STREQ(error.what(), "a.gguf: cannot open");
  EXPECT_EQ(error.message(), "cannot open");
  EXPECT_EQ(error.where(), "a.gguf");
  EXPECT_STREQ(Error(ErrorKind::Model, "no layers").what(), "no layers");
}

TEST(Error, StaysOnePrintableLine) {
  const Error error(ErrorKind::Format, "name 'a\n\x1b[2J\x7f' \u00e9", std::string("dir\0\r/", 6));
  EXPECT_STREQ(error.what(), "dir\\x00\\x0d/: name 'a\\x0a\\x1b[2J\\x7f' \u00e9");
  EXPECT_EQ(error.message(), "name 'a\\x0a\\x1b[2J\\x7f' \u00e9");
  const Error again(error.kind(), error.message(), error.where());
  EXPECT_STREQ(again.what(), error.what()) << "raised again";
  EXPECT_LT(Error(ErrorKind::Model, std::string(1 << 20, 'x')).message().size(), 5000u);
}

TEST(Error, ExitCodes) {
  for (const ErrorKind kind : kKinds) {
    const int expected = kind == ErrorKind::Usage         ? 2
                         : kind == ErrorKind::Evidence    ? 3
                         : kind == ErrorKind::Interrupted ? 130
                                                          : 1;
    EXPECT_EQ(exit_code(kind), expected) << to_string(kind);
  }
}

TEST(Error, EveryKindHasItsName) {
  std::set<std::string> names;
  for (const ErrorKind kind : kKinds) names.insert(to_string(kind));
  EXPECT_EQ(names.size(), std::size(kKinds));
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace strata
