# Writes TARGET from TEMPLATE with the commit of SOURCE, if that changes it. Run by each build:
#   cmake -DSOURCE=… -DTEMPLATE=… -DTARGET=… -P PelabCommit.cmake
set(PELAB_COMMIT "")
set(PELAB_DIRTY false)

# git(RESULT ARGUMENTS…): what git says; empty where SOURCE has no git, or is in another project's.
function(git result)
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} ${ARGN}
    OUTPUT_VARIABLE output ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

file(REAL_PATH ${SOURCE} source)
git(top rev-parse --show-toplevel)
if(top STREQUAL source)
  git(PELAB_COMMIT rev-parse --short=12 HEAD)
  git(changes status --porcelain --untracked-files=no)
  if(changes)
    set(PELAB_DIRTY true)
  endif()
endif()
configure_file(${TEMPLATE} ${TARGET} @ONLY)
