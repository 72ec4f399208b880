// What of this folder has never run on a device: the compiler, an emulation of kernels' bodies and a GPU in software that runs
// the PTX (tests/gpu/ptx) are all that has seen it, and figures of a GPU are pending. README lists the same (tests/cli compares). An item goes when check.sh has passed on
// a device; with the last one CUDA is no longer only by name.
#pragma once

namespace comera::gpu {

inline constexpr const char* kNeverRun[] = {
    "kernels as CUDA code",
    "products by cuBLASLt: fp32, TF32, bf16, FP8, with a bias or its gradient",
    "products of tiles on tensor cores",
    "CUB's sort",
    "the reduction inside a warp",
    "more than 48 KiB of shared memory for a block",
    "launches with up to 30 KiB of arguments",
    "graphs",
    "copies from and to pinned memory",
    "events, and ranges for profilers",
    "device memory and the errors of a device",
};

}  // namespace comera::gpu
