#include "device/amd_code.h"

#include <cstring>
#include <string_view>

#include "base/error.h"
#include "device/message_pack.h"

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

}  // namespace

std::span<const unsigned char> amd_metadata(std::span<const unsigned char> code, const std::string& where) {
  const Bytes elf{code, where};
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

namespace {

// The struct of arguments is the one that is passed by value.
uint32_t size_by_value(MessagePack& pack) {
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

AmdKernel read_kernel(MessagePack& pack) {
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
  MessagePack pack(amd_metadata(code, where), where);
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
