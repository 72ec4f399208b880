// Every family of the GPU's ops for the emulated machine.
#include "gpu/attention.h"
#include "gpu/factored.h"
#include "gpu/fp8.h"
#include "gpu/gradients.h"
#include "gpu/group_codes.h"
#include "gpu/linalg.h"
#include "gpu/lists.h"
#include "gpu/loss.h"
#include "gpu/norm.h"
#include "gpu/permute.h"
#include "gpu/pointwise.h"
#include "gpu/quant.h"
#include "gpu/ranks.h"
#include "gpu/row_sampling.h"
#include "gpu/tables.h"
#include "tests/gpu/emulated_machine.h"

template class comera::gpu::GpuOps<comera::test::EmulatedMachine>;
