# strata_web_assets(TARGET): a library that holds the files of web/dist as a table (src/server/web_assets.h). The files
# are committed, so that a build needs no node; `npm run build` in web/ makes them.
#
# Run as a script (-DFOLDER= -DOUTPUT=) it writes the table.
if(CMAKE_SCRIPT_MODE_FILE)
  set(type_.html "text/html; charset=utf-8")
  set(type_.js "text/javascript; charset=utf-8")
  set(type_.css "text/css; charset=utf-8")
  set(type_.svg "image/svg+xml")
  file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*)
  list(SORT files)
  set(arrays "")
  set(rows "")
  set(index 0)
  foreach(file ${files})
    get_filename_component(extension ${file} LAST_EXT)
    if(NOT DEFINED type_${extension})
      message(FATAL_ERROR "web/dist/${file}: no content type is known for ${extension}; add it to cmake/web_assets.cmake")
    endif()
    file(READ ${FOLDER}/${file} hex HEX)
    file(SHA256 ${FOLDER}/${file} hash)
    string(SUBSTRING ${hash} 0 16 tag)
    string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    set(path /${file})
    if(file STREQUAL "index.html")
      set(path /)
    endif()
    string(APPEND arrays "constexpr unsigned char kBytes${index}[] = {\n${bytes}\n};\n")
    string(APPEND rows "    WebAsset{\"${path}\", \"${type_${extension}}\", \"\\\"${tag}\\\"\", kBytes${index}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(WRITE ${OUTPUT} "// Made by cmake/web_assets.cmake from web/dist.
#include \"server/web_assets.h\"

#include <array>

namespace strata::server {
namespace {

${arrays}
constexpr std::array kAssets{
${rows}};

}  // namespace

std::span<const WebAsset> web_assets() { return kAssets; }

}  // namespace strata::server
")
  return()
endif()

function(strata_web_assets target)
  set(folder ${CMAKE_SOURCE_DIR}/web/dist)
  set(output ${CMAKE_BINARY_DIR}/generated/web_assets.cpp)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUTPUT=${output} -P ${CMAKE_SOURCE_DIR}/cmake/web_assets.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/web_assets.cmake)
  add_library(${target} STATIC ${output})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE ${STRATA_WARNINGS})
endfunction()
