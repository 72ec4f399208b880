# What `cmake --install` puts where, and the packages that cpack makes of it: a .deb for the Debian it runs on, and a .tar.gz that
# runs from any folder.
#
#     cmake/build.sh package all && (cd build/package && cpack)
#
# Packages are made of COMERA_NATIVE=OFF alone: what was compiled for the processor of one machine may not run on others.
set(programs comera)
if(TARGET comera-studio)
  list(APPEND programs comera-studio)
  install(FILES cmake/package/comera-studio.desktop DESTINATION share/applications)
  install(FILES cmake/package/comera-studio.svg DESTINATION share/icons/hicolor/scalable/apps)
  install(FILES assets/recorded/runs.db DESTINATION share/comera/assets/recorded)
endif()
install(TARGETS ${programs} RUNTIME DESTINATION bin)
if(TARGET comera_mpi)  # opened where mpirun started the program
  install(TARGETS comera_mpi LIBRARY DESTINATION lib/comera)
endif()
if(TARGET comera_onednn)  # opened for products in bf16
  install(TARGETS comera_onednn LIBRARY DESTINATION lib/comera)
endif()
if(TARGET comera_parquet)  # opened for a Parquet file
  install(TARGETS comera_parquet LIBRARY DESTINATION lib/comera)
endif()
install(DIRECTORY assets/data assets/presets assets/vocab DESTINATION share/comera/assets
  PATTERN __pycache__ EXCLUDE PATTERN make_demo.py EXCLUDE)

# OpenBLAS from PyPI and the two libraries that it brings lie in a folder of their own, where each program looks first.
if(OPENBLAS_PYPI_LIBRARY)
  get_filename_component(blas_folder ${OPENBLAS_PYPI_LIBRARY} DIRECTORY)
  file(GLOB blas_files ${blas_folder}/*.so ${blas_folder}/*.so.*)
  install(FILES ${blas_files} DESTINATION lib/comera)
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/comera")
endif()

# Licences: LICENSE names everything; these are the texts of what is not Debian's.
install(FILES LICENSE DESTINATION share/doc/comera RENAME copyright)
file(GLOB blas_license ${COMERA_PYPI_DIR}/scipy_openblas32-*.dist-info/licenses/LICENSE.txt)
function(comera_install_license name)
  if(ARGN AND EXISTS "${ARGN}")
    install(FILES ${ARGN} DESTINATION share/doc/comera/licenses RENAME ${name})
  endif()
endfunction()
if(OPENBLAS_PYPI_LIBRARY)
  comera_install_license(OpenBLAS.txt ${blas_license})
endif()
if(TARGET comera_parquet)
  file(GLOB arrow_license ${COMERA_PYPI_DIR}-arrow/pyarrow-*.dist-info/licenses/LICENSE.txt)
  comera_install_license(Arrow.txt ${arrow_license})
endif()
if(TARGET comera-studio)
  comera_install_license(DearImGui.txt ${COMERA_IMGUI_DIR}/imgui/LICENSE.txt)
  comera_install_license(ImPlot.txt ${COMERA_IMGUI_DIR}/implot/LICENSE)
endif()
if(TARGET comera_fonts)
  comera_install_license(Inter.txt /usr/share/doc/fonts-inter/copyright)
  comera_install_license(JetBrainsMono.txt /usr/share/doc/fonts-jetbrains-mono/copyright)
endif()

# Man pages and completions, made by the programs that were built.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
list(TRANSFORM programs REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE program_files)
list(JOIN program_files "\" \"" program_files)
install(CODE "
  execute_process(COMMAND \"${Python3_EXECUTABLE}\" -B \"${CMAKE_SOURCE_DIR}/cmake/package/manual.py\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\"
    \"${program_files}\" COMMAND_ERROR_IS_FATAL ANY)")

if(COMERA_NATIVE)
  return()
endif()
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME comera)
set(CPACK_PACKAGE_VENDOR "CoMERA Studio authors")
set(CPACK_PACKAGE_CONTACT "CoMERA Studio authors <authors@comera.invalid>" CACHE STRING "Maintainer of the packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "train networks whose matrices are tensor trains with trainable ranks")
set(CPACK_PACKAGE_DESCRIPTION "CoMERA Studio trains networks whose large matrices are tensor trains with trainable ranks:
the ranks shrink while the network learns. A window (comera-studio) and a command line (comera)
over one training core; every run is stored and can be computed again bit for bit.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(TARGET comera-studio)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS libgl1)  # which GLFW opens when it runs
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, libgl1-mesa-dri, openmpi-bin")  # data get; OpenGL; mpirun
include(CPack)
