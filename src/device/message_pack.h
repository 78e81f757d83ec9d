// Reads MessagePack, the notation of a code object's metadata, from front to back: what LLVM writes of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace strata {

// Error{Format} naming `where` at what is not well formed or not there. Texts lie in the bytes.
class MessagePack {
 public:
  MessagePack(std::span<const unsigned char> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  uint64_t map() { return header(0x80, 0xde); }  // entries: a key and a value each
  uint64_t array() { return header(0x90, 0xdc); }
  std::string_view text();
  uint64_t number();
  bool truth() { return byte() == 0xc3; }
  void skip(int depth = 0);  // one value, whatever it is

 private:
  [[noreturn]] void fail(const char* what) const;
  uint64_t peek() const;
  uint64_t byte();
  uint64_t big(int size);
  uint64_t header(uint64_t small, uint64_t wide);

  std::span<const unsigned char> bytes_;
  std::string where_;
  size_t at_ = 0;
};

}  // namespace strata
