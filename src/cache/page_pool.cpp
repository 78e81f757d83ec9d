#include "cache/page_pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"

namespace strata {
namespace {

constexpr uint32_t kPoison = 0x7fdeadc5;  // as f32 a NaN

}  // namespace

struct PagePool::State {
  // A block's place in memory: of its own, or on a device a part of a slab, since taking memory there is slow.
  struct Place {
    SpaceMemory own;
    void* data = nullptr;
    size_t bytes = 0;
  };

  MemorySpace space;
  uint64_t limit = 0, used = 0, kept = 0;
  bool poison = false;
  std::map<size_t, std::vector<Place>> free;  // by size
  std::vector<SpaceMemory> slabs;
  std::string folder = kDefaultTierFolder;
  std::optional<FileTier> file;

  Place take(size_t bytes);
  void add_slab(size_t bytes);
};

struct Block::Memory {
  std::shared_ptr<PagePool::State> pool;
  size_t bytes;
  PagePool::State::Place place;  // Tier::Memory
  FileTier::Slot slot;           // Tier::File
  int holders = 0;

  Memory(std::shared_ptr<PagePool::State> from, PagePool::State::Place memory)
      : pool(std::move(from)), bytes(memory.bytes), place(std::move(memory)) {}
  Memory(std::shared_ptr<PagePool::State> from, const FileTier::Slot& in_file, size_t size)
      : pool(std::move(from)), bytes(size), slot(in_file) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (tier() == Tier::File) {
      pool->file->give_back(slot);
      return;
    }
    pool->used -= bytes;
    pool->kept += bytes;
    pool->free[bytes].push_back(std::move(place));
  }

  Tier tier() const { return slot.data != nullptr ? Tier::File : Tier::Memory; }
  void* data() const { return tier() == Tier::File ? slot.data : place.data; }
};

PagePool::PagePool(uint64_t limit_bytes, MemorySpace space) : state_(std::make_shared<State>()) {
  state_->limit = limit_bytes;
  state_->space = std::move(space);
}

const MemorySpace& PagePool::space() const { return state_->space; }
uint64_t PagePool::limit() const { return state_->limit; }
uint64_t PagePool::used() const { return state_->used; }
uint64_t PagePool::kept() const { return state_->kept; }
void PagePool::poison(bool on) { state_->poison = on; }
void PagePool::set_folder(std::string folder) { state_->folder = std::move(folder); }
FileTierStats PagePool::file() const { return state_->file ? state_->file->stats() : FileTierStats{}; }

void PagePool::trim() {
  if (state_->file) state_->file->trim();
  if (!state_->space.on_host()) return;  // parts of slabs
  state_->free.clear();
  state_->kept = 0;
}

namespace {

void fill_with_poison(const MemorySpace& space, void* memory, size_t bytes) {
  if (!space.on_host()) return space.fill(memory, 0xff, bytes);
  for (size_t i = 0; i + sizeof kPoison <= bytes; i += sizeof kPoison)
    std::memcpy(static_cast<char*>(memory) + i, &kPoison, sizeof kPoison);
}

}  // namespace

void PagePool::State::add_slab(size_t bytes) {
  constexpr size_t kSlab = size_t{4} << 20;
  const size_t step = (bytes + 255) / 256 * 256, count = std::max<size_t>(1, kSlab / step);
  slabs.emplace_back(space, step * count);
  auto& own = free[bytes];
  for (size_t i = count; i-- > 0;) own.push_back({{}, static_cast<char*>(slabs.back().data()) + i * step, bytes});
  kept += bytes * count;
}

PagePool::State::Place PagePool::State::take(size_t bytes) {
  if (bytes > limit || used > limit - bytes)
    throw Error(ErrorKind::Memory, "the memory for sequences is full: " + std::to_string(bytes >> 10) +
                                       " KiB more are needed, " + std::to_string(used >> 20) + " of " +
                                       std::to_string(limit >> 20) + " MiB are in use");
  Place place;
  if (!space.on_host() && free[bytes].empty()) add_slab(bytes);
  if (auto& own = free[bytes]; !own.empty()) {
    place = std::move(own.back());
    own.pop_back();
    kept -= bytes;
  } else {
    // Kept blocks of other sizes count against the limit too.
    if (kept > limit - bytes - used) {
      free.clear();
      kept = 0;
    }
    SpaceMemory memory(space, bytes);
    void* const data = memory.data();
    place = {std::move(memory), data, bytes};
  }
  used += bytes;
  return place;
}

std::shared_ptr<Block::Memory> Block::take(const std::shared_ptr<PagePool::State>& pool, size_t bytes, Tier tier) {
  std::shared_ptr<Memory> memory;
  if (tier == Tier::File) {
    if (!pool->file) pool->file.emplace(pool->folder);
    memory = std::make_shared<Memory>(pool, pool->file->take(bytes), bytes);
  } else {
    memory = std::make_shared<Memory>(pool, pool->take(bytes));
  }
  if (pool->poison) fill_with_poison(pool->space, memory->data(), bytes);
  return memory;
}

Block::Block(PagePool& pool, size_t bytes, Tier tier) : memory_(take(pool.state_, bytes, tier)) {}

size_t Block::bytes() const { return memory_ ? memory_->bytes : 0; }
const void* Block::data() const { return memory_ ? memory_->data() : nullptr; }

void* Block::writable() {
  if (memory_ && shared()) {
    const std::shared_ptr<Memory> old = memory_;
    memory_ = take(old->pool, old->bytes, old->tier());
    old->pool->space.copy(memory_->data(), old->data(), old->bytes);
  }
  return memory_ ? memory_->data() : nullptr;
}

void* Block::overwritable() {
  if (memory_ && shared()) memory_ = take(memory_->pool, memory_->bytes, memory_->tier());
  return memory_ ? memory_->data() : nullptr;
}

void Block::hold() const { ++memory_->holders; }
void Block::let_go() const { --memory_->holders; }

void Block::bring(std::span<const Block* const> blocks) {
  std::vector<FileTier::Slot*> slots;
  for (const Block* block : blocks)
    if (block->memory_->tier() == Tier::File && block->memory_->holders > 0) slots.push_back(&block->memory_->slot);
  if (!slots.empty()) blocks.front()->memory_->pool->file->bring(slots);
}

void Block::release(std::span<const Block* const> blocks) {
  std::vector<FileTier::Slot*> slots;
  for (const Block* block : blocks)
    if (block->memory_->tier() == Tier::File && block->memory_->holders == 0) slots.push_back(&block->memory_->slot);
  if (!slots.empty()) blocks.front()->memory_->pool->file->release(slots);
}

}  // namespace strata
