// GGUF containers, version 3: metadata values and tensor descriptions, reader and writer (shared by both).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"

namespace strata::gguf {

enum class ValueType : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12
};
std::string_view to_string(ValueType type);

// Bytes of a file as safe text for messages: printable ASCII as it is, all else as \xNN, cut after `limit` bytes.
std::string printable(std::string_view bytes, size_t limit = 80);

// One metadata value. Scalars are kept as 64-bit; arrays in the vector that fits their element type.
struct Value {
  ValueType type = ValueType::U32;     // Array for arrays
  ValueType element = ValueType::U32;  // element type of arrays
  uint64_t u = 0;                      // U8..U64, Bool
  int64_t i = 0;                       // I8..I64
  double f = 0;                        // F32, F64
  std::string s;                       // String
  std::vector<uint64_t> us;            // arrays of unsigned or Bool
  std::vector<int64_t> is;             // arrays of signed
  std::vector<double> fs;              // arrays of reals
  std::vector<std::string> ss;         // arrays of strings
  size_t array_size() const;           // 0 for scalars
  bool operator==(const Value&) const = default;

  static Value of_u16(uint16_t v);
  static Value of_u32(uint32_t v);
  static Value of_u64(uint64_t v);
  static Value of_i32(int32_t v);
  static Value of_f32(float v);
  static Value of_bool(bool v);
  static Value of_string(std::string v);
  static Value of_strings(std::vector<std::string> v);
  static Value of_u32s(std::vector<uint64_t> v);
  static Value of_u64s(std::vector<uint64_t> v);
  static Value of_i32s(std::vector<int64_t> v);
  static Value of_f32s(std::vector<double> v);
  static Value of_bools(std::vector<uint64_t> v);
};

struct KeyValue {
  std::string key;
  Value value;
};

// Extents in file order: ne[0] is contiguous. Missing extents are 1.
struct TensorInfo {
  std::string name;
  DType type = DType::F32;
  uint32_t dims = 1;
  uint64_t ne[4] = {1, 1, 1, 1};
  uint64_t offset = 0;  // from the start of its shard's data section
  uint64_t bytes = 0;
  uint32_t shard = 0;
  uint64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
};

// Limits of the reader; what exceeds one is refused by name (gguf.md, section 8).
struct Limits {
  uint64_t max_keys = 65536;
  uint64_t max_tensors = 1u << 20;
  uint64_t max_string = 64u << 20;   // bytes of one string
  uint64_t max_metadata = 1u << 30;  // bytes of all values in memory, over all shards
  uint32_t max_shards = 1024;
};

struct Shard;  // one parsed file of a set: shard.h

// A file, or a set of split files, mapped read-only. Everything is checked when it is opened: after that every extent
// of every tensor lies inside its mapping. Errors are Error{File} or Error{Format} with file, byte offset, and key or
// tensor. Opening reads the metadata only, never the tensors' data.
class File {
 public:
  // Any shard of a split set opens the set; the others are found by name beside it.
  static File open(const std::string& path, const Limits& limits = {});

  const std::string& path() const { return shards_.front().path(); }
  const std::vector<KeyValue>& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  uint64_t data_bytes() const;  // sum of the tensors' bytes
  uint64_t file_bytes() const;  // sum of the shards' sizes

  const Value* find(std::string_view key) const;
  const TensorInfo* find_tensor(std::string_view name) const;
  const std::byte* data(const TensorInfo& tensor) const;  // a tensor of this file; aligned to at least 8 bytes

  // Error{File} when a file shrank since it was opened: reading its end would then raise SIGBUS.
  void check_sizes() const;

  // Brings all pages of the files into memory, the threads of the pool a part each. Errors as check_sizes().
  void read_ahead(ThreadPool& pool) const;

  // Typed access. Absent key: empty. Present with another type or out of range: Error{Format} naming the key.
  std::optional<uint64_t> get_uint(std::string_view key, uint64_t min, uint64_t max) const;  // any integer type
  std::optional<double> get_real(std::string_view key) const;                                // finite F32 or F64
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string> get_string(std::string_view key) const;
  // A scalar counts as an array of one: several keys may be either. Bool elements count as 0 and 1.
  std::optional<std::vector<uint64_t>> get_uints(std::string_view key, uint64_t min, uint64_t max) const;
  std::optional<std::vector<int64_t>> get_ints(std::string_view key, int64_t min, int64_t max) const;
  std::optional<std::vector<double>> get_reals(std::string_view key) const;
  const std::vector<std::string>* get_strings(std::string_view key) const;  // null when absent

 private:
  File() = default;
  static File from_shards(std::vector<Shard> shards);
  [[noreturn]] void refuse(std::string_view key, const std::string& message) const;

  std::vector<MappedFile> shards_;
  std::vector<uint64_t> data_start_;
  std::vector<KeyValue> metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<uint32_t> key_order_;     // indices into metadata_, sorted by key
  std::vector<uint32_t> tensor_order_;  // indices into tensors_, sorted by name
};

// Writes a file in one pass: describe everything first, then give the bytes tensor by tensor in the same order, in
// pieces of any size. commit() fails unless all bytes were given; without commit nothing is left behind. Wrong use is
// Error{Argument}, a failing disk Error{File}. general.alignment is written here, unless it is the default of 32.
class Writer {
 public:
  explicit Writer(const std::string& path, uint32_t alignment = 32);
  ~Writer();

  void add(std::string key, Value value);
  void add_tensor(std::string name, DType type, std::span<const uint64_t> ne);  // ne[0] contiguous
  void begin_data();                           // writes header, metadata and infos: nothing can be added after it
  void write(const void* data, size_t bytes);  // next bytes of the current tensor, which they must not exceed
  void commit();

  const std::vector<TensorInfo>& tensors() const { return tensors_; }

 private:
  [[noreturn]] void refuse(const std::string& message, std::string_view subject = {}) const;
  void put(const void* data, size_t bytes, uint64_t padding);

  std::string path_;
  std::unique_ptr<OutputFile> out_;  // null after commit or a failed write
  uint32_t alignment_;
  std::vector<KeyValue> metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> names_;
  uint64_t data_bytes_ = 0;  // where the next tensor's data may begin
  size_t current_ = 0;
  uint64_t given_ = 0;  // bytes of the current tensor
  bool in_data_ = false;
};

}  // namespace strata::gguf
