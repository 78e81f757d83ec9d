#include "cache/page_table.h"

#include <algorithm>
#include <utility>

namespace strata {

void PageTable::set(size_t page, const void* memory) {
  if (page < pages_.size() && pages_[page] == memory) return;
  if (page == pages_.size()) pages_.push_back(nullptr);
  pages_[page] = memory;
  synced_ = std::min(synced_, page);
}

void PageTable::resize(size_t pages) {
  pages_.resize(pages);
  synced_ = std::min(synced_, pages);
}

void PageTable::sync() const {
  if (space_.on_host() || synced_ == pages_.size()) return;
  const size_t bytes = pages_.size() * sizeof(void*);
  if (device_.bytes() < bytes) {
    device_ = SpaceMemory(space_, std::max<size_t>(2 * bytes, 1024));
    synced_ = 0;
  }
  space_.copy(static_cast<const void**>(device_.data()) + synced_, pages_.data() + synced_,
              (pages_.size() - synced_) * sizeof(void*));
  synced_ = pages_.size();
}

void PageTable::swap(PageTable& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(pages_, other.pages_);
  std::swap(device_, other.device_);
  std::swap(synced_, other.synced_);
}

}  // namespace strata
