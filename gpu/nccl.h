// NCCL: messages between the GPUs of a machine and of several. The library (more than 200 MB) is opened when a device is asked whether it
// can be linked. Its names and values are in nccl.cu.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "core/ops/device_link.h"

namespace comera::gpu {

// Bytes that join_nccl() needs on all processes. Throws Error(device).
std::string new_nccl_link();
// On the device of the calling thread; messages are work beside that of `stream`. Waits until all processes have called it. Throws Error(device).
std::unique_ptr<DeviceLink> join_nccl(const std::string& made, int process, int processes, cudaStream_t stream);

}  // namespace comera::gpu
