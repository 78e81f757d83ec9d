#include "device/cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "device/bounded_wait.h"
#include "device/cuda_driver.h"

namespace strata {
namespace {

using cuda::check;
using cuda::Driver;
using cuda::driver;

int attribute(cuda::Device device, cuda::Attribute which) {
  int value = 0;
  check(driver().device_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

AcceleratorInfo describe_device(int index, cuda::Device device) {
  AcceleratorInfo info;
  info.kind = AcceleratorKind::Cuda;
  info.name = "cuda:" + std::to_string(index);
  char name[256] = {};
  check(driver().device_name(name, sizeof(name) - 1, device), "cuDeviceGetName");
  info.description = name;
  info.arch = 10 * attribute(device, cuda::kMajor) + attribute(device, cuda::kMinor);
  info.device_class = "sm_" + std::to_string(info.arch);
  int version = 0;
  check(driver().driver_version(&version), "cuDriverGetVersion");
  info.driver = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  info.multiprocessors = attribute(device, cuda::kMultiprocessors);
  info.cache_bytes = static_cast<uint64_t>(attribute(device, cuda::kCacheBytes));
  info.shared_bytes = static_cast<uint32_t>(attribute(device, cuda::kSharedBytesOptIn));
  size_t total = 0;
  check(driver().device_memory(&total, device), "cuDeviceTotalMem");
  info.total_bytes = total;
  return info;
}

// The primary context of a device, kept while anything of it lives.
struct Shared {
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  AcceleratorInfo info;
  AcceleratorOptions options;
  struct Loaded {
    cuda::Module module = nullptr;
    std::map<std::string, cuda::Function, std::less<>> functions;
  };
  std::map<const KernelImage*, Loaded> images;

  Shared(int index, const AcceleratorOptions& wanted) : options(wanted) {
    check(driver().device_get(&device, index), "cuDeviceGet");
    info = describe_device(index, device);
    check(driver().retain_primary(&context, device), "cuDevicePrimaryCtxRetain");
  }
  ~Shared() {
    if (context == nullptr) return;
    {
      driver().push_context(context);
      for (const auto& [image, loaded] : images)
        if (loaded.module != nullptr) driver().unload_module(loaded.module);
      cuda::Context ignored = nullptr;
      driver().pop_context(&ignored);
    }
    driver().release_primary(device);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  cuda::Function function(const char* what, const KernelImage& image, const char* name);
  // Whether the machine code for this card waits in begin_early, and the driver knows such edges.
  bool early() const { return info.arch / 10 == 9 && driver().add_dependencies != nullptr; }
};

// Calls of the driver act on the context of the calling thread.
class Current {
 public:
  explicit Current(const Shared& shared) { check(driver().push_context(shared.context), "cuCtxPushCurrent"); }
  ~Current() {
    cuda::Context ignored = nullptr;
    driver().pop_context(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

cuda::Function Shared::function(const char* what, const KernelImage& image, const char* name) {
  Loaded& loaded = images[&image];
  const auto found = loaded.functions.find(std::string_view(name));
  if (found != loaded.functions.end()) return found->second;
  if (image.code.empty())
    throw Error(ErrorKind::Device, std::string("this build has no device code of ") + image.name, what);
  if (loaded.module == nullptr)
    check(driver().load_module(&loaded.module, image.code.data()), std::string(what) + ": loading " + image.name);
  cuda::Function function = nullptr;
  check(driver().get_function(&function, loaded.module, name), std::string(what) + ": kernel " + name);
  check(driver().set_function_attribute(function, cuda::kMaxSharedOfFunction, static_cast<int>(info.shared_bytes)),
        std::string(what) + ": shared memory of " + name);
  loaded.functions[name] = function;
  return function;
}

struct Launch {
  cuda::Function function = nullptr;
  LaunchShape shape;
  std::vector<char> arguments;

  bool operator==(const Launch& other) const {
    auto same = [](const Dim& a, const Dim& b) { return a.x == b.x && a.y == b.y && a.z == b.z; };
    return function == other.function && same(shape.grid, other.shape.grid) && same(shape.block, other.shape.block) &&
           shape.shared == other.shape.shared && arguments == other.arguments;
  }
};

cuda::KernelNode node_of(const Launch& launch, void** parameters) {
  auto size = [](int64_t extent) { return static_cast<unsigned>(extent); };
  const Dim &grid = launch.shape.grid, &block = launch.shape.block;
  return {launch.function, size(grid.x),        size(grid.y), size(grid.z), size(block.x), size(block.y),
          size(block.z),   launch.shape.shared, parameters,   nullptr,      nullptr,       nullptr};
}

// Launches of a pass as a chain of nodes, kept for passes to come that differ in arguments and sizes alone.
class PassGraph {
 public:
  ~PassGraph() { clear(); }
  PassGraph() = default;
  PassGraph(const PassGraph&) = delete;
  PassGraph& operator=(const PassGraph&) = delete;

  // Whether a pass differs from the one before in arguments and sizes alone.
  bool fits(const std::vector<Launch>& launches) const {
    bool alike = launches.size() == nodes_.size();
    for (size_t i = 0; alike && i < launches.size(); ++i)
      alike = launches[i].function == launches_[i].function && launches[i].shape.early == launches_[i].shape.early;
    return alike;
  }
  // For launch().
  void prepare(std::vector<Launch>& launches) {
    const bool alike = fits(launches);
    if (!alike) build(launches);
    for (size_t i = 0; alike && i < launches.size(); ++i) {
      if (launches[i] == launches_[i]) continue;
      void* parameters[] = {launches[i].arguments.data()};
      const cuda::KernelNode node = node_of(launches[i], parameters);
      check(driver().set_kernel_node(exec_, nodes_[i], &node), "cuGraphExecKernelNodeSetParams");
    }
    std::swap(launches_, launches);
  }
  void launch(cuda::StreamHandle stream) { check(driver().launch_graph(exec_, stream), "cuGraphLaunch"); }
  void clear() {
    if (exec_ != nullptr) driver().destroy_graph_exec(exec_);
    if (graph_ != nullptr) driver().destroy_graph(graph_);
    exec_ = nullptr;
    graph_ = nullptr;
    nodes_.clear();
  }

 private:
  void build(std::vector<Launch>& launches) {
    clear();
    check(driver().create_graph(&graph_, 0), "cuGraphCreate");
    for (Launch& launch : launches) {
      void* parameters[] = {launch.arguments.data()};
      const cuda::KernelNode node = node_of(launch, parameters);
      cuda::GraphNode added = nullptr;
      const cuda::GraphNode* before = nodes_.empty() ? nullptr : &nodes_.back();
      const bool early = launch.shape.early && before != nullptr;
      check(
          driver().add_kernel_node(&added, graph_, early ? nullptr : before, before == nullptr || early ? 0 : 1, &node),
          "cuGraphAddKernelNode");
      if (early)
        check(driver().add_dependencies(graph_, before, &added, &cuda::kProgrammaticEdge, 1), "cuGraphAddDependencies");
      nodes_.push_back(added);
    }
    check(driver().instantiate_graph(&exec_, graph_, 0), "cuGraphInstantiate");
  }

  cuda::Graph graph_ = nullptr;
  cuda::GraphExec exec_ = nullptr;
  std::vector<cuda::GraphNode> nodes_;
  std::vector<Launch> launches_;
};

// Passes of a few kinds take turns: where blocks of positions are completed, windows of drafts, prompts.
class PassGraphs {
 public:
  PassGraph& for_pass(const std::vector<Launch>& launches) {
    ++clock_;
    Kept* oldest = &graphs_[0];
    for (Kept& kept : graphs_) {
      if (kept.graph.fits(launches)) {
        kept.used = clock_;
        return kept.graph;
      }
      if (kept.used < oldest->used) oldest = &kept;
    }
    oldest->used = clock_;
    return oldest->graph;
  }
  void clear() {
    for (Kept& kept : graphs_) kept.graph.clear();
  }

 private:
  struct Kept {
    PassGraph graph;
    uint64_t used = 0;
  };
  std::array<Kept, 8> graphs_;
  uint64_t clock_ = 0;
};

class CudaStream final : public DeviceStream {
 public:
  explicit CudaStream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    const Current current(*shared_);
    check(driver().create_stream(&stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
  }
  ~CudaStream() override {
    driver().push_context(shared_->context);
    driver().synchronise_stream(stream_);
    graphs_.clear();
    for (const cuda::Event event : marks_)
      if (event != nullptr) driver().destroy_event(event);
    driver().destroy_stream(stream_);
    cuda::Context ignored = nullptr;
    driver().pop_context(&ignored);
  }

  void launch(const char* what, const KernelImage& image, const char* kernel, const LaunchShape& shape,
              const void* arguments, size_t bytes) override {
    check_launch(what, kernel, shape, shared_->info.shared_bytes, bytes);
    if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
    const Current current(*shared_);
    const auto* start = static_cast<const char*>(arguments);
    Launch one{shared_->function(what, image, kernel), shape, {start, start + bytes}};
    one.shape.early = shape.early && shared_->early();
    last_ = what;
    if (recording_) {
      recorded_.push_back(std::move(one));
      return;
    }
    run(one);
  }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    const Current current(*shared_);
    flush();
    last_ = "copy";
    // The driver has read pageable memory when the call returns, whatever its size.
    check(driver().copy(reinterpret_cast<cuda::Pointer>(to), reinterpret_cast<cuda::Pointer>(from), bytes, stream_),
          "cuMemcpyAsync");
  }

  void fill(void* to, int byte, size_t bytes) override {
    if (bytes == 0) return;
    const Current current(*shared_);
    flush();
    last_ = "fill";
    check(driver().fill8(reinterpret_cast<cuda::Pointer>(to), static_cast<unsigned char>(byte), bytes, stream_),
          "cuMemsetD8Async");
  }

  void wait() override {
    const Current current(*shared_);
    flush();
    auto done = [&] {
      const cuda::Result result = driver().query_stream(stream_);
      if (result != cuda::kNotReady) check(result, std::string("the last operator was ") + last_);
      return result == 0;
    };
    wait_bounded(done, shared_->options.wait_seconds, shared_->info.name, last_);
  }

  void mark(size_t index) override {
    const Current current(*shared_);
    flush();
    record_mark(index);
  }

  void record_mark(size_t index) {
    if (marks_.size() <= index) marks_.resize(index + 1, nullptr);
    if (marks_[index] == nullptr) check(driver().create_event(&marks_[index], 0), "cuEventCreate");
    check(driver().record_event(marks_[index], stream_), "cuEventRecord");
  }

  double seconds(size_t from, size_t to) override {
    const Current current(*shared_);
    float milliseconds = 0;
    check(driver().elapsed(&milliseconds, marks_.at(from), marks_.at(to)), "cuEventElapsedTime");
    return milliseconds * 1e-3;
  }

  void begin_pass() override {
    recorded_.clear();
    recording_ = true;
    whole_ = true;
  }

  void end_pass(const Marks* marks) override {
    const Current current(*shared_);
    recording_ = false;
    // A pass that was cut by copies is no graph worth keeping.
    PassGraph* const graph = whole_ && !recorded_.empty() ? &graphs_.for_pass(recorded_) : nullptr;
    if (graph != nullptr) graph->prepare(recorded_);
    if (marks != nullptr) record_mark(marks->before);
    if (graph != nullptr)
      graph->launch(stream_);
    else
      flush();
    if (marks != nullptr) record_mark(marks->after);
    recorded_.clear();
  }

 private:
  void run(Launch& one) {
    void* parameters[] = {one.arguments.data()};
    auto size = [](int64_t extent) { return static_cast<unsigned>(extent); };
    const Dim &grid = one.shape.grid, &block = one.shape.block;
    check(driver().launch(one.function, size(grid.x), size(grid.y), size(grid.z), size(block.x), size(block.y),
                          size(block.z), one.shape.shared, stream_, parameters, nullptr),
          std::string("launching a kernel of ") + last_);
  }
  // What was recorded so far, in order with what is not recorded.
  void flush() {
    if (recorded_.empty()) return;
    whole_ = false;
    for (Launch& one : recorded_) run(one);
    recorded_.clear();
  }

  std::shared_ptr<Shared> shared_;
  cuda::StreamHandle stream_ = nullptr;
  std::vector<cuda::Event> marks_;
  std::vector<Launch> recorded_;
  bool recording_ = false, whole_ = true;
  PassGraphs graphs_;
  const char* last_ = "none";
};

class Cuda final : public Accelerator {
 public:
  Cuda(int index, const AcceleratorOptions& options) : shared_(std::make_shared<Shared>(index, options)) {}

  const AcceleratorInfo& info() const override { return shared_->info; }

  uint64_t free_bytes() const override {
    const Current current(*shared_);
    size_t free = 0, total = 0;
    check(driver().memory_info(&free, &total), "cuMemGetInfo");
    return free;
  }

  void* allocate(uint64_t bytes) override {
    const Current current(*shared_);
    cuda::Pointer pointer = 0;
    const cuda::Result result = driver().allocate(&pointer, std::max<uint64_t>(bytes, 1));
    if (result == cuda::kOutOfMemory)
      throw Error(ErrorKind::Memory, "not enough memory on " + shared_->info.name + ": " + std::to_string(bytes) +
                                         " bytes are needed, " + std::to_string(free_bytes()) + " are free");
    check(result, "cuMemAlloc");
    return reinterpret_cast<void*>(pointer);
  }

  void release(void* memory) noexcept override {
    driver().push_context(shared_->context);
    driver().release(reinterpret_cast<cuda::Pointer>(memory));
    cuda::Context ignored = nullptr;
    driver().pop_context(&ignored);
  }

  void register_host(void* memory, uint64_t bytes) override {
    const Current current(*shared_);
    check(driver().register_host(memory, bytes, 0), "cuMemHostRegister");
  }

  void unregister_host(void* memory) noexcept override {
    driver().push_context(shared_->context);
    driver().unregister_host(memory);
    cuda::Context ignored = nullptr;
    driver().pop_context(&ignored);
  }

  std::unique_ptr<DeviceStream> make_stream() override { return std::make_unique<CudaStream>(shared_); }

  std::string refusal(const KernelImage& image, int arch) const override {
    if (image.vendor == Vendor::Amd) return "it runs on AMD GPUs alone";
    if (image.code.empty()) return std::string("this build has no device code of ") + image.name;
    if (shared_->info.arch < arch)
      return "it needs sm_" + std::to_string(arch) + ", " + shared_->info.name + " is " + shared_->info.device_class;
    return {};
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::vector<AcceleratorInfo> list_cuda(std::string& missing, std::vector<uint64_t>& free_bytes) {
  std::vector<AcceleratorInfo> list;
  if (missing = driver().missing; !missing.empty()) return list;
  try {
    int count = 0;
    check(driver().device_count(&count), "cuDeviceGetCount");
    for (int i = 0; i < count; ++i) {
      const std::shared_ptr<Accelerator> one = open_cuda(i, {});
      list.push_back(one->info());
      free_bytes.push_back(one->free_bytes());
    }
    if (count == 0) missing = "the driver knows no card";
  } catch (const Error& error) {
    missing = error.what();
  }
  return list;
}

std::shared_ptr<Accelerator> open_cuda(int index, const AcceleratorOptions& options) {
  if (!driver().missing.empty()) throw Error(ErrorKind::Device, driver().missing, "cuda");
  int count = 0;
  check(driver().device_count(&count), "cuDeviceGetCount");
  if (index < 0 || index >= count)
    throw Error(ErrorKind::Device, "there is no cuda:" + std::to_string(index) + ", the driver knows " +
                                       std::to_string(count) + (count == 1 ? " card" : " cards"));
  return std::make_shared<Cuda>(index, options);
}

}  // namespace strata
