// safetensors checkpoints: one file, or several with an index. Mapped read-only and checked when opened: after that the
// bytes of every tensor lie inside their file and agree with dtype and shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace strata::gguf::hf {

enum class SourceType : uint8_t {
  Bool,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  U16,
  I16,
  F16,
  BF16,
  U32,
  I32,
  F32,
  U64,
  I64,
  F64
};
std::string_view to_string(SourceType type);  // as the file spells it: "F8_E4M3"
size_t element_size(SourceType type);

struct SourceTensor {
  std::string name;
  SourceType type = SourceType::F32;
  std::vector<uint64_t> shape;  // outermost first, the last extent is contiguous
  uint64_t elements = 0;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
  uint32_t shard = 0;
};

// Header of one file. Error{Format} naming the file and the tensor.
std::vector<SourceTensor> parse_safetensors_header(std::span<const std::byte> file, const std::string& path);

class Checkpoint {
 public:
  // model.safetensors, else the shards that model.safetensors.index.json lists.
  static Checkpoint open(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const std::vector<SourceTensor>& tensors() const { return tensors_; }

  // The tensor's bytes. Error{File} when the file has shrunk since it was opened: reading it would raise SIGBUS.
  std::span<const std::byte> data(const SourceTensor& tensor) const;

 private:
  void add_shard(const std::string& path);

  std::string directory_;
  std::vector<MappedFile> shards_;
  std::vector<SourceTensor> tensors_;
};

}  // namespace strata::gguf::hf
