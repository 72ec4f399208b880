# What the window is built on: Dear ImGui and ImPlot (PyPI, unpacked by cmake/setup.sh), GLFW, OpenGL, FreeType and fonts
# (Debian; fonts.cmake). With any of it missing COMERA_WINDOW_MISSING says what, and everything but the window is built.
#   comera_imgui         Dear ImGui and ImPlot, without a window: the interface and its tests link this
#   comera_imgui_window  its GLFW and OpenGL backends: only the program links this
set(COMERA_WINDOW_MISSING "")
set(COMERA_IMGUI_DIR ${COMERA_PYPI_DIR}/imgui_bundle)
if(NOT EXISTS ${COMERA_IMGUI_DIR}/imgui/imgui.cpp OR NOT EXISTS ${COMERA_IMGUI_DIR}/implot/implot.cpp)
  list(APPEND COMERA_WINDOW_MISSING "Dear ImGui and ImPlot (PyPI)")
endif()
find_package(glfw3 3.3 QUIET)
if(NOT TARGET glfw)
  list(APPEND COMERA_WINDOW_MISSING "libglfw3-dev")
endif()
set(OpenGL_GL_PREFERENCE GLVND)
find_package(OpenGL QUIET)
if(NOT TARGET OpenGL::GL)
  list(APPEND COMERA_WINDOW_MISSING "libgl-dev")
endif()
if(NOT TARGET Freetype::Freetype)
  list(APPEND COMERA_WINDOW_MISSING "libfreetype-dev")
endif()
find_file(COMERA_FONT_NUMBERS JetBrainsMono-Regular.ttf PATHS ${COMERA_FONT_FOLDERS} NO_DEFAULT_PATH)
if(NOT COMERA_FONT_TEXT OR NOT COMERA_FONT_BOLD)
  list(APPEND COMERA_WINDOW_MISSING "fonts-inter")
endif()
if(NOT COMERA_FONT_NUMBERS)
  list(APPEND COMERA_WINDOW_MISSING "fonts-jetbrains-mono")
endif()

if(COMERA_WINDOW_MISSING)
  list(JOIN COMERA_WINDOW_MISSING ", " missing)
  message(STATUS "Window: left out, missing are: ${missing} (cmake/setup.sh --retry gets them); the command line has everything")
  return()
endif()
message(STATUS "Window: Dear ImGui and ImPlot from PyPI (imgui-bundle), GLFW ${glfw3_VERSION}")

# Not our code: no warnings, no sanitizers (ImPlot's templates then take many minutes and gigabytes to build), and
# optimised in every build type, since a window at -O0 is too slow to judge.
function(comera_third_party target)
  target_compile_options(${target} PRIVATE -w $<IF:$<BOOL:${COMERA_SANITIZE}>,-O1;-fno-sanitize=all,-O2>)
  set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY "" EXPORT_COMPILE_COMMANDS OFF UNITY_BUILD OFF)
endfunction()

set(imgui ${COMERA_IMGUI_DIR}/imgui)
set(implot ${COMERA_IMGUI_DIR}/implot)
add_library(comera_imgui STATIC
  ${imgui}/imgui.cpp ${imgui}/imgui_draw.cpp ${imgui}/imgui_tables.cpp ${imgui}/imgui_widgets.cpp ${imgui}/imgui_stacklayout.cpp
  ${imgui}/misc/freetype/imgui_freetype.cpp ${imgui}/backends/imgui_impl_null.cpp
  ${implot}/implot.cpp ${implot}/implot_items.cpp)
target_include_directories(comera_imgui SYSTEM PUBLIC ${imgui} ${imgui}/backends ${implot})
target_compile_definitions(comera_imgui PUBLIC IMGUI_ENABLE_FREETYPE IMGUI_DISABLE_OBSOLETE_FUNCTIONS IMGUI_DISABLE_DEMO_WINDOWS)
# Only double is drawn. ImPlot's templates for all its types took three minutes of one core in every build type.
target_compile_definitions(comera_imgui PRIVATE "IMPLOT_CUSTOM_NUMERIC_TYPES=(double)")
target_link_libraries(comera_imgui PUBLIC Freetype::Freetype)
comera_third_party(comera_imgui)

add_library(comera_imgui_window STATIC ${imgui}/backends/imgui_impl_glfw.cpp ${imgui}/backends/imgui_impl_opengl3.cpp)
target_link_libraries(comera_imgui_window PUBLIC comera_imgui glfw OpenGL::GL ${CMAKE_DL_LIBS})
comera_third_party(comera_imgui_window)

# Beside those of pictures: that of numbers, and what About shows.
comera_embed(comera_fonts font_numbers ${COMERA_FONT_NUMBERS})
comera_embed(comera_fonts license ${CMAKE_SOURCE_DIR}/LICENSE)
