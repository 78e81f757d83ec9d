// Random damage to a valid file: it opens or it is refused, whatever the bytes.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "fuzz/gguf.cpp"
#include "support/gguf_builder.h"
#include "support/gguf_open.h"

namespace strata::test {
namespace {

std::string seed_file() {
  GgufBuilder file;
  file.key("general.architecture", raw_string("qwen3")).key("general.alignment", raw_scalar<uint32_t>(kU32, 32));
  file.key("tokens", raw_strings({"a", "b", "<|end|>"})).key("types", raw_array<int32_t>(kI32, {1, 1, 3}));
  file.key("flags", raw_array<uint8_t>(kBool, {0, 1})).key("eps", raw_scalar(kF32, 1e-6f));
  file.key("split.count", raw_scalar<uint16_t>(kU16, 1)).key("scores", raw_array<double>(kF64, {0.0, 1.0}));
  file.tensor("embd", 0, {4, 2}, 32).tensor("q", 12, {256, 2}, 288).tensor("bias", 1, {5}, 10);
  return file.build();
}

// Values at the edges of what counts and sizes can be.
constexpr uint64_t kEdges[] = {0,          1,          2,          31,         32,
                               63,         64,         255,        256,        65535,
                               65536,      0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32,
                               1ull << 61, 1ull << 62, INT64_MAX,  1ull << 63, UINT64_MAX - 31,
                               UINT64_MAX};

std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return random() % n; };
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    const size_t at = below(bytes.size());
    const size_t width = size_t{1} << below(4);
    const uint64_t edge = kEdges[below(std::size(kEdges))];
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2:
        if (at + width <= bytes.size()) std::memcpy(&bytes[at], &edge, width);
        break;
      case 3: bytes.erase(at, width); break;
      default: bytes.insert(at, width, static_cast<char>(random()));
    }
    if (bytes.empty()) return "G";
  }
  return bytes;
}

TEST(ContainerMutation, NeverCrashes) {
  const std::string seed = seed_file();
  ASSERT_FALSE(bytes_error(seed).has_value());
  std::mt19937 random(20240607);
  MemoryFile memory;
  constexpr int kCases = 20000;
  int refused = 0;
  for (int i = 0; i < kCases; ++i) {
    const std::string bytes = mutated(seed, random);
    memory.assign(bytes);
    refused += open_error(memory.path()).has_value() ? 1 : 0;
    ASSERT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
  }
  // Most damage to structure is seen, damage to values is not: both must occur, or the test would test nothing.
  EXPECT_GT(refused, kCases / 10);
  EXPECT_LT(refused, kCases);
  std::printf("mutations: %d, refused: %d\n", kCases, refused);
}

}  // namespace
}  // namespace strata::test
