#include "gguf/hf/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/hf/safetensors_json.h"

namespace strata::gguf::hf {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr size_t kMaxIndex = 100'000'000;
constexpr size_t kMaxShards = 1024;

struct TypeEntry {
  SourceType type;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<TypeEntry, 16> kTypes{{
    {SourceType::Bool, "BOOL", 1},
    {SourceType::U8, "U8", 1},
    {SourceType::I8, "I8", 1},
    {SourceType::F8E5M2, "F8_E5M2", 1},
    {SourceType::F8E4M3, "F8_E4M3", 1},
    {SourceType::F8E8M0, "F8_E8M0", 1},
    {SourceType::U16, "U16", 2},
    {SourceType::I16, "I16", 2},
    {SourceType::F16, "F16", 2},
    {SourceType::BF16, "BF16", 2},
    {SourceType::U32, "U32", 4},
    {SourceType::I32, "I32", 4},
    {SourceType::F32, "F32", 4},
    {SourceType::U64, "U64", 8},
    {SourceType::I64, "I64", 8},
    {SourceType::F64, "F64", 8},
}};

[[noreturn]] void malformed(const std::string& path, const std::string& message) {
  throw Error(ErrorKind::Format, message, path);
}

SourceTensor checked_tensor(const HeaderEntry& entry, uint64_t data_start, uint64_t file_size,
                            const std::string& path) {
  const std::string what = "tensor " + entry.name;
  const auto type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeEntry& t) { return t.name == entry.dtype; });
  if (type == kTypes.end()) malformed(path, what + " has the unknown dtype \"" + entry.dtype + "\"");
  SourceTensor tensor{entry.name, type->type, entry.shape, 1, 0, 0, 0};
  for (const uint64_t extent : entry.shape)
    if (!checked_mul(tensor.elements, extent, tensor.elements)) malformed(path, what + " has too many elements");
  if (!checked_mul(tensor.elements, type->bytes, tensor.bytes)) malformed(path, what + " has too many bytes");
  const auto [begin, end] = entry.offsets;
  if (begin > end)
    malformed(path,
              what + " ends before it begins (offsets " + std::to_string(begin) + ", " + std::to_string(end) + ")");
  if (end > file_size - data_start)
    malformed(path, what + " ends at byte " + std::to_string(end) + " of " + std::to_string(file_size - data_start) +
                        " bytes of data; the file is truncated or its header is wrong");
  if (end - begin != tensor.bytes)
    malformed(path, what + " has " + std::to_string(end - begin) + " bytes, its dtype and shape need " +
                        std::to_string(tensor.bytes));
  tensor.offset = data_start + begin;
  return tensor;
}

void check_overlaps(const std::vector<SourceTensor>& tensors, const std::string& path) {
  std::vector<const SourceTensor*> order;
  for (const SourceTensor& tensor : tensors)
    if (tensor.bytes > 0) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
      malformed(path, "tensors " + order[i - 1]->name + " and " + order[i]->name + " overlap");
}

// Sorted by name; a name that occurs twice is refused.
void sort_unique(std::vector<SourceTensor>& tensors, const std::string& path) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors.size(); ++i)
    if (tensors[i].name == tensors[i - 1].name) malformed(path, "tensor " + tensors[i].name + " occurs twice");
}

}  // namespace

std::string_view to_string(SourceType type) { return kTypes[static_cast<size_t>(type)].name; }
size_t element_size(SourceType type) { return kTypes[static_cast<size_t>(type)].bytes; }

std::vector<SourceTensor> parse_safetensors_header(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < 8)
    malformed(path, "is too short for a safetensors file (" + std::to_string(file.size()) + " bytes)");
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | std::to_integer<uint64_t>(file[static_cast<size_t>(i)]);
  if (length > kMaxHeader || length > file.size() - 8)
    malformed(path, "states a header of " + std::to_string(length) + " bytes in a file of " +
                        std::to_string(file.size()) + " (limit " + std::to_string(kMaxHeader) + ")");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, length);
  std::vector<SourceTensor> tensors;
  for (const HeaderEntry& entry : parse_header_json(text, path))
    tensors.push_back(checked_tensor(entry, 8 + length, file.size(), path));
  check_overlaps(tensors, path);
  sort_unique(tensors, path);
  return tensors;
}

void Checkpoint::add_shard(const std::string& path) {
  MappedFile file(path);
  for (SourceTensor& tensor : parse_safetensors_header(file.bytes(), path)) {
    tensor.shard = static_cast<uint32_t>(shards_.size());
    tensors_.push_back(std::move(tensor));
  }
  shards_.push_back(std::move(file));
}

Checkpoint Checkpoint::open(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) throw Error(ErrorKind::File, "is not a directory", directory);
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  const std::string single = (fs::path(directory) / "model.safetensors").string();
  const std::string index = single + ".index.json";
  if (fs::exists(single, ignored)) {
    checkpoint.add_shard(single);
    return checkpoint;
  }
  if (!fs::exists(index, ignored))
    throw Error(ErrorKind::File, "holds neither model.safetensors nor model.safetensors.index.json", directory);

  const std::vector<IndexEntry> entries = parse_index_json(read_file(index, kMaxIndex), index);
  std::vector<std::string> files;
  for (const IndexEntry& entry : entries) files.push_back(entry.file);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.size() > kMaxShards) malformed(index, "lists more than " + std::to_string(kMaxShards) + " files");
  for (const std::string& file : files) checkpoint.add_shard((fs::path(directory) / file).string());
  sort_unique(checkpoint.tensors_, directory);
  for (const IndexEntry& entry : entries) {
    const auto& all = checkpoint.tensors_;
    const auto found = std::lower_bound(all.begin(), all.end(), entry.name,
                                        [](const SourceTensor& t, const std::string& name) { return t.name < name; });
    if (found == all.end() || found->name != entry.name || files[found->shard] != entry.file)
      malformed(index, "places tensor " + entry.name + " in " + entry.file + ", which does not hold it");
  }
  return checkpoint;
}

std::span<const std::byte> Checkpoint::data(const SourceTensor& tensor) const {
  const MappedFile& shard = shards_[tensor.shard];
  if (shard.size_on_disk() < shard.size())
    throw Error(ErrorKind::File, "shrank while it was read (tensor " + tensor.name + ")", shard.path());
  return shard.bytes().subspan(tensor.offset, tensor.bytes);
}

}  // namespace strata::gguf::hf
