// A JSON schema, a zero byte, a text. Schemas may be refused; a text that one accepts is JSON.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/grammar.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view text = cut == std::string_view::npos ? std::string_view("{}") : input.substr(cut + 1);
  try {
    const auto grammar = text::Grammar::from_json_schema(input.substr(0, cut));
    if (text.size() < 2000 && grammar.matches(text)) require(nlohmann::json::accept(text));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::Argument);
  }
  return 0;
}
