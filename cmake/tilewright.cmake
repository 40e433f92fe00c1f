# One target per folder: tw_folder(<name> [BACKEND] [FOLDERS ...] DEPS ...) makes library tw_<name> from the .cpp files of the folder
# and of these folders in it, and from its *_test.cpp files the test program test_<name>. Of a BACKEND it makes libtw_<name>.so, too:
# target tw_<name>_backend, the same objects behind backend_entry.cpp.
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
if(TILEWRIGHT_TESTS)
  find_package(GTest REQUIRED)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/commit.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/units.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake)

# The test programs of the folders, labelled `unit`: what the sanitizers run.
if(TILEWRIGHT_TESTS)
  add_custom_target(unit_tests)
endif()

# How all of ours is compiled and linked; the tutorial, which is written as users write, takes this and no folder of src/.
add_library(tw_options INTERFACE)
# Warnings are errors here; a user's project that links the library keeps its own flags.
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(tw_options INTERFACE -Wall -Wextra -Werror)
endif()
target_compile_options(tw_options INTERFACE -Wno-missing-field-initializers
  # What stands in the text of a program is the same wherever it was built.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  # What the public headers declare is shown, with members of types that are not: no mistake where all are one library.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-attributes>
  # What a source of a unit keeps to itself may be part of what it defines, as in a source alone.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  # -O2 compiles in 13 % less time than -O3 and gives loops over host memory the same vectors, if these may have a rest.
  $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # g++ 12 sees overlaps in std::string + that are not there (GCC bug 105651)
  # libstdc++ 12 uses in stable_sort what it deprecates; a backend's entry returns a Result to C++ under a C name.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations;-Wno-return-type-c-linkage>)
if(TILEWRIGHT_SANITIZE)
  target_compile_options(tw_options INTERFACE -fsanitize=${TILEWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tw_options INTERFACE -fsanitize=${TILEWRIGHT_SANITIZE})
endif()
if(TILEWRIGHT_FUZZ)
  target_compile_options(tw_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(tw_options INTERFACE -fsanitize=address,undefined)
endif()
add_library(tw_flags INTERFACE)
target_include_directories(tw_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tw_flags INTERFACE tw_options fmt::fmt Threads::Threads)

# tw_test(<name> <target> ARGUMENTS...): a ctest. It finds the NVRTC that scripts/setup.sh may have put into .cache, and the
# environment's before it; what it compiles is cached in the build folder, not in the user's. Of what is drawn at random it tries
# one of TW_DRAWS (tests/support/draws.h), unless the environment says another number: `make test-long` says 1.
set(TW_DRAWS 6)

# Tests that take long are begun first, so that no core waits at the end; in a fresh clone ctest knows of no times but these.
include(${CMAKE_CURRENT_LIST_DIR}/test_seconds.cmake)

function(tw_test name target)
  add_test(NAME ${name} COMMAND ${target} ${ARGN})
  if(DEFINED TW_SECONDS_${name})
    set_tests_properties(${name} PROPERTIES COST ${TW_SECONDS_${name}})
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION
    "TILEWRIGHT_DRAWS=path_list_append:${TW_DRAWS};TILEWRIGHT_NVRTC=path_list_append:${PROJECT_SOURCE_DIR}/.cache/nvrtc;XDG_CACHE_HOME=set:${PROJECT_BINARY_DIR}/test-cache;LSAN_OPTIONS=set:suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp")
endfunction()

# Tests and tools are compiled more often than they run long: Clang's -O0 takes half the time of its -O1. For g++ -Og is the quickest:
# its -O0 writes twice the code.
set(TW_LESS_OPTIMIZATION $<$<CONFIG:Release>:$<IF:$<CXX_COMPILER_ID:Clang>,-O0,-Og>>)

# What tw_optimised_code_first() puts first in tests that are linked with the whole library.
set(TW_LIBRARY_FOLDERS tw_tensor tw_runtime tw_passes tw_ops tw_ir tw_tile tw_perf tw_base)

# tw_optimised_code_first(<program> <libraries>): the linker takes the first copy that it meets of a template that program and library
# have both instantiated, which would be the program's, by -O0. So whole archives come before the program's objects.
function(tw_optimised_code_first program)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR TILEWRIGHT_FOLDERS_SHARED OR TILEWRIGHT_SANITIZE)
    return()
  endif()
  set(archives)
  foreach(library IN LISTS ARGN)
    if(TARGET ${library})
      get_target_property(type ${library} TYPE)
      if(type STREQUAL "STATIC_LIBRARY")
        list(APPEND archives $<TARGET_FILE:${library}>)
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES archives)
  target_link_options(${program} PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
endfunction()

# tw_tool(<program> [<most>]): a program with a command line, in units of <most> sources (tw_units). What it is to measure by code of
# its own, which is not optimised, it has in a library, and tw_optimised_code_first() takes that library's.
function(tw_tool program)
  target_compile_options(${program} PRIVATE ${TW_LESS_OPTIMIZATION})
  tw_units(${program} ${ARGN})
  tw_precompiled(${program} tool)
endfunction()

# tw_backend(<name> <libraries>): libtw_<name>.so, which shows nothing but its entry, cmake/backend.map.
function(tw_backend name)
  add_library(tw_${name}_backend MODULE backend_entry.cpp $<TARGET_OBJECTS:tw_${name}>)
  set_property(GLOBAL APPEND PROPERTY TW_BACKENDS tw_${name}_backend)
  target_link_libraries(tw_${name}_backend PRIVATE tw_flags ${ARGN})
  tw_shows(tw_${name}_backend ${PROJECT_SOURCE_DIR}/cmake/backend.map)
  # It finds LLVM where the build found it.
  set_target_properties(tw_${name}_backend PROPERTIES OUTPUT_NAME tw_${name} INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

# tw_shows(<library> <file>): the symbols of a shared library that others see.
function(tw_shows library file)
  target_link_options(${library} PRIVATE LINKER:--version-script=${file})
  if(NOT TILEWRIGHT_SANITIZE AND NOT TILEWRIGHT_FUZZ)  # a sanitizer's functions are the program's
    target_link_options(${library} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(${library} PROPERTIES LINK_DEPENDS ${file} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

function(tw_folder name)
  cmake_parse_arguments(ARG "BACKEND" "" "FOLDERS;DEPS;LIBS;TEST_DEPS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE folders)
  list(PREPEND folders ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM folders APPEND /*.cpp OUTPUT_VARIABLE globs)
  file(GLOB sources CONFIGURE_DEPENDS ${globs})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "backend_entry\\.cpp$")
  list(TRANSFORM ARG_DEPS PREPEND tw_)
  list(TRANSFORM ARG_TEST_DEPS PREPEND tw_)
  if(sources)
    if(TILEWRIGHT_FOLDERS_SHARED)
      add_library(tw_${name} SHARED ${sources})
      set_target_properties(tw_${name} PROPERTIES OUTPUT_NAME tw_folder_${name})  # libtw_cuda.so is the backend
    else()
      add_library(tw_${name} STATIC ${sources})
      # What the public headers do not declare is nobody's but ours (include/tilewright/, visibility).
      set_target_properties(tw_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
    target_link_libraries(tw_${name} PUBLIC tw_flags ${ARG_DEPS} PRIVATE ${ARG_LIBS})
    tw_units(tw_${name})
    tw_precompiled(tw_${name} library)
  else()
    add_library(tw_${name} INTERFACE)
    target_link_libraries(tw_${name} INTERFACE tw_flags ${ARG_DEPS})
  endif()
  if(ARG_BACKEND)
    tw_backend(${name} ${ARG_DEPS} ${ARG_LIBS})
  endif()
  if(TILEWRIGHT_TESTS AND tests)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE tw_${name} ${ARG_TEST_DEPS} GTest::gtest GTest::gtest_main)
    target_compile_options(test_${name} PRIVATE ${TW_LESS_OPTIMIZATION})
    tw_optimised_code_first(test_${name} tw_${name} ${ARG_DEPS} ${ARG_TEST_DEPS})
    tw_test(${name} test_${name} --gtest_brief=1)
    set_property(TEST ${name} PROPERTY LABELS unit)
    add_dependencies(unit_tests test_${name})
    tw_units(test_${name})
    tw_precompiled(test_${name} test)
  endif()
endfunction()

# tw_needs_backends(<program>): the program opens backends at run time, so building it builds them.
function(tw_needs_backends program)
  get_property(backends GLOBAL PROPERTY TW_BACKENDS)
  add_dependencies(${program} ${backends})
endfunction()
