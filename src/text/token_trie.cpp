#include "text/token_trie.h"

#include <algorithm>
#include <bit>

namespace strata::text {

namespace {

bool takes_part(const Tokenizer& tokenizer, int32_t id) {
  const TokenType type = tokenizer.type(id);
  return tokenizer.may_be_sampled(id) && !tokenizer.ends_generation(id) &&
         (type == TokenType::Normal || type == TokenType::Byte || type == TokenType::UserDefined);
}

void build_nodes(TokenTrie::Data& data) {
  data.nodes.push_back({0, 0, 0, 0});
  std::vector<uint32_t> path{0};  // nodes from the root to the last token
  std::string_view last;
  for (size_t at = 0; at < data.tokens.size(); ++at) {
    const std::string_view bytes = data.bytes[static_cast<size_t>(data.tokens[at])];
    const auto differs = std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end());
    const auto common = static_cast<size_t>(differs.first - last.begin());
    for (; path.size() > common + 1; path.pop_back()) {
      data.nodes[path.back()].end = static_cast<uint32_t>(data.nodes.size());
    }
    for (size_t i = common; i < bytes.size(); ++i) {
      path.push_back(static_cast<uint32_t>(data.nodes.size()));
      data.nodes.push_back(
          {0, static_cast<uint32_t>(at), static_cast<uint16_t>(i + 1), static_cast<uint8_t>(bytes[i])});
    }
    last = bytes;
  }
  for (const uint32_t node : path) data.nodes[node].end = static_cast<uint32_t>(data.nodes.size());
  data.nodes.push_back({0, static_cast<uint32_t>(data.tokens.size()), 0, 0});
}

}  // namespace

bool TokenMask::any() const {
  return std::any_of(words_.begin(), words_.end(), [](uint64_t word) { return word != 0; });
}

int32_t TokenMask::count() const {
  int32_t sum = 0;
  for (const uint64_t word : words_) sum += std::popcount(word);
  return sum;
}

TokenTrie::TokenTrie(const Tokenizer& tokenizer) {
  Data data;
  data.vocabulary = tokenizer.size();
  data.bytes.resize(static_cast<size_t>(data.vocabulary));
  for (int32_t id = 0; id < data.vocabulary; ++id) {
    if (tokenizer.may_be_sampled(id) && tokenizer.ends_generation(id)) data.ends.push_back(id);
    const std::string_view bytes = tokenizer.bytes(id);
    if (!takes_part(tokenizer, id) || bytes.empty() || bytes.size() > kMaxTokenBytes) continue;
    data.tokens.push_back(id);
    data.bytes[static_cast<size_t>(id)] = bytes;
    data.longest = std::max(data.longest, static_cast<uint16_t>(bytes.size()));
    if (tokenizer.type(id) == TokenType::UserDefined) data.literals.emplace_back(bytes, id);
  }
  std::sort(data.literals.begin(), data.literals.end());
  // string compares as unsigned bytes, as the order of nodes wants it.
  std::sort(data.tokens.begin(), data.tokens.end(), [&](int32_t a, int32_t b) {
    const std::string &left = data.bytes[static_cast<size_t>(a)], &right = data.bytes[static_cast<size_t>(b)];
    return left < right || (left == right && a < b);
  });
  build_nodes(data);
  data_ = std::make_shared<const Data>(std::move(data));
}

}  // namespace strata::text
