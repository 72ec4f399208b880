# Compiler flags of all our own targets, as one interface library.
add_library(comera_flags INTERFACE)
set(gcc $<CXX_COMPILER_ID:GNU>)
set(clang $<CXX_COMPILER_ID:Clang>)
target_compile_options(comera_flags INTERFACE -Wall -Wextra $<$<BOOL:${COMERA_WERROR}>:-Werror> -Wno-unused-parameter
  # GCC 12 reports overlaps of 2^63 bytes in plain string concatenation (its bug 105651).
  $<${gcc}:-Wno-restrict>
  # GCC 13 reports a returned reference as one to a temporary argument (false positive).
  $<$<AND:${gcc},$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  # Clang does without `GCC ivdep`: it checks for overlaps when a loop begins.
  $<${clang}:-Wno-unknown-pragmas>
  # 64-byte vectors are passed to inlined functions only, so it does not matter how a processor without AVX-512 passes them.
  -Wno-psabi
  # errno and floating-point traps are not used; without this GCC vectorises neither sqrt nor select. NaN and
  # infinity keep their IEEE meaning: a diverging run must be seen.
  -fno-math-errno -fno-trapping-math)
# GCC's garbage collector starts at a heap of 128 MiB. With memory to spare it starts later, and files compile 4 to 18 % faster.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
cmake_host_system_information(RESULT mebibytes QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR mebibytes_of_a_core "${mebibytes} / ${cores}")
if(mebibytes_of_a_core GREATER 4096)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=524288 --param ggc-min-expand=300>")
endif()
if("$ENV{CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES ccache)  # so that it sees which precompiled header is read
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>" "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
set(COMERA_CPU_LEVELS OFF)
if(COMERA_NATIVE)
  target_compile_options(comera_flags INTERFACE -march=native)
else()
  target_compile_options(comera_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)  # messages do not name the folder
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(COMERA_CPU_LEVELS ON)
  endif()
endif()
if(COMERA_SANITIZE STREQUAL "address")
  # GCC 12 takes the temporaries of <regex> for uninitialised with this sanitizer (its bug 105562).
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all $<${gcc}:-Wno-maybe-uninitialized>
    # What the address sanitizer finds as well, or nothing here has; without these the build is a quarter shorter.
    -fno-sanitize=null,object-size,pointer-overflow,vptr)
  add_link_options(-fsanitize=address,undefined)
elseif(COMERA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()

# Headers that most files of a target begin with, and most of its build time, are read once. GCC 12 no longer knows those of
# the standard library for such then, and reports more of its bug 105651 in them.
function(comera_precompile target)
  target_precompile_headers(${target} ${ARGN})
  target_compile_options(${target} PRIVATE "$<${gcc}:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>")
endfunction()

# What computes no numbers and has no raw memory is built far more slowly under a sanitizer than it runs: checks of memory
# are calls there, none is for alignment, and nothing is optimised. `NOTHING_UNDEFINED`: the address sanitizer alone.
function(comera_light_sanitizer target)
  if(COMERA_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE -fno-sanitize=alignment
      "$<IF:${gcc},--param=asan-instrumentation-with-call-threshold=0,SHELL:-mllvm -asan-instrumentation-with-call-threshold=0>")
    if("NOTHING_UNDEFINED" IN_LIST ARGN)
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
  endif()
  if(COMERA_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
