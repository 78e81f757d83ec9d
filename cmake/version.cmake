# Writes OUTPUT, a header with STRATA_COMMIT, the commit of the checkout at SOURCE, and STRATA_BUILD_NUMBER, how many
# commits lead to it; "" and 0 without git or a checkout. Runs with every build; the file changes only when the commit
# does.
set(commit "")
set(number 0)
find_program(GIT git)
if(GIT)
  execute_process(
    COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(
    COMMAND ${GIT} -C ${SOURCE} rev-list --count HEAD
    OUTPUT_VARIABLE number OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit "")
endif()
if(NOT number MATCHES "^[0-9]+$")
  set(number 0)
endif()
file(CONFIGURE OUTPUT ${OUTPUT}
     CONTENT "#define STRATA_COMMIT \"${commit}\"\n#define STRATA_BUILD_NUMBER ${number}\n" @ONLY)
