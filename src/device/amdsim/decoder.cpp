#include "device/amdsim/decoder.h"

#include <dlfcn.h>

#include "base/error.h"

namespace strata::amdsim {
namespace {

// Of llvm-c/Disassembler.h and llvm-c/Target.h, LLVM 19.
using LookUpOperand = int (*)(void*, uint64_t, uint64_t, uint64_t, uint64_t, int, void*);
using LookUpSymbol = const char* (*)(void*, uint64_t, uint64_t*, uint64_t, const char**);
struct Library {
  std::string missing;
  void* (*create)(const char*, const char*, void*, int, LookUpOperand, LookUpSymbol) = nullptr;
  size_t (*decode)(void*, uint8_t*, uint64_t, uint64_t, char*, size_t) = nullptr;
  void (*dispose)(void*) = nullptr;
};

template <class Function>
bool take(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

Library open_library() {
  Library library;
  void* handle = nullptr;
  for (const char* name : {"libLLVM.so.19.1", "libLLVM-19.so", "libLLVM-19.so.1"}) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    if (library.missing.empty()) library.missing = dlerror();
  }
  if (handle == nullptr) return library;
  library.missing.clear();
  for (const char* part : {"TargetInfo", "Target", "TargetMC", "Disassembler"}) {
    void (*initialise)() = nullptr;
    if (!take(handle, (std::string("LLVMInitializeAMDGPU") + part).c_str(), initialise)) {
      library.missing = "LLVM 19 was built without the AMDGPU target";
      return library;
    }
    initialise();
  }
  if (!take(handle, "LLVMCreateDisasmCPU", library.create) || !take(handle, "LLVMDisasmInstruction", library.decode) ||
      !take(handle, "LLVMDisasmDispose", library.dispose))
    library.missing = "LLVM 19 has no disassembler interface";
  return library;
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

}  // namespace

const char* processor_of(Target target) {
  switch (target) {
    case Target::Gfx942: return "gfx942";
    case Target::Gfx1100: return "gfx1100";
    case Target::Gfx1151: return "gfx1151";
    case Target::Gfx1201: return "gfx1201";
  }
  return "";
}

std::string decoder_missing() { return library().missing; }

Decoder::Decoder(Target target) : context_(nullptr) {
  const Library& llvm = library();
  if (llvm.missing.empty())
    context_ = llvm.create("amdgcn-amd-amdhsa", processor_of(target), nullptr, 0, nullptr, nullptr);
  if (context_ == nullptr)
    throw Error(ErrorKind::Device, "machine code of AMD cannot be decoded: " +
                                       (llvm.missing.empty() ? "LLVM 19 does not know the target" : llvm.missing) +
                                       "; install libllvm19");
}

Decoder::~Decoder() { library().dispose(context_); }

size_t Decoder::decode(const unsigned char* code, size_t bytes, uint64_t address, std::string& text) {
  char line[512] = {};
  const size_t size = library().decode(context_, const_cast<uint8_t*>(code), bytes, address, line, sizeof(line));
  const char* begin = line;
  while (*begin == '\t' || *begin == ' ') ++begin;
  text = begin;
  for (char& c : text)
    if (c == '\t') c = ' ';
  return size;
}

}  // namespace strata::amdsim
