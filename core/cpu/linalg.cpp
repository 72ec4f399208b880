// Singular directions and orthonormal bases by LAPACK, and the steps of COAP's projections. Between the programs of a step.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/cpu/blas.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/typed.h"
#include "core/ops/coap_math.h"

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

template <class T>
double dot(const T* a, const T* b, int64_t count) {
  return static_cast<double>(
      row_sum<T>(count, [=](auto like, int64_t i) { return at<decltype(like)>(a + i) * at<decltype(like)>(b + i); }));
}

// rank > 0: rows have ||G_i||^2 in place of ||E_i||^2, and <s - 2 I, q> is added.
template <class T>
CoapSums coap_sums(const CoapRow* of_rows, int64_t rows, int64_t columns, bool normalised, const T* s = nullptr, const T* q = nullptr,
                   int64_t rank = 0) {
  CoapSums sums;
  for (int64_t i = 0; i < rows; ++i) sums.lost += of_rows[i].lost, sums.g += of_rows[i].g;
  for (int64_t i = 0; i < rank * rank; ++i)
    sums.lost += coap_lost_term(static_cast<double>(s[i]), static_cast<double>(q[i]), i / rank == i % rank);
  sums.lost = coap_square(sums.lost);
  const CoapMath math(sums, rows, columns, normalised);
  for (int64_t i = 0; i < rows; ++i) sums.cosines += math.cosine(of_rows[i]);
  return sums;
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

// Row-major q (rank, n) is what LAPACK sees as q^T (n, rank) = Q^T L^T: its QR decomposition, in place.
void CpuOps::body(const op::Orthonormal& args) {
  if (args.q.count() == 0) return;
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const int64_t rank = args.q.size(0), length = args.q.size(1);
    const int rows = static_cast<int>(length), columns = static_cast<int>(rank);
    T* q = args.q.data<T>();
    Workspace::Call memory(workspace, dry);
    T *tau = memory.take<T>(rank), *diagonal = memory.take<T>(rank), sizes[2] = {};
    if (const int info = blas::geqrf(rows, columns, q, rows, tau, &sizes[0], -1); info != 0) no_directions("geqrf", info);
    if (const int info = blas::orgqr(rows, columns, columns, q, rows, tau, &sizes[1], -1); info != 0) no_directions("orgqr", info);
    const int64_t size = work_of(std::max(sizes[0], sizes[1]));
    T* work = memory.take<T>(size);
    if (dry) return;
    if (const int info = blas::geqrf(rows, columns, q, rows, tau, work, static_cast<int>(size)); info != 0) no_directions("geqrf", info);
    for (int64_t j = 0; j < rank; ++j) diagonal[j] = q[j * length + j];
    if (const int info = blas::orgqr(rows, columns, columns, q, rows, tau, work, static_cast<int>(size)); info != 0)
      no_directions("orgqr", info);
    for (int64_t j = 0; j < rank; ++j)
      if (diagonal[j] < 0)
        for (int64_t i = 0; i < length; ++i) q[j * length + i] = -q[j * length + i];
  });
}

void CpuOps::body(const op::CoapDirections& args) {
  const int64_t rows = args.g.size(0), columns = args.g.size(1);
  if (args.g.count() == 0) return;
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    T *lost = args.lost.data<T>(), *moment = args.moment.data<T>();
    const T* g = args.g.data<T>();
    const int64_t grain = kElementGrain / columns + 1;
    CoapRow* of_rows = pool_.scratch_of<CoapRow>(rows);
    pool_.parallel_for(rows, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *e = lost + i * columns, *c = moment + i * columns, *x = g + i * columns;
        of_rows[i] = {dot(e, e, columns), dot(x, x, columns), dot(c, c, columns), dot(c, x, columns)};
      }
    });
    const CoapMath math(coap_sums<T>(of_rows, rows, columns, args.normalised), rows, columns, args.normalised);
    pool_.parallel_for(rows, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T of_lost = static_cast<T>(math.of_lost()), of_g = static_cast<T>(math.of_g(of_rows[i])),
                of_moment = static_cast<T>(math.of_moment(of_rows[i]));
        T *e = lost + i * columns, *c = moment + i * columns;
        const T* x = g + i * columns;
#pragma GCC ivdep
        for (int64_t j = 0; j < columns; ++j) {
          e[j] *= of_lost;
          c[j] = of_g * x[j] - of_moment * c[j];
        }
      }
    });
  });
}

void CpuOps::body(const op::CoapFactors& args) {
  const int64_t rows = args.g.size(0), columns = args.g.size(1), rank = args.s.size(0);
  if (args.g.count() == 0 || rank == 0) return;
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const bool with_moment = static_cast<bool>(args.u);
    const auto data = [&](const Tensor& t) { return with_moment ? t.data<T>() : nullptr; };
    const T *g = args.g.data<T>(), *u = data(args.u), *gv = data(args.gv), *uv = data(args.uv);
    CoapRow* of_rows = pool_.scratch_of<CoapRow>(rows);
    pool_.parallel_for(rows, kElementGrain / columns + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *x = g + i * columns, *of_u = u + i * rank;
        const double square = dot(x, x, columns);
        of_rows[i] = {square, square, with_moment ? coap_square(dot(of_u, uv + i * rank, rank)) : 0,
                      with_moment ? dot(of_u, gv + i * rank, rank) : 0};
      }
    });
    T *s = args.s.data<T>(), *q = args.q.data<T>();
    const CoapMath math(coap_sums(of_rows, rows, columns, args.normalised, s, q, rank), rows, columns, args.normalised);
    const double of_lost = math.of_lost();
    for (int64_t i = 0; i < rank * rank; ++i) {
      s[i] = static_cast<T>(of_lost * (static_cast<double>(s[i]) - (i / rank == i % rank ? 2 : 0)));
      q[i] = static_cast<T>(of_lost * static_cast<double>(q[i]));
    }
    if (!with_moment) return;
    T *of_g = args.of_g.data<T>(), *of_moment = args.of_moment.data<T>();
    const T *x = args.left ? gv : u, *y = args.left ? uv : u;
    pool_.parallel_for(rows, kElementGrain / rank + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double by_g = math.of_g(of_rows[i]), by_moment = math.of_moment(of_rows[i]);
        for (int64_t j = i * rank; j < (i + 1) * rank; ++j) {
          of_g[j] = static_cast<T>(by_g * static_cast<double>(x[j]));
          of_moment[j] = static_cast<T>(by_moment * static_cast<double>(y[j]));
        }
      }
    });
  });
}

void CpuOps::body(const op::ClippedStep& args) {
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    const T* x = args.x.data<T>();
    T* y = args.y.data<T>();
    const int64_t count = args.y.count();
    double square = 0;
    for (int64_t begin = 0; begin < count; begin += kChunk) square += dot(x + begin, x + begin, std::min(kChunk, count - begin));
    const T factor = static_cast<T>(clipped_step(args.size, square));
    if (factor == 0) return;
    for_chunks(pool_, count, [=](int64_t begin, int64_t end) {
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) y[i] -= factor * x[i];
    });
  });
}

void CpuOps::body(const op::LazyRefresh& args) {
  by_float_type(args.basis, [&](auto type) {
    using T = decltype(type);
    const int64_t count = args.last.count(), apart = args.left ? args.basis.size(1) : 1;
    const T* basis = args.basis.data<T>();
    T* last = args.last.data<T>();
    double product = 0, square = 0, square_before = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double now = static_cast<double>(basis[i * apart]), before = static_cast<double>(last[i]);
      product += now * before;
      square += now * now;
      square_before += before * before;
      last[i] = basis[i * apart];
    }
    LazyRefreshMath{args.threshold, args.factor, args.queue.count()}.take(product, square, square_before, args.queue.data<T>(),
                                                                          args.counts.data<int>());
  });
}

}  // namespace comera
