#include "tests/gpu/emulated_machine.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/cpu/blas.h"

namespace comera::test {
namespace {

// What cublasSgemm and cublasDgemm do.
CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }
void gemm_by_columns(const gpu::ColumnGemm<float>& p) {
  COMERA_BLAS(cblas_sgemm)
  (CblasColMajor, flag(p.ta), flag(p.tb), static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), p.alpha, p.a,
   static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), p.beta, p.c, static_cast<int>(p.ldc));
}
void gemm_by_columns(const gpu::ColumnGemm<double>& p) {
  COMERA_BLAS(cblas_dgemm)
  (CblasColMajor, flag(p.ta), flag(p.tb), static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), p.alpha, p.a,
   static_cast<int>(p.lda), p.b, static_cast<int>(p.ldb), p.beta, p.c, static_cast<int>(p.ldc));
}

}  // namespace

void EmulatedMachine::begin(const char* op, const Shape& shape) {
  op_ = op + (" " + shape.text());
  scratch_.clear();
}

void* EmulatedMachine::scratch_bytes(int64_t bytes) {
  scratch_.emplace_back(static_cast<size_t>(bytes), '\xff');  // NaN
  return scratch_.back().data();
}

template <class T>
void EmulatedMachine::gemm(const gpu::ColumnGemm<T>& p) {
  gemm_by_columns(p);
}
template void EmulatedMachine::gemm(const gpu::ColumnGemm<float>&);
template void EmulatedMachine::gemm(const gpu::ColumnGemm<double>&);

void EmulatedMachine::sort(int* keys, int* order, const int* keys_in, const int* order_in, int64_t count, int bits) {
  std::vector<int64_t> at(static_cast<size_t>(count));
  std::iota(at.begin(), at.end(), 0);
  for (int64_t i = 0; i < count; ++i)
    CHECK(keys_in[i] >= 0 && keys_in[i] >> bits == 0, op_ << ": key " << keys_in[i] << " of " << bits << " bits");
  std::stable_sort(at.begin(), at.end(), [&](int64_t a, int64_t b) { return keys_in[a] < keys_in[b]; });
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = keys_in[at[static_cast<size_t>(i)]];
    order[i] = order_in[at[static_cast<size_t>(i)]];
  }
}

void* EmulatedDevice::allocate(int64_t bytes) {
  return std::aligned_alloc(64, static_cast<size_t>((std::max<int64_t>(bytes, 1) + 63) / 64 * 64));
}
void EmulatedDevice::release(void* data) noexcept { std::free(data); }

}  // namespace comera::test
