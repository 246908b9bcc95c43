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

# pelab_find_interpreter(): finds Python3::Interpreter, for scripts with the standard library alone.
# A python3 that is a script, as pyenv's, takes 0.1 s to start the program behind it.
macro(pelab_find_interpreter)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable, end='')"
                  OUTPUT_VARIABLE Python3_PROGRAM COMMAND_ERROR_IS_FATAL ANY)
  set_target_properties(Python3::Interpreter PROPERTIES IMPORTED_LOCATION ${Python3_PROGRAM})
endmacro()
