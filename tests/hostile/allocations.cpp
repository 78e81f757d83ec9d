#include "hostile/allocations.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

namespace strata::test {
namespace {

std::atomic<size_t> g_now{0}, g_peak{0};

[[maybe_unused]] void count(size_t bytes) {
  const size_t now = g_now.fetch_add(bytes) + bytes;
  for (size_t peak = g_peak; now > peak && !g_peak.compare_exchange_weak(peak, now);) {
  }
}
[[maybe_unused]] void discount(size_t bytes) { g_now -= bytes; }

// Live anonymous mappings: munmap is also called for files, which are not counted.
[[maybe_unused]] std::array<void*, 65536> g_mappings{};
[[maybe_unused]] std::mutex g_mappings_lock;

[[maybe_unused]] bool replace(void* from, void* to) {
  const std::lock_guard<std::mutex> lock(g_mappings_lock);
  for (void*& slot : g_mappings)
    if (slot == from) {
      slot = to;
      return true;
    }
  return false;
}

}  // namespace

size_t allocated_bytes() { return g_now; }
size_t peak_bytes() { return g_peak; }
void reset_peak() { g_peak = g_now.load(); }

}  // namespace strata::test

#if !defined(__SANITIZE_ADDRESS__)

void* operator new(size_t bytes) {
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  strata::test::count(::malloc_usable_size(memory));
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  strata::test::discount(::malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  const long result = ::syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
  void* memory = reinterpret_cast<void*>(result);
  if (memory != MAP_FAILED && (flags & MAP_ANONYMOUS) != 0 && strata::test::replace(nullptr, memory))
    strata::test::count(bytes);
  return memory;
}
extern "C" int munmap(void* at, size_t bytes) noexcept {
  if (at != nullptr && strata::test::replace(at, nullptr)) strata::test::discount(bytes);
  return static_cast<int>(::syscall(SYS_munmap, at, bytes));
}

#endif
