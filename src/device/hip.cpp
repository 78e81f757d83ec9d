#include "device/hip.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "device/amd_code.h"
#include "device/bounded_wait.h"
#include "device/hip_driver.h"

namespace strata {
namespace {

using DriverPointer = std::shared_ptr<const hip::Driver>;

// Left to whatever else the card does: one that drives a desktop loses it when memory is full.
constexpr uint64_t kReservedBytes = uint64_t{256} << 20;

int attribute(const hip::Driver& driver, int index, hip::Attribute which) {
  int value = 0;
  driver.check(driver.device_attribute(&value, which, index), "hipDeviceGetAttribute");
  return value;
}

bool integrated(const hip::Driver& driver, int index) { return attribute(driver, index, hip::kIntegrated) != 0; }

AcceleratorInfo describe_device(const hip::Driver& driver, int index) {
  AcceleratorInfo info;
  info.kind = AcceleratorKind::Hip;
  info.name = "hip:" + std::to_string(index);
  char name[256] = {};
  driver.check(driver.device_name(name, sizeof(name) - 1, index), "hipDeviceGetName");
  info.description = name[0] != 0 ? name : "AMD GPU";
  if (integrated(driver, index)) info.description += " (part of the processor)";
  info.device_class = driver.architecture(index);
  int version = 0;
  driver.check(driver.driver_version(&version), "hipDriverGetVersion");
  info.driver = "HIP " + std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100);
  info.multiprocessors = attribute(driver, index, hip::kMultiprocessors);
  info.wave = attribute(driver, index, hip::kWave);
  info.cache_bytes = static_cast<uint64_t>(std::max(attribute(driver, index, hip::kCacheBytes), 0));
  info.shared_bytes = std::min(static_cast<uint32_t>(attribute(driver, index, hip::kSharedBytes)), 64u << 10);
  size_t total = 0;
  driver.check(driver.device_memory(&total, index), "hipDeviceTotalMem");
  info.total_bytes = total;
  return info;
}

std::string list_targets(const KernelImage& image) {
  std::string list;
  for (const AmdCode& code : image.amd) list += (list.empty() ? "" : ", ") + std::string(code.target);
  return list;
}

// Why the image cannot run on that architecture; empty: it can.
std::string refusal_of(const KernelImage& image, const std::string& architecture) {
  if (image.amd.empty()) return std::string("this build has no device code of ") + image.name + " for AMD GPUs";
  for (const AmdCode& code : image.amd)
    if (architecture == code.target) return {};
  return std::string("this build has no device code of ") + image.name + " for " + architecture + ": it has " +
         list_targets(image);
}

// What a device and its streams share.
struct Shared {
  DriverPointer driver;
  int index;
  AcceleratorInfo info;
  AcceleratorOptions options;
  struct Loaded {
    hip::Module module = nullptr;
    std::map<std::string, uint32_t, std::less<>> argument_bytes;
    std::map<std::string, hip::Function, std::less<>> functions;
  };
  std::map<const KernelImage*, Loaded> images;
  std::map<uintptr_t, uint64_t> device_memory, registered;  // ranges

  Shared(DriverPointer pointer, int at, const AcceleratorOptions& wanted)
      : driver(std::move(pointer)), index(at), options(wanted) {
    select();
    info = describe_device(*driver, index);
  }
  ~Shared() {
    driver->set_device(index);
    for (const auto& [image, loaded] : images)
      if (loaded.module != nullptr) driver->unload_module(loaded.module);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  // Calls act on the device of the calling thread.
  void select() const { check(driver->set_device(index), "hipSetDevice"); }
  void check(hip::Result result, const std::string& call) const { driver->check(result, call); }
  void load(const char* what, const KernelImage& image, Loaded& loaded) const;
  hip::Function function(const char* what, const KernelImage& image, const char* name, size_t bytes);
  // Host memory that the library may read late.
  bool pageable(const void* memory) const {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    for (const auto* ranges : {&device_memory, &registered}) {
      const auto after = ranges->upper_bound(address);
      if (after != ranges->begin() && address - std::prev(after)->first < std::prev(after)->second) return false;
    }
    return true;
  }
};

void Shared::load(const char* what, const KernelImage& image, Loaded& loaded) const {
  if (const std::string refusal = refusal_of(image, info.device_class); !refusal.empty())
    throw Error(ErrorKind::Device, refusal, what);
  const AmdCode* fitting = nullptr;
  for (const AmdCode& code : image.amd)
    if (info.device_class == code.target) fitting = &code;
  for (const AmdKernel& kernel : read_amd_code(fitting->code, image.name).kernels)
    loaded.argument_bytes[kernel.name] = kernel.argument_bytes;
  check(driver->load_module(&loaded.module, fitting->code.data()), std::string(what) + ": loading " + image.name);
}

hip::Function Shared::function(const char* what, const KernelImage& image, const char* name, size_t bytes) {
  Loaded& loaded = images[&image];
  if (loaded.module == nullptr) load(what, image, loaded);
  const auto expected = loaded.argument_bytes.find(std::string_view(name));
  if (expected == loaded.argument_bytes.end())
    throw Error(ErrorKind::Device, std::string("there is no kernel ") + name + " in " + image.name, what);
  if (expected->second != bytes)
    throw Error(ErrorKind::Argument,
                std::string("kernel ") + name + " takes " + std::to_string(expected->second) +
                    " bytes of arguments, it was given " + std::to_string(bytes),
                what);
  hip::Function& function = loaded.functions[name];
  if (function == nullptr)
    check(driver->get_function(&function, loaded.module, name), std::string(what) + ": kernel " + name);
  return function;
}

struct Launch {
  hip::Function function = nullptr;
  LaunchShape shape;
  std::vector<char> arguments;
  const char* what = nullptr;
};

class HipStream final : public DeviceStream {
 public:
  explicit HipStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)), hip_(*shared_->driver) {
    shared_->select();
    shared_->check(hip_.create_stream(&stream_, hip::kStreamNonBlocking), "hipStreamCreateWithFlags");
  }
  ~HipStream() override {
    hip_.set_device(shared_->index);
    hip_.synchronise_stream(stream_);
    for (const hip::Event event : marks_)
      if (event != nullptr) hip_.destroy_event(event);
    hip_.destroy_stream(stream_);
  }

  void launch(const char* what, const KernelImage& image, const char* kernel, const LaunchShape& shape,
              const void* arguments, size_t bytes) override {
    check_launch(what, kernel, shape, shared_->info.shared_bytes, bytes);
    if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
    shared_->select();
    const auto* start = static_cast<const char*>(arguments);
    Launch one{shared_->function(what, image, kernel, bytes), shape, {start, start + bytes}, what};
    if (recording_)
      recorded_.push_back(std::move(one));
    else
      run(one);
  }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    shared_->select();
    flush();
    last_ = "copy";
    // Whether the library has read pageable memory when it returns depends on its version and the size.
    const bool keep = shared_->pageable(from);
    if (keep) {
      const auto* start = static_cast<const char*>(from);
      kept_bytes_ += bytes;
      from = kept_.emplace_back(start, start + bytes).data();
    }
    shared_->check(hip_.copy(to, from, bytes, hip::kCopyAnywhere, stream_), "hipMemcpyAsync");
    if (kept_bytes_ > kMostKept) finish();
  }

  void fill(void* to, int byte, size_t bytes) override {
    if (bytes == 0) return;
    shared_->select();
    flush();
    last_ = "fill";
    shared_->check(hip_.fill8(to, byte, bytes, stream_), "hipMemsetAsync");
  }

  void wait() override {
    shared_->select();
    flush();
    finish();
  }

  void mark(size_t index) override {
    shared_->select();
    flush();
    record_mark(index);
  }

  // 0 where the library's timers cannot be believed.
  double seconds(size_t from, size_t to) override {
    shared_->select();
    if (!timers_checked_) check_timers();
    return timers_work_ ? elapsed(marks_.at(from), marks_.at(to)) : 0;
  }

  void begin_pass() override {
    recorded_.clear();
    recording_ = true;
  }

  void end_pass(const Marks* marks) override {
    shared_->select();
    recording_ = false;
    if (marks != nullptr) record_mark(marks->before);
    flush();
    if (marks != nullptr) record_mark(marks->after);
  }

 private:
  static constexpr size_t kMostKept = size_t{64} << 20;

  void run(Launch& one) {
    last_ = one.what;
    size_t bytes = one.arguments.size();
    auto word = [](uintptr_t value) { return reinterpret_cast<void*>(value); };
    void* extra[] = {word(hip::kBufferPointer), one.arguments.data(), word(hip::kBufferSize), &bytes,
                     word(hip::kBufferEnd)};
    auto size = [](int64_t extent) { return static_cast<unsigned>(extent); };
    const Dim &grid = one.shape.grid, &block = one.shape.block;
    (void)hip_.last_error();  // what a call before left behind is not this launch's
    shared_->check(hip_.launch(one.function, size(grid.x), size(grid.y), size(grid.z), size(block.x), size(block.y),
                               size(block.z), one.shape.shared, stream_, nullptr, extra),
                   std::string("launching a kernel of ") + last_);
  }
  // What was recorded so far, in order with what is not recorded.
  void flush() {
    for (Launch& one : recorded_) run(one);
    recorded_.clear();
  }
  void finish() {
    auto done = [&] {
      const hip::Result result = hip_.query_stream(stream_);
      if (result != hip::kNotReady) shared_->check(result, std::string("the last operator was ") + last_);
      return result == 0;
    };
    wait_bounded(done, shared_->options.wait_seconds, shared_->info.name, last_);
    kept_.clear();
    kept_bytes_ = 0;
  }
  double elapsed(hip::Event from, hip::Event to) {
    float milliseconds = 0;
    shared_->check(hip_.elapsed(&milliseconds, from, to), "hipEventElapsedTime");
    return milliseconds * 1e-3;
  }
  // There are drivers whose events lie close together whatever is between them: by them a fill would be faster than any
  // memory is.
  void check_timers() {
    constexpr size_t kBytes = size_t{64} << 20;
    constexpr double kFastest = 25e12;  // bytes a second
    timers_checked_ = true;
    void* memory = nullptr;
    if (hip_.allocate(&memory, kBytes) != 0) return;
    hip::Event events[2] = {};
    for (hip::Event& event : events) shared_->check(hip_.create_event(&event, 0), "hipEventCreateWithFlags");
    shared_->check(hip_.record_event(events[0], stream_), "hipEventRecord");
    shared_->check(hip_.fill8(memory, 0, kBytes, stream_), "hipMemsetAsync");
    shared_->check(hip_.record_event(events[1], stream_), "hipEventRecord");
    finish();
    timers_work_ = elapsed(events[0], events[1]) > kBytes / kFastest;
    for (const hip::Event event : events) hip_.destroy_event(event);
    hip_.release(memory);
  }
  void record_mark(size_t index) {
    if (marks_.size() <= index) marks_.resize(index + 1, nullptr);
    if (marks_[index] == nullptr) shared_->check(hip_.create_event(&marks_[index], 0), "hipEventCreateWithFlags");
    shared_->check(hip_.record_event(marks_[index], stream_), "hipEventRecord");
  }

  std::shared_ptr<Shared> shared_;
  const hip::Driver& hip_;
  hip::StreamHandle stream_ = nullptr;
  std::vector<hip::Event> marks_;
  std::vector<Launch> recorded_;
  std::deque<std::vector<char>> kept_;  // host memory of copies under way
  size_t kept_bytes_ = 0;
  bool recording_ = false, timers_checked_ = false, timers_work_ = true;
  const char* last_ = "none";
};

class Hip final : public Accelerator {
 public:
  Hip(int index, const AcceleratorOptions& options, const DriverPointer& driver)
      : shared_(std::make_shared<Shared>(driver, index, options)), hip_(*shared_->driver) {}

  const AcceleratorInfo& info() const override { return shared_->info; }

  uint64_t free_bytes() const override {
    shared_->select();
    size_t free = 0, total = 0;
    shared_->check(hip_.memory_info(&free, &total), "hipMemGetInfo");
    return free > kReservedBytes ? free - kReservedBytes : 0;
  }

  void* allocate(uint64_t bytes) override {
    const uint64_t free = free_bytes();
    void* pointer = nullptr;
    const hip::Result result = bytes > free ? hip::kOutOfMemory : hip_.allocate(&pointer, std::max<uint64_t>(bytes, 1));
    if (result == hip::kOutOfMemory)
      throw Error(ErrorKind::Memory, "not enough memory on " + shared_->info.name + ": " + std::to_string(bytes) +
                                         " bytes are needed, " + std::to_string(free) + " are free");
    shared_->check(result, "hipMalloc");
    shared_->device_memory[reinterpret_cast<uintptr_t>(pointer)] = std::max<uint64_t>(bytes, 1);
    return pointer;
  }

  void release(void* memory) noexcept override {
    hip_.set_device(shared_->index);
    hip_.release(memory);
    shared_->device_memory.erase(reinterpret_cast<uintptr_t>(memory));
  }

  void register_host(void* memory, uint64_t bytes) override {
    shared_->select();
    shared_->check(hip_.register_host(memory, bytes, hip::kHostMapped), "hipHostRegister");
    void* there = nullptr;
    const hip::Result result = hip_.host_on_device(&there, memory, 0);
    if (result != 0 || there != memory) {
      hip_.unregister_host(memory);
      shared_->check(result, "hipHostGetDevicePointer");
      throw Error(ErrorKind::Device, shared_->info.name + " sees host memory at other addresses than the processor",
                  "hipHostGetDevicePointer");
    }
    shared_->registered[reinterpret_cast<uintptr_t>(memory)] = bytes;
  }

  void unregister_host(void* memory) noexcept override {
    hip_.set_device(shared_->index);
    hip_.unregister_host(memory);
    shared_->registered.erase(reinterpret_cast<uintptr_t>(memory));
  }

  std::unique_ptr<DeviceStream> make_stream() override { return std::make_unique<HipStream>(shared_); }

  std::string refusal(const KernelImage& image, int) const override {
    return refusal_of(image, shared_->info.device_class);
  }

 private:
  std::shared_ptr<Shared> shared_;
  const hip::Driver& hip_;
};

int count_devices(const hip::Driver& driver) {
  int count = 0;
  const hip::Result result = driver.device_count(&count);
  if (result == hip::kNoDevice) return 0;
  driver.check(result, "hipGetDeviceCount");
  return count;
}

void check_architecture(const Accelerator& device) {
  const std::string targets = STRATA_AMD_TARGETS, &own = device.info().device_class;
  if (targets.empty()) throw Error(ErrorKind::Device, "this build has no device code for AMD GPUs", device.info().name);
  if ((", " + targets + ",").find(", " + own + ",") == std::string::npos)
    throw Error(ErrorKind::Device, device.info().description + " is " + own + ", this build has code for " + targets,
                device.info().name);
}

}  // namespace

std::vector<AcceleratorInfo> list_hip(std::string& missing, std::vector<uint64_t>& free_bytes,
                                      const DriverPointer& driver) {
  std::vector<AcceleratorInfo> list;
  if (missing = driver->missing; !missing.empty()) return list;
  try {
    const int count = count_devices(*driver);
    for (int i = 0; i < count; ++i) {
      const Hip one(i, {}, driver);
      list.push_back(one.info());
      free_bytes.push_back(one.free_bytes());
    }
    if (count == 0) missing = "the HIP library knows no card";
  } catch (const Error& error) {
    missing = error.what();
  }
  return list;
}

std::shared_ptr<Accelerator> open_hip(int index, const AcceleratorOptions& options, const DriverPointer& driver) {
  if (!driver->missing.empty()) throw Error(ErrorKind::Device, driver->missing, "hip");
  const int count = count_devices(*driver);
  if (index >= count || count == 0)
    throw Error(ErrorKind::Device, "there is no hip:" + std::to_string(std::max(index, 0)) +
                                       ", the HIP library knows " + std::to_string(count) +
                                       (count == 1 ? " card" : " cards"));
  if (index < 0) {
    index = 0;
    while (index + 1 < count && integrated(*driver, index)) ++index;
    if (integrated(*driver, index)) index = 0;
  }
  auto device = std::make_shared<Hip>(index, options, driver);
  check_architecture(*device);
  return device;
}

}  // namespace strata
