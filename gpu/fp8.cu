#include "gpu/fp8.h"

#include "gpu/cuda_machine.h"

template class comera::gpu::GpuOps<comera::gpu::CudaMachine>;
