#include "cache/page_pool.h"

#include <cstring>
#include <map>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"

namespace strata {
namespace {

constexpr uint32_t kPoison = 0x7fdeadc5;  // as f32 a NaN

}  // namespace

struct PagePool::State {
  uint64_t limit = 0, used = 0, kept = 0;
  bool poison = false;
  std::map<size_t, std::vector<Buffer>> free;  // by size
};

struct Block::Memory {
  std::shared_ptr<PagePool::State> pool;
  Buffer buffer;

  Memory(std::shared_ptr<PagePool::State> from, Buffer memory) : pool(std::move(from)), buffer(std::move(memory)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    const size_t bytes = buffer.bytes();
    pool->used -= bytes;
    pool->kept += bytes;
    pool->free[bytes].push_back(std::move(buffer));
  }
};

PagePool::PagePool(uint64_t limit_bytes) : state_(std::make_shared<State>()) { state_->limit = limit_bytes; }

uint64_t PagePool::limit() const { return state_->limit; }
uint64_t PagePool::used() const { return state_->used; }
uint64_t PagePool::kept() const { return state_->kept; }
void PagePool::poison(bool on) { state_->poison = on; }

void PagePool::trim() {
  state_->free.clear();
  state_->kept = 0;
}

std::shared_ptr<Block::Memory> Block::take(const std::shared_ptr<PagePool::State>& pool, size_t bytes) {
  if (bytes > pool->limit || pool->used > pool->limit - bytes)
    throw Error(ErrorKind::Memory, "the memory for sequences is full: " + std::to_string(bytes >> 10) +
                                       " KiB more are needed, " + std::to_string(pool->used >> 20) + " of " +
                                       std::to_string(pool->limit >> 20) + " MiB are in use");
  auto& free = pool->free[bytes];
  Buffer buffer;
  if (free.empty()) {
    // Kept blocks of other sizes count against the limit too.
    if (pool->kept > pool->limit - bytes - pool->used) {
      pool->free.clear();
      pool->kept = 0;
    }
    buffer = Buffer(bytes);
  } else {
    buffer = std::move(free.back());
    free.pop_back();
    pool->kept -= bytes;
  }
  if (pool->poison)
    for (size_t i = 0; i + sizeof kPoison <= bytes; i += sizeof kPoison)
      std::memcpy(static_cast<char*>(buffer.data()) + i, &kPoison, sizeof kPoison);
  pool->used += bytes;
  return std::make_shared<Memory>(pool, std::move(buffer));
}

Block::Block(PagePool& pool, size_t bytes) : memory_(take(pool.state_, bytes)) {}

size_t Block::bytes() const { return memory_ ? memory_->buffer.bytes() : 0; }
const void* Block::data() const { return memory_ ? memory_->buffer.data() : nullptr; }

void* Block::writable() {
  if (memory_ && shared()) {
    const std::shared_ptr<Memory> old = memory_;
    memory_ = take(old->pool, old->buffer.bytes());
    std::memcpy(memory_->buffer.data(), old->buffer.data(), old->buffer.bytes());
  }
  return memory_ ? memory_->buffer.data() : nullptr;
}

void* Block::overwritable() {
  if (memory_ && shared()) memory_ = take(memory_->pool, memory_->buffer.bytes());
  return memory_ ? memory_->buffer.data() : nullptr;
}

}  // namespace strata
