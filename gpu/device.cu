// What the CUDA runtime finds on this machine. Training on it needs the CUDA ops, which do not exist yet: until
// then no device is offered, so "auto" takes the CPU.
#include <cuda_runtime.h>

#include "core/ops/device.h"

namespace comera {

CudaStatus cuda_status() {
  CudaStatus status;
  status.built = true;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    status.reason = cudaGetErrorString(error);  // "no CUDA-capable device is detected", "driver version is insufficient ..."
    return status;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) == cudaSuccess) status.reason += (i ? ", " : "") + std::string(properties.name);
  }
  status.reason = count ? "found " + status.reason + ", but this version trains on the CPU only" : "no CUDA device was found";
  return status;
}

std::unique_ptr<Device> open_cuda_device(int) {
  throw Error(ErrorCode::device, "training on a CUDA device is not possible in this version", cuda_status().reason, "use --device cpu");
}

}  // namespace comera
