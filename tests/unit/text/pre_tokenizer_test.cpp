#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <random>

#include "text/tokenizer.h"
#include "text/unicode.h"
#include "unit/text/regex_oracle.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

using Pieces = std::vector<std::string_view>;

constexpr std::array kKinds = {PreTokenizer::Qwen2, PreTokenizer::Qwen35, PreTokenizer::LlamaBpe, PreTokenizer::Gpt2,
                               PreTokenizer::Smollm};
constexpr std::array kNames = {"qwen2", "qwen35", "llama-bpe", "gpt-2", "smollm"};

Pieces oracle(PreTokenizer kind, std::string_view text) {
  static const Regex qwen2(kQwen2Pattern), qwen35(kQwen35Pattern), llama(kLlamaPattern), gpt2(kGpt2Pattern);
  static const Regex number(R"(\p{N})");
  switch (kind) {
    case PreTokenizer::Qwen2: return qwen2.split(text);
    case PreTokenizer::Qwen35: return qwen35.split(text);
    case PreTokenizer::LlamaBpe: return llama.split(text);
    case PreTokenizer::Gpt2: return gpt2.split(text);
    case PreTokenizer::Smollm: break;
  }
  Pieces pieces;
  for (const std::string_view part : number.split(text)) {
    if (number.matches(part)) {
      pieces.push_back(part);
      continue;
    }
    for (const std::string_view piece : gpt2.split(part)) pieces.push_back(piece);
  }
  return pieces;
}

// Characters around which the patterns turn, plus now and then any code point at all.
class RandomText {
 public:
  explicit RandomText(uint64_t seed) : random_(seed) {}

  std::string operator()() {
    std::string text;
    for (size_t characters = below(40); characters > 0; --characters) text += character();
    return text;
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  std::string character() {
    static const std::vector<std::vector<const char*>> kPools = {
        {"a", "b", "Z", "s", "S", "t", "T", "r", "e", "E", "v", "V", "m", "M", "l", "L", "d", "D"},
        {"'s", "'t", "'re", "'VE", "'m", "'lL", "'d", "'\u017F", "'", "''", "\u2019s", "\u017F", "\u212A"},
        {"0", "7", "42", "2024", "\u0665", "\u0967", "\u00BD", "\u2167", "\u2460", "\U0001D7D8"},
        {" ", " ", "  ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\u00A0", "\u0085", "\u2028", "\u2029", "\u3000",
         "\u2009", "\u1680", "\u200B"},
        {".",  ",", "!",      "?",      "-",      "_",      "#",    "<|",   "|>",   "\"",
         "\\", "{", "\u00AB", "\u20AC", "\u3002", "\u2014", "\x01", "\x1C", "\x1F", "\x7F"},
        {"\u00E9", "\u00DF", "\u0436", "\u042F", "\u4E2D", "\u6587", "\u3042", "\uD55C", "\u05D0", "\u0639", "\u0E01",
         "\u01C5", "\u02B0", "\u1E9E", "\U00020000", "\U00010400"},
        {"\u0301", "\u0308", "\u093E", "\u0E34", "\u064B", "\u20DD", "\u0903", "\uFE0F", "\U000E0100"},
        {"\U0001F642", "\U0001F469\u200D\U0001F680", "\U0001F1E9\U0001F1EA", "\u2764\uFE0F", "\U0001F3FD", "\uFEFF",
         "\uFFFD", "\uE000", "\u0378", "\U0010FFFF"},
    };
    const size_t pool = below(kPools.size() + 1);
    if (pool < kPools.size()) return kPools[pool][below(kPools[pool].size())];
    for (;;) {
      // Small code points more often; U+180E is white space to PCRE2 alone (see unicode_test).
      const auto code = static_cast<char32_t>(below(size_t{1} << (7 + below(14))));
      if (code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF) && code != 0x180E) return utf8_of(code);
    }
  }

  std::mt19937_64 random_;
};

std::string show(const Pieces& pieces) {
  std::string line;
  for (const auto piece : pieces) line.append("[").append(piece).append("]");
  return line;
}

TEST(PreTokenizer, EqualsTheRegexOnRandomText) {
  constexpr int kTexts = 10000;
  std::array<size_t, kKinds.size()> pieces{};
  RandomText random(20240607);
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = random();
    for (size_t k = 0; k < kKinds.size(); ++k) {
      const Pieces got = pre_split(kKinds[k], text), want = oracle(kKinds[k], text);
      ASSERT_EQ(got, want) << kNames[k] << "\n got " << show(got) << "\nwant " << show(want);
      pieces[k] += got.size();
    }
  }
  for (size_t k = 0; k < kKinds.size(); ++k) {
    std::printf("%s: %d texts, %zu pieces, all equal\n", kNames[k], kTexts, pieces[k]);
    // The texts tell the patterns apart.
    for (size_t other = 0; other < k; ++other) EXPECT_NE(pieces[k], pieces[other]);
  }
}

TEST(PreTokenizer, KnownSplits) {
  const auto split = [](PreTokenizer kind, std::string_view text) { return show(pre_split(kind, text)); };
  using enum PreTokenizer;
  EXPECT_EQ(split(Qwen2, "I'LL go  now\n\n  12 x"), "[I]['LL][ go][ ][ now][\n\n][ ][ ][1][2][ x]");
  EXPECT_EQ(split(LlamaBpe, "12345 abc"), "[123][45][ abc]");
  EXPECT_EQ(split(Gpt2, "I'LL go  now\n\n  12 x"), "[I]['][LL][ go][ ][ now][\n\n ][ 12][ x]");
  EXPECT_EQ(split(Smollm, "a  12 b"), "[a][  ][1][2][ b]");
  EXPECT_EQ(split(Qwen2, "e\u0301a"), "[e][\u0301a]");  // a combining mark cuts the word
  EXPECT_EQ(split(Qwen35, "e\u0301a"), "[e\u0301a]");
  EXPECT_TRUE(pre_split(Qwen2, "").empty());
}

TEST(PreTokenizer, Names) {
  EXPECT_EQ(pre_tokenizer_from_name("qwen2"), PreTokenizer::Qwen2);
  EXPECT_EQ(pre_tokenizer_from_name("deepseek-r1-qwen"), PreTokenizer::Qwen2);
  EXPECT_EQ(pre_tokenizer_from_name("qwen35"), PreTokenizer::Qwen35);
  for (const char* name : {"llama-bpe", "llama3", "llama-v3"}) {
    EXPECT_EQ(pre_tokenizer_from_name(name), PreTokenizer::LlamaBpe);
  }
  EXPECT_EQ(pre_tokenizer_from_name("gpt-2"), PreTokenizer::Gpt2);
  EXPECT_EQ(pre_tokenizer_from_name("gpt2"), PreTokenizer::Gpt2);
  EXPECT_EQ(pre_tokenizer_from_name("smollm"), PreTokenizer::Smollm);
  for (const char* name : {"", "default", "Qwen2", "qwen2 "}) EXPECT_EQ(pre_tokenizer_from_name(name), std::nullopt);
}

// An invalid byte splits like U+0001, a character of no class; so PCRE2 can judge any bytes.
RC_GTEST_PROP(PreTokenizer, InvalidBytesSplitLikeACharacterOfNoClass, ()) {
  const auto byte = rc::gen::weightedOneOf<char>(
      {{2, rc::gen::arbitrary<char>()}, {1, rc::gen::elementOf(std::string("a '\n9\xE2\x82\xC3\xF0\x9F\xCC\x81"))}});
  const std::string text = *rc::gen::container<std::string>(byte);
  std::string clean = text;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Result c = decode_utf8(std::string_view(text).substr(pos));
    const bool valid = c.kind == Utf8Kind::Complete;
    if (!valid) clean[pos] = '\x01';
    pos += valid ? c.length : 1;
  }
  RC_PRE(clean.find("\u180E") == std::string::npos);
  for (const PreTokenizer kind : kKinds) {
    const Pieces got = pre_split(kind, text), want = oracle(kind, clean);
    RC_ASSERT(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) RC_ASSERT(got[i].size() == want[i].size());
  }
}

// Quadratic time would take hours here.
TEST(PreTokenizer, HostileTextsFinish) {
  constexpr size_t kBytes = 1'000'000;
  for (const std::string unit : {" ", "\t", "a", "\n", "\r\n", " \n", "  x", "'", "1", "!", " !", "\xFF", "\xE2\x82",
                                 "\u3000", "\u0301", "\u4E2D", "\n a"}) {
    std::string text;
    while (text.size() < kBytes) text += unit;
    for (const char* tail : {"", "x"}) {
      const std::string whole = text + tail;
      for (const PreTokenizer kind : kKinds) {
        size_t covered = 0;
        for (const auto piece : pre_split(kind, whole)) {
          ASSERT_EQ(piece.data(), whole.data() + covered);
          covered += piece.size();
        }
        ASSERT_EQ(covered, whole.size());
      }
    }
  }
}

}  // namespace
}  // namespace strata::text
