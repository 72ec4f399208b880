# Where each dependency comes from: Debian packages (cmake/apt-packages.txt), and OpenBLAS, Dear ImGui and ImPlot from
# PyPI, pinned by hash (cmake/pypi-requirements.txt), unpacked into the build folder by cmake/setup.sh. Nothing is
# downloaded here. What only the window needs is in cmake/window.cmake.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

# Unicode tables for the tokenizer; Debian ships no CMake file for it.
find_path(UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
add_library(comera_utf8proc INTERFACE)
target_include_directories(comera_utf8proc SYSTEM INTERFACE ${UTF8PROC_INCLUDE})
target_link_libraries(comera_utf8proc INTERFACE ${UTF8PROC_LIBRARY})

# SHA-256 with the instructions that processors have for it; Debian ships no CMake file for it either.
find_path(NETTLE_INCLUDE nettle/sha2.h REQUIRED)
find_library(NETTLE_LIBRARY nettle REQUIRED)
add_library(comera_nettle INTERFACE)
target_include_directories(comera_nettle SYSTEM INTERFACE ${NETTLE_INCLUDE})
target_link_libraries(comera_nettle INTERFACE ${NETTLE_LIBRARY})

# BLAS + LAPACK. The skinny products of tensor trains decide: 1024x30x768 runs 3x faster in OpenBLAS 0.3.34 than
# in Debian's 0.3.21.
add_library(comera_blas INTERFACE)
set(COMERA_PYPI_DIR "${CMAKE_SOURCE_DIR}/build/pypi" CACHE PATH "Where cmake/setup.sh unpacked the PyPI packages")
find_path(OPENBLAS_PYPI_INCLUDE cblas.h PATHS ${COMERA_PYPI_DIR}/scipy_openblas32/include NO_DEFAULT_PATH)
find_library(OPENBLAS_PYPI_LIBRARY scipy_openblas PATHS ${COMERA_PYPI_DIR}/scipy_openblas32/lib NO_DEFAULT_PATH)
if(OPENBLAS_PYPI_INCLUDE AND OPENBLAS_PYPI_LIBRARY)
  message(STATUS "BLAS: OpenBLAS from PyPI (scipy-openblas32)")
  target_include_directories(comera_blas SYSTEM INTERFACE ${OPENBLAS_PYPI_INCLUDE})
  target_link_libraries(comera_blas INTERFACE ${OPENBLAS_PYPI_LIBRARY})
  target_compile_definitions(comera_blas INTERFACE COMERA_BLAS_PREFIXED=1 COMERA_BLAS_NAME="OpenBLAS from PyPI")
else()
  find_library(OPENBLAS_LIBRARY openblas REQUIRED)
  find_path(OPENBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas-pthread openblas REQUIRED)
  message(STATUS "BLAS: OpenBLAS of the system, slower on skinny products (cmake/setup.sh gets the pinned one)")
  target_include_directories(comera_blas SYSTEM INTERFACE ${OPENBLAS_INCLUDE})
  target_link_libraries(comera_blas INTERFACE ${OPENBLAS_LIBRARY})
  target_compile_definitions(comera_blas INTERFACE COMERA_BLAS_NAME="OpenBLAS of the system")
endif()
