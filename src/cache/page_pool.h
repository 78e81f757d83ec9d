// Memory of sequences: blocks that are shared until one of their owners writes, taken from one pool with one limit. A
// copy of a block costs nothing; the first write after it copies the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace strata {

class PagePool {
 public:
  explicit PagePool(uint64_t limit_bytes = std::numeric_limits<uint64_t>::max());

  uint64_t limit() const;
  uint64_t used() const;  // bytes of live blocks
  uint64_t kept() const;  // bytes that were given back and wait for their next use

  // Fills every block that is handed out with NaN patterns: what reads memory that nobody wrote shows.
  void poison(bool on);
  void trim();  // gives kept memory back to the system

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
  // Contents are unspecified. Error{Memory} when the pool's limit would be passed.
  Block(PagePool& pool, size_t bytes);

  size_t bytes() const;  // 0: no memory
  bool shared() const { return memory_.use_count() > 1; }
  const void* data() const;
  void* writable();      // keeps the contents
  void* overwritable();  // contents become unspecified: nothing is copied
  const float* f32() const { return static_cast<const float*>(data()); }

 private:
  struct Memory;
  std::shared_ptr<Memory> memory_;
  static std::shared_ptr<Memory> take(const std::shared_ptr<PagePool::State>& pool, size_t bytes);
};

}  // namespace strata
