# PELAB_NUMPY_PYTHON: a python3 that has numpy and PyYAML. The first of PATH need not be the one
# that the system's packages are for.
function(pelab_has_numpy result candidate)
  execute_process(COMMAND ${candidate} -c "import numpy, yaml" RESULT_VARIABLE status OUTPUT_QUIET
                  ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(PELAB_NUMPY_PYTHON NAMES python3 VALIDATOR pelab_has_numpy)
if(NOT PELAB_NUMPY_PYTHON)
  message(FATAL_ERROR
          "no python3 with numpy and PyYAML, which the tests need: run deploy/install-deps.sh "
          "(Debian: python3-numpy python3-yaml), set PELAB_NUMPY_PYTHON, or configure with "
          "-DPELAB_WITH_TESTS=OFF")
endif()
