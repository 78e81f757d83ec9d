// Any bytes as config.json of a checkpoint: refused with one line, or a configuration whose numbers agree.
#include <cstdint>
#include <string>

#include "base/json_text.h"
#include "fuzz/check.h"
#include "gguf/hf/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  using strata::test::require;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    strata::check_json_depth(text, 64, "config.json");  // as every reader of JSON files does first
    const gguf::hf::Config config = gguf::hf::parse_config(text, "config.json", [](const std::string& warning) {
      for (const char c : warning) require(static_cast<unsigned char>(c) >= 0x20);
    });
    require(config.vocab > 0 && config.hidden > 0 && config.layers > 0 && config.heads > 0);
    if (is_hybrid(config.family)) {
      require(config.recurrent.size() == config.layers);
      require(config.delta.key_heads > 0 && config.delta.value_heads % config.delta.key_heads == 0);
    }
  } catch (const Error& error) {
    strata::test::require_one_line(error);
    require(error.kind() == ErrorKind::Format || error.kind() == ErrorKind::Model);
  }
  return 0;
}
