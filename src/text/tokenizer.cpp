#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/error.h"
#include "text/bpe.h"
#include "text/byte_matcher.h"
#include "text/pre_tokenizer.h"

namespace strata::text {

namespace {

constexpr size_t kMaxTokens = size_t{1} << 24;  // 60 times the largest published vocabulary
constexpr size_t kMaxMerges = size_t{1} << 24;
constexpr size_t kMaxText = std::numeric_limits<int32_t>::max();

constexpr std::array<std::string_view, 6> kEndTexts = {"<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
                                                       "<|eom_id|>", "<|end_of_text|>", "</s>"};

[[noreturn]] void refuse(const char* key, const std::string& message) {
  throw Error(ErrorKind::Model, message, std::string("tokenizer.ggml.") + key);
}

std::vector<TokenType> checked_types(const std::vector<int64_t>& types, size_t tokens) {
  if (types.empty()) return std::vector<TokenType>(tokens, TokenType::Normal);
  if (types.size() != tokens) refuse("token_type", fmt::format("{} types for {} tokens", types.size(), tokens));
  std::vector<TokenType> checked(tokens);
  for (size_t id = 0; id < tokens; ++id) {
    if (types[id] < 1 || types[id] > 6) {
      refuse("token_type", fmt::format("token {} has type {}, known are 1 to 6", id, types[id]));
    }
    checked[id] = static_cast<TokenType>(types[id]);
  }
  return checked;
}

std::optional<int32_t> checked_id(const char* key, std::optional<uint64_t> id, size_t tokens) {
  if (!id) return std::nullopt;
  if (*id >= tokens) refuse(key, fmt::format("id {} is outside the vocabulary of {} tokens", *id, tokens));
  return static_cast<int32_t>(*id);
}

bool in_merges(TokenType type) { return type == TokenType::Normal || type == TokenType::Byte; }

// Finds literal tokens in a text: leftmost, the longest at that place, without overlap, in linear time. It reads
// backwards, so that at each byte the automaton knows the longest token that begins there.
class LiteralTokens {
 public:
  struct Found {
    uint32_t begin, end;
    int32_t id;
  };

  [[nodiscard]] bool add(std::string_view text, int32_t id) {
    return backwards_.add(std::string(text.rbegin(), text.rend()), id);
  }
  void build() { backwards_.build(); }

  std::vector<Found> find(std::string_view text) const { return without_overlap(candidates(text)); }

  // As find(), but where `allowed` refuses a token, the one of `others` that begins at the same place is taken.
  template <typename Allowed>
  std::vector<Found> find(std::string_view text, const LiteralTokens& others, Allowed allowed) const {
    std::vector<Found> found = candidates(text);
    const std::vector<Found> instead = others.candidates(text);
    auto next = instead.begin();
    std::erase_if(found, [&](Found& token) {
      if (allowed(token)) return false;
      while (next != instead.end() && next->begin < token.begin) ++next;
      if (next == instead.end() || next->begin != token.begin) return true;
      token = *next;
      return false;
    });
    return without_overlap(std::move(found));
  }

 private:
  // The longest token that begins at each place where one does.
  std::vector<Found> candidates(std::string_view text) const {
    std::vector<Found> found;
    if (backwards_.empty()) return found;
    uint32_t state = 0;
    for (size_t pos = text.size(); pos-- > 0;) {
      state = backwards_.step(state, static_cast<uint8_t>(text[pos]));
      if (const int32_t id = backwards_.match(state); id >= 0) {
        const auto begin = static_cast<uint32_t>(pos);
        found.push_back({begin, begin + backwards_.match_length(state), id});
      }
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  static std::vector<Found> without_overlap(std::vector<Found> found) {
    uint32_t taken = 0;
    std::erase_if(found, [&](const Found& token) {
      if (token.begin < taken) return true;
      taken = token.end;
      return false;
    });
    return found;
  }

  ByteMatcher backwards_;
};

PreTokenizer checked_pre(const Vocabulary& v) {
  const auto named = [](const std::string& value) -> std::string {
    if (value.empty()) return "missing";
    const bool plain =
        value.size() <= 40 && std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
    return plain ? fmt::format("'{}'", value) : "not a name";
  };
  if (v.model != "gpt2") refuse("model", named(v.model) + "; Strata reads byte-level BPE ('gpt2') only");
  const auto pre = pre_tokenizer_from_name(v.pre);
  if (!pre) refuse("pre", named(v.pre) + "; known are qwen2, qwen35, llama-bpe, gpt-2 and smollm");
  if (v.tokens.empty()) refuse("tokens", "missing or empty");
  if (v.tokens.size() > kMaxTokens) refuse("tokens", fmt::format("more than {} tokens", kMaxTokens));
  if (v.merges.size() > kMaxMerges) refuse("merges", fmt::format("more than {} merges", kMaxMerges));
  return *pre;
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(Vocabulary v);
  void read_tokens(std::vector<std::string> tokens, std::span<const std::string> merges);
  void read_ends(const Vocabulary& v);
  void encode_plain(std::string_view text, Bpe::Workspace& workspace, std::vector<int32_t>& ids) const;
  std::vector<int32_t> encode(std::string_view text, std::span<const LiteralTokens::Found> literals,
                              bool add_special) const;

  PreTokenizer pre;
  std::vector<TokenType> types;
  std::vector<std::string> bytes;  // by id
  std::optional<Bpe> bpe;
  LiteralTokens all_literals, user_literals;
  std::map<std::string, int32_t, std::less<>> literal_ids;
  std::vector<int32_t> ends;  // sorted
  std::optional<int32_t> bos, eos;
  bool add_bos = false;
};

Tokenizer::Impl::Impl(Vocabulary v) : pre(checked_pre(v)), types(checked_types(v.types, v.tokens.size())) {
  bos = checked_id("bos_token_id", v.bos, v.tokens.size());
  eos = checked_id("eos_token_id", v.eos, v.tokens.size());
  checked_id("padding_token_id", v.pad, v.tokens.size());
  if (v.add_bos.value_or(false) && !bos) refuse("add_bos_token", "true, but there is no tokenizer.ggml.bos_token_id");
  add_bos = bos && v.add_bos.value_or(pre == PreTokenizer::LlamaBpe);
  read_ends(v);
  read_tokens(std::move(v.tokens), v.merges);
}

void Tokenizer::Impl::read_ends(const Vocabulary& v) {
  if (eos) ends.push_back(*eos);
  if (const auto id = checked_id("eot_token_id", v.eot, v.tokens.size())) ends.push_back(*id);
  if (const auto id = checked_id("eom_token_id", v.eom, v.tokens.size())) ends.push_back(*id);
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const bool ends_text = std::find(kEndTexts.begin(), kEndTexts.end(), v.tokens[id]) != kEndTexts.end();
    if (ends_text) ends.push_back(static_cast<int32_t>(id));
  }
  std::sort(ends.begin(), ends.end());
}

void Tokenizer::Impl::read_tokens(std::vector<std::string> tokens, std::span<const std::string> merges) {
  // Only ordinary tokens take part in merges: text can never spell a control token.
  std::vector<std::string> mergeable(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (in_merges(types[i])) {
      if (auto decoded = bytes_of_alphabet(tokens[i])) {
        mergeable[i] = *decoded;
        tokens[i] = std::move(*decoded);
      }
      continue;
    }
    const bool user = types[i] == TokenType::UserDefined;
    if (!user && types[i] != TokenType::Control) continue;
    if (!all_literals.add(tokens[i], id) || (user && !user_literals.add(tokens[i], id))) {
      refuse("tokens", fmt::format("special tokens of more than {} bytes", ByteMatcher::kMaxBytes));
    }
    if (!tokens[i].empty()) literal_ids.emplace(tokens[i], id);
  }
  all_literals.build();
  user_literals.build();
  bytes = std::move(tokens);
  bpe.emplace(mergeable, merges, pre == PreTokenizer::LlamaBpe);

  // Published vocabularies lack bytes that their training text never had (SmolLM lacks 21); none lacks these.
  for (uint8_t byte = ' '; byte <= '~'; ++byte) {
    if (!bpe->has_byte(byte)) refuse("tokens", fmt::format("no token for the byte 0x{:02X}: not byte-level BPE", byte));
  }
}

void Tokenizer::Impl::encode_plain(std::string_view text, Bpe::Workspace& workspace, std::vector<int32_t>& ids) const {
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = piece_end(pre, text, pos);
    bpe->encode(text.substr(pos, end - pos), workspace, ids);
    pos = end;
  }
}

Tokenizer::Tokenizer(Vocabulary vocabulary) : impl_(std::make_unique<Impl>(std::move(vocabulary))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::Impl::encode(std::string_view text, std::span<const LiteralTokens::Found> literals,
                                             bool add_special) const {
  std::vector<int32_t> ids;
  Bpe::Workspace workspace;
  size_t pos = 0;
  for (const auto& literal : literals) {
    encode_plain(text.substr(pos, literal.begin - pos), workspace, ids);
    ids.push_back(literal.id);
    pos = literal.end;
  }
  encode_plain(text.substr(pos), workspace, ids);
  if (add_special && add_bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > kMaxText) throw Error(ErrorKind::Argument, "text of more than 2 GiB", "encode");
  const auto literals = (options.parse_special ? impl_->all_literals : impl_->user_literals).find(text);
  return impl_->encode(text, literals, options.add_special);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options,
                                       std::span<const DataRange> data) const {
  if (!options.parse_special || data.empty()) return encode(text, options);
  if (text.size() > kMaxText) throw Error(ErrorKind::Argument, "text of more than 2 GiB", "encode");
  auto range = data.begin();  // the first that ends after the token looked at; tokens come by increasing begin
  const auto allowed = [&](const LiteralTokens::Found& token) {
    while (range != data.end() && range->end <= token.begin) ++range;
    const bool touches = range != data.end() && range->begin < token.end;
    return !touches || impl_->types[static_cast<size_t>(token.id)] != TokenType::Control;
  };
  const auto literals = impl_->all_literals.find(text, impl_->user_literals, allowed);
  return impl_->encode(text, literals, options.add_special);
}

std::string_view Tokenizer::bytes(int32_t id, bool with_control) const {
  if (type(id) == TokenType::Control && !with_control) return {};
  return impl_->bytes[static_cast<size_t>(id)];
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool with_control) const {
  std::string text;
  for (const int32_t id : ids) text += bytes(id, with_control);
  return text;
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(impl_->bytes.size()); }

TokenType Tokenizer::type(int32_t id) const {
  if (id < 0 || id >= size()) {
    throw Error(ErrorKind::Argument, fmt::format("id {} is outside the vocabulary of {} tokens", id, size()), "token");
  }
  return impl_->types[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token_text) const {
  const auto entry = impl_->literal_ids.find(token_text);
  if (entry == impl_->literal_ids.end()) return std::nullopt;
  return entry->second;
}

bool Tokenizer::ends_generation(int32_t id) const {
  return std::binary_search(impl_->ends.begin(), impl_->ends.end(), id);
}

bool Tokenizer::may_be_sampled(int32_t id) const { return type(id) != TokenType::Unused; }

std::optional<int32_t> Tokenizer::bos() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return impl_->eos; }

}  // namespace strata::text
