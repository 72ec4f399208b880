// Stub of the CUDA backend for builds without nvcc or with COMERA_CUDA=off.
#include "core/ops/device.h"
#include "core/ops/device_link.h"

namespace comera {

CudaStatus cuda_status() { return {false, COMERA_NO_CUDA_REASON, {}, {}}; }

std::unique_ptr<Device> open_cuda_device(int) {
  throw Error(ErrorCode::device, "this program was built without CUDA", COMERA_NO_CUDA_REASON,
              "use --device cpu, or build again with CUDA: COMERA_CUDA=pypi ./run.sh doctor");
}

NcclStatus nccl_status() { return {false, "", "this program was built without CUDA"}; }

}  // namespace comera
