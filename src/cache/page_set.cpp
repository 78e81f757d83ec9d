#include "cache/page_set.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace strata {

void PageSet::swap(PageSet& other) noexcept {
  std::swap(limit_, other.limit_);
  blocks_.swap(other.blocks_);
  used_.swap(other.used_);
  std::swap(clock_, other.clock_);
}

void PageSet::hold(size_t page) const {
  if (used_[page] == 0) blocks_[page].hold();
  used_[page] = clock_;
}

void PageSet::append(PagePool& pool, size_t bytes) {
  blocks_.emplace_back(pool, bytes, tiered() ? Tier::File : Tier::Memory);
  used_.push_back(0);
  if (tiered()) hold(blocks_.size() - 1);
}

// Pages that copies share leave memory with the last working set that holds them.
void PageSet::resize(size_t pages) noexcept {
  if (pages >= blocks_.size()) return;
  bool shared = false;
  for (size_t page = pages; page < used_.size(); ++page) {
    if (used_[page] == 0) continue;
    blocks_[page].let_go();
    shared = shared || blocks_[page].shared();
  }
  if (shared) try {
      std::vector<const Block*> left;
      for (size_t page = pages; page < used_.size(); ++page)
        if (used_[page] != 0 && blocks_[page].shared()) left.push_back(&blocks_[page]);
      Block::release(left);
    } catch (const std::exception&) {  // what could not be written stays in memory: nothing is lost
    }
  blocks_.resize(pages);
  used_.resize(pages);
}

void* PageSet::writable(size_t page) {
  if (!tiered()) return blocks_[page].writable();
  if (used_[page] == 0) use(page, page + 1);
  if (blocks_[page].shared()) {
    const Block before = blocks_[page];
    blocks_[page].writable();
    blocks_[page].hold();
    before.let_go();
    const Block* left = &before;
    Block::release({&left, 1});
  }
  return blocks_[page].writable();
}

void PageSet::use(std::span<const int64_t> pages) const {
  if (!tiered()) return;
  ++clock_;
  std::vector<const Block*> wanted;
  for (const int64_t page : pages) {
    hold(static_cast<size_t>(page));
    wanted.push_back(&blocks_[static_cast<size_t>(page)]);
  }
  Block::bring(wanted);
}

void PageSet::use(size_t first, size_t end) const {
  if (!tiered()) return;
  std::vector<int64_t> pages;
  for (size_t page = first; page < end; ++page) pages.push_back(static_cast<int64_t>(page));
  use(pages);
}

void PageSet::release() const {
  if (!tiered()) return;
  std::vector<size_t> held;
  for (size_t page = 0; page + 1 < used_.size(); ++page)
    if (used_[page] != 0) held.push_back(page);
  if (held.size() < limit_) return;  // the newest page takes one place
  const size_t leave = held.size() + 1 - limit_;
  std::nth_element(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(leave) - 1, held.end(),
                   [&](size_t a, size_t b) { return used_[a] != used_[b] ? used_[a] < used_[b] : a > b; });
  std::vector<const Block*> left;
  for (size_t i = 0; i < leave; ++i) {
    blocks_[held[i]].let_go();
    used_[held[i]] = 0;
    left.push_back(&blocks_[held[i]]);
  }
  Block::release(left);
}

}  // namespace strata
