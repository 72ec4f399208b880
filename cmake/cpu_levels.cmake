# COMERA_NATIVE=OFF: the kernels of core/cpu once for each level of processors, of which the program takes one when it opens a
# device (core/cpu/cpu_device.cpp). All else is compiled for any x86-64.
#
# The kernels of a level are joined to one object file in which only comera_cpu_ops_LEVEL is global. So the linker cannot take an
# inline function that one of them was compiled with, say std::vector's, for the rest of the program, which may run on a lesser
# processor. Nothing in them may run when the program starts (package/check_kernels.py).
find_package(Python3 REQUIRED COMPONENTS Interpreter)
file(GLOB kernels CONFIGURE_DEPENDS core/cpu/*.cpp)
set(common core/cpu/cpu_device.cpp core/cpu/onednn.cpp core/cpu/thread_pool.cpp)
list(TRANSFORM common PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE not_kernels)
list(REMOVE_ITEM kernels ${not_kernels})
add_library(comera_cpu STATIC ${common})
target_link_libraries(comera_cpu PUBLIC comera_ops comera_blas comera_gpu ${CMAKE_DL_LIBS} PRIVATE comera_flags)
target_include_directories(comera_cpu PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_definitions(comera_cpu PRIVATE COMERA_CPU_LEVELS)
set_target_properties(comera_cpu PROPERTIES UNITY_BUILD OFF)

foreach(level v3 v4)
  set(target comera_cpu_${level})
  add_library(${target} OBJECT ${kernels})
  target_link_libraries(${target} PRIVATE comera_ops comera_blas comera_flags)
  target_compile_definitions(${target} PRIVATE COMERA_MAKE_CPU_OPS=comera_cpu_ops_${level})
  target_compile_options(${target} PRIVATE -march=x86-64-${level} $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  comera_precompile(${target} PRIVATE core/cpu/cpu_ops.h <algorithm>)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  set(objects "$<FILTER:$<TARGET_OBJECTS:${target}>,INCLUDE,\\.o$>")  # without the precompiled header
  set(joined ${CMAKE_BINARY_DIR}/comera_cpu_${level}.o)
  add_custom_command(OUTPUT ${joined}
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${joined} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=comera_cpu_ops_${level} ${joined}
    COMMAND Python3::Interpreter -B ${CMAKE_SOURCE_DIR}/cmake/package/check_kernels.py ${CMAKE_NM} ${CMAKE_READELF} ${joined}
      comera_cpu_ops_${level}
    DEPENDS ${target} ${objects} COMMENT "Joining the kernels for x86-64-${level}" COMMAND_EXPAND_LISTS VERBATIM)
  target_sources(comera_cpu PRIVATE ${joined})
endforeach()

# For tests, which look inside: the kernels of the lowest level under their own names.
add_library(comera_cpu_inside INTERFACE)
target_link_libraries(comera_cpu_inside INTERFACE "$<FILTER:$<TARGET_OBJECTS:comera_cpu_v3>,INCLUDE,\\.o$>")
target_compile_options(comera_cpu_inside INTERFACE -march=x86-64-v3)
