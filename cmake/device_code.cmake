# Kernels: every src/**/NAME.cu becomes `kernel_image_NAME` (device/accelerator.h): machine code in one fat binary
# where nvcc is there, and the emulation, which is the same source compiled for the host.
#
# NAME.sm90.cu holds code for sm_90a alone. The first lines of a .cu file may say other flags:  // nvcc: -maxrregcount=128
find_program(STRATA_NVCC nvcc HINTS /usr/local/cuda/bin)
option(STRATA_CUDA "build device code for NVIDIA GPUs where nvcc is there" ON)
if(STRATA_NVCC AND STRATA_CUDA)
  message(STATUS "device code for NVIDIA GPUs: ${STRATA_NVCC}")
  enable_language(ASM)
else()
  message(STATUS "device code for NVIDIA GPUs: none (no nvcc)")
endif()

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
    set(code "{}")
    set(declare "")
    if(STRATA_NVCC AND STRATA_CUDA)
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
#include "@source@"
#include "device/accelerator.h"

@declare@
namespace strata {
namespace {
template <class Arguments>
Arguments arguments_of(void (*)(Arguments));
template <auto kernel>
void emulated(const void* arguments) {
  kernel(*static_cast<const decltype(arguments_of(kernel))*>(arguments));
}
constexpr EmulatedKernel kEmulated[] = {
@entries@};
}  // namespace
extern const KernelImage kernel_image_@name@;
const KernelImage kernel_image_@name@{"@name@", @code@, kEmulated};
}  // namespace strata
]] @ONLY)
    target_sources(${target} PRIVATE ${folder}/${stem}_image.cpp)
    set_source_files_properties(${folder}/${stem}_image.cpp PROPERTIES OBJECT_DEPENDS ${source})
  endforeach()
endfunction()
