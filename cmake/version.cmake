# Writes OUTPUT, a header with STRATA_COMMIT: the commit of the checkout at SOURCE, or "" without git or a checkout.
# Runs with every build; the file changes only when the commit does.
set(commit "")
find_program(GIT git)
if(GIT)
  execute_process(
    COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define STRATA_COMMIT \"${commit}\"\n" @ONLY)
