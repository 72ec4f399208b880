// The leading singular directions of a gradient, for projections. Runs between the programs of a step, every few
// hundred steps, so it allocates its workspace here.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/cpu/blas.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"

namespace comera {

namespace {

// Row-major G (m, n) is what LAPACK sees as G^T (n, m) = V S U^T. So its `u` holds the columns of V one after
// another, which are the rows of V^T; and its `vt`, (k, m) by columns, is U (m, k) by rows.
template <class T>
struct Svd {
  std::vector<T> u, vt;
  int64_t k;

  Svd(const T* g, int64_t rows, int64_t columns) : k(std::min(rows, columns)) {
    const int m = static_cast<int>(columns), n = static_cast<int>(rows), small = static_cast<int>(k);
    const size_t count = static_cast<size_t>(rows * columns);
    std::vector<T> a(g, g + count), values(static_cast<size_t>(k));  // a is destroyed
    std::vector<int> integers(static_cast<size_t>(8 * k));
    u.resize(static_cast<size_t>(columns * k));
    vt.resize(static_cast<size_t>(k * rows));
    T size = 0;
    int info = blas::gesdd('S', m, n, a.data(), m, values.data(), u.data(), m, vt.data(), small, &size, -1, integers.data());
    // A float holds the size to 24 bits, rounded to either side: one part in 2^20 more is enough.
    std::vector<T> work(static_cast<size_t>(static_cast<double>(size) * (1 + 1e-6)) + 1);
    if (info == 0)
      info = blas::gesdd('S', m, n, a.data(), m, values.data(), u.data(), m, vt.data(), small, work.data(), static_cast<int>(work.size()),
                         integers.data());
    if (info != 0)
      throw Error(ErrorCode::diverged, "the singular vectors of a gradient could not be computed", "gesdd returned " + std::to_string(info),
                  "lower the learning rate");
  }
};

// SVD leaves each vector's sign open: moments kept across refreshes need it fixed. `step` from entry to entry.
template <class T>
void fix_sign(T* vector, int64_t count, int64_t step) {
  T largest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::abs(vector[i * step]) > std::abs(largest)) largest = vector[i * step];
  if (largest < 0)
    for (int64_t i = 0; i < count; ++i) vector[i * step] = -vector[i * step];
}

}  // namespace

void CpuOps::body(const op::SingularBasis& args) {
  if (args.basis.count() == 0) return;
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const int64_t m = args.g.size(0), n = args.g.size(1), rank = args.basis.size(args.left ? 1 : 0);
    const T* values = args.g.data<T>();
    if (!std::all_of(values, values + args.g.count(), [](T value) { return std::isfinite(value); })) return;
    const Svd<T> svd(values, m, n);
    T* out = args.basis.data<T>();
    if (args.left) {
      for (int64_t i = 0; i < m; ++i) std::copy_n(svd.vt.data() + i * svd.k, rank, out + i * rank);
      for (int64_t p = 0; p < rank; ++p) fix_sign(out + p, m, rank);
    } else {
      std::copy_n(svd.u.data(), rank * n, out);
      for (int64_t p = 0; p < rank; ++p) fix_sign(out + p * n, n, 1);
    }
  });
}

}  // namespace comera
