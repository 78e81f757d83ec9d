// Config files: `key = value` lines.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/settings.h"
#include "base/settings_text.h"

namespace strata {
namespace {

constexpr size_t kFileLimit = size_t{1} << 20;
constexpr std::string_view kSpace = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Text before a '#' that stands at the start or after a space.
std::string_view without_comment(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '#' && (i == 0 || kSpace.find(text[i - 1]) != std::string_view::npos)) return text.substr(0, i);
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[noreturn]] void refuse(const std::string& message, const std::string& where) {
  throw Error(ErrorKind::Usage, message, where);
}

// Reads the escape whose backslash stands at text[i]; leaves i on its last character.
char escaped(std::string_view text, size_t& i, const std::string& where) {
  const char kind = ++i < text.size() ? text[i] : '\0';
  switch (kind) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '"':
    case '\\': return kind;
    case 'x':
      if (i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
        i += 2;
        return static_cast<char>(hex_digit(text[i - 1]) * 16 + hex_digit(text[i]));
      }
      break;
    default: break;
  }
  refuse("unknown escape; write \\n, \\r, \\t, \\\", \\\\ or \\xNN", where);
}

// `text` begins with a double quote.
std::string quoted_value(std::string_view text, const std::string& where) {
  std::string value;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      if (!trimmed(without_comment(text.substr(i + 1))).empty()) refuse("text after the closing quote", where);
      return value;
    }
    value += text[i] == '\\' ? escaped(text, i, where) : text[i];
  }
  refuse("no closing quote", where);
}

}  // namespace

void Settings::load_file(const std::string& path) {
  const std::string text = read_file(path, kFileLimit);
  std::map<std::string, size_t, std::less<>> first_line;
  std::string_view rest = text;
  for (size_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view content = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (content.empty() || content.front() == '#') continue;

    const std::string where = path + ":" + std::to_string(line);
    const size_t equals = content.find('=');
    if (equals == std::string_view::npos) refuse("expected key = value, found " + quoted_text(content), where);
    const std::string_view key = trimmed(content.substr(0, equals));
    const std::string_view value = trimmed(content.substr(equals + 1));
    const SettingSpec* spec = find(key);
    if (spec != nullptr && !spec->repeatable) {
      const auto [earlier, fresh] = first_line.emplace(key, line);
      if (!fresh) refuse(quoted_text(key) + " already stands in line " + std::to_string(earlier->second), where);
    }
    const bool is_quoted = !value.empty() && value.front() == '"';
    set(key, is_quoted ? quoted_value(value, where) : std::string(trimmed(without_comment(value))), SettingOrigin::File,
        where);
  }
}

}  // namespace strata
