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

// Column-major A (m, n) = Q R, m >= n, and Q times a matrix.
template <class T>
class Qr {
 public:
  Qr(Workspace::Call& memory, int64_t rows, int64_t columns)
      : m_(static_cast<int>(rows)),
        n_(static_cast<int>(columns)),
        block_(std::min(n_, kBlock)),
        t_(memory.take<T>(block_ * columns)),
        work_(memory.take<T>(block_ * columns)) {}

  void factor(T* a) {
    a_ = a;
    if (const int info = blas::geqrt(m_, n_, block_, a, m_, t_, work_); info != 0) no_directions("geqrt", info);
  }
  T r(int64_t i, int64_t j) const { return a_[j * m_ + i]; }  // i <= j
  // c (m, n) becomes Q c.
  void multiply(T* c) const {
    if (const int info = blas::gemqrt(m_, n_, n_, block_, a_, m_, t_, c, m_, work_); info != 0) no_directions("gemqrt", info);
  }

 private:
  static constexpr int kBlock = 64;
  const int m_, n_, block_;
  T *const t_, *const work_;
  T* a_ = nullptr;  // R and the reflections
};

// G (rows, columns), row-major, = U S V^T with k = min(rows, columns) vectors on each side. A long side goes by way of the R of its QR
// decomposition, which is small.
template <class T>
class Svd {
 public:
  Svd(Workspace::Call& memory, int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), qr_(memory, long_, by_qr_ ? k_ : 0), a_(memory.take<T>(rows * columns)) {
    if (by_qr_) {
      small_ = memory.take<T>(k_ * k_);
      of_small_ = memory.take<T>(k_ * k_);
    }
    u_ = memory.take<T>(length_ * k_);
    vt_ = memory.take<T>(k_ * (by_qr_ ? k_ : rows));
    values_ = memory.take<T>(k_);
    integers_ = memory.take<int>(8 * k_);
    T answer = 0;
    decompose(&answer, -1);
    size_ = work_of(answer);
    work_ = memory.take<T>(size_);
  }

  void compute(const T* g) {
    if (by_qr_ && rows_ > columns_)
      for (int64_t i = 0; i < rows_; ++i)
        for (int64_t j = 0; j < columns_; ++j) a_[j * rows_ + i] = g[i * columns_ + j];
    else
      std::copy_n(g, rows_ * columns_, a_);
    if (!by_qr_) return decompose(work_, size_);
    qr_.factor(a_);
    for (int64_t j = 0; j < k_; ++j)
      for (int64_t i = 0; i < k_; ++i) small_[j * k_ + i] = i <= j ? qr_.r(i, j) : 0;
    decompose(work_, size_);
    for (int64_t p = 0; p < k_; ++p) {
      std::copy_n(of_small_ + p * k_, k_, u_ + p * length_);
      std::fill(u_ + p * length_ + k_, u_ + (p + 1) * length_, T(0));
    }
    qr_.multiply(u_);
  }

  T left(int64_t i, int64_t p) const { return right_first_ ? vt_[i * k_ + p] : u_[p * length_ + i]; }
  T right(int64_t p, int64_t j) const { return right_first_ ? u_[p * length_ + j] : vt_[j * k_ + p]; }

 private:
  // Row-major G is what LAPACK sees as G^T (columns, rows) = V S U^T. `size` -1: the size of `work` is asked for.
  void decompose(T* work, int64_t size) {
    const int k = static_cast<int>(k_), m = by_qr_ ? k : static_cast<int>(columns_), n = by_qr_ ? k : static_cast<int>(rows_);
    const int info = blas::gesdd('S', m, n, by_qr_ ? small_ : a_, m, values_, by_qr_ ? of_small_ : u_, m, vt_, k, work,
                                 static_cast<int>(size), integers_);
    if (info != 0) no_directions("gesdd", info);
  }

  const int64_t rows_, columns_, k_ = std::min(rows_, columns_), long_ = std::max(rows_, columns_);
  const bool by_qr_ = long_ >= 2 * k_;
  Qr<T> qr_;
  const bool right_first_ = !by_qr_ || columns_ >= rows_;     // u_ has the right vectors, vt_ the left ones
  const int64_t length_ = right_first_ ? columns_ : rows_;    // length of a column of u_
  T *a_, *small_ = nullptr, *of_small_ = nullptr, *u_, *vt_;  // a_ and small_ are destroyed
  T *values_, *work_ = nullptr;
  int* integers_;
  int64_t size_ = 0;
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
    for (int64_t p = 0; p < rank; ++p) {
      if (args.left)
        for (int64_t i = 0; i < m; ++i) out[i * rank + p] = svd.left(i, p);
      else
        for (int64_t j = 0; j < n; ++j) out[p * n + j] = svd.right(p, j);
      fix_sign(out + (args.left ? p : p * n), args.left ? m : n, args.left ? rank : 1);
    }
  });
}

// Row-major q (rank, n) is what LAPACK sees as q^T (n, rank) = Q^T L^T.
void CpuOps::body(const op::Orthonormal& args) {
  if (args.q.count() == 0) return;
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const int64_t rank = args.q.size(0), length = args.q.size(1);
    T* q = args.q.data<T>();
    Workspace::Call memory(workspace, dry);
    Qr<T> qr(memory, length, rank);
    T* basis = memory.take<T>(rank * length);
    if (dry) return;
    qr.factor(q);
    std::fill_n(basis, rank * length, T(0));
    for (int64_t j = 0; j < rank; ++j) basis[j * length + j] = qr.r(j, j) < 0 ? T(-1) : T(1);
    qr.multiply(basis);
    std::copy_n(basis, rank * length, q);
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
