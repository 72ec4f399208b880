#include "gpu/attention.h"

#include "gpu/cuda_machine.h"
#include "gpu/waist.h"

template class comera::gpu::GpuOps<comera::gpu::CudaMachine>;
