// The kernels of one level of processors behind the one name that the rest of the program knows of them: this folder may be
// compiled for several levels (cmake/cpu_levels.cmake).
#include "core/cpu/cpu_ops.h"

#ifndef COMERA_MAKE_CPU_OPS
#define COMERA_MAKE_CPU_OPS comera_cpu_ops_native
#endif

extern "C" comera::Ops* COMERA_MAKE_CPU_OPS(int threads);
extern "C" comera::Ops* COMERA_MAKE_CPU_OPS(int threads) { return new comera::CpuOps(threads); }
