#include "device/cuda_driver.h"

#include <dlfcn.h>

#include "base/error.h"

namespace strata::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

template <class Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Driver open_driver() {
  Driver d;
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    d.missing = reason != nullptr ? reason : kLibrary;
    return d;
  }
  const char* name = nullptr;
  auto get = [&](const char* symbol, auto& function) {
    if (name == nullptr && !resolve(library, symbol, function)) name = symbol;
  };
  get("cuInit", d.init);
  get("cuDriverGetVersion", d.driver_version);
  get("cuDeviceGetCount", d.device_count);
  get("cuDeviceGet", d.device_get);
  get("cuDeviceGetName", d.device_name);
  get("cuDeviceTotalMem_v2", d.device_memory);
  get("cuDeviceGetAttribute", d.device_attribute);
  get("cuDevicePrimaryCtxRetain", d.retain_primary);
  get("cuDevicePrimaryCtxRelease_v2", d.release_primary);
  get("cuCtxPushCurrent_v2", d.push_context);
  get("cuCtxPopCurrent_v2", d.pop_context);
  get("cuMemGetInfo_v2", d.memory_info);
  get("cuMemAlloc_v2", d.allocate);
  get("cuMemFree_v2", d.release);
  get("cuMemHostAlloc", d.allocate_host);
  get("cuMemFreeHost", d.release_host);
  get("cuMemHostRegister_v2", d.register_host);
  get("cuMemHostUnregister", d.unregister_host);
  get("cuModuleLoadData", d.load_module);
  get("cuModuleUnload", d.unload_module);
  get("cuModuleGetFunction", d.get_function);
  get("cuFuncSetAttribute", d.set_function_attribute);
  get("cuLaunchKernel", d.launch);
  get("cuStreamCreate", d.create_stream);
  get("cuStreamDestroy_v2", d.destroy_stream);
  get("cuStreamQuery", d.query_stream);
  get("cuStreamSynchronize", d.synchronise_stream);
  get("cuMemcpyAsync", d.copy);
  get("cuMemsetD8Async", d.fill8);
  get("cuEventCreate", d.create_event);
  get("cuEventDestroy_v2", d.destroy_event);
  get("cuEventRecord", d.record_event);
  get("cuEventElapsedTime", d.elapsed);
  get("cuGraphCreate", d.create_graph);
  get("cuGraphDestroy", d.destroy_graph);
  get("cuGraphAddKernelNode_v2", d.add_kernel_node);
  get("cuGraphInstantiateWithFlags", d.instantiate_graph);
  get("cuGraphExecKernelNodeSetParams_v2", d.set_kernel_node);
  get("cuGraphLaunch", d.launch_graph);
  get("cuGraphExecDestroy", d.destroy_graph_exec);
  get("cuGetErrorString", d.error_string);
  resolve(library, "cuGraphAddDependencies_v2", d.add_dependencies);
  if (name != nullptr) {
    Driver old;
    old.missing = std::string(kLibrary) + " has no " + name + ": it needs a driver for CUDA 12 or newer";
    return old;
  }
  if (const Result result = d.init(0); result != 0) {
    const char* text = nullptr;
    d.error_string(result, &text);
    d.missing = std::string(kLibrary) + ": " + (text != nullptr ? text : "error " + std::to_string(result));
  }
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open_driver();
  return opened;
}

void check(Result result, const std::string& call) {
  if (result == 0) return;
  const char* text = nullptr;
  driver().error_string(result, &text);
  throw Error(result == kOutOfMemory ? ErrorKind::Memory : ErrorKind::Device,
              std::string("the CUDA driver says: ") + (text != nullptr ? text : "error " + std::to_string(result)),
              call);
}

}  // namespace strata::cuda
