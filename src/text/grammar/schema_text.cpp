#include "text/grammar/schema_text.h"

#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "text/grammar/expr.h"

namespace strata::text::grammar {

namespace {

constexpr size_t kMaxNesting = 256;  // of brackets; a schema of depth 64 takes up to three each

// The JSON library keeps the order of members and looks for each new one among those before it: their number is
// bounded beforehand, for one object and for the squares of all.
void check_members(std::string_view text) {
  constexpr uint64_t kMaxMembers = 10'000, kMaxSquares = 200'000'000;
  std::vector<uint64_t> open{0};
  uint64_t squares = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && in_string) {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && c == ':') {
      squares += 2 * open.back()++;
      if (open.back() > kMaxMembers || squares > kMaxSquares) {
        refuse("the schema's objects have too many members; the limit of one is " + std::to_string(kMaxMembers),
               "schema");
      }
    } else if (!in_string && (c == '{' || c == '[')) {
      open.push_back(0);
    } else if (!in_string && (c == '}' || c == ']') && open.size() > 1) {
      open.pop_back();
    }
  }
}

}  // namespace

void check_schema_text(std::string_view text, const GrammarLimits& limits) {
  if (text.size() > limits.text_bytes) {
    refuse(
        "the schema has " + std::to_string(text.size()) + " bytes, the limit is " + std::to_string(limits.text_bytes),
        "schema");
  }
  try {
    check_json_depth(text, kMaxNesting, "schema");
  } catch (const Error& error) {
    refuse(error.message(), "schema");
  }
  check_members(text);
}

std::vector<std::string> keys_of_ref(const std::string& ref, const std::string& where) {
  const auto bad = [&](const char* why) { refuse("$ref '" + ref.substr(0, 100) + "' " + why, where); };
  if (ref.empty() || ref[0] != '#') bad("is not local: only # and #/... are supported");
  std::string pointer;
  for (size_t i = 1; i < ref.size(); ++i) {
    if (ref[i] != '%') {
      pointer += ref[i];
      continue;
    }
    const auto digit = [&](size_t at) {
      const size_t found =
          at < ref.size() ? std::string_view("0123456789abcdefABCDEF").find(ref[at]) : std::string::npos;
      if (found == std::string::npos) bad("has a '%' without two hex digits");
      return found < 16 ? found : found - 6;
    };
    pointer += static_cast<char>(16 * digit(i + 1) + digit(i + 2));
    i += 2;
  }
  if (!pointer.empty() && pointer[0] != '/') bad("is not supported: only # and #/... are");
  std::vector<std::string> keys;
  for (size_t i = 0; i < pointer.size(); ++i) {
    const bool escape = pointer[i] == '~' && i + 1 < pointer.size() && (pointer[i + 1] == '0' || pointer[i + 1] == '1');
    if (pointer[i] == '/') {
      keys.emplace_back();
    } else {
      keys.back() += escape ? (pointer[i + 1] == '0' ? '~' : '/') : pointer[i];
      if (escape) ++i;
    }
  }
  return keys;
}

}  // namespace strata::text::grammar
