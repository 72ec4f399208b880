// C += op(A) B for matrices that fit the first-level cache: a library call costs more than the product itself.
// Used inside parallel regions; the order of additions over k is fixed.
#pragma once
#include <cstdint>

namespace comera {

// C (m, n), row step ldc, += A (m, k), element (i, l) at a[i * a_row + l * a_col], times B (k, n), row step ldb.
template <class T>
struct SmallProduct {
  int64_t m, n, k;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t ldb;
  T* c;
  int64_t ldc;

  void run() const {
    constexpr int kVector = 64 / static_cast<int>(sizeof(T));  // one or two registers
    int64_t j = 0;
    for (; j + kVector <= n; j += kVector) columns<kVector>(j);
    for (; j + 4 <= n; j += 4) columns<4>(j);
    for (; j < n; ++j) columns<1>(j);
  }

 private:
  template <int kColumns>
  void columns(int64_t j) const {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) block<4, kColumns>(i, j);
    for (; i < m; ++i) block<1, kColumns>(i, j);
  }
  // The block of C stays in registers over all of k. Vector types are spelled out: as plain arrays the compiler
  // keeps the block in memory, 8x slower.
  template <int kRows, int kColumns>
  void block(int64_t i, int64_t j) const {
    typedef T Vector __attribute__((vector_size(kColumns * sizeof(T))));
    Vector sum[kRows], from;
    for (int row = 0; row < kRows; ++row) __builtin_memcpy(&sum[row], c + (i + row) * ldc + j, sizeof(Vector));
    for (int64_t l = 0; l < k; ++l) {
      __builtin_memcpy(&from, b + l * ldb + j, sizeof(Vector));
      for (int row = 0; row < kRows; ++row) sum[row] += a[(i + row) * a_row + l * a_col] * from;
    }
    for (int row = 0; row < kRows; ++row) __builtin_memcpy(c + (i + row) * ldc + j, &sum[row], sizeof(Vector));
  }
};

}  // namespace comera
