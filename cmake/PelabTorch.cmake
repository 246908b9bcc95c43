# pelab_torch: LibTorch, wherever it is. In this order: CMAKE_PREFIX_PATH or Torch_DIR, the LibTorch
# inside python3's torch, the system's package (docs/adr/0003-libtorch-versions.md).

set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL TRUE)  # the tests link LibTorch too, from another folder
# LibTorch's files would ask the GPU for its architecture, which fails on a host that has none, and
# add it to the flags of the kernels. These choose their own (worker/trainer/kernels).
if(NOT DEFINED TORCH_CUDA_ARCH_LIST AND NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST})
  set(TORCH_CUDA_ARCH_LIST 9.0)
endif()
set(pelab_cuda_flags "${CMAKE_CUDA_FLAGS}")
find_package(Torch QUIET NO_CMAKE_SYSTEM_PATH NO_CMAKE_PACKAGE_REGISTRY NO_SYSTEM_ENVIRONMENT_PATH)
if(NOT Torch_FOUND)
  execute_process(
    COMMAND python3 -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE pelab_python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                    RESULT_VARIABLE pelab_python_failed)
  if(NOT pelab_python_failed AND EXISTS "${pelab_python_torch}/Torch")
    find_package(Torch QUIET PATHS ${pelab_python_torch} NO_DEFAULT_PATH)
  endif()
endif()
if(NOT Torch_FOUND)
  find_package(Torch QUIET)
endif()
if(NOT Torch_FOUND)
  message(FATAL_ERROR
    "LibTorch was not found. Install libtorch-dev (Debian), or name one with "
    "-DTorch_DIR=…/share/cmake/Torch or "
    "-DCMAKE_PREFIX_PATH=…, or configure with -DPELAB_WITH_TRAINER=OFF (preset no-torch) to build "
    "without the trainer.")
endif()
set(CMAKE_CUDA_FLAGS "${pelab_cuda_flags}")
message(STATUS "LibTorch ${Torch_VERSION}: ${TORCH_INSTALL_PREFIX}")

add_library(pelab_torch INTERFACE)
target_link_libraries(pelab_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(pelab_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
# the C++ ABI that it was built with
separate_arguments(pelab_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(pelab_torch INTERFACE ${pelab_torch_flags})

# A LibTorch from elsewhere may open libraries while it runs, which no tool sees.
if(TORCH_INSTALL_PREFIX STREQUAL "/usr")
  include(PelabUnusedLibraries)
  get_target_property(pelab_torch_cpu torch_cpu LOCATION)
  pelab_stand_ins(${pelab_torch_cpu} ${CMAKE_BINARY_DIR}/lib/pelab-trainer/empty
    pelab_torch_stand_ins)
  if(pelab_torch_stand_ins)
    pelab_leave_out(pelab_torch ${pelab_torch_stand_ins})
    install(FILES ${pelab_torch_stand_ins} DESTINATION lib/pelab-trainer/empty
      COMPONENT pelab-trainer)
  endif()
endif()
