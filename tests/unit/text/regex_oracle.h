// The published regular expressions of the pre-tokenizers, run by PCRE2.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace strata::text {

class Regex {
 public:
  explicit Regex(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                              &error, &offset, nullptr));
    if (!code_) throw std::runtime_error("pattern does not compile: " + pattern);
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // only speed: matching falls back to the interpreter
    match_.reset(pcre2_match_data_create(1, nullptr));
  }

  // Matches one after the other; what lies between two of them is a piece too.
  std::vector<std::string_view> split(std::string_view text) const {
    std::vector<std::string_view> pieces;
    size_t pos = 0;
    const auto add_until = [&](size_t end) {
      if (end > pos) pieces.push_back(text.substr(pos, end - pos));
      pos = end;
    };
    while (pos < text.size()) {
      const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), pos,
                                    PCRE2_NOTEMPTY, match_.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) throw std::runtime_error("PCRE2 error " + std::to_string(found));
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match_.get());
      add_until(bounds[0]);
      add_until(bounds[1]);
    }
    add_until(text.size());
    return pieces;
  }

  bool matches(std::string_view text) const {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, match_.get(),
                       nullptr) > 0;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> match_;
};

inline const char kQwen2Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline const char kQwen35Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline const char kLlamaPattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline const char kGpt2Pattern[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace strata::text
