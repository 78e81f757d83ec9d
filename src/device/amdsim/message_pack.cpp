#include "device/amdsim/message_pack.h"

#include "base/error.h"

namespace strata::amdsim {
namespace {

[[noreturn]] void malformed() { throw Error(ErrorKind::Format, "the metadata of a code object is malformed"); }

}  // namespace

unsigned MessagePack::peek() const {
  if (at_ >= bytes_.size()) malformed();
  return bytes_[at_];
}

uint64_t MessagePack::take(uint32_t bytes) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    value = value << 8 | peek();
    ++at_;
  }
  return value;
}

void MessagePack::pass(uint64_t bytes) {
  if (bytes > bytes_.size() - at_) malformed();
  at_ += bytes;
}

uint32_t MessagePack::count(unsigned fixed, unsigned mask, unsigned wide) {
  const unsigned type = static_cast<unsigned>(take(1));
  uint64_t result = 0;
  if ((type & ~mask) == fixed)
    result = type & mask;
  else if (type == wide || type == wide + 1)
    result = take(type == wide ? 2 : 4);
  else
    malformed();
  if (result > bytes_.size()) malformed();
  return static_cast<uint32_t>(result);
}

std::string MessagePack::text() {
  const unsigned type = static_cast<unsigned>(take(1));
  uint64_t size = 0;
  if ((type & 0xe0u) == 0xa0u)
    size = type & 0x1fu;
  else if (type >= 0xd9 && type <= 0xdb)
    size = take(1u << (type - 0xd9));
  else
    malformed();
  const size_t begin = at_;
  pass(size);
  return {reinterpret_cast<const char*>(bytes_.data()) + begin, static_cast<size_t>(size)};
}

uint64_t MessagePack::number() {
  const unsigned type = static_cast<unsigned>(take(1));
  if (type < 0x80) return type;
  if (type >= 0xcc && type <= 0xcf) return take(1u << (type - 0xcc));
  malformed();
}

void MessagePack::skip(int depth) {
  if (depth > 32) malformed();
  const unsigned type = peek();
  if ((type & 0xf0u) == 0x80u || type == 0xde || type == 0xdf) {
    for (uint64_t n = uint64_t{map()} * 2; n > 0; --n) skip(depth + 1);
  } else if ((type & 0xf0u) == 0x90u || type == 0xdc || type == 0xdd) {
    for (uint32_t n = array(); n > 0; --n) skip(depth + 1);
  } else if ((type & 0xe0u) == 0xa0u || (type >= 0xd9 && type <= 0xdb)) {
    text();
  } else {
    ++at_;
    if (type >= 0xc4 && type <= 0xc6)
      pass(take(1u << (type - 0xc4)));
    else if (type == 0xca || type == 0xcb)
      pass(type == 0xca ? 4 : 8);
    else if (type >= 0xcc && type <= 0xd3)
      pass(1u << ((type - 0xcc) % 4));
    else if (type >= 0xc7 && type <= 0xc9)
      malformed();  // extensions
    else if (type >= 0xd4 && type <= 0xd8)
      malformed();
  }
}

}  // namespace strata::amdsim
