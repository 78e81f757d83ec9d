// Files for tests: one in memory that has a path, and a folder that is removed at the end.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace strata::test {

class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("strata-test", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
  }
  explicit MemoryFile(std::string_view bytes) : MemoryFile() { assign(bytes); }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  void assign(std::string_view bytes) {
    resize(0);
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t got = ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (got <= 0) throw std::runtime_error("cannot write a file in memory");
      done += static_cast<size_t>(got);
    }
  }

  void resize(size_t bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
      throw std::runtime_error("cannot resize a file in memory");
  }

 private:
  int descriptor_;
};

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "strata-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string file(std::string_view name) const { return (path_ / name).string(); }
  bool empty() const { return std::filesystem::is_empty(path_); }

  std::string write(std::string_view name, std::string_view bytes) const {
    const std::string path = file(name);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace strata::test
