// Products: in bf16 by rounded_gemm.cpp, else skinny ones by skinny_gemm.cpp, all others by the BLAS, each thread one part of C.
#include <algorithm>
#include <type_traits>

#include "core/base/rounding.h"
#include "core/cpu/blas.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/rounded_gemm.h"
#include "core/cpu/skinny_gemm.h"
#include "core/cpu/typed.h"

namespace comera {

namespace {

// Parts are whole tiles of the library's kernels (16 x 4 or its transpose).
constexpr int64_t kPart = 16;
// Below this, waking a thread costs more than it saves.
constexpr double kInlineFlops = 0.5e6;

template <class T>
void split_gemm(ThreadPool& pool, bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
                int64_t ldb, T beta, T* c, int64_t ldc) {
  const bool by_rows = m >= n;
  const int64_t side = by_rows ? m : n, parts = ceil_div(side, kPart);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  pool.parallel_for(parts, flops < kInlineFlops ? parts : 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPart, count = std::min(side, end * kPart) - first;
    if (by_rows)
      blas::gemm(ta, tb, count, n, k, alpha, a + first * (ta ? 1 : lda), lda, b, ldb, beta, c + first * ldc, ldc);
    else
      blas::gemm(ta, tb, m, count, k, alpha, a, lda, b + first * (tb ? ldb : 1), ldb, beta, c + first, ldc);
  });
}

}  // namespace

CpuOps::CpuOps(int threads) : pool_(threads) { [[maybe_unused]] static const bool one_thread = (blas::set_one_thread(), true); }

void CpuOps::body(const op::Gemm& args) {
  if ((dry ? plans_rounded : rounded != nullptr) && rounded_gemm(pool_, workspace, dry, rounded, args)) return;
  if (!dry) multiply(args);
}

void CpuOps::multiply(const GemmArgs& args) {
  const Mat &a = args.a, &b = args.b, &c = args.c;
  if (c.rows == 0 || c.cols == 0) return;
  const int64_t m = c.rows, n = c.cols, k = args.terms();
  const bool ta = args.transpose_a, tb = args.transpose_b;
  by_float_type(c.tensor, [&](auto type) {
    using T = decltype(type);
    // The library refuses a row step of 0, which a matrix without columns has.
    const int64_t lda = std::max<int64_t>(a.ld, 1), ldb = std::max<int64_t>(b.ld, 1);
    const T *pa = a.data<T>(), *pb = b.data<T>();
    if constexpr (std::is_same_v<T, float>) {
      if (skinny_gemm(
              pool_, {m, n, k, pa, lda, ta, pb, ldb, tb, c.data<T>(), c.ld, static_cast<float>(args.alpha), static_cast<float>(args.beta)}))
        return;
    }
    split_gemm<T>(pool_, ta, tb, m, n, k, static_cast<T>(args.alpha), pa, lda, pb, ldb, static_cast<T>(args.beta), c.data<T>(), c.ld);
  });
}

void CpuOps::body(const op::Gemms& args) {
  for (const GemmArgs& product : args.all) body(op::Gemm{product});
}

void CpuOps::body(const op::Linear& args) {
  if (dry)
    body(product_of(args));
  else
    linear_in_two(args);
}
void CpuOps::body(const op::LinearBackward& args) {
  if (dry)
    body(product_of(args));
  else
    linear_backward_in_two(args);
}

}  // namespace comera
