# Kernels: every src/**/NAME.cu becomes `kernel_image_NAME` (device/accelerator.h): machine code for NVIDIA GPUs in one
# fat binary where nvcc is there, a code object for each AMD target where clang-19 and lld-19 are there, and the
# emulation, which is the same source compiled for the host.
#
# NAME.sm90.cu holds code for sm_90a alone, NAME.gfx11.cu (gfx12, gfx9) for AMD targets that begin so, NAME.gfx.cu for all
# of them; these have no emulation. The first lines of a .cu file may say other flags:  // nvcc: -maxrregcount=128
# and that its kernels are for one vendor:  // only: cuda
find_program(STRATA_NVCC nvcc HINTS /usr/local/cuda/bin)
option(STRATA_CUDA "build device code for NVIDIA GPUs where nvcc is there" ON)
if(STRATA_NVCC AND STRATA_CUDA)
  message(STATUS "device code for NVIDIA GPUs: ${STRATA_NVCC}")
  enable_language(ASM)
else()
  message(STATUS "device code for NVIDIA GPUs: none (no nvcc)")
endif()

set(STRATA_AMD_TARGETS gfx1100 gfx1151 gfx1201 gfx942)
option(STRATA_AMD "build device code for AMD GPUs where clang-19 and lld-19 are there" ON)
find_program(STRATA_AMD_CLANG clang-19)
find_program(STRATA_AMD_LLD ld.lld-19)
if(STRATA_AMD_CLANG AND STRATA_AMD_LLD AND STRATA_AMD)
  message(STATUS "device code for AMD GPUs: ${STRATA_AMD_CLANG}, ${STRATA_AMD_TARGETS}")
  enable_language(ASM)
else()
  set(STRATA_AMD_TARGETS "")
  message(STATUS "device code for AMD GPUs: none (no clang-19 with lld-19)")
endif()
string(REPLACE ";" ", " amd_targets "${STRATA_AMD_TARGETS}")
set_source_files_properties(src/device/hip.cpp PROPERTIES COMPILE_DEFINITIONS STRATA_AMD_TARGETS="${amd_targets}")
# Freestanding: no ROCm, no device library. -disable-machine-sink: the pass moves exchanges of lanes under conditions.
# -disable-promote-alloca-to-lds: local arrays that do not fit registers are to be seen as scratch, not as shared memory.
set(amd_flags -x hip --offload-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -std=c++20 -O3
  -mllvm -disable-machine-sink -mllvm -disable-promote-alloca-to-lds -ffp-contract=off -mcode-object-version=5 -Wall -Wextra -Werror)

# The tables of src/gguf/iq_grids.cpp in a form that device code can include: codes in the memory of the device.
function(strata_grid_codes output)
  set(source ${CMAKE_SOURCE_DIR}/src/gguf/iq_grids.cpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  string(FIND "${text}" "constexpr int8_t" first)
  string(FIND "${text}" "}  // namespace\n" last)
  math(EXPR length "${last} - ${first}")
  string(SUBSTRING "${text}" ${first} ${length} tables)
  string(REPLACE "constexpr uint16_t" "static __device__ const uint16_t" tables "${tables}")
  file(CONFIGURE OUTPUT ${output} CONTENT "${tables}" @ONLY)
endfunction()

# Code objects of a source, one for each target, in the library. Sets in the caller what its image says about them.
function(strata_amd_code target source stem name targets)
  set(folder ${CMAKE_BINARY_DIR}/device)
  set(text ".section .rodata\n")
  set(objects "")
  set(declare "")
  set(list "")
  foreach(gfx ${targets})
    set(object ${folder}/${stem}.${gfx}.co)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CCACHE} ${STRATA_AMD_CLANG} -c ${amd_flags} --offload-arch=${gfx} -I${CMAKE_SOURCE_DIR}/src -I${folder}
              -MD -MF ${object}.d -MT ${object} -o ${object} ${source}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "Device code of ${stem} for ${gfx}")
    set(symbol strata_${gfx}_${name})
    string(APPEND text ".global ${symbol}, ${symbol}_end\n.balign 4096\n${symbol}:\n.incbin \"${object}\"\n"
                       "${symbol}_end:\n.byte 0\n")
    string(APPEND declare "extern \"C\" const unsigned char ${symbol}[], ${symbol}_end[];\n")
    string(APPEND list "    {\"${gfx}\", {${symbol}, static_cast<size_t>(${symbol}_end - ${symbol})}},\n")
    list(APPEND objects ${object})
  endforeach()
  string(APPEND text ".section .note.GNU-stack,\"\",%progbits\n")
  file(CONFIGURE OUTPUT ${folder}/${stem}_amd.S CONTENT "${text}" @ONLY)
  set_source_files_properties(${folder}/${stem}_amd.S PROPERTIES OBJECT_DEPENDS "${objects}")
  target_sources(${target} PRIVATE ${folder}/${stem}_amd.S)
  set(amd_declare "${declare}" PARENT_SCOPE)
  set(amd_list "${list}" PARENT_SCOPE)
endfunction()

# A library of all images.
function(strata_device_code target)
  set(folder ${CMAKE_BINARY_DIR}/device)
  file(MAKE_DIRECTORY ${folder})
  add_library(${target} STATIC)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${STRATA_WARNINGS};-Wno-unknown-pragmas;-Wno-pass-failed>")
  strata_grid_codes(${folder}/iq_grid_codes.inc)
  target_include_directories(${target} PRIVATE ${folder})
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.cu)
  foreach(source ${kernels})
    get_filename_component(file ${source} NAME)
    string(REGEX REPLACE "\\.cu$" "" stem ${file})
    string(REPLACE "." "_" name ${stem})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} declarations REGEX "^extern \"C\" __global__ void")
    set(entries "")
    foreach(declaration ${declarations})
      string(REGEX REPLACE ".*[ )]([A-Za-z0-9_]+)\\(const .*" "\\1" kernel "${declaration}")
      string(APPEND entries "    {\"${kernel}\", emulated<${kernel}>},\n")
    endforeach()
    file(STRINGS ${source} only REGEX "^// only: " LIMIT_COUNT 1)
    string(REGEX MATCH "\\.gfx[0-9]*$" gfx "${stem}")
    set(targets ${STRATA_AMD_TARGETS})
    if(gfx)
      string(SUBSTRING ${gfx} 1 -1 gfx)
      list(FILTER targets INCLUDE REGEX "^${gfx}")
    elseif(only OR stem MATCHES "\\.sm90$")
      set(targets "")
    endif()
    set(vendor Any)
    if(gfx)
      set(vendor Amd)
    elseif(only OR stem MATCHES "\\.sm90$")
      set(vendor Nvidia)
    endif()
    set(amd_declare "")
    set(amd_list "")
    set(amd "{}")
    if(targets)
      strata_amd_code(${target} ${source} ${stem} ${name} "${targets}")
      set(amd "kAmd")
      set(amd_list "const AmdCode kAmd[] = {\n${amd_list}};\n")
    endif()
    set(emulated "kEmulated")
    set(include "#include \"${source}\"")
    set(entries "constexpr EmulatedKernel kEmulated[] = {\n${entries}};\n")
    if(gfx)
      set(emulated "{}")
      set(include "")
      set(entries "")
    endif()
    set(code "{}")
    set(declare "")
    if(STRATA_NVCC AND STRATA_CUDA AND NOT gfx)
      set(code "{strata_code_${name}, static_cast<size_t>(strata_code_${name}_end - strata_code_${name})}")
      set(declare "extern \"C\" const unsigned char strata_code_${name}[], strata_code_${name}_end[];\n")
      if(stem MATCHES "\\.sm90$")
        set(targets -gencode=arch=compute_90a,code=sm_90a)
      else()
        set(targets -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a
                    -gencode=arch=compute_80,code=compute_80)
      endif()
      file(STRINGS ${source} flags REGEX "^// nvcc: ")
      string(REGEX REPLACE "^// nvcc: " "" flags "${flags}")
      separate_arguments(flags)
      set(fatbin ${folder}/${stem}.fatbin)
      add_custom_command(OUTPUT ${fatbin}
        COMMAND ${STRATA_NVCC} -fatbin -std=c++17 -O3 -fmad=false -I${CMAKE_SOURCE_DIR}/src -I${folder} ${targets} ${flags}
                -Werror all-warnings -MD -MF ${fatbin}.d -o ${fatbin} ${source}
        DEPENDS ${source} DEPFILE ${fatbin}.d VERBATIM COMMENT "Device code of ${file}")
      file(CONFIGURE OUTPUT ${folder}/${stem}_code.S CONTENT [[
.section .rodata
.global strata_code_@name@
.global strata_code_@name@_end
.balign 64
strata_code_@name@:
.incbin "@fatbin@"
strata_code_@name@_end:
.byte 0
.section .note.GNU-stack,"",%progbits
]] @ONLY)
      set_source_files_properties(${folder}/${stem}_code.S PROPERTIES OBJECT_DEPENDS ${fatbin})
      target_sources(${target} PRIVATE ${folder}/${stem}_code.S)
    endif()
    file(CONFIGURE OUTPUT ${folder}/${stem}_image.cpp CONTENT [[
@include@
#include "device/accelerator.h"

@declare@@amd_declare@
namespace strata {
namespace {
template <class Arguments>
Arguments arguments_of(void (*)(Arguments));
template <auto kernel>
void emulated(const void* arguments) {
  kernel(*static_cast<const decltype(arguments_of(kernel))*>(arguments));
}
@entries@@amd_list@}  // namespace
extern const KernelImage kernel_image_@name@;
const KernelImage kernel_image_@name@{"@name@", @code@, @emulated@, @amd@, Vendor::@vendor@};
}  // namespace strata
]] @ONLY)
    target_sources(${target} PRIVATE ${folder}/${stem}_image.cpp)
    set_source_files_properties(${folder}/${stem}_image.cpp PROPERTIES OBJECT_DEPENDS ${source})
    string(APPEND externs "extern const KernelImage kernel_image_${name};\n")
    string(APPEND images "    &kernel_image_${name},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/kernel_images.cpp CONTENT [[
#include "device/accelerator.h"

namespace strata {
@externs@
namespace {
const KernelImage* const kImages[] = {
@images@};
}  // namespace
std::span<const KernelImage* const> kernel_images() { return kImages; }
}  // namespace strata
]] @ONLY)
  target_sources(${target} PRIVATE ${folder}/kernel_images.cpp)
endfunction()
