// Byte-level BPE (docs/text.md). Input is any byte string: invalid UTF-8 is legal everywhere and no Unicode
// normalisation takes place. Thread safe after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::text {

// Bytes [begin, end) of a text.
struct DataRange {
  uint32_t begin, end;
  bool operator==(const DataRange&) const = default;
};

enum class PreTokenizer { Qwen2, Qwen35, LlamaBpe, Gpt2, Smollm };
std::optional<PreTokenizer> pre_tokenizer_from_name(std::string_view name);  // names of tokenizer.ggml.pre

enum class TokenType : uint8_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

// What a model file says about its vocabulary (tokenizer.ggml.*). The caller reads it from the file.
struct Vocabulary {
  std::string model;                // "gpt2" is byte-level BPE; anything else is refused by name
  std::string pre;                  // name of the pre-tokenizer
  std::vector<std::string> tokens;  // by id, in the printable byte alphabet for normal tokens
  std::vector<int64_t> types;       // empty: all normal; else as long as tokens
  std::vector<std::string> merges;  // "left right", by falling priority
  std::optional<uint64_t> bos, eos, eot, eom, pad;
  std::optional<bool> add_bos;
};

// Cuts text into the pieces inside which merges happen. Pieces cover the text without gaps.
std::vector<std::string_view> pre_split(PreTokenizer kind, std::string_view text);

class Tokenizer {
 public:
  // Error{Model} naming the key that is missing, unsupported or inconsistent.
  explicit Tokenizer(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  struct EncodeOptions {
    bool add_special = true;    // BOS where the vocabulary asks for it, never twice
    bool parse_special = true;  // control tokens written as text become their id; user-defined ones always do
  };
  // Linear in the text but for long pieces, O(n log n). Error{Argument} above 2 GiB; nothing else can fail.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options) const;
  std::vector<int32_t> encode(std::string_view text) const { return encode(text, EncodeOptions{}); }
  // Control tokens count only where they do not touch `data` (sorted, without overlap); all else as one text.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options,
                              std::span<const DataRange> data) const;

  // Bytes of one token. Control tokens give nothing unless asked for; ids out of range are Error{Argument}.
  std::string_view bytes(int32_t id, bool with_control = false) const;
  std::string decode(std::span<const int32_t> ids, bool with_control = false) const;

  int32_t size() const;
  TokenType type(int32_t id) const;
  std::optional<int32_t> id_of(std::string_view token_text) const;  // control and user-defined tokens by their text
  bool ends_generation(int32_t id) const;                           // eos, eot, eom and the well-known end texts
  bool may_be_sampled(int32_t id) const;                            // false for unused (padding) tokens
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::text
