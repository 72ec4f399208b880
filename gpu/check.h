// CUDA's errors as the project's: what was being done, CUDA's own words, what to do.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "core/base/error.h"

namespace comera::gpu {

[[noreturn]] inline void cuda_failed(cudaError_t error, const std::string& what) {
  cudaGetLastError();  // what can be forgotten is not told to the next call
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
