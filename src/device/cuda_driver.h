// The functions of the CUDA driver that Strata calls, opened at run time: no toolkit is needed to build or to run.
// Types and values are those of the driver's binary interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace strata::cuda {

using Result = int;  // 0: success
inline constexpr Result kNotReady = 600;
inline constexpr Result kOutOfMemory = 2;
using Device = int;
using Pointer = unsigned long long;
struct ContextTag;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
struct GraphTag;
struct GraphExecTag;
struct GraphNodeTag;
using Context = ContextTag*;
using Module = ModuleTag*;
using Function = FunctionTag*;
using StreamHandle = StreamTag*;
using Event = EventTag*;
using Graph = GraphTag*;
using GraphExec = GraphExecTag*;
using GraphNode = GraphNodeTag*;

enum Attribute : int {
  kClockKhz = 13,
  kMultiprocessors = 16,
  kCacheBytes = 38,
  kMajor = 75,
  kMinor = 76,
  kHostPointerIsDevicePointer = 91,  // of registered memory
  kSharedBytesOptIn = 97,
};
inline constexpr int kMaxSharedOfFunction = 8;  // attribute of a function
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr unsigned kStreamNonBlocking = 1;

// Parameters of a kernel node of a graph, second version of the interface.
struct KernelNode {
  Function function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};

// How an edge of a graph orders two kernels. Programmatic: the second starts when the first lets it or ends, and waits
// itself.
struct EdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
inline constexpr EdgeData kProgrammaticEdge{1, 0, 1, {}};

// Every member is null or all are set, but for one.
struct Driver {
  Result (*init)(unsigned) = nullptr;
  Result (*driver_version)(int*) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*device_get)(Device*, int) = nullptr;
  Result (*device_name)(char*, int, Device) = nullptr;
  Result (*device_memory)(size_t*, Device) = nullptr;
  Result (*device_attribute)(int*, int, Device) = nullptr;
  Result (*retain_primary)(Context*, Device) = nullptr;
  Result (*release_primary)(Device) = nullptr;
  Result (*push_context)(Context) = nullptr;
  Result (*pop_context)(Context*) = nullptr;
  Result (*memory_info)(size_t*, size_t*) = nullptr;
  Result (*allocate)(Pointer*, size_t) = nullptr;
  Result (*release)(Pointer) = nullptr;
  Result (*allocate_host)(void**, size_t, unsigned) = nullptr;
  Result (*release_host)(void*) = nullptr;
  Result (*register_host)(void*, size_t, unsigned) = nullptr;
  Result (*unregister_host)(void*) = nullptr;
  Result (*load_module)(Module*, const void*) = nullptr;
  Result (*unload_module)(Module) = nullptr;
  Result (*get_function)(Function*, Module, const char*) = nullptr;
  Result (*set_function_attribute)(Function, int, int) = nullptr;
  Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, void**,
                   void**) = nullptr;
  Result (*create_stream)(StreamHandle*, unsigned) = nullptr;
  Result (*destroy_stream)(StreamHandle) = nullptr;
  Result (*query_stream)(StreamHandle) = nullptr;
  Result (*synchronise_stream)(StreamHandle) = nullptr;
  Result (*copy)(Pointer, Pointer, size_t, StreamHandle) = nullptr;
  Result (*fill8)(Pointer, unsigned char, size_t, StreamHandle) = nullptr;
  Result (*create_event)(Event*, unsigned) = nullptr;
  Result (*destroy_event)(Event) = nullptr;
  Result (*record_event)(Event, StreamHandle) = nullptr;
  Result (*elapsed)(float*, Event, Event) = nullptr;
  Result (*create_graph)(Graph*, unsigned) = nullptr;
  Result (*destroy_graph)(Graph) = nullptr;
  Result (*add_kernel_node)(GraphNode*, Graph, const GraphNode*, size_t, const KernelNode*) = nullptr;
  // Of CUDA 12.3; null in older drivers.
  Result (*add_dependencies)(Graph, const GraphNode*, const GraphNode*, const EdgeData*, size_t) = nullptr;
  Result (*instantiate_graph)(GraphExec*, Graph, unsigned long long) = nullptr;
  Result (*set_kernel_node)(GraphExec, GraphNode, const KernelNode*) = nullptr;
  Result (*launch_graph)(GraphExec, StreamHandle) = nullptr;
  Result (*destroy_graph_exec)(GraphExec) = nullptr;
  Result (*error_string)(Result, const char**) = nullptr;

  std::string missing;  // why the driver cannot be used; empty: it can
};

// Opened once and never closed: the library does not survive being closed.
const Driver& driver();
// Error{Device}, or Error{Memory} when memory is short, naming the call and what the driver says.
void check(Result result, const std::string& call);

}  // namespace strata::cuda
