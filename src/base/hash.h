// Hashes of states, files and records (XXH3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace strata {

uint64_t hash64(const void* data, size_t bytes, uint64_t seed = 0);
std::string hash_hex(uint64_t hash);  // 16 lower-case hex digits

}  // namespace strata
