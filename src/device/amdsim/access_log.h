// Who read and wrote each byte of global memory in a launch: two waves that nothing orders must not meet there.
// Barriers order waves of one work-group, nothing orders work-groups.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace strata::amdsim {

enum class AccessKind : uint8_t { Read, Write, Atomic };

// Of one launch, for all its threads.
class AccessLog {
 public:
  // Of each word the last that read and the last that wrote: a work-group and one (all ones: several), with 31 bits and
  // one that says that it was an atomic operation; barriers before, 22 bits; a wave, 6 bits (all ones: several); which
  // of the four bytes. Where two use other bytes of a word one of them is forgotten.
  using Entry = std::atomic<uint64_t>;
  static constexpr uint64_t kWords = 1024;
  struct Page {
    std::array<Entry, kWords> read{}, written{};
  };

  // A wave of a work-group between two barriers.
  static uint64_t accessor(int64_t group, uint32_t barriers, uint32_t wave) {
    return (static_cast<uint64_t>(group) % 0x7ffffffeu + 1) << 32 | uint64_t{barriers & 0x3fffffu} << 10 | wave << 4;
  }
  // Null where the launch has touched so much memory that no more is watched.
  Page* page(uint64_t number);
  // The access that it must not meet, or 0. `bytes`: a bit for each of the word.
  static uint64_t note(Page& page, uint64_t word, uint32_t bytes, AccessKind kind, uint64_t who) {
    if (kind == AccessKind::Read) {
      const uint64_t last = page.read[word].load(std::memory_order_relaxed);
      if ((((last ^ who) >> 4) == 0 || several_groups(last)) && (last & bytes) == bytes) return 0;
    } else if (kind == AccessKind::Write) {
      const uint64_t last = page.written[word].load(std::memory_order_relaxed);
      if (((last ^ who) >> 4) == 0 && (last & bytes) == bytes) return 0;
    }
    return note_change(page, word, bytes, kind, who);
  }
  // What note() returned, for people: "work-group 3", "wave 2".
  static std::string describe(uint64_t other, uint64_t who);
  static bool same_group(uint64_t other, uint64_t who) { return ((other ^ who) & kGroups) == 0; }

 private:
  static constexpr uint64_t kMostPages = 1u << 16;  // 256 MiB of memory
  static constexpr uint64_t kGroups = uint64_t{0x7fffffff} << 32, kAtomic = uint64_t{1} << 63;
  static constexpr uint64_t kWaves = 63u << 4, kEpochs = uint64_t{0x3fffff} << 10, kBytes = 15;
  static bool several_groups(uint64_t entry) { return (entry & kGroups) == kGroups; }
  static bool conflicts(uint64_t entry, uint64_t who, uint32_t bytes);
  static uint64_t with_read(uint64_t entry, uint64_t who, uint32_t bytes);
  static uint64_t with_write(uint64_t entry, uint64_t who, uint32_t bytes, bool atomic);
  static uint64_t note_change(Page& page, uint64_t word, uint32_t bytes, AccessKind kind, uint64_t who);

  std::mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
};

// The log as one thread uses it.
class AccessView {
 public:
  explicit AccessView(AccessLog& log) : log_(&log) {}
  uint64_t note(uint64_t address, uint32_t bytes, AccessKind kind, uint64_t who) {
    const uint64_t end = address + bytes;
    for (uint64_t word = address / 4; word * 4 < end; ++word) {
      uint32_t mask = 15;
      if (word * 4 < address) mask &= 15u << (address % 4);
      if (word * 4 + 4 > end) mask &= 15u >> (word * 4 + 4 - end);
      AccessLog::Page* page = page_of(word / AccessLog::kWords);
      if (page == nullptr) continue;
      if (const uint64_t other = AccessLog::note(*page, word % AccessLog::kWords, mask, kind, who)) return other;
    }
    return 0;
  }

 private:
  struct Known {
    uint64_t number = ~uint64_t{0};
    AccessLog::Page* page = nullptr;
  };
  AccessLog::Page* page_of(uint64_t number) {
    Known& known = known_[number % known_.size()];
    if (known.number != number) known = {number, log_->page(number)};
    return known.page;
  }

  AccessLog* log_;
  std::array<Known, 256> known_;
};

}  // namespace strata::amdsim
