// Memory of sequences: blocks that are shared until one of their owners writes, taken from one pool with one limit. A
// copy of a block costs nothing; the first write after it copies the bytes. Blocks of the second tier lie in a file
// (file_tier.h), which is made when the first is taken; they do not count against the limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "cache/file_tier.h"
#include "device/memory_space.h"

namespace strata {

enum class Tier { Memory, File };

inline constexpr const char* kDefaultTierFolder = "/var/tmp";  // on a disk, where /tmp may lie in memory

class Block;

class PagePool {
 public:
  // Blocks in memory lie in `space`; those of an accelerator are never in the second tier.
  explicit PagePool(uint64_t limit_bytes = std::numeric_limits<uint64_t>::max(), MemorySpace space = {});

  const MemorySpace& space() const;

  uint64_t limit() const;
  uint64_t used() const;  // bytes of live blocks in memory
  uint64_t kept() const;  // bytes that were given back and wait for their next use

  void set_folder(std::string folder);  // of the second tier's file, before there is one
  FileTierStats file() const;           // zeros while there is none

  // Fills every block that is handed out with NaN patterns: what reads memory that nobody wrote shows.
  void poison(bool on);
  void trim();  // gives kept memory of the host and space in the file back to the system

 private:
  friend class Block;
  struct State;
  std::shared_ptr<State> state_;  // outlives the pool while blocks live
};

// `bytes` of memory with shared ownership. Copies share; writable() makes the bytes this block's own first. Not for use
// by several threads at once.
class Block {
 public:
  Block() = default;
  // Contents are unspecified. Error{Memory} when the pool's limit would be passed or the disk is full, Error{File} when
  // the file cannot be made.
  Block(PagePool& pool, size_t bytes, Tier tier = Tier::Memory);

  size_t bytes() const;  // 0: no memory
  bool shared() const { return memory_.use_count() > 1; }
  const void* data() const;
  void* writable();      // keeps the contents
  void* overwritable();  // contents become unspecified: nothing is copied
  const float* f32() const { return static_cast<const float*>(data()); }

  // Second tier: a block is to stay in memory while somebody holds it. hold() and let_go() only count, bring() and
  // release() act, for many blocks in one go, on those that are held but not in memory, or the other way round.
  void hold() const;
  void let_go() const;
  static void bring(std::span<const Block* const> blocks);
  static void release(std::span<const Block* const> blocks);  // Error{File}: what cannot be written stays in memory

 private:
  struct Memory;
  std::shared_ptr<Memory> memory_;
  static std::shared_ptr<Memory> take(const std::shared_ptr<PagePool::State>& pool, size_t bytes, Tier tier);
};

}  // namespace strata
