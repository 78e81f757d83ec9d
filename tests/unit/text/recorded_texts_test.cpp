// 5,000 texts in 20 scripts: ids as another implementation gives them with a published model's tokenizer
// (tools/oracles/tokenizer.mjs records their hashes).
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "text/tokenizer.h"
#include "vocabularies.h"

namespace strata::text {
namespace {

std::string hash_of(std::span<const int32_t> ids) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((static_cast<uint32_t>(id) >> shift) & 255u)) * 0x100000001b3ull;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST(Tokenizer, FiveThousandTextsAsAnotherImplementation) {
  const Tokenizer tokenizer(qwen2_vocabulary("qwen2"));
  std::ifstream file(STRATA_BINARY_DIR "/fixtures/tokenizer/qwen3_texts.jsonl");
  ASSERT_TRUE(file.is_open());
  int total = 0, different = 0;
  for (std::string line; std::getline(file, line); ++total) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const std::string text = row[0].get<std::string>();
    const std::vector<int32_t> ids = tokenizer.encode(text);
    if (hash_of(ids) == row[1].get<std::string>()) continue;
    if (++different <= 5) ADD_FAILURE() << "other ids for " << row[0].dump();
  }
  std::printf("%d texts, %d with other ids\n", total, different);
  EXPECT_EQ(total, 5000);
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace strata::text
