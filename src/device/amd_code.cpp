#include "device/amd_code.h"

#include <cstring>
#include <string_view>

#include "base/error.h"

namespace strata {
namespace {

// Bytes with their name, for errors.
struct Bytes {
  std::span<const unsigned char> data;
  const std::string& where;

  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::Format, what, where); }
  std::span<const unsigned char> part(uint64_t offset, uint64_t size) const {
    if (offset > data.size() || size > data.size() - offset) fail("the code object ends early");
    return data.subspan(offset, size);
  }
  // Little endian.
  uint64_t number(uint64_t offset, int size) const {
    const auto bytes = part(offset, static_cast<uint64_t>(size));
    uint64_t value = 0;
    for (int i = size; i-- > 0;) value = value << 8 | bytes[static_cast<size_t>(i)];
    return value;
  }
};

constexpr uint64_t kMachine = 224, kNoteSegment = 4, kMetadataNote = 32;

// The metadata of the note "AMDGPU", in MessagePack.
std::span<const unsigned char> metadata(const Bytes& elf) {
  const auto magic = elf.part(0, 64);
  if (std::memcmp(magic.data(),
                  "\x7f"
                  "ELF\x02\x01",
                  6) != 0 ||
      elf.number(18, 2) != kMachine)
    elf.fail("is no code object for AMD GPUs");
  const uint64_t table = elf.number(32, 8), size = elf.number(54, 2), count = elf.number(56, 2);
  if (size < 56) elf.fail("has segments of " + std::to_string(size) + " bytes");
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t segment = table + i * size;
    if (elf.number(segment, 4) != kNoteSegment) continue;
    const Bytes notes{elf.part(elf.number(segment + 8, 8), elf.number(segment + 32, 8)), elf.where};
    for (uint64_t at = 0; at + 12 <= notes.data.size();) {
      const uint64_t name = notes.number(at, 4), bytes = notes.number(at + 4, 4), type = notes.number(at + 8, 4);
      const uint64_t from = at + 12 + (name + 3) / 4 * 4;
      const auto content = notes.part(from, bytes);
      if (type == kMetadataNote && name == 7 && std::memcmp(notes.part(at + 12, 7).data(), "AMDGPU", 7) == 0)
        return content;
      at = from + (bytes + 3) / 4 * 4;
    }
  }
  elf.fail("has no metadata of kernels");
}

// MessagePack: what LLVM writes of it.
class Pack {
 public:
  explicit Pack(const Bytes& bytes) : bytes_(bytes) {}

  uint64_t map() { return header(0x80, 0xde); }
  uint64_t array() { return header(0x90, 0xdc); }

  std::string_view text() {
    const uint64_t tag = byte();
    uint64_t size = tag & 31u;
    if (tag >= 0xd9 && tag <= 0xdb)
      size = big(1 << (tag - 0xd9));
    else if (tag >> 5 != 5)
      bytes_.fail("has metadata that is no text where text belongs");
    const auto part = bytes_.part(at_, size);
    at_ += size;
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  uint64_t number() {
    const uint64_t tag = byte();
    if (tag < 0x80) return tag;
    if (tag >= 0xcc && tag <= 0xcf) return big(1 << (tag - 0xcc));
    bytes_.fail("has metadata that is no number where a number belongs");
  }
  bool truth() { return byte() == 0xc3; }

  void skip(int depth = 0) {
    if (depth > 8) bytes_.fail("has metadata that is nested too deeply");
    const uint64_t tag = bytes_.number(at_, 1);
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

 private:
  uint64_t byte() { return bytes_.number(at_++, 1); }
  uint64_t big(int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | byte();
    return value;
  }
  uint64_t header(uint64_t small, uint64_t wide) {
    const uint64_t tag = byte();
    const uint64_t count = tag >> 4 == small >> 4 ? tag & 15u : tag == wide ? big(2) : tag == wide + 1 ? big(4) : ~0ull;
    if (count > bytes_.data.size()) bytes_.fail("has metadata of another shape");  // an entry takes a byte at least
    return count;
  }

  const Bytes& bytes_;
  uint64_t at_ = 0;
};

// The struct of arguments is the one that is passed by value.
uint32_t size_by_value(Pack& pack) {
  uint64_t result = 0;
  for (uint64_t arguments = pack.array(); arguments > 0; --arguments) {
    uint64_t size = 0;
    bool by_value = false;
    for (uint64_t entries = pack.map(); entries > 0; --entries) {
      const std::string_view key = pack.text();
      if (key == ".size")
        size = pack.number();
      else if (key == ".value_kind")
        by_value = pack.text() == "by_value";
      else
        pack.skip();
    }
    if (by_value) result = size;
  }
  return static_cast<uint32_t>(result);
}

AmdKernel read_kernel(Pack& pack) {
  AmdKernel kernel;
  struct Field {
    std::string_view key;
    uint32_t& value;
  };
  const Field fields[] = {{".kernarg_segment_size", kernel.segment_bytes},
                          {".group_segment_fixed_size", kernel.shared_bytes},
                          {".private_segment_fixed_size", kernel.scratch_bytes},
                          {".max_flat_workgroup_size", kernel.most_threads},
                          {".wavefront_size", kernel.wave},
                          {".vgpr_count", kernel.vgprs},
                          {".agpr_count", kernel.agprs},
                          {".sgpr_count", kernel.sgprs},
                          {".vgpr_spill_count", kernel.vgpr_spills},
                          {".sgpr_spill_count", kernel.sgpr_spills}};
  for (uint64_t entries = pack.map(); entries > 0; --entries) {
    const std::string_view key = pack.text();
    const Field* found = nullptr;
    for (const Field& field : fields)
      if (field.key == key) found = &field;
    if (found != nullptr)
      found->value = static_cast<uint32_t>(pack.number());
    else if (key == ".name")
      kernel.name = pack.text();
    else if (key == ".args")
      kernel.argument_bytes = size_by_value(pack);
    else if (key == ".uses_dynamic_stack")
      kernel.dynamic_stack = pack.truth();
    else
      pack.skip();
  }
  return kernel;
}

}  // namespace

AmdCodeInfo read_amd_code(std::span<const unsigned char> code, const std::string& where) {
  const Bytes elf{code, where};
  const Bytes bytes{metadata(elf), where};
  Pack pack(bytes);
  AmdCodeInfo info;
  for (uint64_t entries = pack.map(); entries > 0; --entries) {
    const std::string_view key = pack.text();
    if (key == "amdhsa.kernels") {
      for (uint64_t kernels = pack.array(); kernels > 0; --kernels) info.kernels.push_back(read_kernel(pack));
    } else if (key == "amdhsa.target") {
      const std::string_view target = pack.text();
      info.target = target.substr(target.rfind('-') + 1);
    } else {
      pack.skip();
    }
  }
  return info;
}

}  // namespace strata
