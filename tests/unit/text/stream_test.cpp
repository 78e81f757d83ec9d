#include "text/stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

// What a stream releases, call by call, and at the end.
template <typename Stream>
std::vector<std::string> releases(Stream stream, const std::vector<std::string>& pieces) {
  std::vector<std::string> out;
  for (const auto& piece : pieces) out.push_back(stream.push(piece));
  out.push_back(stream.finish());
  return out;
}

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const auto& part : parts) all += part;
  return all;
}

std::vector<std::string> cut(const std::string& text, const std::vector<size_t>& lengths) {
  std::vector<std::string> pieces;
  size_t pos = 0;
  for (const size_t length : lengths) {
    pieces.push_back(text.substr(std::min(pos, text.size()), length));
    pos += length;
  }
  if (pos < text.size()) pieces.push_back(text.substr(pos));
  return pieces;
}

using Strings = std::vector<std::string>;

TEST(Utf8Stream, HoldsAnIncompleteCharacterOnly) {
  EXPECT_EQ(releases(Utf8Stream(), {"a\xF0", "\x9F", "\x99", "\x82 b", "c"}),
            (Strings{"a", "", "", "\U0001F642 b", "c", ""}));
  EXPECT_EQ(releases(Utf8Stream(), {"\xE2\x82"}), (Strings{"", "\xE2\x82"}));
  EXPECT_EQ(releases(Utf8Stream(true), {"\xE2\x82"}), (Strings{"", "\uFFFD"}));
}

TEST(Utf8Stream, ABytePastHopeIsReleasedAtOnce) {
  EXPECT_EQ(releases(Utf8Stream(), {"\xFF", "\xE2", "(", "\xED", "\xA0"}),
            (Strings{"\xFF", "", "\xE2(", "", "\xED\xA0", ""}));
}

// Right-hand sides: bytes.decode("utf-8", "replace") of Python 3.11.
TEST(Utf8Stream, ReplacesAsPythonDoes) {
  const std::string r = "\uFFFD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\x80z", "a" + r + "z"},
      {"\xC0\xAF", r + r},                  // overlong
      {"\xE0\x80\xAF", r + r + r},          // overlong
      {"\xED\xA0\x80", r + r + r},          // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r},  // above U+10FFFF
      {"\xF0\x9F\x98(", r + "("},           // cut short
      {"\xE2\x82\xE2\x82\xAC", r + "\u20AC"},
      {"\xF0\x9F", r},
      {"\u00E9\u4E2D\U0001F642", "\u00E9\u4E2D\U0001F642"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(join(releases(Utf8Stream(true), {bytes})), text);
    EXPECT_EQ(join(releases(Utf8Stream(false), {bytes})), bytes);
  }
}

rc::Gen<std::string> utf8_like() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
                          "a", "\u00E9", "\u4E2D", "\U0001F642", "\x80", "\xBF", "\xC3", "\xE0", "\xE2\x82", "\xED",
                          "\xA0", "\xF0\x9F", "\xF4", "\x90", "\xFF"})),
                      join);
}

RC_GTEST_PROP(Utf8Stream, AnyCutGivesTheSameText, ()) {
  const std::string bytes = *utf8_like();
  const auto lengths = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 4));
  const bool replace = *rc::gen::arbitrary<bool>();
  const std::string whole = join(releases(Utf8Stream(replace), {bytes}));
  RC_ASSERT(join(releases(Utf8Stream(replace), cut(bytes, lengths))) == whole);
  if (!replace) RC_ASSERT(whole == bytes);
  // What was released by then never depends on the cuts either, and at most 3 bytes are held.
  Utf8Stream stream;
  size_t released = 0, given = 0;
  for (const auto& piece : cut(bytes, lengths)) {
    released += stream.push(piece).size();
    given += piece.size();
    RC_ASSERT(given - released <= 3u);
  }
}

TEST(StopStrings, NothingOfAStopStringLeaks) {
  StopStrings stops({"DEFGHIJ"});
  EXPECT_EQ(stops.push("ABC"), "ABC");
  for (const char* piece : {"DEF", "G", "HI"}) EXPECT_EQ(stops.push(piece), "");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.push("JK"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, ReleasesWhatCanNoLongerMatch) {
  EXPECT_EQ(releases(StopStrings({"DEFGHIJ"}), {"DEF", "G", "HI", "x"}), (Strings{"", "", "", "DEFGHIx", ""}));
  EXPECT_EQ(releases(StopStrings({"aab"}), {"aaa"}), (Strings{"a", "aa"}));
  EXPECT_EQ(releases(StopStrings({"\n\n", "END"}), {"x\n", "yE", "N"}), (Strings{"x", "\ny", "", "EN"}));
}

TEST(StopStrings, TheMatchThatIsCompleteFirstWinsThenTheLongest) {
  EXPECT_EQ(join(releases(StopStrings({"bcd", "abcde"}), {"xabcdef"})), "xa");
  EXPECT_EQ(join(releases(StopStrings({"cd", "bcd"}), {"abcd"})), "a");
  EXPECT_EQ(join(releases(StopStrings({"abcd", "bc"}), {"abx", "abcd"})), "abxa");
}

TEST(StopStrings, EmptyAndTooLong) {
  EXPECT_EQ(releases(StopStrings({}), {"ab", ""}), (Strings{"ab", "", ""}));
  EXPECT_EQ(releases(StopStrings({""}), {"ab"}), (Strings{"ab", ""}));
  try {
    StopStrings too_long({std::string(ByteMatcher::kMaxBytes + 1, 'x')});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Argument);
  }
}

// The plain definition: the shortest prefix of the text that ends with a stop string, less the longest such string.
std::string stopped_text(const std::string& text, const Strings& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const auto& stop : stops) {
      if (!stop.empty() && text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

RC_GTEST_PROP(StopStrings, AnyCutGivesTheTextOfTheDefinition, ()) {
  const auto letters = rc::gen::elementOf(std::string("aaab\xC3"));
  const Strings stops = *rc::gen::container<Strings>(rc::gen::resize(6, rc::gen::container<std::string>(letters)));
  const std::string text = *rc::gen::container<std::string>(letters);
  const auto lengths = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 4));
  RC_ASSERT(join(releases(StopStrings(stops), cut(text, lengths))) == stopped_text(text, stops));

  // Held back at any time: the longest suffix that is a proper prefix of a stop string, and no more.
  StopStrings stream(stops);
  std::string given, released;
  for (const char c : text) {
    given += c;
    released += stream.push(std::string(1, c));
    if (stream.stopped()) break;
    size_t held = 0;
    for (const auto& stop : stops) {
      for (size_t n = 1; n < stop.size(); ++n) {
        if (given.ends_with(stop.substr(0, n))) held = std::max(held, n);
      }
    }
    RC_ASSERT(given.size() - released.size() == held);
  }
}

TEST(StopStrings, HostileInputIsLinear) {
  const std::string stop = std::string(1 << 20, 'a') + "b";
  StopStrings stops({stop, std::string(1 << 19, 'a') + "c"});
  std::string out;
  const std::string chunk(1 << 20, 'a');
  for (int i = 0; i < 10; ++i) out += stops.push(chunk);
  out += stops.finish();
  EXPECT_EQ(out.size(), size_t{10} << 20);
}

}  // namespace
}  // namespace strata::text
