#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace strata {

uint64_t hash64(const void* data, size_t bytes, uint64_t seed) { return XXH3_64bits_withSeed(data, bytes, seed); }

std::string hash_hex(uint64_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, hash >>= 4) text[static_cast<size_t>(i)] = kDigits[hash & 15u];
  return text;
}

}  // namespace strata
