// CUDA's errors as Error: the action that failed, CUDA's text, a hint.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "core/base/error.h"

namespace comera::gpu {

// For allocations by this code, by the driver (code at its first use, graphs) and by libraries.
[[noreturn]] inline void out_of_memory(const std::string& what) {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  cudaGetLastError();  // clears the error, which the next call would report again
  const auto mib = [](size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  throw Error(ErrorCode::memory, what + " failed for want of GPU memory", mib(free) + " of " + mib(total) + " are free",
              "use a smaller batch or a smaller model, or end other programs on the device");
}

[[noreturn]] inline void cuda_failed(cudaError_t error, const std::string& what) {
  if (error == cudaErrorMemoryAllocation) out_of_memory(what);
  cudaGetLastError();
  throw Error(ErrorCode::device, what + " failed on the CUDA device",
              std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error),
              "end this program, whose device may be lost to it, and resume the run; if it happens again, use --device cpu and report it");
}

// CUDA_CHECK(call, what): `what` is evaluated only on failure.
#define CUDA_CHECK(call, what)                                                                       \
  do {                                                                                               \
    if (const cudaError_t cuda_check_error_ = (call); cuda_check_error_ != cudaSuccess) [[unlikely]] \
      ::comera::gpu::cuda_failed(cuda_check_error_, what);                                           \
  } while (0)

}  // namespace comera::gpu
