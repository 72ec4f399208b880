# FreeType and the fonts that pictures and the window write with (Debian). Without them comera_fonts is not there: no window
# is built and no PNG made; SVG names the font only.
find_package(Freetype QUIET)
set(COMERA_FONT_FOLDERS "/usr/share/fonts/opentype/inter;/usr/share/fonts/truetype/jetbrains-mono" CACHE STRING "Where the fonts are")
find_file(COMERA_FONT_TEXT Inter-Regular.otf PATHS ${COMERA_FONT_FOLDERS} NO_DEFAULT_PATH)
find_file(COMERA_FONT_BOLD Inter-SemiBold.otf PATHS ${COMERA_FONT_FOLDERS} NO_DEFAULT_PATH)

# The fonts become part of the program, so that it looks the same wherever it is copied to.
function(comera_embed target name file)
  set(source ${CMAKE_BINARY_DIR}/embedded/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
// Made by cmake/fonts.cmake: the bytes of a file.
asm(R"(
  .section .rodata
  .global comera_@name@_begin
  .global comera_@name@_end
  .balign 16
comera_@name@_begin:
  .incbin "@file@"
comera_@name@_end:
  .byte 0
  .text
)");
]])
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${source})
endfunction()
if(TARGET Freetype::Freetype AND COMERA_FONT_TEXT AND COMERA_FONT_BOLD)
  add_library(comera_fonts STATIC)
  comera_embed(comera_fonts font_text ${COMERA_FONT_TEXT})
  comera_embed(comera_fonts font_bold ${COMERA_FONT_BOLD})
endif()
