#include "device/amdsim/simulation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/buffer.h"
#include "base/error.h"
#include "device/amdsim/decoder.h"
#include "device/amdsim/local_memory.h"
#include "device/amdsim/machine.h"

namespace strata {
namespace {

using namespace amdsim;

constexpr Target kTargets[] = {Target::Gfx1100, Target::Gfx1151, Target::Gfx1201, Target::Gfx942};

AcceleratorInfo info_of(Target target) {
  const std::string processor = processor_of(target);
  AcceleratorInfo info;
  info.kind = AcceleratorKind::Simulation;
  info.name = "sim:" + processor;
  info.description = "machine code for " + processor + ", interpreted on the CPU";
  info.device_class = "sim-" + processor;
  info.wave = lanes_of(target);
  info.multiprocessors = 4;
  info.total_bytes = uint64_t{4} << 30;
  info.cache_bytes = 1u << 20;
  info.shared_bytes = LocalMemory::kMost;
  return info;
}

// What streams of one device share. One launch at a time.
struct Shared {
  Shared(Target which, ReplacedCode code)
      : target(which),
        info(info_of(which)),
        replaced(std::move(code)),
        pool(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u))) {}

  std::span<const unsigned char> code_of(const KernelImage& image) const {
    if (const auto found = replaced.find(image.name); found != replaced.end()) return found->second;
    for (const AmdCode& one : image.amd)
      if (std::strcmp(one.target, processor_of(target)) == 0) return one.code;
    return {};
  }
  const Program& program(const KernelImage& image, const char* what) {
    const auto code = code_of(image);
    if (code.empty())
      throw Error(ErrorKind::Device,
                  std::string("this build has no code of ") + image.name + " for " + processor_of(target), what);
    std::unique_ptr<Program>& program = programs[code.data()];
    if (!program) program = std::make_unique<Program>(code);
    return *program;
  }

  const Target target;
  const AcceleratorInfo info;
  const ReplacedCode replaced;
  Regions regions;
  std::mutex mutex;  // of what follows
  ThreadPool pool;
  std::map<const unsigned char*, std::unique_ptr<Program>> programs;
  uint64_t launches = 0, instructions = 0;
  MetBarriers met;
};

class SimulationStream final : public DeviceStream {
 public:
  explicit SimulationStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  void launch(const char* what, const KernelImage& image, const char* kernel, const LaunchShape& shape,
              const void* arguments, size_t bytes) override {
    check_launch(what, kernel, shape, shared_->info.shared_bytes, bytes);
    const std::lock_guard lock(shared_->mutex);
    const Program& program = shared_->program(image, what);
    Launch launch;
    launch.what = what;
    launch.program = &program;
    launch.kernel = program.object().find(kernel);
    if (launch.kernel == nullptr)
      throw Error(ErrorKind::Device, std::string("there is no kernel ") + kernel + " in " + image.name, what);
    launch.shape = shape;
    launch.arguments = arguments;
    launch.argument_bytes = bytes;
    launch.seed = ++shared_->launches;
    launch.met = &shared_->met[image.name];
    shared_->instructions += run_launch(launch, shared_->regions, shared_->pool);
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
  std::shared_ptr<Shared> shared_;
};

class Simulation final : public Accelerator {
 public:
  Simulation(Target target, ReplacedCode code) : shared_(std::make_shared<Shared>(target, std::move(code))) {}

  const AcceleratorInfo& info() const override { return shared_->info; }
  uint64_t instructions() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->instructions;
  }
  MetBarriers met() {
    const std::lock_guard lock(shared_->mutex);
    return std::exchange(shared_->met, {});
  }
  uint64_t free_bytes() const override { return shared_->info.total_bytes; }
  void* allocate(uint64_t bytes) override {
    if (bytes > shared_->info.total_bytes)
      throw Error(ErrorKind::Memory, "not enough memory on " + shared_->info.name + ": " + std::to_string(bytes) +
                                         " bytes are needed, " + std::to_string(shared_->info.total_bytes) +
                                         " are free");
    Buffer buffer(static_cast<size_t>(std::max<uint64_t>(bytes, 1)) + kAlignment);
    std::memset(buffer.data(), 0xff, buffer.bytes());
    const auto address = (reinterpret_cast<uint64_t>(buffer.data()) + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = reinterpret_cast<void*>(address);
    shared_->regions.add(memory, bytes, true);
    const std::lock_guard lock(mutex_);
    buffers_[memory] = std::move(buffer);
    return memory;
  }
  void release(void* memory) noexcept override {
    shared_->regions.remove(memory);
    const std::lock_guard lock(mutex_);
    buffers_.erase(memory);
  }
  void register_host(void* memory, uint64_t bytes) override { shared_->regions.add(memory, bytes, true); }
  void unregister_host(void* memory) noexcept override { shared_->regions.remove(memory); }
  std::unique_ptr<DeviceStream> make_stream() override { return std::make_unique<SimulationStream>(shared_); }
  std::string refusal(const KernelImage& image, int) const override {
    if (!shared_->code_of(image).empty()) return {};
    return std::string("this build has no code of ") + image.name + " for " + processor_of(shared_->target);
  }

 private:
  static constexpr uint64_t kAlignment = 256;  // as devices align
  std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::map<void*, Buffer> buffers_;
};

}  // namespace

std::shared_ptr<Accelerator> open_simulation(const std::string& name, ReplacedCode replaced) {
  std::string known;
  for (const Target target : kTargets) {
    if (name == processor_of(target)) {
      if (const std::string missing = decoder_missing(); !missing.empty())
        throw Error(ErrorKind::Device, "sim:" + name + " decodes with LLVM 19: " + missing + "; install libllvm19");
      return std::make_shared<Simulation>(target, std::move(replaced));
    }
    known += (known.empty() ? "sim:" : ", sim:") + std::string(processor_of(target));
  }
  throw Error(ErrorKind::Usage, "sim:" + name + " is no device: there are " + known);
}

MetBarriers met_barriers(Accelerator& accelerator) {
  auto* simulation = dynamic_cast<Simulation*>(&accelerator);
  return simulation != nullptr ? simulation->met() : MetBarriers{};
}

uint64_t simulated_instructions(const Accelerator& accelerator) {
  const auto* simulation = dynamic_cast<const Simulation*>(&accelerator);
  return simulation != nullptr ? simulation->instructions() : 0;
}

}  // namespace strata
