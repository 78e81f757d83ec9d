// Sets of characters and their UTF-8.
#include <gtest/gtest.h>

#include <random>

#include "text/grammar/charset.h"
#include "unit/text/vocabularies.h"

namespace strata::text::grammar {
namespace {

bool is_surrogate(char32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

char32_t random_code(std::mt19937& random) {
  constexpr char32_t kEdges[] = {0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
  if (random() % 3 == 0) return kEdges[random() % std::size(kEdges)];
  return random() % (random() % 2 ? 0x1000 : 0x110000);
}

size_t matching(const std::vector<std::vector<ByteRange>>& sequences, const std::string& bytes) {
  size_t count = 0;
  for (const auto& sequence : sequences) {
    bool matches = sequence.size() == bytes.size();
    for (size_t i = 0; matches && i < bytes.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      matches = byte >= sequence[i].low && byte <= sequence[i].high;
    }
    count += matches;
  }
  return count;
}

// Near every bound and at random: a character is spelled by one sequence if it is in the set, else by none.
TEST(CharSet, SequencesSpellTheSet) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<CharRange> ranges;
    CharSet set;
    std::vector<char32_t> probes;
    for (unsigned n = random() % 4; n > 0; --n) {
      char32_t low = random_code(random), high = random() % 2 ? random_code(random) : low + random() % 200;
      if (low > high) std::swap(low, high);
      high = std::min<char32_t>(high, 0x10FFFF);
      ranges.push_back({low, high});
      set.add(low, high);
      for (const char32_t bound : {low, high}) {
        for (int step = -66; step <= 66; ++step) probes.push_back(bound + static_cast<char32_t>(step));
      }
    }
    for (int i = 0; i < 300; ++i) probes.push_back(random_code(random));
    set.normalise();
    const auto inside = utf8_sequences(set), outside = utf8_sequences(set.complement());
    for (const char32_t code : probes) {
      if (code > 0x10FFFF || is_surrogate(code)) continue;
      const bool in =
          std::any_of(ranges.begin(), ranges.end(), [&](CharRange r) { return code >= r.low && code <= r.high; });
      const std::string bytes = utf8_of(code);
      std::string own;
      append_utf8(own, code);
      ASSERT_EQ(own, bytes);
      ASSERT_EQ(decode_utf8_text(bytes), std::u32string(1, code));
      ASSERT_EQ(matching(inside, bytes), in ? 1u : 0u) << static_cast<uint32_t>(code);
      ASSERT_EQ(matching(outside, bytes), in ? 0u : 1u) << static_cast<uint32_t>(code);
    }
    // Surrogates have no UTF-8, whatever the set says.
    ASSERT_EQ(matching(inside, "\xED\xA0\x80") + matching(outside, "\xED\xBF\xBF"), 0u);
  }
}

TEST(CharSet, Intersection) {
  const CharSet a{{'a', 'm'}, {0x100, 0x200}}, b{{'k', 'z'}, {0x180, 0x10FFFF}};
  EXPECT_EQ(a.intersection(b).ranges(), (std::vector<CharRange>{{'k', 'm'}, {0x180, 0x200}}));
  EXPECT_TRUE(a.intersection(CharSet()).empty());
}

TEST(CharSet, JsonEscapes) {
  EXPECT_EQ(json_escape('"') + json_escape('\\') + json_escape('\n') + json_escape(1) + json_escape(0x1F),
            R"(\"\\\n\u0001\u001f)");
  EXPECT_EQ(json_escape('a') + json_escape(0x7F) + json_escape(0xE9), "");
}

}  // namespace
}  // namespace strata::text::grammar
