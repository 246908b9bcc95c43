# Debian's LibTorch asks for OpenCV, FFmpeg and others of which it uses no symbol. With what these
# ask for in turn, a trainer would load 285 libraries; it loads 59 if they are left out, in 55 % of
# the time and with 70 MB less memory (docs/adr/0058-libraries-left-out.md).

# pelab_stand_ins(LIBRARY FOLDER RESULT): writes into FOLDER an empty library for each that LIBRARY
# asks for and does not use, with its name. RESULT gets their paths. It is empty, and so is FOLDER,
# if every library is used or if another one of the process would miss a symbol. Libraries that
# pelab links itself stay, because a program may need them beside LibTorch.
#
# Stand-ins are tried in another folder. Those that pass then replace the previous ones one by
# one. A trainer that is started meanwhile never loads one that other libraries need.
function(pelab_stand_ins library folder result)
  set(tried ${CMAKE_BINARY_DIR}/CMakeFiles/pelab_stand_ins)
  pelab_try_stand_ins(${library} ${tried} names)
  set(made)
  file(MAKE_DIRECTORY ${folder})
  foreach(name IN LISTS names)
    file(RENAME ${tried}/${name} ${folder}/${name})
    list(APPEND made ${folder}/${name})
  endforeach()
  file(GLOB files ${folder}/*)
  foreach(path IN LISTS files)
    if(NOT path IN_LIST made)
      file(REMOVE ${path})
    endif()
  endforeach()
  set(${result} ${made} PARENT_SCOPE)
endfunction()

# RESULT gets the names of the stand-ins, which are left in FOLDER.
function(pelab_try_stand_ins library folder result)
  set(${result} "" PARENT_SCOPE)
  file(REMOVE_RECURSE ${folder})
  execute_process(COMMAND ldd -u ${library} OUTPUT_VARIABLE unused ERROR_QUIET)
  string(REGEX MATCHALL "/[^ \t\n]+\\.so[^ \t\n]*" unused "${unused}")
  set(made)
  file(MAKE_DIRECTORY ${folder})
  foreach(path IN LISTS unused)
    get_filename_component(name ${path} NAME)
    if(name MATCHES "^lib(absl_.*|crypto|curl|fmt|grpc.*|protobuf|spdlog|sqlite3|ssl|z|zip)\\.so")
      continue()
    endif()
    execute_process(
      COMMAND ${CMAKE_CXX_COMPILER} -shared -nostdlib -s -Wl,--no-as-needed
              -Wl,-z,relro,-z,now,-soname,${name} -lc -o ${folder}/${name} -x c++ /dev/null
      COMMAND_ERROR_IS_FATAL ANY)
    list(APPEND made ${name})
  endforeach()
  pelab_missed(${library} ${folder} missed)
  foreach(name IN LISTS made)
    string(FIND "${missed}" "${folder}/${name}: no version" at)
    if(NOT at EQUAL -1)  # another library of the process uses the real one
      list(REMOVE_ITEM made ${name})
      file(REMOVE ${folder}/${name})
    endif()
  endforeach()
  pelab_missed(${library} ${folder} missed)
  if(missed)
    return()
  endif()
  set(${result} ${made} PARENT_SCOPE)
endfunction()

# RESULT gets the symbols and versions that LIBRARY, and all that it loads, miss with the stand-ins
# of FOLDER; "" if they miss nothing.
function(pelab_missed library folder result)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${folder} LC_ALL=C ldd -r ${library}
    OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(REGEX MATCHALL "[^\n]*(undefined symbol|no version|not found)[^\n]*" missed "${said}")
  set(${result} "${missed}" PARENT_SCOPE)
endfunction()

# pelab_leave_out(TARGET STAND_INS…): programs that link TARGET load the stand-ins, which are in
# ../lib/pelab-trainer/empty as seen from the program, where it is built and where it is installed.
# The libraries that a program names itself are loaded before those that LibTorch names, and a name
# that is taken is not loaded again.
function(pelab_leave_out target)
  list(JOIN ARGN , files)
  # They come behind LibTorch, because a symbol is looked up in the libraries in their order. Ninja
  # and make both write $$ for the dollar.
  target_link_libraries(${target} INTERFACE
    "-Wl,--push-state,--no-as-needed,${files},--pop-state"
    "-Wl,-rpath,'$$ORIGIN/../lib/pelab-trainer/empty'")
endfunction()
