// BLAS and LAPACK under one name each, whatever prefix the library's symbols carry, overloaded for float and double.
// Row-major. The library runs single-threaded (CpuOps tells it once): this project splits products itself.
#pragma once
#include <cblas.h>

#include <cstdint>

#if defined(COMERA_BLAS_PREFIXED)
#define COMERA_BLAS(name) scipy_##name
#else
#define COMERA_BLAS(name) name
#endif

extern "C" {
void COMERA_BLAS(sgesdd_)(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u, const int* ldu,
                          float* vt, const int* ldvt, float* work, const int* lwork, int* iwork, int* info);
void COMERA_BLAS(dgesdd_)(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u, const int* ldu,
                          double* vt, const int* ldvt, double* work, const int* lwork, int* iwork, int* info);
void COMERA_BLAS(sgeqrt_)(const int* m, const int* n, const int* block, float* a, const int* lda, float* t, const int* ldt, float* work,
                          int* info);
void COMERA_BLAS(dgeqrt_)(const int* m, const int* n, const int* block, double* a, const int* lda, double* t, const int* ldt, double* work,
                          int* info);
void COMERA_BLAS(sgemqrt_)(const char* side, const char* transpose, const int* m, const int* n, const int* k, const int* block,
                           const float* v, const int* ldv, const float* t, const int* ldt, float* c, const int* ldc, float* work,
                           int* info);
void COMERA_BLAS(dgemqrt_)(const char* side, const char* transpose, const int* m, const int* n, const int* k, const int* block,
                           const double* v, const int* ldv, const double* t, const int* ldt, double* c, const int* ldc, double* work,
                           int* info);
}

namespace comera::blas {

inline CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

// C (m, n) = alpha op(A) op(B) + beta C on the calling thread.
inline void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                 float beta, float* c, int64_t ldc) {
  COMERA_BLAS(cblas_sgemm)
  (CblasRowMajor, flag(ta), flag(tb), static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
   static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}
inline void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda, const double* b,
                 int64_t ldb, double beta, double* c, int64_t ldc) {
  COMERA_BLAS(cblas_dgemm)
  (CblasRowMajor, flag(ta), flag(tb), static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
   static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

// Singular values and vectors, column-major as LAPACK has it; lwork = -1 asks for the size of `work`. Returns info.
inline int gesdd(char job, int m, int n, float* a, int lda, float* s, float* u, int ldu, float* vt, int ldvt, float* work, int lwork,
                 int* iwork) {
  int info = 0;
  COMERA_BLAS(sgesdd_)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info);
  return info;
}
inline int gesdd(char job, int m, int n, double* a, int lda, double* s, double* u, int ldu, double* vt, int ldvt, double* work, int lwork,
                 int* iwork) {
  int info = 0;
  COMERA_BLAS(dgesdd_)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info);
  return info;
}

// A (m, n) = Q R, column-major, m >= n: R and the reflections that make Q, in blocks of `block` columns, whose factors are t (block, n).
// Recursive, so made of products: twice as fast as geqrf and orgqr for a few hundred columns. work: block n.
inline int geqrt(int m, int n, int block, float* a, int lda, float* t, float* work) {
  int info = 0;
  COMERA_BLAS(sgeqrt_)(&m, &n, &block, a, &lda, t, &block, work, &info);
  return info;
}
inline int geqrt(int m, int n, int block, double* a, int lda, double* t, double* work) {
  int info = 0;
  COMERA_BLAS(dgeqrt_)(&m, &n, &block, a, &lda, t, &block, work, &info);
  return info;
}
// C (m, n) = Q C with the k reflections of geqrt. work: block n.
inline int gemqrt(int m, int n, int k, int block, const float* v, int ldv, const float* t, float* c, int ldc, float* work) {
  int info = 0;
  COMERA_BLAS(sgemqrt_)("L", "N", &m, &n, &k, &block, v, &ldv, t, &block, c, &ldc, work, &info);
  return info;
}
inline int gemqrt(int m, int n, int k, int block, const double* v, int ldv, const double* t, double* c, int ldc, double* work) {
  int info = 0;
  COMERA_BLAS(dgemqrt_)("L", "N", &m, &n, &k, &block, v, &ldv, t, &block, c, &ldc, work, &info);
  return info;
}

inline void set_one_thread() { COMERA_BLAS(openblas_set_num_threads)(1); }
inline const char* kernel_name() { return COMERA_BLAS(openblas_get_corename)(); }

}  // namespace comera::blas
