# tw_commit(<target>): the commit that <target> is built from, as `const std::string_view tilewright::embedded::commit`: "6c4e79589abc",
# with "-dirty" where files differ, "" outside of a checkout. The same file is the script that every build runs.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.24)
  set(commit "")
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude *
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE unknown)
  # An unpacked archive inside of another project's checkout has no commit.
  if(failed OR unknown OR NOT top STREQUAL SOURCE)
    set(commit "")
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "// Written by cmake/commit.cmake.
#include <string_view>

namespace tilewright::embedded {
extern const std::string_view commit;
constinit const std::string_view commit = \"@commit@\";
}  // namespace tilewright::embedded
")  # left as it is where nothing changed
  return()
endif()

set(TW_COMMIT_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(tw_commit target)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/commit.cpp)
  add_custom_target(${target}_commit BYPRODUCTS ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} -P ${TW_COMMIT_SCRIPT}
    COMMENT "Asking git for the commit" VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${output})
  add_dependencies(${target} ${target}_commit)
endfunction()
