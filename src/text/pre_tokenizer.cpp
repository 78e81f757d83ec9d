#include "text/pre_tokenizer.h"

#include "text/unicode.h"

// Each function below is one published regular expression, its alternatives in order (docs/text.md lists them).
// Every step looks at most one run of white space ahead, and a run is looked at three times at most.
namespace strata::text {

namespace {

size_t skip_classes(std::string_view text, size_t pos, uint8_t classes) {
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if (!(c.classes & classes)) break;
    pos += c.length;
  }
  return pos;
}

// [^...]+ : characters, and invalid bytes, of none of the classes.
size_t skip_others(std::string_view text, size_t pos, uint8_t classes) {
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if (c.classes & classes) break;
    pos += c.length;
  }
  return pos;
}

uint8_t classes_at(std::string_view text, size_t pos) { return pos < text.size() ? char_at(text, pos).classes : 0; }

bool is_newline(char c) { return c == '\r' || c == '\n'; }

// 's|'t|'re|'ve|'m|'ll|'d : bytes of the contraction at `pos`, 0 if there is none. Caseless matching takes the long s
// (U+017F) for an s, as Unicode case folding does.
size_t contraction(std::string_view text, size_t pos, bool caseless) {
  const std::string_view tail = text.substr(pos, 3);
  if (tail.size() < 2 || tail[0] != '\'') return 0;
  if (caseless && tail == "'\u017F") return 3;
  const auto letter = [&](size_t i) {
    const char c = i < tail.size() ? tail[i] : '\0';
    return caseless && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char a = letter(1), b = letter(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return 0;
}

struct SpaceRun {
  size_t end;            // first byte after the run
  size_t last;           // begin of its last character
  size_t after_newline;  // first byte after its last \r or \n; 0 if it has none
};

SpaceRun space_run(std::string_view text, size_t pos) {
  SpaceRun run{pos, pos, 0};
  while (run.end < text.size()) {
    const Char c = char_at(text, run.end);
    if (!(c.classes & kSpace)) break;
    if (is_newline(text[run.end])) run.after_newline = run.end + 1;
    run.last = run.end;
    run.end += c.length;
  }
  return run;
}

// \s+(?!\S)|\s+ : all of a run that ends the text; else the run without its last character, which may prefix the next
// word; else the single character.
size_t space_end(const SpaceRun& run, size_t pos, bool ends_text) {
  return ends_text || run.last == pos ? run.end : run.last;
}

// qwen2, qwen35 and llama-bpe: `letters` are the classes that make words, `digits` the longest number.
size_t word_piece(std::string_view text, size_t pos, uint8_t letters, int digits) {
  if (const size_t length = contraction(text, pos, true)) return pos + length;

  // [^\r\n\p{L}\p{N}]?[letters]+
  const Char first = char_at(text, pos);
  if (first.classes & letters) return skip_classes(text, pos, letters);
  const size_t second = pos + first.length;
  if (!is_newline(text[pos]) && !(first.classes & kNumber) && (classes_at(text, second) & letters)) {
    return skip_classes(text, second, letters);
  }

  // \p{N} or \p{N}{1,3}
  if (first.classes & kNumber) {
    size_t end = second;
    for (int i = 1; i < digits && (classes_at(text, end) & kNumber); ++i) end += char_at(text, end).length;
    return end;
  }

  //  ?[^\s letters \p{N}]+[\r\n]*
  const size_t begin = pos + (text[pos] == ' ');
  size_t end = skip_others(text, begin, letters | kNumber | kSpace);
  if (end > begin) {
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+
  const SpaceRun run = space_run(text, pos);
  if (run.after_newline) return run.after_newline;
  return space_end(run, pos, run.end == text.size());
}

// gpt-2; with `digits_apart` smollm, where a number is a piece of its own and ends the text before it.
size_t gpt2_piece(std::string_view text, size_t pos, bool digits_apart) {
  const Char first = char_at(text, pos);
  if (digits_apart && (first.classes & kNumber)) return pos + first.length;
  if (const size_t length = contraction(text, pos, false)) return pos + length;

  //  ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
  const size_t begin = pos + (text[pos] == ' ');
  const uint8_t classes = classes_at(text, begin);
  if (classes & kLetter) return skip_classes(text, begin, kLetter);
  if ((classes & kNumber) && !digits_apart) return skip_classes(text, begin, kNumber);
  const size_t end = skip_others(text, begin, kLetter | kNumber | kSpace);
  if (end > begin) return end;

  const SpaceRun run = space_run(text, pos);
  const bool ends_text = run.end == text.size() || (digits_apart && (classes_at(text, run.end) & kNumber));
  return space_end(run, pos, ends_text);
}

}  // namespace

std::optional<PreTokenizer> pre_tokenizer_from_name(std::string_view name) {
  if (name == "qwen2" || name == "deepseek-r1-qwen") return PreTokenizer::Qwen2;
  if (name == "qwen35") return PreTokenizer::Qwen35;
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") return PreTokenizer::LlamaBpe;
  if (name == "gpt-2" || name == "gpt2") return PreTokenizer::Gpt2;
  if (name == "smollm") return PreTokenizer::Smollm;
  return std::nullopt;
}

size_t piece_end(PreTokenizer kind, std::string_view text, size_t pos) {
  switch (kind) {
    case PreTokenizer::Qwen2: return word_piece(text, pos, kLetter, 1);
    case PreTokenizer::Qwen35: return word_piece(text, pos, kLetter | kMark, 1);
    case PreTokenizer::LlamaBpe: return word_piece(text, pos, kLetter, 3);
    case PreTokenizer::Gpt2: return gpt2_piece(text, pos, false);
    case PreTokenizer::Smollm: return gpt2_piece(text, pos, true);
  }
  return text.size();
}

std::vector<std::string_view> pre_split(PreTokenizer kind, std::string_view text) {
  std::vector<std::string_view> pieces;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = piece_end(kind, text, pos);
    pieces.push_back(text.substr(pos, end - pos));
    pos = end;
  }
  return pieces;
}

}  // namespace strata::text
