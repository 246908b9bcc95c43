# PELAB_PANDAS_PYTHON: a python3 that can use the Python package: grpc, pandas and protobuf; also
# setuptools, wheel and pip, which make its wheel.
function(pelab_has_pandas result candidate)
  execute_process(COMMAND ${candidate} -c
                  "import setuptools, wheel, pip, google.protobuf, grpc, pandas, scipy"
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(PELAB_PANDAS_PYTHON NAMES python3 VALIDATOR pelab_has_pandas)
if(NOT PELAB_PANDAS_PYTHON AND PELAB_WITH_TESTS)
  message(FATAL_ERROR "no python3 with grpc, pandas, protobuf, scipy, pip, setuptools and wheel, "
          "which the tests of the Python "
                      "package need: run deploy/install-deps.sh, set PELAB_PANDAS_PYTHON, or "
                      "configure with -DPELAB_WITH_TESTS=OFF")
endif()
