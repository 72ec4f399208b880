// GEMM by cuBLASLt: the heuristic is asked once for every shape of a plan. The library (half a gigabyte) is loaded when a
// device is opened, so a run on the CPU does not need it.
#pragma once
#include <cublasLt.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "core/ops/device.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

class CublasLt {
 public:
  using Room = std::function<void*(int64_t bytes)>;
  // most_workspace: bytes that an algorithm may ask for.
  explicit CublasLt(int64_t most_workspace);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;

  // `how`: precision of float products; fp8 counts as tf32. `room(bytes)` returns the workspace; `what` names the product in errors. False,
  // with nothing done, if the library has no kernel for the product with its fused bias or sums, or for E4M3.
  template <class T>
  bool multiply(const ColumnGemm<T>& product, Products how, cudaStream_t stream, const Room& room, const std::string& what);
  bool multiply(const Fp8Gemm& product, cudaStream_t stream, const Room& room, const std::string& what);
  // Most bytes that multiply() asks `room` for. Addresses are not read; only their alignment counts.
  template <class T>
  int64_t workspace_of(const ColumnGemm<T>& product, Products how, const std::string& what);
  int64_t workspace_of(const Fp8Gemm& product, const std::string& what);
  std::string version() const;
  // Drops all plans: after a cut their shapes do not occur again.
  void forget();

 private:
  // All inputs of the choice of an algorithm; the last are the alignments of A, B, C and of the fused vector, and the epilogue.
  using Key = std::tuple<bool, Products, int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t, int64_t, bool, uint32_t, uint32_t,
                         uint32_t, uint32_t, cublasLtEpilogue_t>;
  struct Functions;  // entry points of the library
  struct Plan {
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    static constexpr int kMostAlgorithms = 4;
    std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> algorithms{};  // best first
    size_t count = 0;
    mutable size_t next = 0;  // earlier ones were refused by a product
    bool possible() const { return next < count; }
    int64_t workspace() const;  // bytes, of the algorithm that asks for most
  };
  template <class T>
  const Plan& plan_of(const ColumnGemm<T>& product, Products how, const std::string& what);
  using Fp8Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, uint32_t>;  // m, n, k, ldc, beta 0, alignment of C
  const Plan& plan_of(const Fp8Gemm& product, const std::string& what);
  // alpha op(a) op(b) + beta c by the plan's algorithms in turn; NOT_SUPPORTED if each one was refused, now or earlier.
  template <class T>
  cublasStatus_t run(const Plan& plan, const T& alpha, const void* a, const void* b, const T& beta, void* c, cudaStream_t stream,
                     const Room& room) const;
  // Asks the heuristic for the plan's algorithms; returns its status.
  cublasStatus_t choose(Plan& plan, const std::array<uint32_t, 3>& alignment, const std::string& what) const;
  void destroy(Plan& plan) const;
  void check(cublasStatus_t status, const std::string& what) const;

  const int64_t most_workspace_;
  void* library_ = nullptr;
  std::unique_ptr<Functions> lt_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, Plan> plans_;
  std::map<Fp8Key, Plan> fp8_plans_;
};

}  // namespace comera::gpu
