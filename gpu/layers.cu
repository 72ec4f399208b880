#include "gpu/cuda_machine.h"
#include "gpu/group_norm.h"
#include "gpu/images.h"
#include "gpu/loss.h"
#include "gpu/norm.h"
#include "gpu/permute.h"
#include "gpu/pointwise.h"

template class comera::gpu::GpuOps<comera::gpu::CudaMachine>;
