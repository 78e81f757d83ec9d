// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace strata {

class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);  // Error{File} with the path and the reason
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  size_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Size of the file now: a file that shrank since it was mapped must not be read (it would raise SIGBUS).
  size_t size_on_disk() const;

  // Reads these bytes into memory and maps them, as far as the file has them and memory lasts.
  void read_ahead(size_t offset, size_t bytes) const;

 private:
  std::string path_;
  void* data_ = nullptr;
  size_t size_ = 0;
  int descriptor_ = -1;
};

// Whole file as bytes; refused above `limit` bytes before anything is allocated.
std::string read_file(const std::string& path, size_t limit);

// Writes to PATH.partial and renames on commit(); an uncommitted file is removed, so that nothing half-written
// stays behind under any name.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, size_t bytes);  // Error{File}, for instance when the disk is full
  void pad_to(uint64_t alignment);             // zeros up to a multiple of alignment
  uint64_t position() const { return position_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* action);
  std::string path_;
  std::string partial_;
  void* file_ = nullptr;
  uint64_t position_ = 0;
};

}  // namespace strata
