// Products with one short side, the products tensor trains are made of: (1024 x 768)(768 x 30) and its kin. A BLAS
// is built for large squares; here nothing large is packed and the short side stays in registers or a near cache.
#pragma once
#include "core/cpu/thread_pool.h"

namespace comera {

// C (m, n) = alpha op(A) op(B) + beta C, row-major; element (i, j) of a transposed operand lies at [j * ld + i].
struct SkinnyGemm {
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  bool ta;
  const float* b;
  int64_t ldb;
  bool tb;
  float* c;
  int64_t ldc;
  float alpha, beta;
};

inline constexpr int64_t kSkinny = 64;  // a side up to this is short; with AVX-512 n may be longer (is_short)
// Up to this m n k OpenBLAS has kernels that copy nothing (its SMALL_MATRIX_OPT); they are the faster ones there.
inline constexpr int64_t kLibrarySmall = 1'000'000;

// False when the product is not skinny, or this processor has no wide multiply-add: then nothing was done.
bool skinny_gemm(ThreadPool& pool, const SkinnyGemm& args);

}  // namespace comera
