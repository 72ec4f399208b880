// The leading singular directions of a gradient by LAPACK, for projections. Between the programs of a step, every few hundred steps.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/cpu/blas.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"

namespace comera {

namespace {

[[noreturn]] void no_directions(const char* routine, int info) {
  throw Error(ErrorCode::diverged, "the singular vectors of a gradient could not be computed",
              std::string(routine) + " returned " + std::to_string(info), "lower the learning rate");
}

// Entries of working memory from LAPACK's answer. A float holds the size to 24 bits, rounded to either side: one part in 2^20 more is
// enough.
template <class T>
int64_t work_of(T size) {
  return static_cast<int64_t>(static_cast<double>(size) * (1 + 1e-6)) + 1;
}

// Row-major G (m, n) is what LAPACK sees as G^T (n, m) = V S U^T. So its `u` holds the columns of V one after
// another, which are the rows of V^T; and its `vt`, (k, m) by columns, is U (m, k) by rows.
template <class T>
struct Svd {
  int m, n, small;
  int64_t k;
  T *a, *values, *u, *vt, *work;  // a is destroyed
  int* integers;
  int64_t size;

  Svd(Workspace::Call& memory, int64_t rows, int64_t columns)
      : m(static_cast<int>(columns)), n(static_cast<int>(rows)), small(std::min(m, n)), k(small) {
    a = memory.take<T>(rows * columns);
    values = memory.take<T>(k);
    u = memory.take<T>(columns * k);
    vt = memory.take<T>(k * rows);
    integers = memory.take<int>(8 * k);
    T answer = 0;
    if (const int info = blas::gesdd('S', m, n, a, m, values, u, m, vt, small, &answer, -1, integers); info != 0)
      no_directions("gesdd", info);
    size = work_of(answer);
    work = memory.take<T>(size);
  }
  void compute(const T* g) {
    std::copy_n(g, int64_t{m} * n, a);
    if (const int info = blas::gesdd('S', m, n, a, m, values, u, m, vt, small, work, static_cast<int>(size), integers); info != 0)
      no_directions("gesdd", info);
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
    Workspace::Call memory(workspace, dry);
    Svd<T> svd(memory, m, n);
    if (dry) return;
    const T* values = args.g.data<T>();
    if (!std::all_of(values, values + args.g.count(), [](T value) { return std::isfinite(value); })) return;
    svd.compute(values);
    T* out = args.basis.data<T>();
    if (args.left) {
      for (int64_t i = 0; i < m; ++i) std::copy_n(svd.vt + i * svd.k, rank, out + i * rank);
      for (int64_t p = 0; p < rank; ++p) fix_sign(out + p, m, rank);
    } else {
      std::copy_n(svd.u, rank * n, out);
      for (int64_t p = 0; p < rank; ++p) fix_sign(out + p * n, n, 1);
    }
  });
}

}  // namespace comera
