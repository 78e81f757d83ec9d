// Any bytes as a GGUF file: it is opened or refused with one Error, and what was opened can be read in full.
#include "gguf/gguf.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"
#include "support/test_files.h"

namespace {

// Every accessor on every key, and both ends of every tensor.
void read_everything(const strata::gguf::File& file) {
  const auto attempt = [](auto&& access) {
    try {
      access();
    } catch (const strata::Error&) {  // another type, or out of range
    }
  };
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  for (const strata::gguf::KeyValue& entry : file.metadata()) {
    const std::string& key = entry.key;
    if (file.find(key) != &entry.value) std::abort();
    attempt([&] { file.get_uint(key, 1, 1u << 20); });
    attempt([&] { file.get_uints(key, 0, UINT64_MAX); });
    attempt([&] { file.get_ints(key, kLowest, kHighest); });
    attempt([&] { file.get_real(key); });
    attempt([&] { file.get_reals(key); });
    attempt([&] { file.get_bool(key); });
    attempt([&] { file.get_string(key); });
    attempt([&] { file.get_strings(key); });
  }
  volatile unsigned char sink = 0;
  for (const auto& tensor : file.tensors()) {
    if (file.find_tensor(tensor.name) != &tensor) std::abort();
    const std::byte* data = file.data(tensor);
    sink = static_cast<unsigned char>(data[0] ^ data[tensor.bytes - 1]);
  }
  static_cast<void>(sink);
  if (file.data_bytes() > file.file_bytes()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const strata::test::MemoryFile memory(std::string_view(reinterpret_cast<const char*>(data), size));
  try {
    read_everything(strata::gguf::File::open(memory.path()));
  } catch (const strata::Error& error) {
    for (const char c : error.message())
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) std::abort();
  }
  return 0;
}
