# PELAB_TORCH_PYTHON: a python3 that can use the Python package and has PyTorch, with which the
# tests write encodings of their own.
function(pelab_has_torch result candidate)
  execute_process(COMMAND ${candidate} -c
                  "import importlib.util, grpc, pandas; assert importlib.util.find_spec('torch')"
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_program(PELAB_TORCH_PYTHON NAMES python3 VALIDATOR pelab_has_torch)
if(NOT PELAB_TORCH_PYTHON AND PELAB_WITH_TESTS AND PELAB_WITH_TRAINER)
  message(FATAL_ERROR "no python3 with torch, grpc and pandas, which the tests of own encodings "
                      "need: run deploy/install-deps.sh, set PELAB_TORCH_PYTHON, or configure with "
                      "-DPELAB_WITH_TESTS=OFF")
endif()
