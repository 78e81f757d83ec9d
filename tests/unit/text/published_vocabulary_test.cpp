// The tokenizer on vocabularies of real models.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/tokenizer.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

using Ids = std::vector<int32_t>;
constexpr Tokenizer::EncodeOptions kPlain{.add_special = false, .parse_special = false};

const Tokenizer& qwen2() {
  static const Tokenizer tokenizer(qwen2_vocabulary("qwen2"));
  return tokenizer;
}

std::vector<std::string> texts_of(const std::string& name) {
  const std::string separator = "\n__ggml_vocab_test__\n", all = fixture(name);
  std::vector<std::string> texts;
  size_t pos = 0;
  for (size_t end; (end = all.find(separator, pos)) != std::string::npos; pos = end + separator.size()) {
    texts.push_back(all.substr(pos, end - pos));
  }
  return texts;
}

std::vector<Ids> ids_of(const std::string& name) {
  std::istringstream lines(fixture(name));
  std::vector<Ids> all;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    all.emplace_back();
    for (int32_t id; numbers >> id;) all.back().push_back(id);
  }
  return all;
}

void expect_vectors(const std::string& pre, size_t count) {
  const Tokenizer tokenizer(qwen2_vocabulary(pre));
  const auto texts = texts_of("tokenizer/ggml-vocab-" + pre + ".gguf.inp");
  const auto ids = ids_of("tokenizer/ggml-vocab-" + pre + ".gguf.out");
  ASSERT_EQ(texts.size(), count);
  ASSERT_EQ(ids.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], kPlain), ids[i]) << texts[i];
    EXPECT_EQ(tokenizer.decode(ids[i]), texts[i]);
  }
}

TEST(PublishedVocabulary, Qwen2Vectors) { expect_vectors("qwen2", 46); }
TEST(PublishedVocabulary, Qwen35Vectors) { expect_vectors("qwen35", 50); }

TEST(PublishedVocabulary, DefaultModelPrompts) {
  const Tokenizer tokenizer(file_vocabulary(default_model_path()));
  const auto cases = nlohmann::json::parse(fixture("mini_prompts.json"));
  ASSERT_EQ(cases.size(), 14u);
  for (const auto& c : cases) {
    const auto prompt = c.at("prompt").get<std::string>();
    EXPECT_EQ(tokenizer.encode(prompt), c.at("prompt_ids").get<Ids>()) << prompt.substr(0, 80);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(prompt), true), prompt);
  }
}

TEST(PublishedVocabulary, DefaultModelTagsAreOneToken) {
  const Tokenizer tokenizer(file_vocabulary(default_model_path()));
  for (const char* tag : {"<think>", "</think>", "<tool_call>", "</tool_call>"}) {
    const auto id = tokenizer.id_of(tag);
    ASSERT_TRUE(id) << tag;
    EXPECT_EQ(tokenizer.encode(tag, kPlain), (Ids{*id}));
    EXPECT_EQ(tokenizer.bytes(*id), tag);
    EXPECT_FALSE(tokenizer.ends_generation(*id));
  }
  const auto end = tokenizer.id_of("<|im_end|>");
  ASSERT_TRUE(end);
  EXPECT_TRUE(tokenizer.ends_generation(*end));
  EXPECT_TRUE(tokenizer.ends_generation(tokenizer.id_of("<|endoftext|>").value()));
  EXPECT_GT(tokenizer.encode("<|im_end|>", kPlain).size(), 1u);
}

RC_GTEST_PROP(PublishedVocabulary, AnyBytesComeBack, ()) {
  const auto byte = rc::gen::weightedOneOf<char>(
      {{1, rc::gen::arbitrary<char>()}, {1, rc::gen::elementOf(std::string("the in\n 7'\xE4\xB8\xAD"))}});
  const auto bytes = rc::gen::scale(10, rc::gen::container<std::string>(byte));
  auto text = *bytes;
  if (*rc::gen::arbitrary<bool>()) text.append("<|im_end|>").append(*bytes);
  for (const bool parse_special : {false, true}) {
    const Ids ids = qwen2().encode(text, {.add_special = true, .parse_special = parse_special});
    RC_ASSERT(qwen2().decode(ids, true) == text);
  }
}

// One piece without a break, and others that keep the queue busy. Quadratic time would take days; the times are
// printed, not judged.
TEST(PublishedVocabulary, HostileTextsFinish) {
  for (const std::string unit : {"a", " ", "ab", "0", "<", "\xFF", "\u4E2D", "<|im_end|>", "<|im_end|", "the"}) {
    const size_t bytes = unit == "a" ? 10'000'000 : 1'000'000;
    std::string text;
    while (text.size() < bytes) text += unit;
    const auto start = std::chrono::steady_clock::now();
    const Ids ids = qwen2().encode(text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const char* shown = unit == "\xFF" ? "\\xFF" : unit.c_str();
    std::printf("%zu bytes of '%s': %zu ids in %.2f s\n", text.size(), shown, ids.size(), seconds.count());
    EXPECT_EQ(qwen2().decode(ids, true), text);
  }
}

}  // namespace
}  // namespace strata::text
