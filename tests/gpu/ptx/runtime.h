// What the parts of the GPU in software share.
#pragma once
#include <driver_types.h>

#include <cstdint>
#include <functional>

namespace comera::ptx {

// Gives a stream work, or the graph that it is captured into.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);
bool is_device_memory(const void* data, int64_t bytes);
// For work that needs work of other devices: they go on until `done`, which is asked after each wake_others(). A fault where it
// does not come to that within a minute.
void wait_for_others(const std::function<bool()>& done);
void wake_others();

}  // namespace comera::ptx
