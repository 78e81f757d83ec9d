#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace strata {
namespace {

[[noreturn]] void file_error(const std::string& path, const std::string& action) {
  throw Error(ErrorKind::File, "cannot " + action + ": " + std::strerror(errno), path);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) file_error(path, "open");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    const bool irregular = errno == 0 || !S_ISREG(status.st_mode);
    ::close(descriptor_);
    descriptor_ = -1;
    if (irregular) throw Error(ErrorKind::File, "is not a regular file", path);
    file_error(path, "read the size");
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    ::close(descriptor_);
    descriptor_ = -1;
    file_error(path, "map into memory");
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

size_t MappedFile::size_on_disk() const {
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) return 0;
  return static_cast<size_t>(status.st_size);
}

void MappedFile::read_ahead(size_t offset, size_t bytes) const {
  if (offset >= size_) return;
  char* const start = static_cast<char*>(data_) + offset;
  bytes = std::min(bytes, size_ - offset);
#if defined(MADV_POPULATE_READ)
  if (::madvise(start, bytes, MADV_POPULATE_READ) == 0) return;
#endif
  // An older system: into memory at least, without a fault where the file has become shorter.
  std::array<char, 65536> chunk;
  for (size_t done = 0; done < bytes; done += chunk.size())
    if (::pread(descriptor_, chunk.data(), std::min(chunk.size(), bytes - done), static_cast<off_t>(offset + done)) <=
        0)
      return;
}

std::string read_file(const std::string& path, size_t limit) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) file_error(path, "open");
  std::string text;
  std::array<char, 65536> chunk;
  size_t got = 0;
  while ((got = std::fread(chunk.data(), 1, chunk.size(), file)) > 0 && text.size() <= limit)
    text.append(chunk.data(), got);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) file_error(path, "read");
  if (text.size() > limit)
    throw Error(ErrorKind::File, "is larger than the limit of " + std::to_string(limit) + " bytes", path);
  return text;
}

OutputFile::OutputFile(const std::string& path) : path_(path), partial_(path + ".partial") {
  file_ = std::fopen(partial_.c_str(), "wb");
  if (file_ == nullptr) file_error(path, "create");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(static_cast<std::FILE*>(file_));
  std::remove(partial_.c_str());
}

void OutputFile::fail(const char* action) {
  const int reason = errno;
  std::fclose(static_cast<std::FILE*>(file_));
  file_ = nullptr;
  std::remove(partial_.c_str());
  errno = reason;
  file_error(path_, action);
}

void OutputFile::write(const void* data, size_t bytes) {
  if (bytes == 0) return;
  if (std::fwrite(data, 1, bytes, static_cast<std::FILE*>(file_)) != bytes) fail("write");
  position_ += bytes;
}

void OutputFile::pad_to(uint64_t alignment) {
  static constexpr std::array<char, 4096> kZeros{};
  for (uint64_t missing = (alignment - position_ % alignment) % alignment; missing > 0;) {
    const uint64_t step = std::min<uint64_t>(missing, kZeros.size());
    write(kZeros.data(), step);
    missing -= step;
  }
}

void OutputFile::commit() {
  std::FILE* file = static_cast<std::FILE*>(file_);
  if (std::fflush(file) != 0 || ::fsync(::fileno(file)) != 0) fail("write");
  const int closed = std::fclose(file);
  file_ = nullptr;
  if (closed != 0 || std::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    std::remove(partial_.c_str());
    errno = reason;
    file_error(path_, "write");
  }
}

}  // namespace strata
