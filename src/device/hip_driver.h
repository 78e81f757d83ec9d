// The functions of AMD's HIP library that Strata calls, opened at run time: no ROCm is needed to build or to run. Types
// and values are those of the library's binary interface, which its versions 5 to 7 share: structures that changed are
// not used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace strata::hip {

using Result = int;  // 0: success
inline constexpr Result kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
struct ModuleTag;
struct FunctionTag;
struct StreamTag;
struct EventTag;
using Module = ModuleTag*;
using Function = FunctionTag*;
using StreamHandle = StreamTag*;
using Event = EventTag*;

enum Attribute : int {
  kIntegrated = 16,
  kCacheBytes = 19,
  kMultiprocessors = 63,
  kSharedBytes = 74,
  kWave = 87,
};
inline constexpr int kCopyAnywhere = 4;  // the direction follows from the addresses
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kHostMapped = 2;

// How a buffer of packed arguments is named in `extra` of launch().
inline constexpr uintptr_t kBufferPointer = 1, kBufferSize = 2, kBufferEnd = 3;

// Every function is null or all are set.
struct Driver {
  Result (*init)(unsigned) = nullptr;
  Result (*driver_version)(int*) = nullptr;
  Result (*device_count)(int*) = nullptr;
  Result (*set_device)(int) = nullptr;
  Result (*device_name)(char*, int, int) = nullptr;
  Result (*device_memory)(size_t*, int) = nullptr;
  Result (*device_attribute)(int*, int, int) = nullptr;
  Result (*device_properties)(void*, int) = nullptr;  // a structure of unknown size: see architecture()
  Result (*memory_info)(size_t*, size_t*) = nullptr;
  Result (*allocate)(void**, size_t) = nullptr;
  Result (*release)(void*) = nullptr;
  Result (*register_host)(void*, size_t, unsigned) = nullptr;
  Result (*unregister_host)(void*) = nullptr;
  Result (*host_on_device)(void**, void*, unsigned) = nullptr;
  Result (*load_module)(Module*, const void*) = nullptr;
  Result (*unload_module)(Module) = nullptr;
  Result (*get_function)(Function*, Module, const char*) = nullptr;
  Result (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle, void**,
                   void**) = nullptr;
  Result (*create_stream)(StreamHandle*, unsigned) = nullptr;
  Result (*destroy_stream)(StreamHandle) = nullptr;
  Result (*query_stream)(StreamHandle) = nullptr;
  Result (*synchronise_stream)(StreamHandle) = nullptr;
  Result (*copy)(void*, const void*, size_t, int, StreamHandle) = nullptr;
  Result (*fill8)(void*, int, size_t, StreamHandle) = nullptr;
  Result (*create_event)(Event*, unsigned) = nullptr;
  Result (*destroy_event)(Event) = nullptr;
  Result (*record_event)(Event, StreamHandle) = nullptr;
  Result (*elapsed)(float*, Event, Event) = nullptr;
  Result (*last_error)() = nullptr;  // and forgets it
  const char* (*error_string)(Result) = nullptr;

  std::string missing;  // why the library cannot be used; empty: it can

  // Error{Device}, or Error{Memory} when memory is short, naming the call and what the library says.
  void check(Result result, const std::string& call) const;
  // "gfx1100". The structure of properties differs between versions in size and order; the name of the architecture is
  // the text in it that begins with gfx.
  std::string architecture(int device) const;
};

// The first of the libraries that can be opened.
std::shared_ptr<const Driver> open_driver(std::span<const std::string> libraries);
// Opened once and never closed: the library does not survive being closed.
const std::shared_ptr<const Driver>& driver();

}  // namespace strata::hip
