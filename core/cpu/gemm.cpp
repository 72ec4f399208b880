// Products: in bf16 by rounded_gemm.cpp, else skinny ones by skinny_gemm.cpp, all others by the BLAS, each thread one part of C.
#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>

#include "core/base/rounding.h"
#include "core/cpu/blas.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/parts.h"
#include "core/cpu/rounded_gemm.h"
#include "core/cpu/skinny_gemm.h"
#include "core/cpu/typed.h"

namespace comera {

namespace {

// Parts are whole tiles of the library's kernels (16 x 4 or its transpose).
constexpr int64_t kPart = 16;
// Least FLOPs of a thread: for fewer, waking it costs more than it saves.
constexpr int64_t kGrainFlops = 250'000;

// A product that the library computes in parts of its longer side.
template <class T>
class BlasProduct {
 public:
  explicit BlasProduct(const GemmArgs& args)
      : args_(args), m_(args.c.rows), n_(args.c.cols), k_(args.terms()), by_rows_(m_ >= n_), side_(by_rows_ ? m_ : n_) {}

  int64_t terms() const { return m_ * n_ * k_; }
  Units parts() const {
    return {m_ == 0 || n_ == 0 ? 0 : ceil_div(side_, kPart), std::max<int64_t>(1, 2 * kPart * k_ * (by_rows_ ? n_ : m_))};
  }
  void multiply(int64_t begin, int64_t end) const {
    const int64_t first = begin * kPart, count = std::min(side_, end * kPart) - first;
    const bool ta = args_.transpose_a, tb = args_.transpose_b;
    // The library refuses a row step of 0, which a matrix without columns has.
    const int64_t lda = std::max<int64_t>(args_.a.ld, 1), ldb = std::max<int64_t>(args_.b.ld, 1), ldc = args_.c.ld;
    const T *a = args_.a.template data<T>(), *b = args_.b.template data<T>();
    const T alpha = static_cast<T>(args_.alpha), beta = static_cast<T>(args_.beta);
    T* c = args_.c.template data<T>();
    if (by_rows_)
      blas::gemm(ta, tb, count, n_, k_, alpha, a + first * (ta ? 1 : lda), lda, b, ldb, beta, c + first * ldc, ldc);
    else
      blas::gemm(ta, tb, m_, count, k_, alpha, a, lda, b + first * (tb ? ldb : 1), ldb, beta, c + first, ldc);
  }

 private:
  const GemmArgs& args_;
  const int64_t m_, n_, k_;
  const bool by_rows_;
  const int64_t side_;
};

// Products that do not wait for one another.
template <class T>
void multiply_parts(ThreadPool& pool, std::span<const GemmArgs> all, int64_t grain, int64_t most_terms) {
  for_units(
      pool, all, grain,
      [&](const GemmArgs& args) {
        const BlasProduct<T> product(args);
        return product.terms() > most_terms ? Units{0, 1} : product.parts();
      },
      [](const GemmArgs& args, int64_t begin, int64_t end) { BlasProduct<T>(args).multiply(begin, end); });
}

}  // namespace

CpuOps::CpuOps(int threads) : pool_(threads) { [[maybe_unused]] static const bool one_thread = (blas::set_one_thread(), true); }

void CpuOps::body(const op::Gemm& args) {
  if ((dry ? plans_rounded : rounded != nullptr) && rounded_gemm(pool_, workspace, dry, rounded, args)) return;
  if (!dry) multiply(args);
}

void CpuOps::multiply(const GemmArgs& args) {
  const Mat &a = args.a, &b = args.b, &c = args.c;
  by_float_type(c.tensor, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, float>) {
      if (skinny_gemm(pool_, {c.rows, c.cols, args.terms(), a.data<T>(), a.ld, args.transpose_a, b.data<T>(), b.ld, args.transpose_b,
                              c.data<T>(), c.ld, static_cast<float>(args.alpha), static_cast<float>(args.beta)}))
        return;
    }
    // The library packs the shorter operand again for each part.
    constexpr int64_t kRowsToPackFor = 1024;
    const Units parts = BlasProduct<T>(args).parts();
    const int64_t whole = parts.count / pool_.threads() * parts.cost, enough = kRowsToPackFor / kPart * parts.cost;
    multiply_parts<T>(pool_, {&args, 1}, std::max(kGrainFlops, std::min(whole, enough)), std::numeric_limits<int64_t>::max());
  });
}

// Threads share the small products as one sequence: each alone is too short to wake a thread for.
void CpuOps::body(const op::Gemms& args) {
  const bool in_bf16 = dry ? plans_rounded : rounded != nullptr;
  if (!in_bf16 && !dry)
    by_float_type(args.all[0].c.tensor,
                  [&](auto type) { multiply_parts<decltype(type)>(pool_, args.all.view(), kGrainFlops, kLibrarySmall); });
  for (const GemmArgs& product : args.all)
    if (in_bf16 || product.c.rows * product.c.cols * product.terms() > kLibrarySmall) body(op::Gemm{product});
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
