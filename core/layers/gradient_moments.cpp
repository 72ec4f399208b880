#include "core/layers/gradient_moments.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "core/base/error.h"
#include "core/ops/device.h"

namespace comera {
namespace {

using Values = std::vector<double>;

constexpr double kIdentity = 0.05;  // its share of scaled moments

size_t at(int64_t row, int64_t columns, int64_t column) { return static_cast<size_t>(row * columns + column); }

// Moments (k, k), or of a diagonal (k), as the error counts them. All of them 0: the identity.
Values scaled(const std::vector<float>& moments, int64_t k) {
  Values out(moments.begin(), moments.end());
  const int64_t step = std::ssize(moments) == k ? 1 : k + 1;
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += out[static_cast<size_t>(i * step)];
  for (double& value : out) value *= sum > 0 ? (1 - kIdentity) * static_cast<double>(k) / sum : 0;
  for (int64_t i = 0; i < k; ++i) out[static_cast<size_t>(i * step)] += sum > 0 ? kIdentity : 1;
  return out;
}

// Lower L (k, k) of M = L L^T. M is symmetric and, with a share of the identity, positive.
Values cholesky(Values m, int64_t k) {
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j) {
      double& value = m[at(i, k, j)];
      if (j > i) {
        value = 0;
        continue;
      }
      const double *a = m.data() + at(i, k, 0), *b = m.data() + at(j, k, 0);
      double sum = value;
      for (int64_t p = 0; p < j; ++p) sum -= a[p] * b[p];
      value = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / m[at(j, k, j)];
    }
  return m;
}

// X (k, r) with L^T X = B, in the place of B.
void solve_transposed(const Values& l, int64_t k, Values& b, int64_t r) {
  for (int64_t i = k - 1; i >= 0; --i) {
    double* row = b.data() + at(i, r, 0);
    for (int64_t p = i + 1; p < k; ++p) {
      const double factor = l[at(p, k, i)];
      const double* other = b.data() + at(p, r, 0);
      for (int64_t j = 0; j < r; ++j) row[j] -= factor * other[j];
    }
    for (int64_t j = 0; j < r; ++j) row[j] /= l[at(i, k, i)];
  }
}

Values transposed(const Values& x, int64_t rows, int64_t columns) {
  Values out(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[at(j, rows, i)] = x[at(i, columns, j)];
  return out;
}

Tensor on_host(Values& values, int64_t rows, int64_t columns) {
  CHECK(std::ssize(values) == rows * columns, values.size() << " values");
  return Tensor(values.data(), {rows, columns}, DType::f64);
}

// A matrix as its error counts. V (k, l) is W, or W^T where W (m, n) is taller: its rows are the shorter side. With A A^T the moments of
// the shorter side, B B^T those of the longer one, the cost is |A^T D B|^2: the leading left singular vectors U of A^T V B, of which S =
// A^T V B B^T V^T A has the squares, give V' = A^-T U U^T A^T V.
struct Weighted {
  Weighted(const Values& matrix, int64_t m, int64_t n)  // M and N are the identity; A is left out
      : k(std::min(m, n)), l(std::max(m, n)), turned(m > n), v(turned ? transposed(matrix, m, n) : matrix) {
    CHECK(std::ssize(matrix) == m * n, m << " x " << n);
    square.resize(static_cast<size_t>(k * k));
    ops().gemm(on_host(square, k, k), on_host(v, k, l), false, on_host(v, k, l), true);
  }
  Weighted(const Values& matrix, int64_t m, int64_t n, const GradientMoments& moments)
      : k(std::min(m, n)), l(std::max(m, n)), turned(m > n), v(turned ? transposed(matrix, m, n) : matrix) {
    CHECK(std::ssize(matrix) == m * n, m << " x " << n);
    CHECK(std::ssize(moments.shorter) == k * k && std::ssize(moments.longer) == (k == l ? k * k : l), m << " x " << n);
    a = cholesky(scaled(moments.shorter, k), k);
    Values longer = scaled(moments.longer, l), weighted(v.size()), inner(a.size()), half(a.size());
    if (k == l)
      ops().gemm(on_host(weighted, k, l), on_host(v, k, l), false, on_host(longer, l, l), false);
    else
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < l; ++j) weighted[at(i, l, j)] = v[at(i, l, j)] * longer[static_cast<size_t>(j)];
    ops().gemm(on_host(inner, k, k), on_host(weighted, k, l), false, on_host(v, k, l), true);
    ops().gemm(on_host(half, k, k), on_host(a, k, k), true, on_host(inner, k, k), false);
    square.resize(a.size());
    ops().gemm(on_host(square, k, k), on_host(half, k, k), false, on_host(a, k, k), false);
  }
  Ops& ops() { return device->ops(); }
  // U (k, rank), and of each of its columns u what u^T S u is: (rank), descending.
  Values basis(int64_t rank) {
    Values u(static_cast<size_t>(k * rank));
    ops().run(op::SingularBasis{on_host(u, k, rank), on_host(square, k, k), true});
    return u;
  }
  Values costs(Values& u) {
    const int64_t rank = std::ssize(u) / k;
    Values kept(u.size()), out(static_cast<size_t>(rank));
    ops().gemm(on_host(kept, k, rank), on_host(square, k, k), false, on_host(u, k, rank), false);
    for (size_t i = 0; i < u.size(); ++i) out[i % out.size()] += u[i] * kept[i];
    return out;
  }

  int64_t k, l;
  bool turned;
  std::unique_ptr<Device> device = open_cpu_device(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  Values v, a, square;  // square: S (k, k)
};

}  // namespace

NearestOfRank nearest_of_rank(const Values& matrix, int64_t m, int64_t n, int64_t rank, const GradientMoments& moments) {
  Weighted w(matrix, m, n, moments);
  const int64_t k = w.k, l = w.l;
  CHECK(rank >= 1 && rank <= k, m << " x " << n << ", rank " << rank);
  Values u = w.basis(rank);
  double all = 0, left = 0;
  for (int64_t i = 0; i < k; ++i) all += w.square[at(i, k, i)];
  for (const double cost : w.costs(u)) left += cost;
  Values right(static_cast<size_t>(rank * k)), thin(static_cast<size_t>(rank * l)), near(w.v.size());
  w.ops().gemm(on_host(right, rank, k), on_host(u, k, rank), true, on_host(w.a, k, k), true);
  w.ops().gemm(on_host(thin, rank, l), on_host(right, rank, k), false, on_host(w.v, k, l), false);
  solve_transposed(w.a, k, u, rank);
  w.ops().gemm(on_host(near, k, l), on_host(u, k, rank), false, on_host(thin, rank, l), false);
  return {w.turned ? transposed(near, k, l) : near, all > 0 ? std::sqrt(std::max(0.0, 1 - left / all)) : 0};
}

Values costs_of_ranks(const Values& matrix, int64_t m, int64_t n, const GradientMoments* moments) {
  Weighted w = moments ? Weighted(matrix, m, n, *moments) : Weighted(matrix, m, n);
  Values u = w.basis(w.k), costs = w.costs(u);
  if (!moments) return costs;
  double trace = 0;
  for (int64_t i = 0; i < w.k; ++i) trace += moments->shorter[at(i, w.k, i)];
  for (double& cost : costs) cost *= trace / static_cast<double>(m * n);
  return costs;
}

}  // namespace comera
