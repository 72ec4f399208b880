// The only symbol of the kernels that the rest of the program links: they may be compiled for several processor levels
// (cmake/cpu_levels.cmake).
#include "core/cpu/cpu_ops.h"

#ifndef COMERA_MAKE_CPU_OPS
#define COMERA_MAKE_CPU_OPS comera_cpu_ops_native
#endif

extern "C" comera::Ops* COMERA_MAKE_CPU_OPS(int threads);
extern "C" comera::Ops* COMERA_MAKE_CPU_OPS(int threads) { return new comera::CpuOps(threads); }
