// The Machine of gpu_ops.h for CUDA: one device, one stream, work in issue order. Thread: the trainer's. Included by .cu
// files only.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/device.h"
#include "gpu/check.h"
#include "gpu/gpu_ops.h"
#include "gpu/mma_strip.h"
#include "gpu/ranges.h"
#include "gpu/scratch.h"

namespace comera::gpu {

// See group.h.
class CudaGroup {
 public:
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ int64_t block() const { return static_cast<int64_t>(blockIdx.x); }
  __device__ int64_t blocks() const { return static_cast<int64_t>(gridDim.x); }
  __device__ void sync() { __syncthreads(); }

  // Butterfly exchange inside each warp, so all lanes have the same value; then over the warps in order. Launches use whole
  // warps.
  template <class T, class Combine>
  __device__ T reduce(T value, const Combine& combine) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) value = combine(value, from_lane(value, distance));
    const int warps = threads() / kWarp;
    if (warps == 1) return value;
    __shared__ T of_warp[kBlock / kWarp];
    if (thread() % kWarp == 0) of_warp[thread() / kWarp] = value;
    __syncthreads();
    T all = of_warp[0];
    for (int warp = 1; warp < warps; ++warp) all = combine(all, of_warp[warp]);
    __syncthreads();  // before the next reduction writes of_warp
    return all;
  }

  template <class T>
  __device__ T* shared() const {
    extern __shared__ __align__(128) unsigned char block_memory[];
    return reinterpret_cast<T*>(block_memory);
  }

  template <int kColumns, bool kPaired>
  using Strip = MmaStrip<kColumns, kPaired>;
  using Rows = MmaRows;

 private:
  template <class T>
  static __device__ T from_lane(T value, int distance) {
    return __shfl_xor_sync(0xffffffffu, value, distance);
  }
  template <class T>
  static __device__ Two<T> from_lane(Two<T> value, int distance) {
    return {from_lane(value.a, distance), from_lane(value.b, distance)};
  }
};

// A body may promise how many threads its blocks have, and ask for so many blocks on a multiprocessor: registers are shared out for them.
template <class Body>
constexpr int most_threads() {
  if constexpr (requires { Body::kThreads; })
    return Body::kThreads;
  else
    return kBlock;
}
template <class Body>
constexpr int least_blocks() {
  if constexpr (requires { Body::kBlocks; })
    return Body::kBlocks;
  else
    return 1;
}

template <class Body>
__global__ void __launch_bounds__(most_threads<Body>(), least_blocks<Body>()) run_body(const __grid_constant__ Body body) {
  CudaGroup group;
  body(group);
}

class CublasLt;

class CudaMachine {
 public:
  explicit CudaMachine(int device);
  ~CudaMachine();
  CudaMachine(const CudaMachine&) = delete;

  void dry_run(bool dry) { dry_ = dry; }
  void use(Products how) { products_ = how; }
  Products products() const { return dry_ ? planned_products_ : products_; }
  void begin(const char* op, const Shape& shape) {
    op_ = op;
    shape_ = shape;
    here();  // in a dry run, too: CUB asks the device how much it needs
    if (!dry_) ranges_.next(op);
    scratch_.begin();
  }
  template <class Body>
  void launch(LaunchShape shape, const Body& body) {
    static_assert(sizeof(Body) <= kBodyBytes);
    if (dry_ || shape.blocks == 0) return;
    if (shape.shared_bytes > kSharedUnasked)  // always the maximum: the attribute is the kernel's, not the launch's
      CUDA_CHECK(cudaFuncSetAttribute(run_body<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kSharedBytes)), now());
    run_body<<<static_cast<unsigned>(shape.blocks), static_cast<unsigned>(shape.threads), static_cast<size_t>(shape.shared_bytes),
               stream_>>>(body);
    CUDA_CHECK(cudaGetLastError(), now());
  }
  template <class T>
  T* scratch(int64_t count) {
    return static_cast<T*>(scratch_bytes(count * static_cast<int64_t>(sizeof(T))));
  }
  void copy(void* to, const void* from, int64_t bytes);
  template <class T>
  void gemm(const ColumnGemm<T>& product);  // gemm.cu
  bool gemm(const Fp8Gemm& product);
  template <class T>
  bool gemm_and(const ColumnGemm<T>& product);
  // keys, order = keys_in, order_in sorted by key, stable. Keys are >= 0 and have `bits` bits.
  void sort(int* keys, int* order, const int* keys_in, const int* order_in, int64_t count, int bits);  // sort.cu
  void read(void* host, const void* device, int64_t bytes);

  cudaStream_t stream() const { return stream_; }
  int index() const { return device_; }
  std::string blas() const;  // library and version
  // Makes this the calling thread's device: CUDA calls without a stream use it.
  void here() const { CUDA_CHECK(cudaSetDevice(device_), "choosing the device"); }
  Ranges& ranges() { return ranges_; }
  // Working memory: an op's scratch at the beginning, its GEMM's workspace at the end (Device::plan_workspace, lend_workspace).
  void plan_workspace(Products how);
  int64_t workspace_bytes() const { return scratch_.most(); }
  // The workspace of a GEMM; `bytes`: as planned by CublasLt.
  void* product_workspace(int64_t bytes);
  void lend_workspace(void* data, int64_t bytes);
  void end_loan(const void* data);
  std::string now() const { return op_ + std::string(" ") + shape_.text(); }  // the current op, for messages

 private:
  static constexpr int64_t kSharedUnasked = 47 << 10;          // default limit of 48 KiB less the static part of reduce()
  static constexpr int64_t kProductBytes = int64_t{32} << 20;  // limit of an algorithm: NVIDIA's advice for its largest devices

  void* scratch_bytes(int64_t bytes);
  // Takes memory where none is lent; never inside a capture. Kept to the end, since captured steps point to it.
  void* own(int64_t bytes, const char* purpose);

  const int device_;
  cudaStream_t stream_ = nullptr;
  const char* op_ = "start";
  Ranges ranges_;
  Shape shape_;
  bool dry_ = false;
  Products products_ = Products::fp32, planned_products_ = Products::fp32;
  Scratch scratch_;
  char* lent_ = nullptr;
  int64_t lent_bytes_ = 0;
  std::vector<void*> own_;  // all of it
  char* own_scratch_ = nullptr;
  int64_t own_scratch_bytes_ = 0;
  void* own_product_workspace_ = nullptr;
  std::unique_ptr<CublasLt> cublas_;
};

// Device memory. Throws Error(memory) that names the bytes requested and free.
void* allocate(int64_t bytes, const char* purpose);

}  // namespace comera::gpu
