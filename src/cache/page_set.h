// The pages of one growing cache. In the second tier they have a working set: the pages used last stay in memory, up to
// a limit, the others wait in the file. What is in memory changes no content, so it is no part of the value: a copy
// shares all pages and begins with no working set of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/page_pool.h"

namespace strata {

class PageSet {
 public:
  PageSet() = default;
  // limit: pages in memory at most once release() is through; 0: all of them, in the first tier.
  explicit PageSet(size_t limit) : limit_(limit) {}
  PageSet(const PageSet& other) : limit_(other.limit_), blocks_(other.blocks_), used_(other.used_.size(), 0) {}
  PageSet(PageSet&& other) noexcept { swap(other); }
  PageSet& operator=(PageSet other) noexcept {
    swap(other);
    return *this;
  }
  ~PageSet() { resize(0); }

  size_t size() const { return blocks_.size(); }
  bool tiered() const { return limit_ > 0; }
  void append(PagePool& pool, size_t bytes);  // Error{Memory, File}
  void resize(size_t pages) noexcept;         // drops those behind
  void* writable(size_t page);                // in memory from now on

  // Pages that are about to be read, ascending: those that are not in memory are read ahead.
  void use(std::span<const int64_t> pages) const;
  void use(size_t first, size_t end) const;
  // Writes out and drops what is beyond the limit: what was used longest ago; among pages used at the same time the
  // last ones, so that a cache that is read from end to end keeps its beginning. The newest page stays. Error{File}.
  void release() const;

 private:
  void swap(PageSet& other) noexcept;
  void hold(size_t page) const;

  size_t limit_ = 0;
  std::vector<Block> blocks_;
  // Of each page, when it was used last; 0: it is not in the working set.
  mutable std::vector<uint64_t> used_;
  mutable uint64_t clock_ = 1;
};

}  // namespace strata
