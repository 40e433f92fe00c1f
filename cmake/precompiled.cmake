# tw_precompiled(<target> library|test|tool): the target's units begin with headers of others that most of them read, parsed
# once for all: a sixth of the time of compiling. Only where sources are compiled in units (cmake/units.cmake) and the build is ours:
# in the preset dev and in a user's project each source reads what it includes, and `make lint` finds one that lacks an #include
# (scripts/check_units.py).
# They are compiled as what reads them is: a library's by -O2 -fPIC -fvisibility=hidden, a tool's (a program with a command line, of
# ours or of the tests) and a test's by TW_LESS_OPTIMIZATION -fPIE.
set(TW_PRECOMPILED_library <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstdint> <cstdlib> <cstring> <filesystem>
  <fmt/format.h> <fmt/ranges.h> <fstream> <functional> <limits> <map> <memory> <mutex> <numbers> <numeric> <optional> <random> <set> <span>
  <sstream> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>)
set(TW_PRECOMPILED_test ${TW_PRECOMPILED_library} <gtest/gtest.h>)
set(TW_PRECOMPILED_tool ${TW_PRECOMPILED_library} <CLI/CLI.hpp>)

function(tw_precompiled target kind)
  if(NOT PROJECT_IS_TOP_LEVEL OR NOT CMAKE_UNITY_BUILD OR NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    return()
  endif()
  if(NOT TARGET tw_precompiled_${kind})
    set(empty ${PROJECT_BINARY_DIR}/precompiled/empty.cpp)
    file(CONFIGURE OUTPUT ${empty} CONTENT "// A target has a source.\n")
    add_library(tw_precompiled_${kind} OBJECT ${empty})
    target_link_libraries(tw_precompiled_${kind} PRIVATE tw_flags)
    if(kind STREQUAL library)
      set_target_properties(tw_precompiled_${kind} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    else()
      if(kind STREQUAL test)
        target_link_libraries(tw_precompiled_${kind} PRIVATE GTest::gtest)
      endif()
      target_compile_options(tw_precompiled_${kind} PRIVATE ${TW_LESS_OPTIMIZATION} -fPIE)
      set_target_properties(tw_precompiled_${kind} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    endif()
    target_precompile_headers(tw_precompiled_${kind} PRIVATE ${TW_PRECOMPILED_${kind}})
  endif()
  target_precompile_headers(${target} REUSE_FROM tw_precompiled_${kind})
  # Behind them g++ 12 finds more that is not there (-Wno-restrict, cmake/tilewright.cmake): it says so still.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-error=stringop-overflow -Wno-error=array-bounds -Wno-error=maybe-uninitialized)
  endif()
endfunction()
