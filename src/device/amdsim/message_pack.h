// Reads MessagePack, the notation of a code object's metadata, from front to back.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace strata::amdsim {

// Error{Format} at what is not well formed or not there.
class MessagePack {
 public:
  explicit MessagePack(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  uint32_t map() { return count(0x80, 0x0f, 0xde); }  // entries: a key and a value each
  uint32_t array() { return count(0x90, 0x0f, 0xdc); }
  std::string text();
  uint64_t number();
  void skip(int depth = 0);  // one value, whatever it is

 private:
  unsigned peek() const;
  uint64_t take(uint32_t bytes);  // big endian
  void pass(uint64_t bytes);
  uint32_t count(unsigned fixed, unsigned mask, unsigned wide);

  std::span<const unsigned char> bytes_;
  size_t at_ = 0;
};

}  // namespace strata::amdsim
