// CUDA's errors as the project's: what was being done, CUDA's own words, what to do.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "core/base/error.h"

namespace comera::gpu {

// Memory that was asked for, or that the driver and the libraries take by themselves: for code at its first use, for graphs.
[[noreturn]] inline void out_of_memory(const std::string& what) {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  cudaGetLastError();  // what can be forgotten is not told to the next call
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

// CUDA_CHECK(call, what): `what` is put together only on failure.
#define CUDA_CHECK(call, what)                                                                       \
  do {                                                                                               \
    if (const cudaError_t cuda_check_error_ = (call); cuda_check_error_ != cudaSuccess) [[unlikely]] \
      ::comera::gpu::cuda_failed(cuda_check_error_, what);                                           \
  } while (0)

}  // namespace comera::gpu
