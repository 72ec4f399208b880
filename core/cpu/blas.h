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
void COMERA_BLAS(sgeqrf_)(const int* m, const int* n, float* a, const int* lda, float* tau, float* work, const int* lwork, int* info);
void COMERA_BLAS(dgeqrf_)(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* lwork, int* info);
void COMERA_BLAS(sorgqr_)(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau, float* work,
                          const int* lwork, int* info);
void COMERA_BLAS(dorgqr_)(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work,
                          const int* lwork, int* info);
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

// A = Q R, column-major: R and the reflections that make Q, which orgqr then writes out. As above: lwork = -1 asks, info is returned.
inline int geqrf(int m, int n, float* a, int lda, float* tau, float* work, int lwork) {
  int info = 0;
  COMERA_BLAS(sgeqrf_)(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int geqrf(int m, int n, double* a, int lda, double* tau, double* work, int lwork) {
  int info = 0;
  COMERA_BLAS(dgeqrf_)(&m, &n, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int orgqr(int m, int n, int k, float* a, int lda, const float* tau, float* work, int lwork) {
  int info = 0;
  COMERA_BLAS(sorgqr_)(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}
inline int orgqr(int m, int n, int k, double* a, int lda, const double* tau, double* work, int lwork) {
  int info = 0;
  COMERA_BLAS(dorgqr_)(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
  return info;
}

inline void set_one_thread() { COMERA_BLAS(openblas_set_num_threads)(1); }
inline const char* kernel_name() { return COMERA_BLAS(openblas_get_corename)(); }

}  // namespace comera::blas
