// Shared memory (LDS) of a work-group, with who wrote and read each byte since the last barrier.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::amdsim {

class LocalMemory {
 public:
  static constexpr uint32_t kMost = 64u << 10;

  LocalMemory();
  void start(uint32_t bytes);  // for a work-group: nothing is written
  void barrier() { ++epoch_; }

  uint32_t bytes() const { return bytes_; }
  unsigned char* at(uint32_t address) { return data_.data() + address; }

  // Why an access of a wave is wrong, or null; notes it otherwise. Within bytes().
  const char* read(uint32_t address, uint32_t size, uint32_t wave) {
    if ((address | size) % 4 != 0) return each_byte(address, size, wave, false);
    for (uint32_t word = address / 4; word < (address + size) / 4; ++word)
      if (const char* wrong = split_[word] ? each_byte(word * 4, 4, wave, false) : note_read(words_[word], wave))
        return wrong;
    return nullptr;
  }
  const char* write(uint32_t address, uint32_t size, uint32_t wave) {
    if ((address | size) % 4 != 0) return each_byte(address, size, wave, true);
    for (uint32_t word = address / 4; word < (address + size) / 4; ++word)
      if (const char* wrong = split_[word] ? each_byte(word * 4, 4, wave, true) : note_write(words_[word], wave))
        return wrong;
    return nullptr;
  }
  const char* atomic(uint32_t address, uint32_t size, uint32_t wave);

 private:
  // Barriers so far, times 64, and a wave: 32 and above an atomic operation.
  struct Tags {
    uint32_t written = 0, read = 0;
  };
  static constexpr uint32_t kSeveral = 63, kAtomic = 32;

  const char* note_read(Tags& tags, uint32_t wave) {
    if (tags.written >> 6 < first_) return "reads shared memory that nothing has written";
    if (tags.written >> 6 == epoch_ && (tags.written & 31u) != wave)
      return "reads shared memory that another wave has written since the last barrier";
    const bool again = tags.read >> 6 == epoch_ && (tags.read & 63u) != wave;
    tags.read = epoch_ << 6 | (again ? kSeveral : wave);
    return nullptr;
  }
  const char* note_write(Tags& tags, uint32_t wave) {
    if (tags.written >> 6 == epoch_ && (tags.written & 31u) != wave)
      return "writes shared memory that another wave has written since the last barrier";
    if (tags.read >> 6 == epoch_ && (tags.read & 63u) != wave)
      return "writes shared memory that another wave has read since the last barrier";
    tags.written = epoch_ << 6 | wave;
    return nullptr;
  }
  const char* note_atomic(Tags& tags, uint32_t wave);
  const char* each_byte(uint32_t address, uint32_t size, uint32_t wave, bool writes);

  std::vector<unsigned char> data_;
  std::vector<Tags> words_, each_;  // of words; of bytes where split_ says so
  std::vector<uint8_t> split_;
  uint32_t bytes_ = 0;
  uint32_t epoch_ = 1, first_ = 1;
};

}  // namespace strata::amdsim
