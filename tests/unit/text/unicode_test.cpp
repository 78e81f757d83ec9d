#include "text/unicode.h"

#include <gtest/gtest.h>

#include "unit/text/regex_oracle.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

// Every code point, encoded, decoded and classified, against PCRE2 10.42 (Unicode 14.0 as well).
TEST(Unicode, EveryCodePointHasTheClassOfPcre2) {
  const Regex letter(R"(^\p{L}$)"), number(R"(^\p{N}$)"), mark(R"(^\p{M}$)"), space(R"(^\s\z)");
  int counts[4] = {};
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const std::string text = utf8_of(code);
    uint8_t expected = 0;
    if (letter.matches(text)) expected |= kLetter, ++counts[0];
    if (number.matches(text)) expected |= kNumber, ++counts[1];
    if (mark.matches(text)) expected |= kMark, ++counts[2];
    // U+180E left White_Space with Unicode 6.3; PCRE2 keeps it in \s for Perl's sake.
    if (code != 0x180E && space.matches(text)) expected |= kSpace, ++counts[3];
    const Char c = char_at(text, 0);
    ASSERT_EQ(c.classes, expected) << "U+" << std::hex << static_cast<uint32_t>(code);
    ASSERT_EQ(c.length, text.size());
    const Utf8Result decoded = decode_utf8(text);
    ASSERT_EQ(decoded.kind, Utf8Kind::Complete);
    ASSERT_EQ(decoded.code, code);
  }
  EXPECT_EQ(counts[3], 25);  // White_Space has 25 members since Unicode 6.3
  std::printf("letters %d, numbers %d, marks %d, spaces %d\n", counts[0], counts[1], counts[2], counts[3]);
}

TEST(Unicode, InvalidBytesHaveNoClassAndAreOneByteEach) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xC3(", "\xE2\x82", "\xF0\x9F\x98"}) {
    const Char c = char_at(text, 0);
    EXPECT_EQ(c.classes, 0) << text;
    EXPECT_EQ(c.length, 1) << text;
    EXPECT_NE(decode_utf8(text).kind, Utf8Kind::Complete) << text;
  }
}

// All pairs of bytes, and all triples that begin a longer character: complete exactly where PCRE2 takes them as UTF-8.
TEST(Unicode, DecoderAgreesWithPcre2OnWhatIsUtf8) {
  const auto valid = [](const std::string& text) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_LITERAL,
                                     &error, &offset, nullptr);
    pcre2_code_free(code);
    return code != nullptr;
  };
  for (int lead = 0xC0; lead <= 0xFF; ++lead) {
    for (int second = 0x70; second <= 0xFF; ++second) {
      for (const char* tail : {"", "\x80", "\xBF\x80"}) {
        const std::string text = std::string{static_cast<char>(lead), static_cast<char>(second)} + tail;
        const Utf8Result result = decode_utf8(text);
        const bool complete = result.kind == Utf8Kind::Complete && result.length == text.size();
        ASSERT_EQ(complete, valid(text)) << std::hex << lead << ' ' << second << " + " << strlen(tail);
      }
    }
  }
}

}  // namespace
}  // namespace strata::text
