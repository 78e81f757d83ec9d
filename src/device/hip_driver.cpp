#include "device/hip_driver.h"

#include <dlfcn.h>

#include <cctype>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace strata::hip {
namespace {

// Resolves one name after another; remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void get(const char* name, Function& function) {
    if (missing_ != nullptr) return;
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void resolve_memory(Symbols& symbols, Driver& d) {
  symbols.get("hipMemGetInfo", d.memory_info);
  symbols.get("hipMalloc", d.allocate);
  symbols.get("hipFree", d.release);
  symbols.get("hipHostRegister", d.register_host);
  symbols.get("hipHostUnregister", d.unregister_host);
  symbols.get("hipHostGetDevicePointer", d.host_on_device);
  symbols.get("hipMemcpyAsync", d.copy);
  symbols.get("hipMemsetAsync", d.fill8);
}

void resolve_work(Symbols& symbols, Driver& d) {
  symbols.get("hipModuleLoadData", d.load_module);
  symbols.get("hipModuleUnload", d.unload_module);
  symbols.get("hipModuleGetFunction", d.get_function);
  symbols.get("hipModuleLaunchKernel", d.launch);
  symbols.get("hipStreamCreateWithFlags", d.create_stream);
  symbols.get("hipStreamDestroy", d.destroy_stream);
  symbols.get("hipStreamQuery", d.query_stream);
  symbols.get("hipStreamSynchronize", d.synchronise_stream);
  symbols.get("hipEventCreateWithFlags", d.create_event);
  symbols.get("hipEventDestroy", d.destroy_event);
  symbols.get("hipEventRecord", d.record_event);
  symbols.get("hipEventElapsedTime", d.elapsed);
  symbols.get("hipGetLastError", d.last_error);
  symbols.get("hipGetErrorString", d.error_string);
}

Driver resolve(void* library, const std::string& name) {
  Driver d;
  Symbols symbols(library);
  symbols.get("hipInit", d.init);
  symbols.get("hipDriverGetVersion", d.driver_version);
  symbols.get("hipGetDeviceCount", d.device_count);
  symbols.get("hipSetDevice", d.set_device);
  symbols.get("hipDeviceGetName", d.device_name);
  symbols.get("hipDeviceTotalMem", d.device_memory);
  symbols.get("hipDeviceGetAttribute", d.device_attribute);
  const bool renamed = ::dlsym(library, "hipGetDevicePropertiesR0600") != nullptr;  // from version 6 on
  symbols.get(renamed ? "hipGetDevicePropertiesR0600" : "hipGetDeviceProperties", d.device_properties);
  resolve_memory(symbols, d);
  resolve_work(symbols, d);
  if (symbols.missing() != nullptr) {
    Driver old;
    old.missing = name + " has no " + symbols.missing() + ": it needs ROCm 5 or newer";
    return old;
  }
  if (const Result result = d.init(0); result != 0)
    d.missing = name + ": " + (result == kNoDevice ? std::string("no AMD GPU") : d.error_string(result));
  return d;
}

}  // namespace

std::shared_ptr<const Driver> open_driver(std::span<const std::string> libraries) {
  auto d = std::make_shared<Driver>();
  for (const std::string& name : libraries) {
    if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      *d = resolve(library, name);
      return d;
    }
    const char* reason = ::dlerror();
    if (d->missing.empty()) d->missing = reason != nullptr ? reason : name;
  }
  return d;
}

const std::shared_ptr<const Driver>& driver() {
  static const std::vector<std::string> libraries = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                                     "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"};
  static const std::shared_ptr<const Driver> opened = open_driver(libraries);
  return opened;
}

void Driver::check(Result result, const std::string& call) const {
  if (result == 0) return;
  const char* text = error_string(result);
  throw Error(result == kOutOfMemory ? ErrorKind::Memory : ErrorKind::Device,
              std::string("the HIP library says: ") + (text != nullptr ? text : "error " + std::to_string(result)),
              call);
}

std::string Driver::architecture(int device) const {
  constexpr size_t kRoom = 16384, kName = 256;  // ten times the structure; the name of the card comes first
  std::vector<char> properties(kRoom, 0);
  check(device_properties(properties.data(), device), "hipGetDeviceProperties");
  const std::string_view text(properties.data() + kName, kRoom - kName);
  for (size_t at = text.find("gfx"); at != std::string_view::npos; at = text.find("gfx", at + 1)) {
    size_t end = at + 3;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end > at + 5) return std::string(text.substr(at, end - at));  // without features: "gfx942:sramecc+:xnack-"
  }
  return "unknown";
}

}  // namespace strata::hip
