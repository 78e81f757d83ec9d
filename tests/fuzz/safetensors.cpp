// Any bytes as a safetensors file, and as the index of a set: refused with one line, or every tensor lies inside the
// file.
#include "gguf/hf/safetensors.h"

#include <cstdint>
#include <span>
#include <string_view>

#include "fuzz/check.h"
#include "gguf/hf/safetensors_json.h"

namespace {

using namespace strata;
using strata::test::require;

template <class Parse>
void attempt(Parse parse) {
  try {
    parse();
  } catch (const Error& error) {
    strata::test::require_one_line(error);
    require(error.kind() == ErrorKind::Format);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attempt([&] {
    const auto tensors = gguf::hf::parse_safetensors_header(std::as_bytes(std::span(data, size)), "file");
    uint64_t sum = 0;
    for (const gguf::hf::SourceTensor& tensor : tensors) {
      require(tensor.offset <= size && tensor.bytes <= size - tensor.offset);
      require(tensor.bytes == tensor.elements * gguf::hf::element_size(tensor.type));
      sum += tensor.bytes;
    }
    require(sum <= size);
  });
  attempt([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const gguf::hf::IndexEntry& entry : gguf::hf::parse_index_json(text, "index"))
      require(entry.file.find('/') == std::string::npos && entry.file != "..");
  });
  return 0;
}
