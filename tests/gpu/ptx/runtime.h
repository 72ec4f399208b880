// What the parts of the GPU in software share.
#pragma once
#include <driver_types.h>

#include <cstdint>
#include <functional>

namespace comera::ptx {

// Gives a stream work, or the graph that it is captured into.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
bool is_device_memory(const void* data, int64_t bytes);

}  // namespace comera::ptx
