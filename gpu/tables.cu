#include "gpu/cuda_machine.h"
#include "gpu/factored.h"
#include "gpu/gradients.h"
#include "gpu/interaction.h"
#include "gpu/lists.h"
#include "gpu/ranks.h"
#include "gpu/row_sampling.h"
#include "gpu/tables.h"

template class comera::gpu::GpuOps<comera::gpu::CudaMachine>;
