# version_of_build.h: the version, and the commit where the sources are a git repository. A commit configures the build
# again, which takes a few seconds; the file changes with it, and one source includes it (core/session/version.cpp).
set(COMERA_COMMIT unknown)
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --short=10 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  # A repository further up holds something else.
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_SOURCE_DIR} rev-parse --show-prefix --git-path logs/HEAD
    OUTPUT_VARIABLE places OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND places MATCHES "^\n(.+)$")
    set(COMERA_COMMIT ${commit})
    get_filename_component(log ${CMAKE_MATCH_1} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
    if(EXISTS ${log})
      set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/version/version_of_build.h @ONLY CONTENT [[
#pragma once
#define COMERA_VERSION "@PROJECT_VERSION@"
#define COMERA_COMMIT "@COMERA_COMMIT@"
]])
