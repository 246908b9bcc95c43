# The project's compile flags and the few functions with which every folder declares its targets.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# `pelab run` finds its siblings beside it
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(PELAB_CCACHE ccache)
if(PELAB_CCACHE)
  # The compiler lists the files that it read, for ninja. ccache takes that list with CCACHE_DEPEND;
  # without it, each source that is not in the cache goes through the preprocessor twice.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1 ${PELAB_CCACHE})
endif()
find_program(PELAB_MOLD mold)
if(PELAB_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(PELAB_SANITIZE)
  add_compile_options(-fsanitize=${PELAB_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PELAB_SANITIZE})
  if(PELAB_SANITIZE MATCHES undefined AND NOT PELAB_FUZZ)
    # Each check of UBSan has addresses to relocate: without them a program starts in half the time.
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
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
set(PELAB_TEST_OPTIONS -Og)
set(PELAB_MOVES_DATA_OPTIONS -Og)
if(PELAB_SANITIZE AND NOT PELAB_FUZZ)
  # optimizing the sanitizers' checks doubles the time of a compilation
  set(PELAB_TEST_OPTIONS -O0)
  set(PELAB_MOVES_DATA_OPTIONS -O0)
endif()
if(PELAB_SANITIZE MATCHES undefined AND NOT PELAB_FUZZ)
  # These three checks take a quarter of the time that a test's compilation takes. AddressSanitizer
  # ends a test at a null pointer too.
  list(APPEND PELAB_TEST_OPTIONS -fno-sanitize=null,vptr,alignment)
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

# GCC's collector runs all the time with its default heap, which the headers of gRPC and LibTorch
# fill alone: a heap of 600 MB saves a tenth of the time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(pelab_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=600000>
    $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-expand=100>)
endif()

# pelab_library(NAME SOURCES… DEPS… [PRIVATE_DEPS…] [MOVES_DATA | COMPUTES] [GROUP G]): a static
# library. Only its own sources include the headers of PRIVATE_DEPS. One that moves data and
# computes little says so by MOVES_DATA. It is then compiled with -Og, and under a sanitizer with
# -O0, which saves a third of the time. One whose loops take the time of a run says COMPUTES, for
# -O2. Where sources are compiled in groups (CMAKE_UNITY_BUILD), the libraries of a GROUP are
# compiled together, since each unit spends five seconds on the same headers and templates
# (docs/adr/0061). The preset dev compiles each by itself.
function(pelab_library name)
  cmake_parse_arguments(ARG "MOVES_DATA;COMPUTES" "GROUP" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE pelab_flags ${ARG_DEPS})
    return()
  endif()
  if(ARG_GROUP AND ARG_COMPUTES)
    message(FATAL_ERROR "${name}: a library of a group cannot say COMPUTES")
  endif()
  if(ARG_GROUP AND CMAKE_UNITY_BUILD)
    pelab_join_group(${name} ${ARG_GROUP} ${ARG_MOVES_DATA} SOURCES ${ARG_SOURCES}
      DEPS ${ARG_DEPS} PRIVATE_DEPS ${ARG_PRIVATE_DEPS})
    return()
  endif()
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC pelab_flags ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  if(ARG_MOVES_DATA)
    target_compile_options(${name} PRIVATE ${PELAB_MOVES_DATA_OPTIONS})
  elseif(ARG_COMPUTES AND NOT PELAB_SANITIZE)
    target_compile_options(${name} PRIVATE -O2)
  endif()
endfunction()

# pelab_join_group(NAME GROUP MOVES_DATA SOURCES… DEPS… PRIVATE_DEPS…): the sources go into the
# archive pelab_GROUP_group, and NAME is what links it.
function(pelab_join_group name group moves_data)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  set(archive pelab_${group}_group)
  if(NOT TARGET ${archive})
    add_library(${archive} STATIC)
    target_link_libraries(${archive} PUBLIC pelab_flags)
    set_property(TARGET ${archive} PROPERTY PELAB_MOVES_DATA ${moves_data})
    if(moves_data)
      target_compile_options(${archive} PRIVATE ${PELAB_MOVES_DATA_OPTIONS})
    endif()
  endif()
  get_target_property(all_move_data ${archive} PELAB_MOVES_DATA)
  if(NOT moves_data STREQUAL all_move_data)
    message(FATAL_ERROR "${name}: all libraries of the group ${group} are MOVES_DATA, or none is")
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
  target_sources(${archive} PRIVATE ${ARG_SOURCES})
  set_property(TARGET ${archive} APPEND PROPERTY PELAB_MEMBERS ${name})
  add_library(${name} INTERFACE)
  set_property(TARGET ${name} PROPERTY PELAB_ARCHIVE ${archive})
  target_link_libraries(${name} INTERFACE ${archive} ${ARG_DEPS})
  foreach(library IN LISTS ARG_PRIVATE_DEPS)
    target_link_libraries(${name} INTERFACE $<LINK_ONLY:${library}>)
  endforeach()
  get_target_property(members ${archive} PELAB_MEMBERS)
  list(REMOVE_ITEM ARG_DEPS ${members})
  target_link_libraries(${archive} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# pelab_compiled_in(NAME RESULT): the target that compiles the sources of library NAME.
function(pelab_compiled_in name result)
  get_target_property(archive ${name} PELAB_ARCHIVE)
  if(archive)
    set(${result} ${archive} PARENT_SCOPE)
  else()
    set(${result} ${name} PARENT_SCOPE)
  endif()
endfunction()

# pelab_binary(NAME [CALLS] SOURCES… DEPS…): an installed program, in a component of its own. A
# program that makes or answers calls says CALLS. Its libraries with the most symbols then come
# first: the loader looks for each symbol in one library after the other, which is half of a start's
# time (docs/adr/0064).
function(pelab_binary name)
  cmake_parse_arguments(ARG "CALLS" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_CALLS)
    target_link_options(${name} PRIVATE
      "LINKER:--push-state,--no-as-needed" "$<TARGET_FILE:gRPC::grpc>"
      "$<TARGET_FILE:protobuf::libprotobuf>" -lstdc++ "LINKER:--pop-state")
  endif()
  target_link_libraries(${name} PRIVATE pelab_flags ${ARG_DEPS})
  # A program's own sources read flags and call its libraries.
  target_compile_options(${name} PRIVATE ${PELAB_MOVES_DATA_OPTIONS})
  install(TARGETS ${name} RUNTIME COMPONENT ${name})
endfunction()

# pelab_test(NAME SOURCES… DEPS… [SHARDS N] [SUITES…] [SECONDS S]): one GoogleTest binary, and one
# ctest test, since each start of a binary costs a tenth of a second before its first case. A long
# one is several ctest tests, which run beside each other: each of SUITES is a test of its own,
# NAME.SUITE, and the other cases are shared out over N tests, NAME.1 to NAME.N. SECONDS are those
# of the longest of them: long tests begin first.
function(pelab_test name)
  cmake_parse_arguments(ARG "" "SHARDS;SECONDS" "SOURCES;DEPS;SUITES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pelab_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${PELAB_TEST_OPTIONS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE PELAB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set(tests)
  set(others "*-")
  foreach(suite IN LISTS ARG_SUITES)
    # The asterisk is for the prefix of suites with parameters.
    add_test(NAME ${name}.${suite} COMMAND ${name} --gtest_filter=*${suite}.*)
    list(APPEND tests ${name}.${suite})
    string(APPEND others "*${suite}.*:")
  endforeach()
  if(ARG_SHARDS)
    foreach(shard RANGE 1 ${ARG_SHARDS})
      add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_filter=${others})
      math(EXPR index "${shard} - 1")
      set_tests_properties(${name}.${shard} PROPERTIES ENVIRONMENT
        "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
      list(APPEND tests ${name}.${shard})
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=${others})
    list(APPEND tests ${name})
  endif()
  # These end what hangs. A busy machine takes four times as long as a quiet one.
  set(timeout 600)
  if(PELAB_SANITIZE)
    set(timeout 900)  # up to ten times as slow
  endif()
  set_tests_properties(${tests} PROPERTIES TIMEOUT ${timeout} LABELS ${name})
  if(ARG_SECONDS)
    set_tests_properties(${tests} PROPERTIES COST ${ARG_SECONDS})
  endif()
endfunction()

# pelab_test_part(NAME SOURCES… DEPS…): cases of another folder for the program NAME.
function(pelab_test_part name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  target_sources(${name} PRIVATE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# pelab_never_links(NAME OTHERS…): configuring fails where one of OTHERS is among the libraries of
# NAME, however far. An archive of a group brings all of its members along, except to NAME itself: a
# member is held to what it says that it links.
function(pelab_never_links name)
  set(open ${name})
  get_target_property(seen ${name} PELAB_ARCHIVE)
  while(open)
    list(POP_FRONT open library)
    list(APPEND seen ${library})
    if(library IN_LIST ARGN)
      message(FATAL_ERROR "${name} links ${library}, which it must not (docs/ARCHITECTURE.md)")
    endif()
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES PELAB_MEMBERS)
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
