// A device with memory of its own (a GPU, or its emulation): what the host asks of it. Pointers into its memory are in
// one address space with those of the host, but only host memory may be read by the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace strata {

enum class AcceleratorKind : uint8_t { Cuda, Hip, Emulation, Simulation };

struct AcceleratorInfo {
  AcceleratorKind kind = AcceleratorKind::Emulation;
  std::string name;          // "cuda:0"
  std::string description;   // "NVIDIA H200"
  std::string device_class;  // of parity records: "sm_90", "gfx1100"
  std::string driver;        // version of what drives it
  int arch = 0;              // of NVIDIA GPUs, 90: compute capability 9.0
  int multiprocessors = 1;
  int wave = 32;  // lanes that run in step; kernels see 32 (device/kernel_hip.h)
  uint64_t total_bytes = 0;
  uint64_t cache_bytes = 0;           // of the cache that all multiprocessors share
  uint32_t shared_bytes = 48u << 10;  // shared memory of a block at most
};

// A kernel run on the CPU, from the same source: `run` is called once for every thread.
struct EmulatedKernel {
  const char* name;
  void (*run)(const void* arguments);
};

enum class Vendor : uint8_t { Any, Nvidia, Amd };

// A code object (ELF) for one AMD target.
struct AmdCode {
  const char* target;  // "gfx1100"
  std::span<const unsigned char> code;
};

// The compiled kernels of one source file: machine code for several architectures, and what the emulation runs. Made by
// the build; empty where it had no device compiler, or where the file is for one vendor.
struct KernelImage {
  const char* name;
  std::span<const unsigned char> code;  // for NVIDIA GPUs
  std::span<const EmulatedKernel> emulated;
  std::span<const AmdCode> amd;
  Vendor vendor = Vendor::Any;  // whose GPUs the kernels are written for
};
std::span<const KernelImage* const> kernel_images();  // all of this build

struct Dim {
  int64_t x = 1, y = 1, z = 1;
};

// Blocks of threads. Every kernel takes one struct of arguments by value.
struct LaunchShape {
  Dim grid;
  Dim block;
  uint32_t shared = 0;  // bytes of shared memory of a block
  bool early = false;   // the kernel waits for the one before itself (begin_early), and may start while that one ends
};

// Work in order. Not thread safe.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  // `what` names the operator in errors. Error{Argument} for a shape that no device can run, before anything starts;
  // Error{Device} when the device refuses. A grid without blocks does nothing.
  virtual void launch(const char* what, const KernelImage& image, const char* kernel, const LaunchShape& shape,
                      const void* arguments, size_t bytes) = 0;
  // Between any two of host and device memory. Host memory has been read when this returns, unless it is registered; it
  // is written when wait() returns.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, int byte, size_t bytes) = 0;
  // Until everything before is done. Error{Device} naming the last operator when that takes longer than the limit, or
  // when a kernel failed: the device is lost then.
  virtual void wait() = 0;

  // Seconds of the device between marks, which are reused when `index` comes again.
  virtual void mark(size_t index) = 0;
  virtual double seconds(size_t from, size_t to) = 0;  // after wait()

  // Launches and copies within the device between begin and end go to the device together, at the end: as one graph
  // that is kept and patched while passes stay alike. Marks of end_pass enclose what the device does, without the
  // host's preparations.
  struct Marks {
    size_t before = 0, after = 0;
  };
  virtual void begin_pass() {}
  virtual void end_pass(const Marks* marks = nullptr) = 0;
};

// Whether kernels of the image are meant for such devices; whether this build has code for one says refusal().
inline bool meant_for(const KernelImage& image, AcceleratorKind kind) {
  if (kind == AcceleratorKind::Emulation) return image.vendor != Vendor::Amd;
  return image.vendor == Vendor::Any || (image.vendor == Vendor::Nvidia) == (kind == AcceleratorKind::Cuda);
}

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual const AcceleratorInfo& info() const = 0;
  virtual uint64_t free_bytes() const = 0;
  // Contents are unspecified. Error{Memory} with need and free.
  virtual void* allocate(uint64_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  // Host memory that kernels may read and write at the same address, until it is unregistered.
  virtual void register_host(void* memory, uint64_t bytes) = 0;
  virtual void unregister_host(void* memory) noexcept = 0;
  virtual std::unique_ptr<DeviceStream> make_stream() = 0;
  // Why kernels of the image cannot run here; empty: they can. `arch` is what NVIDIA GPUs need at least: for others
  // the targets decide that the image has code for.
  virtual std::string refusal(const KernelImage& image, int arch) const = 0;
};

struct AcceleratorOptions {
  double wait_seconds = 60;  // limit of DeviceStream::wait
};

// "cuda:0", "hip:0" ("hip": the first that is not part of the processor); "emu": kernels run on the CPU from their
// source, for tests and work without a card ("emu:64": with 64 MiB of memory); "sim:gfx1100": machine code for an AMD
// GPU is interpreted on the CPU. Error{Device} with the reason.
std::shared_ptr<Accelerator> open_accelerator(const std::string& name, const AcceleratorOptions& options = {});
// What is on this machine, and for each vendor whose driver is missing the reason. Never fails.
struct FoundAccelerators {
  std::vector<AcceleratorInfo> devices;
  std::vector<uint64_t> free_bytes;
  std::vector<std::string> missing;  // "cuda: libcuda.so.1: cannot open shared object file"
};
FoundAccelerators find_accelerators();

// Memory of a device, owned.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<Accelerator> accelerator, uint64_t bytes)
      : accelerator_(std::move(accelerator)), data_(accelerator_->allocate(bytes)), bytes_(bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(accelerator_, other.accelerator_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) accelerator_->release(data_);
  }
  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Accelerator> accelerator_;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Error{Argument} for shapes beyond what every device runs: blocks of 1024 threads, grids of 2^31 - 1 by 65535 by
// 65535.
void check_launch(const char* what, const char* kernel, const LaunchShape& shape, uint32_t shared_limit,
                  size_t argument_bytes);

}  // namespace strata
