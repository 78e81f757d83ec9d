#include "device/amdsim/code_object.h"

#include <cstring>

#include "base/error.h"
#include "device/amd_code.h"
#include "device/message_pack.h"

namespace strata::amdsim {
namespace {

constexpr uint64_t kMostBytes = 256u << 20;

[[noreturn]] void malformed(const std::string& what) {
  throw Error(ErrorKind::Format, "the code object is malformed: " + what);
}

struct FileHeader {
  unsigned char identity[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, segments, sections;
  uint32_t flags;
  uint16_t bytes, segment_bytes, segment_count, section_bytes, section_count, names;
};
struct Segment {
  uint32_t type, flags;
  uint64_t offset, address, physical, file_bytes, memory_bytes, alignment;
};
struct Section {
  uint32_t name, type;
  uint64_t flags, address, offset, bytes;
  uint32_t link, info;
  uint64_t alignment, entry_bytes;
};
struct Symbol {
  uint32_t name;
  unsigned char info, other;
  uint16_t section;
  uint64_t value, bytes;
};
struct Relocation {
  uint64_t offset, info;
  int64_t addend;
};
constexpr uint32_t kLoad = 1, kSectionSymbols = 11, kSectionRelocations = 4;

class File {
 public:
  explicit File(std::span<const unsigned char> bytes) : bytes_(bytes) {
    header_ = read<FileHeader>(0);
    const unsigned char identity[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 64};
    if (std::memcmp(header_.identity, identity, sizeof(identity)) != 0 || header_.machine != 224)
      malformed("it is no ELF file for AMD GPUs");
  }

  const FileHeader& header() const { return header_; }

  std::span<const unsigned char> part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) malformed("a part lies beyond its end");
    return bytes_.subspan(offset, size);
  }
  template <class T>
  T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, part(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::vector<Segment> segments() const { return table<Segment>(header_.segments, header_.segment_count); }
  std::vector<Section> sections() const { return table<Section>(header_.sections, header_.section_count); }
  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t count) const {
    if (count > bytes_.size() / sizeof(T)) malformed("a table lies beyond its end");
    std::vector<T> result(count);
    if (count > 0) std::memcpy(result.data(), part(offset, count * sizeof(T)).data(), count * sizeof(T));
    return result;
  }
  std::string text(const Section& strings, uint32_t at) const {
    const auto all = part(strings.offset, strings.bytes);
    std::string result;
    while (at < all.size() && all[at] != 0) result += static_cast<char>(all[at++]);
    if (at >= all.size()) malformed("a name has no end");
    return result;
  }

 private:
  std::span<const unsigned char> bytes_;
  FileHeader header_;
};

Target target_of(const File& file) {
  const FileHeader& header = file.header();
  switch (header.flags & 0xffu) {
    case 0x41: return Target::Gfx1100;
    case 0x4a: return Target::Gfx1151;
    case 0x4e: return Target::Gfx1201;
    case 0x4c: return Target::Gfx942;
    default: break;
  }
  throw Error(ErrorKind::Format, "the code object is for a processor that is not interpreted (flags " +
                                     std::to_string(header.flags & 0xffu) + ")");
}

void load_segments(const File& file, CodeObject& object) {
  const std::vector<Segment> segments = file.segments();
  for (const Segment& s : segments) {
    if (s.type != kLoad) continue;
    if (s.file_bytes > s.memory_bytes || s.address > kMostBytes || s.memory_bytes > kMostBytes)
      malformed("a segment is too large");
    object.bytes = std::max(object.bytes, s.address + s.memory_bytes);
  }
  if (object.bytes == 0) malformed("it has no segments");
  object.memory = Buffer(object.bytes);
  for (const Segment& s : segments) {
    if (s.type != kLoad) continue;
    if (s.file_bytes > 0)
      std::memcpy(static_cast<char*>(object.memory.data()) + s.address, file.part(s.offset, s.file_bytes).data(),
                  s.file_bytes);
    if (s.flags & 1u) object.code.push_back({s.address, s.address + s.file_bytes});
    if (s.flags & 2u) object.writable.push_back({s.address, s.address + s.memory_bytes});
  }
}

void relocate(const File& file, CodeObject& object) {
  for (const Section& section : file.sections()) {
    if (section.type != kSectionRelocations || (section.flags & 2u) == 0) continue;
    const Section symbols = section.link < file.header().section_count ? file.sections()[section.link] : Section{};
    for (const Relocation& one : file.table<Relocation>(section.offset, section.bytes / sizeof(Relocation))) {
      const auto type = static_cast<uint32_t>(one.info);
      if (one.offset > object.bytes || object.bytes - one.offset < 8) malformed("a relocation lies beyond its end");
      uint64_t value = reinterpret_cast<uint64_t>(object.memory.data()) + static_cast<uint64_t>(one.addend);
      if (type == 3) {  // R_AMDGPU_ABS64
        const auto all = file.table<Symbol>(symbols.offset, symbols.bytes / sizeof(Symbol));
        if ((one.info >> 32) >= all.size()) malformed("a relocation names no symbol");
        value += all[one.info >> 32].value;
      } else if (type != 13) {  // R_AMDGPU_RELATIVE64
        malformed("relocation type " + std::to_string(type) + " is unknown");
      }
      std::memcpy(static_cast<char*>(object.memory.data()) + one.offset, &value, sizeof(value));
    }
  }
}

KernelArgument read_argument(MessagePack& pack) {
  KernelArgument argument;
  for (uint64_t n = pack.map(); n > 0; --n) {
    const std::string_view key = pack.text();
    if (key == ".offset")
      argument.offset = static_cast<uint32_t>(pack.number());
    else if (key == ".size")
      argument.size = static_cast<uint32_t>(pack.number());
    else if (key == ".value_kind")
      argument.kind = pack.text();
    else
      pack.skip();
  }
  return argument;
}

Kernel read_kernel(MessagePack& pack) {
  Kernel kernel;
  for (uint64_t n = pack.map(); n > 0; --n) {
    const std::string_view key = pack.text();
    if (key == ".name")
      kernel.name = pack.text();
    else if (key == ".vgpr_count")
      kernel.vector_registers = static_cast<uint32_t>(pack.number());
    else if (key == ".kernarg_segment_size")
      kernel.argument_bytes = static_cast<uint32_t>(pack.number());
    else if (key == ".args")
      for (uint64_t k = pack.array(); k > 0; --k) kernel.arguments.push_back(read_argument(pack));
    else
      pack.skip();
  }
  return kernel;
}

void read_metadata(std::span<const unsigned char> file, CodeObject& object) {
  const std::string where = "the code object";
  MessagePack pack(amd_metadata(file, where), where);
  for (uint64_t n = pack.map(); n > 0; --n) {
    if (pack.text() != "amdhsa.kernels") {
      pack.skip();
      continue;
    }
    for (uint64_t k = pack.array(); k > 0; --k) object.kernels.push_back(read_kernel(pack));
  }
}

void read_descriptor(const CodeObject& object, uint64_t address, Kernel& kernel) {
  if (address > object.bytes || object.bytes - address < 64) malformed("a kernel descriptor lies beyond its end");
  const unsigned char* at = object.at(address);
  auto take = [at](auto& value, size_t offset) { std::memcpy(&value, at + offset, sizeof(value)); };
  int64_t entry = 0;
  uint32_t argument_bytes = 0;
  take(kernel.shared_bytes, 0);
  take(kernel.scratch_bytes, 4);
  take(argument_bytes, 8);
  take(entry, 16);
  take(kernel.resources3, 44);
  take(kernel.resources1, 48);
  take(kernel.resources2, 52);
  take(kernel.properties, 56);
  take(kernel.preload, 58);
  kernel.entry = address + static_cast<uint64_t>(entry);
  kernel.argument_bytes = std::max(kernel.argument_bytes, argument_bytes);
  bool inside = false;
  for (const CodeRange& range : object.code) inside |= kernel.entry >= range.begin && kernel.entry < range.end;
  if (!inside || kernel.entry % 4 != 0) malformed("kernel " + kernel.name + " begins outside the code");
  if (kernel.argument_bytes > 65536 || kernel.scratch_bytes > 1u << 20 || kernel.shared_bytes > 64u << 10)
    malformed("kernel " + kernel.name + " asks for more memory than there is");
  for (const KernelArgument& argument : kernel.arguments)
    if (argument.size > kernel.argument_bytes || argument.offset > kernel.argument_bytes - argument.size)
      malformed("an argument of kernel " + kernel.name + " lies beyond the others");
}

void read_descriptors(const File& file, CodeObject& object) {
  const std::vector<Section> sections = file.sections();
  for (Kernel& kernel : object.kernels) {
    bool found = false;
    for (const Section& section : sections) {
      if (section.type != kSectionSymbols || section.link >= sections.size()) continue;
      for (const Symbol& symbol : file.table<Symbol>(section.offset, section.bytes / sizeof(Symbol))) {
        if (file.text(sections[section.link], symbol.name) != kernel.name + ".kd") continue;
        read_descriptor(object, symbol.value, kernel);
        found = true;
      }
    }
    if (!found) malformed("kernel " + kernel.name + " has no descriptor");
  }
}

}  // namespace

Target target_of(std::span<const unsigned char> file) { return target_of(File(file)); }

CodeObject load_code_object(std::span<const unsigned char> bytes) {
  const File file(bytes);
  CodeObject object;
  object.target = target_of(file);
  if (file.header().segment_bytes != sizeof(Segment) ||
      (file.header().section_count > 0 && file.header().section_bytes != sizeof(Section)))
    malformed("its tables have another form");
  load_segments(file, object);
  read_metadata(bytes, object);
  read_descriptors(file, object);
  relocate(file, object);
  return object;
}

}  // namespace strata::amdsim
