// Prompts of needle tests: a long plain text, keys that stand somewhere in it, and the question for one of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat.h"
#include "text/tokenizer.h"

namespace strata {

inline constexpr int64_t kMaxMarkers = 16;

// One question about one text. The same case gives the same prompt, whichever other cases are tried.
struct NeedleCase {
  int64_t length = 0;  // of the prompt in tokens, template and question included
  int64_t depth = 0;   // per cent of the filler that stands before the marker that is asked for
  int64_t sample = 0;  // another filler and other keys
  int64_t markers = 1;
  int64_t asked = 0;     // index of the marker; its depth is `depth`, the others follow at equal distances, in a circle
  bool ask_all = false;  // all markers, in their order; `depth` is that of the first
  uint64_t seed = 1;
};

struct NeedlePrompt {
  std::string text;                   // what was tokenised, without the template
  std::vector<int32_t> tokens;        // as many as asked for
  std::vector<std::string> keys;      // of all markers
  std::vector<std::string> expected;  // the keys that are asked for, in this order
  bool starts_in_thinking = false;
};

std::span<const char* const> needle_filler();  // the sentences; none holds a digit

// Five-digit keys of a case, all different.
std::vector<std::string> needle_keys(const NeedleCase& which);

class NeedleText {
 public:
  // `chat`: the template that the question is put in, with a request that holds everything but the user turn; none: the
  // prompt is a plain text that the answer continues. Both outlive this object.
  NeedleText(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat, text::ChatRequest request = {});

  // Error{Usage} when the length has no room for markers and question; Error{Model} when no text of this tokenizer has
  // exactly that length.
  NeedlePrompt prompt(const NeedleCase& which);

 private:
  struct Layout;
  struct Encoded {
    std::vector<int32_t> tokens;
    bool starts_in_thinking = false;
  };
  Encoded encode(const std::string& text) const;
  int64_t cost(size_t sentence);
  std::map<int64_t, std::vector<std::string>> beginnings() const;
  void cut(Layout& layout, int64_t length, NeedlePrompt& prompt);
  bool fits(const Layout& layout, int64_t length, NeedlePrompt& prompt) const;

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* chat_;
  const text::ChatRequest request_;
  std::vector<int64_t> costs_;  // tokens of each sentence behind a space; -1: not counted yet
  std::map<int64_t, std::vector<std::string>>
      beginnings_;  // of sentences, by tokens; the best last; empty: not made yet
};

// Whether the answer gives the expected keys, in this order, and no other number of five digits or more.
bool needle_found(std::string_view answer, const std::vector<std::string>& expected);

}  // namespace strata
