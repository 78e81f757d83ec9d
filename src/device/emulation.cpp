#include "device/emulation.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/half.h"
#include "base/random.h"
#include "device/fiber.h"
#include "device/kernel.h"

namespace strata {
namespace {

constexpr int kWave = gpu::kWave;

struct AsyncCopy {
  void* to;
  const void* from;
  int group;
};

struct Lane {
  Fiber fiber;
  gpu::EmulatedThread thread;
  bool ended = false;
  std::vector<AsyncCopy> copies;
  int group = 0;  // of copies to come
};

struct WaveState {
  int live = 0, arrived = 0;
  uint64_t generation = 0;
  char slots[2][kWave][gpu::kMaxExchange];
};

// One block at a time.
class BlockRunner {
 public:
  BlockRunner(const char* what, const EmulatedKernel& kernel, const LaunchShape& shape, const void* arguments,
              uint64_t seed)
      : what_(what),
        kernel_(kernel),
        early_(shape.early),
        arguments_(arguments),
        random_(seed),
        shared_(std::max<size_t>(shape.shared, 64)),
        lanes_(static_cast<size_t>(shape.block.x)),
        waves_((lanes_.size() + kWave - 1) / kWave) {}

  void run(int64_t x, int64_t y, int64_t z, int64_t blocks_x);

  void barrier();
  void exchange(const void* own, void* all, size_t bytes);
  Lane& lane() { return *current_; }

 private:
  void enter(Lane& lane);
  void yield() { current_->fiber.leave(); }
  void leave_wave(WaveState& wave);
  WaveState& wave_of(const Lane& lane) { return waves_[static_cast<size_t>(lane.thread.thread / kWave)]; }

  const char* what_;
  const EmulatedKernel& kernel_;
  const bool early_;
  const void* arguments_;
  Random random_;
  Buffer shared_;
  std::vector<Lane> lanes_;
  std::vector<WaveState> waves_;
  std::vector<size_t> order_;
  Lane* current_ = nullptr;
  int live_ = 0, arrived_ = 0;
  uint64_t generation_ = 0, progress_ = 0;
  bool unbegun_ = false;  // a thread ended without begin_early
};

// Kernels have no argument for the state of their thread: it belongs to the thread of the processor that runs them.
thread_local BlockRunner* runner = nullptr;

void BlockRunner::enter(Lane& lane) {
  current_ = &lane;
  lane.fiber.enter();
}

void BlockRunner::run(int64_t x, int64_t y, int64_t z, int64_t blocks_x) {
  runner = this;
  std::memset(shared_.data(), 0xff, shared_.bytes());  // NaN: nobody wrote it
  live_ = static_cast<int>(lanes_.size());
  arrived_ = 0;
  for (WaveState& wave : waves_) wave.live = wave.arrived = 0;
  order_.resize(lanes_.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    order_[i] = i;
    lane.thread = {static_cast<int>(i), live_, x, y, z, blocks_x, static_cast<char*>(shared_.data()), false};
    lane.ended = false;
    lane.copies.clear();
    lane.group = 0;
    ++wave_of(lane).live;
    lane.fiber.start([this, &lane] {
      kernel_.run(arguments_);
      lane.ended = true;
      unbegun_ = unbegun_ || !lane.thread.begun;
      ++progress_;
      if (--live_ > 0 && arrived_ == live_) arrived_ = 0, ++generation_;
      leave_wave(wave_of(lane));
    });
  }
  for (int remaining = live_; remaining > 0;) {
    for (size_t i = order_.size(); i-- > 1;)
      std::swap(order_[i], order_[static_cast<size_t>(random_.below(static_cast<int64_t>(i) + 1))]);
    const uint64_t before = progress_;
    for (const size_t i : order_) {
      if (lanes_[i].ended) continue;
      enter(lanes_[i]);
      remaining -= lanes_[i].ended;
    }
    if (progress_ == before)
      throw Error(ErrorKind::Device, std::string("threads of kernel ") + kernel_.name + " wait for each other in vain",
                  what_);
  }
  runner = nullptr;
  if (early_ && unbegun_)
    throw Error(ErrorKind::Device, std::string("kernel ") + kernel_.name + " does not wait for the one before", what_);
}

void BlockRunner::leave_wave(WaveState& wave) {
  if (--wave.live > 0 && wave.arrived == wave.live) wave.arrived = 0, ++wave.generation;
}

void BlockRunner::barrier() {
  ++progress_;
  if (++arrived_ == live_) {
    arrived_ = 0;
    ++generation_;
    return;
  }
  for (const uint64_t before = generation_; generation_ == before;) yield();
}

void BlockRunner::exchange(const void* own, void* all, size_t bytes) {
  ++progress_;
  WaveState& wave = wave_of(*current_);
  const uint64_t before = wave.generation;
  auto& slots = wave.slots[before % 2];
  if (wave.arrived == 0) std::memset(slots, 0, sizeof(slots));
  std::memcpy(slots[current_->thread.thread % kWave], own, bytes);
  if (++wave.arrived == wave.live) {
    wave.arrived = 0;
    ++wave.generation;
  } else {
    while (wave.generation == before) yield();
  }
  for (int i = 0; i < kWave; ++i)
    std::memcpy(static_cast<char*>(all) + static_cast<size_t>(i) * bytes, slots[i], bytes);
}

// Host and device memory are the same here.
class EmulationStream final : public DeviceStream {
 public:
  void launch(const char* what, const KernelImage& image, const char* kernel, const LaunchShape& shape,
              const void* arguments, size_t bytes) override {
    check_launch(what, kernel, shape, emulation_info().shared_bytes, bytes);
    for (const EmulatedKernel& one : image.emulated)
      if (std::strcmp(one.name, kernel) == 0) return run_emulated(what, one, shape, arguments, ++launches_);
    throw Error(ErrorKind::Device, std::string("there is no kernel ") + kernel + " in " + image.name, what);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  void fill(void* to, int byte, size_t bytes) override {
    if (bytes > 0) std::memset(to, byte, bytes);
  }
  void wait() override {}
  void mark(size_t) override {}
  double seconds(size_t, size_t) override { return 0; }
  void end_pass(const Marks*) override {}

 private:
  uint64_t launches_ = 0;
};

class Emulation final : public Accelerator {
 public:
  const AcceleratorInfo& info() const override { return info_; }
  explicit Emulation(uint64_t bytes) { info_.total_bytes = bytes; }
  uint64_t free_bytes() const override { return info_.total_bytes - used_; }
  void* allocate(uint64_t bytes) override {
    if (bytes > free_bytes())
      throw Error(ErrorKind::Memory, "not enough memory on emu: " + std::to_string(bytes) + " bytes are needed, " +
                                         std::to_string(free_bytes()) + " are free");
    auto* memory = new Buffer(static_cast<size_t>(bytes) + kPrefix);
    used_ += bytes;
    std::memset(memory->data(), 0xff, memory->bytes());
    std::memcpy(memory->data(), &memory, sizeof(memory));
    return static_cast<char*>(memory->data()) + kPrefix;
  }
  void release(void* memory) noexcept override {
    Buffer* buffer = nullptr;
    std::memcpy(&buffer, static_cast<char*>(memory) - kPrefix, sizeof(buffer));
    used_ -= buffer->bytes() - kPrefix;
    delete buffer;
  }
  void register_host(void*, uint64_t) override {}
  void unregister_host(void*) noexcept override {}
  std::unique_ptr<DeviceStream> make_stream() override { return std::make_unique<EmulationStream>(); }
  std::string refusal(const KernelImage& image, int) const override {
    if (image.vendor == Vendor::Amd) return "it runs on AMD GPUs alone";
    return image.emulated.empty() ? std::string("no emulation of ") + image.name : std::string();
  }

 private:
  static constexpr size_t kPrefix = 256;  // before each allocation: its owner; keeps the alignment of a device
  AcceleratorInfo info_ = emulation_info();
  std::atomic<uint64_t> used_ = 0;
};

}  // namespace

namespace gpu {

const EmulatedThread& emulated_thread() { return runner->lane().thread; }
void emulated_barrier() { runner->barrier(); }
void emulated_exchange(const void* own, void* all, size_t bytes) { runner->exchange(own, all, bytes); }

void emulated_copy16(void* shared, const void* global) {
  Lane& lane = runner->lane();
  lane.copies.push_back({shared, global, lane.group});
}
void emulated_copy_group() { ++runner->lane().group; }
void emulated_copy_wait(int groups) {
  Lane& lane = runner->lane();
  std::erase_if(lane.copies, [&](const AsyncCopy& copy) {
    if (copy.group >= lane.group - groups) return false;
    std::memcpy(copy.to, copy.from, 16);
    return true;
  });
}

float f32_of_f16(uint16_t bits) { return f16_to_f32(bits); }
uint16_t f16_of_f32(float value) { return f32_to_f16(value); }
uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  auto half = [](uint32_t pair, int shift) { return bf16_to_f32(static_cast<uint16_t>(pair >> shift)); };
  uint32_t result = 0;
  for (int shift : {0, 16}) {  // the product is exact in f32; the sum in f64: one rounding
    const double sum = static_cast<double>(half(a, shift) * half(b, shift)) + static_cast<double>(half(c, shift));
    result |= static_cast<uint32_t>(f32_to_bf16(static_cast<float>(sum))) << shift;
  }
  return result;
}

}  // namespace gpu

AcceleratorInfo emulation_info() {
  AcceleratorInfo info;
  info.kind = AcceleratorKind::Emulation;
  info.name = "emu";
  info.description = "kernels on the CPU, from their source";
  info.device_class = "emu";
  info.multiprocessors = 4;
  info.total_bytes = uint64_t{4} << 30;
  info.cache_bytes = 1u << 20;
  info.shared_bytes = 227u << 10;
  return info;
}

std::shared_ptr<Accelerator> make_emulation(uint64_t bytes) { return std::make_shared<Emulation>(bytes); }

void run_emulated(const char* what, const EmulatedKernel& kernel, const LaunchShape& shape, const void* arguments,
                  uint64_t seed) {
  BlockRunner block(what, kernel, shape, arguments, seed);
  for (int64_t z = 0; z < shape.grid.z; ++z)
    for (int64_t y = 0; y < shape.grid.y; ++y)
      for (int64_t x = 0; x < shape.grid.x; ++x) block.run(x, y, z, shape.grid.x);
}

}  // namespace strata
