// GEMM by cuBLASLt: the heuristic is asked once for every shape, the workspace is fixed. The library (half a gigabyte) is
// loaded when a device is opened, so a run on the CPU does not need it.
#pragma once
#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "core/ops/device.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

class CublasLt {
 public:
  // workspace_bytes: limit of every product.
  explicit CublasLt(int64_t workspace_bytes);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;

  // `how`: precision of float products; fp8 counts as tf32. `workspace` has workspace_bytes; `what` names the product in errors. False,
  // with nothing done, if the library has no kernel for the product with its fused bias or sums.
  template <class T>
  bool multiply(const ColumnGemm<T>& product, Products how, cudaStream_t stream, void* workspace, const std::string& what);
  void multiply(const Fp8Gemm& product, cudaStream_t stream, void* workspace, const std::string& what);

 private:
  // All inputs of the choice of an algorithm; the last are the alignments of A, B, C and of the fused vector, and the epilogue.
  using Key = std::tuple<bool, Products, int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t, int64_t, bool, uint32_t, uint32_t,
                         uint32_t, uint32_t, cublasLtEpilogue_t>;
  struct Functions;  // entry points of the library
  struct Plan {
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    mutable bool possible = true;  // false once the library refused it
  };
  template <class T>
  const Plan& plan_of(const ColumnGemm<T>& product, Products how, const std::string& what);
  using Fp8Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, uint32_t>;  // m, n, k, ldc, beta 0, alignment of C
  const Plan& plan_of(const Fp8Gemm& product, const std::string& what);
  // Asks the heuristic for the plan's algorithm; returns its status.
  cublasStatus_t choose(Plan& plan, const std::array<uint32_t, 3>& alignment, const std::string& what) const;
  void destroy(Plan& plan) const;
  void check(cublasStatus_t status, const std::string& what) const;

  const int64_t workspace_bytes_;
  void* library_ = nullptr;
  std::unique_ptr<Functions> lt_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
  std::map<Fp8Key, Plan> fp8_plans_;
};

}  // namespace comera::gpu
