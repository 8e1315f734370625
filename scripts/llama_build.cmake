# Read by CMake within llama.cpp's own project (bootstrap.py: CMAKE_PROJECT_llama.cpp_INCLUDE), and called at its end.
# libllama-common serves the chat shim alone (localagent/llm/chat/shim), and most of the compiler's time would go there
# into reading the same headers: what the shim's functions never reach is left out, what they do is compiled in few
# sources, with -O1, as the shim is. Should a later llama.cpp reach more, the linker says so. What evaluates a model is
# compiled as llama.cpp compiles it.
function(compile_common_faster)
  if(NOT TARGET llama-common)
    return()
  endif()
  set(common "${CMAKE_CURRENT_SOURCE_DIR}/common")
  get_target_property(sources llama-common SOURCES)
  list(FILTER sources EXCLUDE REGEX
    "^(arg|console|debug|download|hf-cache|imatrix-loader|llguidance|preset|subproc)\\.cpp$")
  get_target_property(libraries llama-common LINK_LIBRARIES)
  list(REMOVE_ITEM libraries cpp-httplib)
  set_target_properties(llama-common PROPERTIES SOURCES "${sources}" LINK_LIBRARIES "${libraries}")
  if(TARGET cpp-httplib)
    set_target_properties(cpp-httplib PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  target_compile_options(llama-common PRIVATE -O1)
  target_link_options(llama-common PRIVATE -Wl,-z,defs)

  file(GLOB parsers "${common}/parsers/*.cpp")
  file(GLOB chat "${common}/chat*.cpp" "${common}/peg-parser.cpp" "${common}/json-schema*.cpp")
  file(GLOB jinja "${common}/jinja/*.cpp")
  foreach(group parsers chat jinja)
    set_source_files_properties(${${group}} TARGET_DIRECTORY llama-common PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(llama-common PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_target_properties(llama PROPERTIES UNITY_BUILD_BATCH_SIZE 40)  # one function each, for 150 architectures
endfunction()
cmake_language(DEFER CALL compile_common_faster)
