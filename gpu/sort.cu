// Stable sort of pairs by key: CUB's radix sort keeps the order of equal keys.
#include <cub/device/device_radix_sort.cuh>

#include "gpu/cuda_machine.h"

namespace comera::gpu {

void CudaMachine::sort(int* keys, int* order, const int* keys_in, const int* order_in, int64_t count, int bits) {
  CHECK(count < (int64_t{1} << 31), now() << ": " << count << " keys");
  if (count == 0) return;
  const auto run = [&](void* room, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(room, bytes, keys_in, keys, order_in, order, static_cast<int>(count), 0, bits, stream_);
  };
  size_t bytes = 0;
  CUDA_CHECK(run(nullptr, bytes), now());
  void* room = scratch_bytes(static_cast<int64_t>(bytes));
  if (!dry_) CUDA_CHECK(run(room, bytes), now());
}

}  // namespace comera::gpu
