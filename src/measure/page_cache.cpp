#include "measure/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/mapped_file.h"

namespace strata {
namespace {

constexpr std::string_view kTail = "-00001-of-00001.gguf";

// Of a split set every file that is there, else the one.
std::vector<std::string> files_of(const std::string& model) {
  if (model.size() <= kTail.size()) return {model};
  const size_t tail = model.size() - kTail.size();
  const auto digits = [&](size_t at) {
    return std::all_of(model.begin() + static_cast<std::ptrdiff_t>(at),
                       model.begin() + static_cast<std::ptrdiff_t>(at + 5),
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  if (model.substr(tail + 6, 4) != "-of-" || model[tail] != '-' || !digits(tail + 1) || !digits(tail + 10))
    return {model};
  std::vector<std::string> files;
  const int count = std::stoi(model.substr(tail + 10, 5));
  for (int i = 1; i <= count; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, 5 - number.size(), '0');
    const std::string path = model.substr(0, tail + 1) + number + model.substr(tail + 6);
    if (std::error_code ignored; std::filesystem::exists(path, ignored)) files.push_back(path);
  }
  return files.empty() ? std::vector<std::string>{model} : files;
}

}  // namespace

void drop_cached_pages(const std::string& model) {
  for (const std::string& path : files_of(model)) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) continue;  // loading will say why
    ::fdatasync(descriptor);       // pages not yet written cannot be forgotten
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
  }
}

double cached_share(const std::string& model) {
  const auto page = static_cast<size_t>(std::max(::sysconf(_SC_PAGESIZE), 1L));
  size_t pages = 0, resident = 0;
  for (const std::string& path : files_of(model)) {
    const MappedFile file(path);
    std::vector<unsigned char> states((file.size() + page - 1) / page);
    void* start = const_cast<std::byte*>(file.bytes().data());
    if (states.empty()) continue;
    if (::mincore(start, file.size(), states.data()) != 0) return -1;
    pages += states.size();
    resident += static_cast<size_t>(std::count_if(states.begin(), states.end(), [](unsigned char s) { return s & 1; }));
  }
  return pages == 0 ? 1 : static_cast<double>(resident) / static_cast<double>(pages);
}

}  // namespace strata
