#include "device/message_pack.h"

#include "base/error.h"

namespace strata {

void MessagePack::fail(const char* what) const { throw Error(ErrorKind::Format, what, where_); }

uint64_t MessagePack::peek() const {
  if (at_ >= bytes_.size()) fail("the code object ends early");
  return bytes_[at_];
}

uint64_t MessagePack::byte() {
  const uint64_t value = peek();
  ++at_;
  return value;
}

uint64_t MessagePack::big(int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value = value << 8 | byte();
  return value;
}

uint64_t MessagePack::header(uint64_t small, uint64_t wide) {
  const uint64_t tag = byte();
  const uint64_t count = tag >> 4 == small >> 4 ? tag & 15u : tag == wide ? big(2) : tag == wide + 1 ? big(4) : ~0ull;
  if (count > bytes_.size()) fail("has metadata of another shape");  // an entry takes a byte at least
  return count;
}

std::string_view MessagePack::text() {
  const uint64_t tag = byte();
  uint64_t size = tag & 31u;
  if (tag >= 0xd9 && tag <= 0xdb)
    size = big(1 << (tag - 0xd9));
  else if (tag >> 5 != 5)
    fail("has metadata that is no text where text belongs");
  if (size > bytes_.size() - at_) fail("the code object ends early");
  const auto* from = reinterpret_cast<const char*>(bytes_.data()) + at_;
  at_ += size;
  return {from, static_cast<size_t>(size)};
}

uint64_t MessagePack::number() {
  const uint64_t tag = byte();
  if (tag < 0x80) return tag;
  if (tag >= 0xcc && tag <= 0xcf) return big(1 << (tag - 0xcc));
  fail("has metadata that is no number where a number belongs");
}

void MessagePack::skip(int depth) {
  if (depth > 8) fail("has metadata that is nested too deeply");
  const uint64_t tag = peek();
  if (tag >> 4 == 8 || tag == 0xde || tag == 0xdf) {
    for (uint64_t i = map(); i > 0; --i) skip(depth + 1), skip(depth + 1);
  } else if (tag >> 4 == 9 || tag == 0xdc || tag == 0xdd) {
    for (uint64_t i = array(); i > 0; --i) skip(depth + 1);
  } else if (tag >> 5 == 5 || (tag >= 0xd9 && tag <= 0xdb)) {
    (void)text();
  } else if (tag == 0xc2 || tag == 0xc3) {
    ++at_;
  } else {
    (void)number();
  }
}

}  // namespace strata
