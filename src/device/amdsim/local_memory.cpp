#include "device/amdsim/local_memory.h"

#include <algorithm>

namespace strata::amdsim {

LocalMemory::LocalMemory() : data_(kMost), words_(kMost / 4), each_(kMost), split_(kMost / 4) {}

void LocalMemory::start(uint32_t bytes) {
  constexpr uint32_t kLast = (1u << 26) - (1u << 20);  // a kernel has fewer barriers than the difference
  bytes_ = bytes;
  if (++epoch_ > kLast) {
    std::fill(words_.begin(), words_.end(), Tags{});
    std::fill(each_.begin(), each_.end(), Tags{});
    epoch_ = 1;
  }
  first_ = epoch_;
}

const char* LocalMemory::each_byte(uint32_t address, uint32_t size, uint32_t wave, bool writes) {
  for (uint32_t i = address; i < address + size; ++i) {
    if (split_[i / 4] == 0) {
      std::fill_n(each_.begin() + i / 4 * 4, 4, words_[i / 4]);
      split_[i / 4] = 1;
    }
    if (const char* wrong = writes ? note_write(each_[i], wave) : note_read(each_[i], wave)) return wrong;
  }
  return nullptr;
}

const char* LocalMemory::note_atomic(Tags& tags, uint32_t wave) {
  const bool now = tags.written >> 6 == epoch_;
  if (tags.written >> 6 < first_) return "changes shared memory that nothing has written";
  if (now && (tags.written & kAtomic) == 0 && (tags.written & 31u) != wave)
    return "changes shared memory that another wave has written since the last barrier";
  if (tags.read >> 6 == epoch_ && (tags.read & 63u) != wave)
    return "changes shared memory that another wave has read since the last barrier";
  const bool several = now && (tags.written & kAtomic) != 0 && (tags.written & 31u) != wave;
  tags.written = epoch_ << 6 | (several ? kSeveral : kAtomic | wave);
  return nullptr;
}

const char* LocalMemory::atomic(uint32_t address, uint32_t size, uint32_t wave) {
  for (uint32_t word = address / 4; word < (address + size) / 4; ++word) {
    if (split_[word]) {
      for (uint32_t i = word * 4; i < word * 4 + 4; ++i)
        if (const char* wrong = note_atomic(each_[i], wave)) return wrong;
    } else if (const char* wrong = note_atomic(words_[word], wave)) {
      return wrong;
    }
  }
  return nullptr;
}

}  // namespace strata::amdsim
