# The project's compile flags and the few functions with which every folder declares its targets.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# `pelab run` finds its siblings beside it
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(PELAB_CCACHE ccache)
if(PELAB_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PELAB_CCACHE})
endif()
find_program(PELAB_MOLD mold)
if(PELAB_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(PELAB_SANITIZE)
  add_compile_options(-fsanitize=${PELAB_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PELAB_SANITIZE})
endif()

# What makes the exploit of a mistake harder; tests/e2e/test_hardening.py looks for it in the
# programs. FORTIFY needs optimization, and sanitizers have checks of their own.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fcf-protection>)
endif()
if(NOT PELAB_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE>
    $<$<COMPILE_LANGUAGE:CXX>:-D_FORTIFY_SOURCE=2>)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

# Tests are compiled often and run once: what they test keeps its own flags.
set(PELAB_TEST_OPTIONS -O1)
set(PELAB_MOVES_DATA_OPTIONS -O1)
if(PELAB_SANITIZE AND NOT PELAB_FUZZ)
  # optimizing the sanitizers' checks doubles the time of a compilation
  set(PELAB_TEST_OPTIONS -O0)
  set(PELAB_MOVES_DATA_OPTIONS -O0)
endif()

add_library(pelab_flags INTERFACE)
target_compile_features(pelab_flags INTERFACE cxx_std_20)
target_compile_options(pelab_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # false alarms on std::string (GCC bug 105651)
  target_compile_options(pelab_flags INTERFACE -Wno-restrict)
endif()
target_include_directories(pelab_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_definitions(pelab_flags INTERFACE PELAB_VERSION="${PROJECT_VERSION}")

# pelab_library(NAME SOURCES… DEPS…): a static library. One that moves data and computes little says
# so by MOVES_DATA. It is then compiled with -O1, and under a sanitizer with -O0. This saves a third
# of the time or more.
function(pelab_library name)
  cmake_parse_arguments(ARG "MOVES_DATA" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC pelab_flags ${ARG_DEPS})
    if(ARG_MOVES_DATA)
      target_compile_options(${name} PRIVATE ${PELAB_MOVES_DATA_OPTIONS})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE pelab_flags ${ARG_DEPS})
  endif()
endfunction()

# pelab_binary(NAME SOURCES… DEPS…): an installed program.
function(pelab_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pelab_flags ${ARG_DEPS})
  install(TARGETS ${name} RUNTIME)
endfunction()

# pelab_test(NAME SOURCES… DEPS…): one GoogleTest binary; each of its cases is a ctest test.
function(pelab_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pelab_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${PELAB_TEST_OPTIONS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE PELAB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(timeout 120)
  if(PELAB_SANITIZE)
    set(timeout 600)  # up to ten times as slow
  endif()
  gtest_discover_tests(${name} PROPERTIES TIMEOUT ${timeout} LABELS ${name} DISCOVERY_TIMEOUT 60)
endfunction()

# pelab_never_links(NAME OTHERS…): configuring fails where one of OTHERS is among the libraries of
# NAME, however far.
function(pelab_never_links name)
  set(open ${name})
  set(seen)
  while(open)
    list(POP_FRONT open library)
    list(APPEND seen ${library})
    if(library IN_LIST ARGN)
      message(FATAL_ERROR "${name} links ${library}, which it must not (docs/ARCHITECTURE.md)")
    endif()
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      set(links)
      if(TARGET ${library})
        get_target_property(links ${library} ${property})
      endif()
      foreach(link IN LISTS links)
        string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
        if(link AND NOT link IN_LIST seen AND NOT link IN_LIST open)
          list(APPEND open ${link})
        endif()
      endforeach()
    endforeach()
  endwhile()
endfunction()
