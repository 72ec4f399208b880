// Parts of this folder that no device has run: only the compiler, an emulation of kernels' bodies and a GPU in software that
// runs the PTX (tests/gpu/ptx) have. gpu/README.md has the same list (tests/cli/json_schema.py compares). Remove an item when
// experiments/gpu/check.sh has passed on a device; once the list is empty, `auto` may choose CUDA.
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
