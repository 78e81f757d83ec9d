# Flags shared by every target, and the helper that makes a library of a room.
#
# -ffp-contract=off: the same bits for one row as for many must not hang on where a compiler fuses a multiply-add.
# -fno-math-errno, -fno-trapping-math: let loops with sqrt and comparisons vectorise; results do not change.
set(STRATA_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
add_compile_options(-ffp-contract=off -fno-math-errno -fno-trapping-math)
if(STRATA_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(STRATA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

function(strata_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(sources)
    add_library(strata_${name} STATIC ${sources})
    target_include_directories(strata_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(strata_${name} PUBLIC ${ROOM_DEPENDS})
    target_compile_options(strata_${name} PRIVATE ${STRATA_WARNINGS})
  else()
    add_library(strata_${name} INTERFACE)
    target_include_directories(strata_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(strata_${name} INTERFACE ${ROOM_DEPENDS})
  endif()
endfunction()
