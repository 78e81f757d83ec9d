#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "base/error.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

using Ids = std::vector<int32_t>;
constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};
constexpr Tokenizer::EncodeOptions kSpecial{.add_special = false, .parse_special = true};

Ids bytes_as_ids(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

// ---- merges ----

TEST(Tokenizer, MergesByRankThenLeftmost) {
  const Tokenizer t(byte_vocabulary({{"a", "b"}, {"b", "c"}, {"a", "a"}, {"ab", "c"}}));
  EXPECT_EQ(t.encode("abc", kPlain), (Ids{259}));
  EXPECT_EQ(t.encode("aaa", kPlain), (Ids{258, 'a'}));
  EXPECT_EQ(t.encode("aaab", kPlain), (Ids{258, 256}));
  EXPECT_EQ(t.encode("bca", kPlain), (Ids{257, 'a'}));
  EXPECT_EQ(t.encode("ab bc", kPlain), (Ids{256, ' ', 257}));
  EXPECT_EQ(t.encode("", kPlain), Ids{});
}

TEST(Tokenizer, SymbolsWithoutATokenFallBackToBytes) {
  Vocabulary v = byte_vocabulary({{"a", "b"}, {"ab", "c"}});
  v.tokens[256] = "unrelated";  // "ab" is no token any more, but "ab c" still merges
  const Tokenizer t(std::move(v));
  EXPECT_EQ(t.encode("ab", kPlain), (Ids{'a', 'b'}));
  EXPECT_EQ(t.encode("abc", kPlain), (Ids{257}));
}

TEST(Tokenizer, MergesOutsideTheAlphabetAreLeftOut) {
  Vocabulary v = byte_vocabulary({{"a", "b"}});
  v.merges.insert(v.merges.begin(), {"a \u4E2D", "a b c", "\xFF a"});
  EXPECT_EQ(Tokenizer(std::move(v)).encode("ab", kPlain), (Ids{256}));
}

TEST(Tokenizer, LlamaTakesAWholePieceThatIsAToken) {
  const std::vector<Pair> merges = {{"b", "c"}, {"ab", "c"}};  // "abc" cannot be reached by merging
  EXPECT_EQ(Tokenizer(byte_vocabulary(merges, {}, "qwen2")).encode("abc", kPlain), (Ids{'a', 256}));
  EXPECT_EQ(Tokenizer(byte_vocabulary(merges, {}, "llama-bpe")).encode("abc", kPlain), (Ids{257}));
}

// The rule itself, on strings: join the pair of lowest rank, leftmost, until none is left.
Ids merged_by_definition(const Vocabulary& v, const std::string& piece) {
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (size_t i = 0; i < v.merges.size(); ++i) {
    const size_t space = v.merges[i].find(' ');
    ranks.emplace(std::pair(v.merges[i].substr(0, space), v.merges[i].substr(space + 1)), i);
  }
  std::vector<std::string> symbols;
  for (const char c : piece) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = SIZE_MAX, at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rank = ranks.find({symbols[i], symbols[i + 1]});
      if (rank != ranks.end() && rank->second < best) best = rank->second, at = i;
    }
    if (best == SIZE_MAX) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  Ids ids;
  for (const auto& symbol : symbols) {
    const auto token = std::find(v.tokens.begin(), v.tokens.end(), symbol);
    if (token != v.tokens.end()) {
      ids.push_back(static_cast<int32_t>(token - v.tokens.begin()));
    } else {
      for (const char c : symbol) ids.push_back(static_cast<uint8_t>(c));
    }
  }
  return ids;
}

RC_GTEST_PROP(Tokenizer, EqualsTheDefinitionOnRandomVocabularies, ()) {
  const auto letters = rc::gen::elementOf(std::string("aab"));
  const auto part = rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::string>(letters)));
  Vocabulary v = byte_vocabulary(*rc::gen::container<std::vector<Pair>>(rc::gen::pair(part, part)));
  for (size_t id = 256; id < v.tokens.size(); ++id) {
    if (*rc::gen::inRange(0, 4) == 0) v.tokens[id] = "?" + std::to_string(id);
  }
  const std::string piece = *rc::gen::scale(3, rc::gen::container<std::string>(letters));
  const Ids expected = merged_by_definition(v, piece);
  RC_ASSERT(Tokenizer(std::move(v)).encode(piece, kPlain) == expected);
}

// ---- special tokens ----

const std::vector<Added>& added() {
  static const std::vector<Added> tokens = {
      {"<|im_end|>", TokenType::Control},     {"<think>", TokenType::UserDefined},
      {"<thinking>", TokenType::UserDefined}, {"[PAD261]", TokenType::Unused},
      {"ink>x", TokenType::UserDefined},      {"<think>!", TokenType::Control},
      {"<unk>", TokenType::Unknown},          {"", TokenType::Control},
  };
  return tokens;
}
enum : int32_t { kEnd = 256, kThink, kThinking, kPad, kInk, kThinkBang, kUnknown, kEmpty };

TEST(Tokenizer, ControlTokensOnlyWhereAllowedUserDefinedAlways) {
  const Tokenizer t(byte_vocabulary({}, added()));
  EXPECT_EQ(t.encode("a<|im_end|><think>b", kSpecial), (Ids{'a', kEnd, kThink, 'b'}));
  Ids plain{'a'};
  for (const int32_t id : bytes_as_ids("<|im_end|>")) plain.push_back(id);
  plain.push_back(kThink), plain.push_back('b');
  EXPECT_EQ(t.encode("a<|im_end|><think>b", kPlain), plain);
  EXPECT_EQ(t.encode("[PAD261]<unk>", kSpecial), bytes_as_ids("[PAD261]<unk>"));
}

TEST(Tokenizer, TheLeftmostThenTheLongestSpecialToken) {
  const Tokenizer t(byte_vocabulary({}, added()));
  EXPECT_EQ(t.encode("<thinking><think>!<think", kSpecial), (Ids{kThinking, kThinkBang, '<', 't', 'h', 'i', 'n', 'k'}));
  EXPECT_EQ(t.encode("<think>!", kPlain), (Ids{kThink, '!'}));
  EXPECT_EQ(t.encode("<think>x", kPlain), (Ids{kThink, 'x'}));  // "ink>x" begins later
  EXPECT_EQ(t.encode("<ink>x", kPlain), (Ids{'<', kInk}));
  EXPECT_EQ(t.encode("<think><think><think>", kPlain), (Ids{kThink, kThink, kThink}));
}

// Text of a request must not be able to write a control token, whatever the vocabulary holds.
TEST(Tokenizer, MergesNeverSpellAControlToken) {
  Vocabulary v = byte_vocabulary({{"a", "b"}}, {{"xy", TokenType::Control}}, "llama-bpe");
  v.types[256] = static_cast<int64_t>(TokenType::Control);
  const Tokenizer t(std::move(v));
  EXPECT_EQ(t.encode("ab", kPlain), bytes_as_ids("ab"));
  EXPECT_EQ(t.encode("xy", kPlain), bytes_as_ids("xy"));
  EXPECT_EQ(t.encode("xy", kSpecial), (Ids{257}));
}

RC_GTEST_PROP(Tokenizer, SpecialTokensEqualTheDefinition, ()) {
  const auto text_of = rc::gen::container<std::string>(rc::gen::elementOf(std::string("<<ab>")));
  std::vector<Added> tokens;
  for (const auto& text : *rc::gen::unique<std::vector<std::string>>(rc::gen::resize(5, rc::gen::nonEmpty(text_of)))) {
    tokens.push_back({text, *rc::gen::arbitrary<bool>() ? TokenType::Control : TokenType::UserDefined});
  }
  const std::string text = *text_of;
  const bool parse = *rc::gen::arbitrary<bool>();
  Ids expected;
  for (size_t pos = 0; pos < text.size();) {
    size_t longest = 0;
    int32_t id = static_cast<uint8_t>(text[pos]);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto& [literal, type] = tokens[i];
      if (type == TokenType::Control && !parse) continue;
      if (literal.size() <= longest || text.compare(pos, literal.size(), literal) != 0) continue;
      longest = literal.size();
      id = static_cast<int32_t>(256 + i);
    }
    expected.push_back(id);
    pos += std::max<size_t>(longest, 1);
  }
  const Tokenizer t(byte_vocabulary({}, tokens));
  RC_ASSERT(t.encode(text, parse ? kSpecial : kPlain) == expected);
}

TEST(Tokenizer, DecodingAndQuestions) {
  Vocabulary v = byte_vocabulary({{"\xC3", "\xA9"}}, added());
  for (auto& token : v.tokens) {
    if (token == "[PAD261]") token = "\u00E9 raw";  // not ordinary: its text stands for itself
  }
  v.eos = 'Z';
  const Tokenizer t(std::move(v));
  const auto id = [&](int32_t added_id) { return added_id + 1; };  // behind the merge
  EXPECT_EQ(t.bytes(256), "\u00E9");
  EXPECT_EQ(t.bytes(id(kEnd)), "");
  EXPECT_EQ(t.bytes(id(kEnd), true), "<|im_end|>");
  EXPECT_EQ(t.bytes(id(kThink)), "<think>");
  EXPECT_EQ(t.bytes(id(kPad)), "\u00E9 raw");
  EXPECT_EQ(t.bytes(0xFF), "\xFF");
  EXPECT_EQ(t.decode(Ids{'a', id(kEnd), id(kThink)}), "a<think>");
  EXPECT_EQ(t.decode(Ids{'a', id(kEnd), id(kThink)}, true), "a<|im_end|><think>");
  EXPECT_EQ(t.id_of("<think>"), id(kThink));
  EXPECT_EQ(t.id_of("a"), std::nullopt);
  EXPECT_EQ(t.type(id(kPad)), TokenType::Unused);
  EXPECT_FALSE(t.may_be_sampled(id(kPad)));
  EXPECT_TRUE(t.may_be_sampled(id(kEnd)));
  EXPECT_EQ(t.eos(), 'Z');
  EXPECT_EQ(t.bos(), std::nullopt);
  EXPECT_EQ(t.size(), 265);
  for (const int32_t outside : {-1, 265}) {
    EXPECT_THROW(t.bytes(outside), Error);
    EXPECT_THROW(t.decode(Ids{outside}), Error);
    EXPECT_THROW(t.type(outside), Error);
    EXPECT_FALSE(t.ends_generation(outside));
  }
}

TEST(Tokenizer, EndsOfGeneration) {
  Vocabulary v = byte_vocabulary({}, {{"<|im_end|>", TokenType::Control},
                                      {"<|eot_id|>", TokenType::Normal},
                                      {"</s>", TokenType::Control},
                                      {"<|endoftext|>", TokenType::Control},
                                      {"<|im_start|>", TokenType::Control}});
  v.eos = 'e', v.eot = 't', v.eom = 'm';
  const Tokenizer t(std::move(v));
  Ids ends;
  for (int32_t id = 0; id < t.size(); ++id) {
    if (t.ends_generation(id)) ends.push_back(id);
  }
  EXPECT_EQ(ends, (Ids{'e', 'm', 't', 256, 257, 258, 259}));  // all but <|im_start|>
}

TEST(Tokenizer, BosWhereTheVocabularyAsksForItAndNeverTwice) {
  const auto make = [](const char* pre, std::optional<bool> add_bos) {
    Vocabulary v = byte_vocabulary({}, {{"<s>", TokenType::Control}}, pre);
    v.bos = 256;
    v.add_bos = add_bos;
    return Tokenizer(std::move(v));
  };
  const Ids with{256, 'a'}, without{'a'};
  EXPECT_EQ(make("llama-bpe", {}).encode("a"), with);
  EXPECT_EQ(make("llama-bpe", false).encode("a"), without);
  EXPECT_EQ(make("qwen2", {}).encode("a"), without);
  EXPECT_EQ(make("qwen2", true).encode("a"), with);
  EXPECT_EQ(make("qwen2", true).encode("a", kSpecial), without);
  EXPECT_EQ(make("qwen2", true).encode("<s>a"), with);
  EXPECT_EQ(make("qwen2", true).encode(""), (Ids{256}));
}

// ---- refusals ----

void expect_refused(Vocabulary v, const std::string& where, const std::string& part) {
  try {
    Tokenizer t(std::move(v));
    ADD_FAILURE() << where << ": accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Model);
    EXPECT_EQ(error.where(), where);
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

TEST(Tokenizer, RefusesWhatIsMissingUnsupportedOrInconsistent) {
  const auto with = [](auto change) {
    Vocabulary v = byte_vocabulary({{"a", "b"}});
    change(v);
    return v;
  };
  using V = Vocabulary&;
  const std::string key = "tokenizer.ggml.";
  expect_refused(with([](V v) { v.model = "llama"; }), key + "model", "'llama'");
  expect_refused(with([](V v) { v.model = ""; }), key + "model", "missing");
  expect_refused(with([](V v) { v.pre = "default"; }), key + "pre", "'default'");
  expect_refused(with([](V v) { v.pre = ""; }), key + "pre", "missing");
  expect_refused(with([](V v) { v.tokens.clear(), v.types.clear(); }), key + "tokens", "empty");
  expect_refused(with([](V v) { v.types.pop_back(); }), key + "token_type", "256 types for 257 tokens");
  expect_refused(with([](V v) { v.types[3] = 7; }), key + "token_type", "token 3 has type 7");
  expect_refused(with([](V v) { v.types[3] = 0; }), key + "token_type", "type 0");
  expect_refused(with([](V v) { v.merges[0] = "ab"; }), key + "merges", "entry 0");
  expect_refused(with([](V v) { v.merges.push_back(" b"); }), key + "merges", "entry 1");
  expect_refused(with([](V v) { v.merges.push_back("a "); }), key + "merges", "entry 1");
  expect_refused(with([](V v) { v.merges.push_back(""); }), key + "merges", "entry 1");
  expect_refused(with([](V v) { v.bos = 257; }), key + "bos_token_id", "257");
  expect_refused(with([](V v) { v.eos = UINT64_MAX; }), key + "eos_token_id", "outside");
  expect_refused(with([](V v) { v.eot = 257; }), key + "eot_token_id", "257");
  expect_refused(with([](V v) { v.eom = 257; }), key + "eom_token_id", "257");
  expect_refused(with([](V v) { v.pad = 257; }), key + "padding_token_id", "257");
  expect_refused(with([](V v) { v.add_bos = true; }), key + "add_bos_token", "bos_token_id");
  expect_refused(with([](V v) { v.tokens['q'] = "other"; }), key + "tokens", "0x71");
  expect_refused(with([](V v) {
                   v.tokens.push_back(std::string((16 << 20) + 1, 'x'));
                   v.types.push_back(3);
                 }),
                 key + "tokens", "special tokens");
}

TEST(Tokenizer, AByteWithoutATokenIsLeftOut) {
  Vocabulary v = byte_vocabulary({{"a", "b"}});
  v.tokens[0xF5] = "other";
  const Tokenizer t(std::move(v));
  EXPECT_EQ(t.encode("ab\xF5\xF6", kPlain), (Ids{256, 0xF6}));
}

TEST(Tokenizer, TypesMayBeAbsent) {
  Vocabulary v = byte_vocabulary({{"a", "b"}});
  v.types.clear();
  EXPECT_EQ(Tokenizer(std::move(v)).encode("ab"), (Ids{256}));
}

}  // namespace
}  // namespace strata::text
