#include "gguf/hf/vocabulary.h"
#include "unit/gguf/hf_test_util.h"

namespace strata::gguf::hf {
namespace {

using testing::expect_error;
using testing::TempDir;

const std::string kByteLevel = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";

std::string split(const std::string& pattern) {
  return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" + pattern +
         R"("},"behavior":"Isolated","invert":false},)" + kByteLevel + "]}";
}

// Published patterns, escaped as JSON holds them.
const std::string kHead = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?)";
const std::string kTail = R"([\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
const std::string kQwen2 = split(kHead + R"(\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+)" + kTail);
const std::string kQwen35 = split(kHead + R"([\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+)" + kTail);
const std::string kLlama3 = split(kHead + R"(\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+)" + kTail);
const std::string kSmollm = R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
                            R"({"type":"ByteLevel","use_regex":true}]})";

class HfVocabulary : public ::testing::Test {
 protected:
  HfVocabulary() { config_.vocab = 9; }
  void tokenizer(const std::string& pre, const std::string& added, const std::string& merges,
                 const std::string& more = "") {
    dir_.write("tokenizer.json", R"({"pre_tokenizer":)" + pre + R"(,"added_tokens":)" + added +
                                     R"(,"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":)" + merges +
                                     more + "}}");
  }
  std::vector<KeyValue> read() {
    warnings_.clear();
    return read_vocabulary(dir_.path(), config_, [this](const std::string& line) { warnings_.push_back(line); });
  }
  static const Value& at(const std::vector<KeyValue>& keys, const std::string& name) {
    for (const KeyValue& entry : keys)
      if (entry.key == "tokenizer." + name) return entry.value;
    throw Error(ErrorKind::Model, "no key " + name);
  }

  TempDir dir_;
  Config config_;
  std::vector<std::string> warnings_;
};

const std::string kAdded =
    R"([{"id":3,"content":"<|end|>","special":true},{"id":4,"content":"<think>","special":false},)"
    R"({"id":5,"content":"<|box|>","special":false},{"id":7,"content":"<s>","special":true}])";

TEST_F(HfVocabulary, TokensTypesMergesAndPadding) {
  tokenizer(kQwen2, kAdded, R"(["a b"])");
  config_.eos = {3, 5};
  auto keys = read();
  EXPECT_EQ(at(keys, "ggml.model").s, "gpt2");
  EXPECT_EQ(at(keys, "ggml.pre").s, "qwen2");
  EXPECT_EQ(at(keys, "ggml.tokens").ss,
            (std::vector<std::string>{"a", "b", "ab", "<|end|>", "<think>", "<|box|>", "[PAD6]", "<s>", "[PAD8]"}));
  EXPECT_EQ(at(keys, "ggml.token_type").is, (std::vector<int64_t>{1, 1, 1, 3, 4, 3, 5, 3, 5}));
  EXPECT_EQ(at(keys, "ggml.merges").ss, std::vector<std::string>{"a b"});
  EXPECT_EQ(at(keys, "ggml.eos_token_id").u, 3u);
  EXPECT_EQ(at(keys, "ggml.add_bos_token").u, 0u);
  EXPECT_THROW(at(keys, "ggml.bos_token_id"), Error);
  EXPECT_TRUE(warnings_.empty());
  tokenizer(kQwen2, kAdded, R"([["a","b"]])");  // newer files store pairs
  EXPECT_EQ(at(read(), "ggml.merges").ss, std::vector<std::string>{"a b"});
}

TEST_F(HfVocabulary, PreTokenizerIsToldByItsPattern) {
  for (const auto& [pre, name] :
       std::vector<std::pair<std::string, std::string>>{{kQwen2, "qwen2"},
                                                        {kQwen35, "qwen35"},
                                                        {kLlama3, "llama-bpe"},
                                                        {kSmollm, "smollm"},
                                                        {R"({"type":"ByteLevel","use_regex":true})", "gpt-2"}}) {
    tokenizer(pre, "[]", "[]");
    EXPECT_EQ(at(read(), "ggml.pre").s, name);
  }
  for (const std::string& pre :
       {split("[a-z]+"), kByteLevel, std::string("null"), std::string(R"({"type":"Metaspace","replacement":"_"})")}) {
    tokenizer(pre, "[]", "[]");
    EXPECT_TRUE(read().empty()) << pre;
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("token ids only"), std::string::npos);
  }
  tokenizer(kQwen2, "[]", "[]", R"(,"byte_fallback":true)");
  EXPECT_TRUE(read().empty());
}

TEST_F(HfVocabulary, SpecialTokensAndBos) {
  tokenizer(kLlama3, kAdded, "[]");
  dir_.write("tokenizer_config.json", R"({"bos_token":"<s>","eos_token":{"content":"<|box|>"},"pad_token":null})");
  config_.eos = {3};
  config_.pad = 1;
  auto keys = read();
  EXPECT_EQ(at(keys, "ggml.bos_token_id").u, 7u);
  EXPECT_EQ(at(keys, "ggml.eos_token_id").u, 5u);  // tokenizer_config.json wins over config.json
  EXPECT_EQ(at(keys, "ggml.padding_token_id").u, 1u);
  EXPECT_EQ(at(keys, "ggml.add_bos_token").u, 0u);
  dir_.write("tokenizer_config.json", R"({"bos_token":"<s>","add_bos_token":true})");
  EXPECT_EQ(at(read(), "ggml.add_bos_token").u, 1u);
  config_.pad = 400;  // outside the vocabulary: not written
  EXPECT_THROW(at(read(), "ggml.padding_token_id"), Error);
}

TEST_F(HfVocabulary, ChatTemplates) {
  tokenizer(kQwen2, kAdded, "[]");
  dir_.write("tokenizer_config.json", R"({"chat_template":[{"name":"default","template":"D"},)"
                                      R"({"name":"tool","template":"T"}]})");
  auto keys = read();
  EXPECT_EQ(at(keys, "chat_template").s, "D");
  EXPECT_EQ(at(keys, "chat_template.tool").s, "T");
  dir_.write("tokenizer_config.json", R"({"chat_template":"C"})");
  EXPECT_EQ(at(read(), "chat_template").s, "C");
  dir_.write("chat_template.jinja", "{{ x }}");
  EXPECT_EQ(at(read(), "chat_template").s, "{{ x }}");
}

TEST_F(HfVocabulary, ContradictionsAreRefused) {
  auto refused = [&](const std::string& added, const std::string& merges, const std::string& part) {
    tokenizer(kQwen2, added, merges);
    expect_error(ErrorKind::Model, part, [&] { read(); });
  };
  refused(R"([{"id":9,"content":"x"}])", "[]", "not below vocab_size (9)");
  refused(R"([{"id":-1,"content":"x"}])", "[]", "not below vocab_size");
  refused(R"([{"content":"x"}])", "[]", "not below vocab_size");
  refused(R"([{"id":2,"content":"x"}])", "[]", "id 2 to two tokens");
  refused("7", "[]", "not below vocab_size");
  refused("[]", R"(["ab"])", "not two tokens");
  refused("[]", R"(["a "])", "not two tokens");
  refused("[]", R"([["a","b","c"]])", "not two tokens");
  refused("[]", R"([7])", "not two tokens");
  refused("[]", "{}", "no model.merges");
  dir_.write("tokenizer.json", "[1]");
  expect_error(ErrorKind::Format, "not a JSON object", [&] { read(); });
  dir_.write("tokenizer.json", std::string(5000, '['));
  expect_error(ErrorKind::Format, "deeper than 64", [&] { read(); });
}

// The tokenizer of the default model, against the file that was made of it elsewhere.
TEST_F(HfVocabulary, TheDefaultModelsTokenizerGivesItsFilesKeys) {
  const std::string models = STRATA_SOURCE_DIR "/../shared/models/";
  if (!std::filesystem::exists(models + "tokenizer.json")) GTEST_SKIP() << "no tokenizer.json at " << models;
  std::filesystem::copy(models + "tokenizer.json", dir_.file("tokenizer.json"));
  const File file = File::open(models + "strata-mini-q8_0.gguf");
  config_.vocab = file.get_strings("tokenizer.ggml.tokens")->size();
  const auto keys = read();
  EXPECT_EQ(at(keys, "ggml.pre").s, file.get_string("tokenizer.ggml.pre"));
  EXPECT_EQ(at(keys, "ggml.tokens").ss, *file.get_strings("tokenizer.ggml.tokens"));
  EXPECT_EQ(at(keys, "ggml.merges").ss, *file.get_strings("tokenizer.ggml.merges"));
  EXPECT_EQ(at(keys, "ggml.token_type").is, file.get_ints("tokenizer.ggml.token_type", 0, 9));
}

}  // namespace
}  // namespace strata::gguf::hf
