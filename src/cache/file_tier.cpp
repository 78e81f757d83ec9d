#include "cache/file_tier.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace strata {
namespace {

constexpr size_t kFirstExtent = size_t{1} << 20, kLargestExtent = size_t{64} << 20;
// The system reads no more than its read-ahead at one request, 128 KiB unless it is set otherwise.
constexpr size_t kReadAhead = size_t{128} << 10;

uint64_t system_page() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }
off_t as_offset(uint64_t value) { return static_cast<off_t>(value); }

int unlinked_file(const std::string& folder) {
  std::string name = folder + "/strata-kv-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    throw Error(ErrorKind::File,
                std::string("cannot make a file for keys and values here: ") + std::strerror(errno) +
                    "; give another folder with --kv-file-dir",
                folder);
  ::unlink(name.c_str());
  // Where a file system copies on write, rewriting reserved space would need new space.
  if (int flags = 0; ::ioctl(descriptor, FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_NOCOW_FL;
    ::ioctl(descriptor, FS_IOC_SETFLAGS, &flags);
  }
  return descriptor;
}

}  // namespace

// Slots that are neighbours both in memory and in the file.
struct FileTier::Run {
  char* data;
  size_t bytes;
  uint64_t offset;
};

FileTier::FileTier(const std::string& folder) : folder_(folder), descriptor_(unlinked_file(folder)) {}

FileTier::~FileTier() {
  for (const auto& [data, bytes] : mappings_) ::munmap(data, bytes);
  ::close(descriptor_);
}

std::vector<FileTier::Run> FileTier::runs_of(std::vector<Slot*> slots) {
  std::sort(slots.begin(), slots.end(), [](const Slot* a, const Slot* b) { return a->offset < b->offset; });
  std::vector<Run> runs;
  for (const Slot* slot : slots) {
    const bool follows = !runs.empty() && runs.back().offset + runs.back().bytes == slot->offset &&
                         runs.back().data + runs.back().bytes == slot->data;
    if (follows)
      runs.back().bytes += slot->bytes;
    else
      runs.push_back({slot->data, slot->bytes, slot->offset});
  }
  return runs;
}

void FileTier::no_space(size_t bytes) const {
  throw Error(ErrorKind::Memory,
              "there is no space for " + std::to_string(bytes >> 10) +
                  " KiB more of keys and values in a file, which has " + std::to_string(stats_.reserved >> 20) +
                  " MiB: " + std::strerror(errno) + "; make room, or give another folder with --kv-file-dir",
              folder_);
}

// Space in the file, so that writing through the mapping cannot run out of it. On failure errno says why.
bool FileTier::reserve(uint64_t offset, uint64_t bytes) const {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur) {
    errno = EFBIG;  // growing further would raise SIGXFSZ
    return false;
  }
  errno = ::posix_fallocate(descriptor_, as_offset(offset), as_offset(bytes));
  return errno == 0;
}

// An extent of slots of one size; a small one where there is not space for a large one.
void FileTier::grow(size_t bytes, Free& free) {
  size_t count = std::max<size_t>(1, std::clamp<size_t>(free.total, kFirstExtent, kLargestExtent) / bytes);
  while (!reserve(end_, count * bytes)) {
    if (count == 1) no_space(bytes);
    count = std::max<size_t>(1, count / 8);
  }
  const size_t size = count * bytes;
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, as_offset(end_));
  if (data == MAP_FAILED) no_space(bytes);
  mappings_.emplace_back(data, size);
  ::madvise(data, size, MADV_RANDOM);  // a read takes no neighbours along
  ::madvise(data, size, MADV_DONTDUMP);
  for (size_t i = count; i-- > 0;)
    free.slots.push_back({static_cast<char*>(data) + i * bytes, bytes, end_ + i * bytes, false, true});
  end_ += size;
  free.total += size;
  stats_.reserved += size;
}

// The contents leave memory and file without being written or read again; the space stays.
bool FileTier::forget(const Slot& slot) const {
  return ::fallocate(descriptor_, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, as_offset(slot.offset),
                     as_offset(slot.bytes)) == 0;
}

FileTier::Slot FileTier::take(size_t bytes) {
  const size_t page = system_page(), size = std::max<size_t>(1, (bytes + page - 1) / page) * page;
  Free& free = free_[size];
  if (free.slots.empty()) grow(size, free);
  Slot slot = free.slots.back();
  if (!slot.backed) {
    if (!reserve(slot.offset, slot.bytes)) no_space(size);
    slot.backed = true;
    stats_.reserved += size;
  }
  free.slots.pop_back();
  slot.resident = true;
  stats_.used += size;
  stats_.peak_used = std::max(stats_.peak_used, stats_.used);
  stats_.resident += size;
  stats_.peak_resident = std::max(stats_.peak_resident, stats_.resident);
  return slot;
}

void FileTier::give_back(Slot slot) {
  stats_.used -= slot.bytes;
  if (slot.resident) stats_.resident -= slot.bytes;
  if (!forget(slot)) {
    ::madvise(slot.data, slot.bytes, MADV_DONTNEED);
    ::posix_fadvise(descriptor_, as_offset(slot.offset), as_offset(slot.bytes), POSIX_FADV_DONTNEED);
  }
  slot.resident = false;
  free_[slot.bytes].slots.push_back(slot);
}

void FileTier::trim() {
  for (auto& [bytes, free] : free_)
    for (Slot& slot : free.slots) {
      if (!slot.backed || ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, as_offset(slot.offset),
                                      as_offset(slot.bytes)) != 0)
        continue;
      slot.backed = false;
      stats_.reserved -= bytes;
    }
}

void FileTier::bring(std::span<Slot* const> slots) {
  std::vector<Slot*> missing;
  for (Slot* slot : slots)
    if (!slot->resident) {
      slot->resident = true;
      stats_.resident += slot->bytes;
      ++stats_.read;
      missing.push_back(slot);
    }
  stats_.peak_resident = std::max(stats_.peak_resident, stats_.resident);
  for (const Run& run : runs_of(std::move(missing)))
    for (size_t at = 0; at < run.bytes;
         at += kReadAhead)  // a request that fails costs time: the read itself comes later
      ::madvise(run.data + at, std::min(kReadAhead, run.bytes - at), MADV_WILLNEED);
}

void FileTier::release(std::span<Slot* const> slots) {
  std::vector<Slot*> leaving;
  for (Slot* slot : slots)
    if (slot->resident) leaving.push_back(slot);
  const std::vector<Run> runs = runs_of(leaving);
  for (const Run& run : runs)  // all on their way before the first is waited for
    ::sync_file_range(descriptor_, as_offset(run.offset), as_offset(run.bytes), SYNC_FILE_RANGE_WRITE);
  constexpr unsigned kWriteAndWait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (const Run& run : runs)
    if (::sync_file_range(descriptor_, as_offset(run.offset), as_offset(run.bytes), kWriteAndWait) != 0 &&
        ::msync(run.data, run.bytes, MS_SYNC) != 0)
      throw Error(ErrorKind::File, std::string("cannot write keys and values: ") + std::strerror(errno), folder_);
  for (const Run& run : runs) {  // clean pages that are not mapped can leave
    ::madvise(run.data, run.bytes, MADV_DONTNEED);
    ::posix_fadvise(descriptor_, as_offset(run.offset), as_offset(run.bytes), POSIX_FADV_DONTNEED);
  }
  for (Slot* slot : leaving) {
    slot->resident = false;
    stats_.resident -= slot->bytes;
    ++stats_.released;
  }
}

void check_tier_folder(const std::string& folder) {
  try {
    ::close(unlinked_file(folder));
  } catch (const Error& error) {
    throw Error(ErrorKind::Usage, error.message(), error.where());
  }
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return;
  if (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC)
    throw Error(ErrorKind::Usage,
                "this folder lies in memory, so keys and values would too: give one on a disk with "
                "--kv-file-dir",
                folder);
}

uint64_t free_disk_bytes(const std::string& folder) {
  struct statvfs status {};
  return ::statvfs(folder.c_str(), &status) == 0 ? uint64_t{status.f_bavail} * status.f_frsize : 0;
}

}  // namespace strata
