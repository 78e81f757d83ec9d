// The second tier of the memory of sequences: blocks in an unlinked temporary file that is mapped, so that each has a
// stable address and is read as any memory. Which blocks are in memory is decided here, not left to the system: a block
// that is released is written to the file and leaves memory, one that is wanted is read ahead in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace strata {

struct FileTierStats {
  uint64_t used = 0;       // bytes of live blocks
  uint64_t peak_used = 0;  // the most there ever was
  uint64_t reserved = 0;   // bytes of the file's space, blocks that were given back included
  uint64_t resident = 0;   // bytes of live blocks in memory
  uint64_t peak_resident = 0;
  uint64_t released = 0;  // blocks that left memory
  uint64_t read = 0;      // blocks that came back
};

// Not for use by several threads at once.
class FileTier {
 public:
  // Error{File} when no file can be made in the folder.
  explicit FileTier(const std::string& folder);
  ~FileTier();
  FileTier(const FileTier&) = delete;
  FileTier& operator=(const FileTier&) = delete;

  struct Slot {
    char* data = nullptr;
    size_t bytes = 0;  // whole pages of the system
    uint64_t offset = 0;
    bool resident = false;
    bool backed = true;  // has space in the file
  };

  // A resident slot of at least so many bytes, contents unspecified. Its space in the file is reserved, so writing to
  // it cannot fail later. Error{Memory} when there is no space, and nothing has changed.
  Slot take(size_t bytes);
  void give_back(Slot slot);
  void trim();  // gives the space of slots that were given back to the file system

  void bring(std::span<Slot* const> slots);    // those that are not resident are read ahead
  void release(std::span<Slot* const> slots);  // Error{File} when one cannot be written: it stays in memory
  const FileTierStats& stats() const { return stats_; }

 private:
  struct Run;
  struct Free {
    std::vector<Slot> slots;
    uint64_t total = 0;  // bytes of all slots of this size, free or not
  };
  static std::vector<Run> runs_of(std::vector<Slot*> slots);
  bool reserve(uint64_t offset, uint64_t bytes) const;
  void grow(size_t bytes, Free& free);
  bool forget(const Slot& slot) const;
  [[noreturn]] void no_space(size_t bytes) const;

  std::string folder_;
  int descriptor_ = -1;
  uint64_t end_ = 0;  // of the file
  std::map<size_t, Free> free_;
  std::vector<std::pair<void*, size_t>> mappings_;
  FileTierStats stats_;
};

// Error{Usage} when the folder cannot take such a file, or lies in memory itself.
void check_tier_folder(const std::string& folder);
uint64_t free_disk_bytes(const std::string& folder);  // 0 where the system does not say

}  // namespace strata
