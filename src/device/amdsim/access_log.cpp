#include "device/amdsim/access_log.h"

namespace strata::amdsim {

AccessLog::Page* AccessLog::page(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(number);
  if (found != pages_.end()) return found->second.get();
  if (pages_.size() >= kMostPages) return nullptr;
  return (pages_[number] = std::make_unique<Page>()).get();
}

bool AccessLog::conflicts(uint64_t entry, uint64_t who, uint32_t bytes) {
  if ((entry & bytes) == 0) return false;
  if (((entry ^ who) & kGroups) != 0) return true;
  return ((entry ^ who) & kEpochs) == 0 && ((entry ^ who) & kWaves) != 0;
}

uint64_t AccessLog::with_read(uint64_t entry, uint64_t who, uint32_t bytes) {
  if ((entry & kBytes) == 0) return who | bytes;
  if (((entry ^ who) & kGroups) != 0) return entry | kGroups | bytes;
  if (((entry ^ who) & kEpochs) != 0) return who | bytes;
  if (((entry ^ who) & kWaves) != 0) return entry | kWaves | bytes;
  return entry | bytes;
}

uint64_t AccessLog::with_write(uint64_t entry, uint64_t who, uint32_t bytes, bool atomic) {
  const uint64_t flag = atomic ? kAtomic : 0;
  if ((entry & kBytes) == 0 || (entry & kAtomic) != flag) return who | flag | bytes;
  if (((entry ^ who) & kGroups) != 0) return atomic ? entry | kGroups | bytes : who | bytes;
  if (((entry ^ who) & kEpochs) != 0) return who | flag | bytes;
  if (((entry ^ who) & kWaves) != 0) return atomic ? entry | kWaves | bytes : who | bytes;
  return entry | bytes;
}

// Whoever changes an entry looks at the other one afterwards: of two that meet at least one sees the other.
uint64_t AccessLog::note_change(Page& page, uint64_t word, uint32_t bytes, AccessKind kind, uint64_t who) {
  Entry& read = page.read[word];
  Entry& written = page.written[word];
  if (kind == AccessKind::Read) {
    uint64_t last = read.load();
    while (!read.compare_exchange_weak(last, with_read(last, who, bytes))) {
    }
    const uint64_t writer = written.load();
    return conflicts(writer, who, bytes) ? writer : 0;
  }
  const bool atomic = kind == AccessKind::Atomic;
  uint64_t writer = written.load();
  while (!written.compare_exchange_weak(writer, with_write(writer, who, bytes, atomic))) {
  }
  if (conflicts(writer, who, bytes) && !(atomic && (writer & kAtomic) != 0)) return writer;
  const uint64_t reader = read.load();
  return conflicts(reader, who, bytes) ? reader & ~kAtomic : 0;
}

std::string AccessLog::describe(uint64_t other, uint64_t who) {
  if (several_groups(other)) return "other work-groups";
  if (((other ^ who) & kGroups) != 0) return "work-group " + std::to_string(((other & kGroups) >> 32) - 1);
  if ((other & kWaves) == kWaves) return "other waves";
  return "wave " + std::to_string((other & kWaves) >> 4);
}

}  // namespace strata::amdsim
