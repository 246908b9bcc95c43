# The Pythons that tests and the wheel need. The first python3 of PATH need not be the one that the
# system's packages are for, so each is one that can import what it is for.

option(PELAB_WITH_PYTHONS
  "Look for these Pythons; OFF while their packages are still being installed" ON)

# pelab_imports(RESULT CANDIDATE): whether it can import PELAB_IMPORTS. For find_program.
function(pelab_imports result candidate)
  string(CONCAT check "import importlib.util as u\n"
         "assert all(map(u.find_spec, '${PELAB_IMPORTS}'.split()))")
  execute_process(COMMAND ${candidate} -c ${check}
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# pelab_find_python(VARIABLE PURPOSE IMPORTS…): sets the cache variable to a python3 with these
# packages. If tests are to be built, there must be one.
function(pelab_find_python variable purpose)
  if(NOT PELAB_WITH_PYTHONS)
    return()
  endif()
  string(JOIN " " PELAB_IMPORTS ${ARGN})
  find_program(${variable} NAMES python3 VALIDATOR pelab_imports)
  if(NOT ${variable} AND PELAB_WITH_TESTS)
    message(FATAL_ERROR "no python3 with ${PELAB_IMPORTS}, which ${purpose} need: run "
            "deploy/install-deps.sh, set ${variable}, or configure with -DPELAB_WITH_TESTS=OFF")
  endif()
endfunction()
