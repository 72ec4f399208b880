#include "gpu/cuda_machine.h"
#include "gpu/fp8.h"
#include "gpu/group_codes.h"
#include "gpu/linalg.h"
#include "gpu/optimizer.h"
#include "gpu/quant.h"

template class comera::gpu::GpuOps<comera::gpu::CudaMachine>;
