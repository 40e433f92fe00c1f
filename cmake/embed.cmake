# tw_embed(<target> <name> <file>): the text of <file> as `const std::string_view tilewright::embedded::<name>` in <target>.
# Call it after tw_folder; whoever reads the text declares it:
#   namespace tilewright::embedded { extern const std::string_view name; }
# The same file is the script that the build runs (cmake -P) whenever <file> changes.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} text)
  string(LENGTH "${text}" length)
  # Compilers only promise 64 KiB per literal: longer texts become adjacent literals.
  set(literals "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 16000 chunk)
    string(APPEND literals "    R\"tw_embed(${chunk})tw_embed\"\n")
    math(EXPR at "${at} + 16000")
  endwhile()
  if(literals STREQUAL "")
    set(literals "    \"\"\n")
  endif()
  file(WRITE ${OUTPUT} "// Generated from ${INPUT} by cmake/embed.cmake.\n#include <string_view>\n\nnamespace tilewright::embedded {\n"
    "extern const std::string_view ${NAME};\nconstinit const std::string_view ${NAME} =\n${literals};\n}\n")
  return()
endif()

set(TW_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(tw_embed target name file)
  get_filename_component(input ${file} ABSOLUTE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embed_${name}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DNAME=${name} -P ${TW_EMBED_SCRIPT}
    DEPENDS ${input} ${TW_EMBED_SCRIPT} COMMENT "Embedding ${file}" VERBATIM)
  # All that is embedded in a target is compiled at once (cmake/units.cmake).
  set_source_files_properties(${output} PROPERTIES UNITY_GROUP embedded)
  target_sources(${target} PRIVATE ${output})
endfunction()

# tw_embed_folder(<backend> <folder> <pattern>): every file that matches, under the name kernels include it by, as the table
# device_headers() of the backend's device_headers.h.
function(tw_embed_folder FOLDER HEADER root pattern)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/${root} ${CMAKE_CURRENT_SOURCE_DIR}/${root}/${pattern})
  set(DEVICE_HEADER_EXTERNS "")
  set(DEVICE_HEADER_ROWS "")
  foreach(file ${files})
    string(MAKE_C_IDENTIFIER ${file} symbol)
    tw_embed(tw_${FOLDER} ${symbol} ${root}/${file})
    string(APPEND DEVICE_HEADER_EXTERNS "extern const std::string_view ${symbol};\n")
    string(APPEND DEVICE_HEADER_ROWS "    {\"${file}\", embedded::${symbol}},\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/device_headers.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/device_headers.cpp @ONLY)
  target_sources(tw_${FOLDER} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/device_headers.cpp)
endfunction()
