#include "device_stub/hip_stub.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

using strata::stub::Launch;
using strata::stub::State;

namespace {

State& state() {
  static State one;
  return one;
}
struct Function {
  std::string name;
  const void* code;
};
// Copies are done when the stream is asked: whoever changes memory before has lost.
std::vector<std::function<void()>>& pending() {
  static std::vector<std::function<void()>> list;
  return list;
}
void settle() {
  for (const auto& one : pending()) one();
  pending().clear();
}
int called(const char* name, int result = 0) {
  state().calls.emplace_back(name);
  return result;
}

}  // namespace

State* strata_stub_state() { return &state(); }

extern "C" {

int hipInit(unsigned) { return called("hipInit", state().fail_init); }
int hipDriverGetVersion(int* version) {
  *version = 60342131;
  return 0;
}
int hipGetDeviceCount(int* count) {
  *count = static_cast<int>(state().architectures.size());
  return *count == 0 ? 100 : 0;
}
int hipSetDevice(int) { return 0; }
int hipDeviceGetName(char* name, int size, int device) {
  std::strncpy(name, device == 0 ? "Radeon" : "Radeon Pro", static_cast<size_t>(size));
  return 0;
}
int hipDeviceTotalMem(size_t* bytes, int) {
  *bytes = state().total;
  return 0;
}
int hipDeviceGetAttribute(int* value, int which, int device) {
  switch (which) {
    case 16: *value = state().integrated[static_cast<size_t>(device)]; return 0;
    case 19: *value = 6 << 20; return 0;
    case 63: *value = 48; return 0;
    case 74: *value = 163840; return 0;
    case 87: *value = state().architectures[static_cast<size_t>(device)].starts_with("gfx9") ? 64 : 32; return 0;
    default: return 1;
  }
}
int hipGetDevicePropertiesR0600(void* properties, int device) {
  auto* bytes = static_cast<char*>(properties);
  std::memset(bytes, 1, 1472);
  std::strcpy(bytes, "Radeon gfx");
  std::strcpy(bytes + 1160, state().architectures[static_cast<size_t>(device)].c_str());
  return 0;
}
int hipMemGetInfo(size_t* free, size_t* total) {
  *free = state().free;
  *total = state().total;
  return 0;
}
int hipMalloc(void** memory, size_t bytes) {
  if (state().fail_allocate != 0) return called("hipMalloc", state().fail_allocate);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  ++state().allocations;
  strata::stub::note_memory(*memory, bytes);
  return called("hipMalloc");
}
int hipFree(void* memory) {
  strata::stub::forget_memory(memory);
  std::free(memory);
  --state().allocations;
  return called("hipFree");
}
int hipHostRegister(void* memory, size_t bytes, unsigned) {
  strata::stub::note_memory(memory, bytes);
  ++state().registrations;
  return called("hipHostRegister");
}
int hipHostUnregister(void* memory) {
  strata::stub::forget_memory(memory);
  --state().registrations;
  return called("hipHostUnregister");
}
int hipHostGetDevicePointer(void** there, void* memory, unsigned) {
  *there = static_cast<char*>(memory) + (state().other_addresses ? 4096 : 0);
  return 0;
}
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void*) {
  if (kind != 4) return 1;
  pending().push_back([=] { std::memcpy(to, from, bytes); });
  return called("hipMemcpyAsync");
}
int hipMemsetAsync(void* to, int byte, size_t bytes, void*) {
  pending().push_back([=] { std::memset(to, byte, bytes); });
  return called("hipMemsetAsync");
}
int hipModuleLoadData(void** module, const void* code) {
  if (std::memcmp(code, "\177ELF", 4) != 0) return 209;
  *module = const_cast<void*>(code);
  ++state().modules;
  return called("hipModuleLoadData");
}
int hipModuleUnload(void*) {
  --state().modules;
  return called("hipModuleUnload");
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
  static std::vector<std::unique_ptr<Function>> all;
  *function = all.emplace_back(std::make_unique<Function>(Function{name, module})).get();
  return called("hipModuleGetFunction");
}
#ifndef STUB_WITHOUT_LAUNCH
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void*, void** parameters, void** extra) {
  called("hipModuleLaunchKernel");
  if (state().fail_launch != 0) return state().fail_launch;
  if (parameters != nullptr || reinterpret_cast<uintptr_t>(extra[0]) != 1 ||
      reinterpret_cast<uintptr_t>(extra[2]) != 2 || reinterpret_cast<uintptr_t>(extra[4]) != 3)
    return 1;
  const auto* start = static_cast<const char*>(extra[1]);
  const size_t bytes = *static_cast<const size_t*>(extra[3]);
  const auto* kernel = static_cast<Function*>(function);
  state().launches.push_back({kernel->name, {gx, gy, gz}, {bx, by, bz}, shared, {start, start + bytes}});
  pending().push_back([code = kernel->code, launch = state().launches.back()] {
    if (const int error = strata::stub::run_kernel(code, launch); error != 0) state().fail_stream = error;
  });
  return 0;
}
#endif
int hipStreamCreateWithFlags(void** stream, unsigned) {
  *stream = &state();
  ++state().streams;
  return 0;
}
int hipStreamDestroy(void*) {
  --state().streams;
  return 0;
}
int hipStreamQuery(void*) {
  if (state().never_done) return 600;
  if (state().fail_stream == 0) settle();
  return state().fail_stream;
}
int hipStreamSynchronize(void*) {
  settle();
  return 0;
}
int hipEventCreateWithFlags(void** event, unsigned) {
  *event = new char;
  ++state().events;
  return 0;
}
int hipEventDestroy(void* event) {
  delete static_cast<char*>(event);
  --state().events;
  return 0;
}
int hipEventRecord(void*, void*) { return called("hipEventRecord"); }
int hipEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = state().milliseconds;
  return 0;
}
int hipGetLastError() {
  const int error = state().left_behind;
  state().left_behind = 0;
  return error;
}
const char* hipGetErrorString(int error) {
  return error == 719 ? "unspecified launch failure" : error == 1 ? "invalid argument" : "some error";
}
}
