// Leading singular directions: orthonormal, of a known matrix, with fixed signs.
#include <limits>

#include "core/base/draw.h"
#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class Linalg : public ::testing::Test {};
TYPED_TEST_SUITE(Linalg, FloatTypes);

// Entry of vector `p` of the basis: a column of (m, rank) on the left, a row of (rank, n) on the right.
template <class T>
double entry(const Array<T>& basis, bool left, int64_t p, int64_t i) {
  return static_cast<double>(left ? basis[i * basis.shape[1] + p] : basis[p * basis.shape[1] + i]);
}

struct Case {
  int64_t m, n, rank;
  bool left;
};
const Case kCases[] = {{7, 5, 5, true}, {7, 5, 3, false},   {5, 9, 4, true},   {5, 9, 5, false},
                       {6, 6, 2, true}, {40, 96, 8, false}, {96, 40, 8, true}, {1, 4, 1, false}};

TYPED_TEST(Linalg, BasisIsOrthonormalWithFixedSigns) {
  using T = TypeParam;
  CpuOps ops(1);
  for (const Case& c : kCases) {
    const auto g = uniform<T>({c.m, c.n}, 1);
    const int64_t length = c.left ? c.m : c.n;
    Array<T> basis(c.left ? Shape{c.m, c.rank} : Shape{c.rank, c.n});
    ops.singular_basis(basis, g, c.left);
    for (int64_t p = 0; p < c.rank; ++p) {
      for (int64_t s = 0; s <= p; ++s) {
        double product = 0;
        for (int64_t i = 0; i < length; ++i) product += entry(basis, c.left, p, i) * entry(basis, c.left, s, i);
        EXPECT_NEAR(product, p == s ? 1 : 0, tolerance<T>(1e-5, 1e-13)) << c.m << " x " << c.n << ", " << p << ", " << s;
      }
      double largest = 0;
      for (int64_t i = 0; i < length; ++i)
        if (std::abs(entry(basis, c.left, p, i)) > std::abs(largest)) largest = entry(basis, c.left, p, i);
      EXPECT_GT(largest, 0);
    }
  }
}

// G = sum_p s_p u_p v_p^T of rank 2 with s_0 > s_1: the energy captured by the first direction is s_0^2, and two
// directions give G back.
TYPED_TEST(Linalg, LeadingDirectionsCaptureALowRankMatrix) {
  using T = TypeParam;
  CpuOps ops(1);
  for (bool left : {true, false})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{12, 20}, {20, 12}}) {
      const auto a = uniform<double>({m, 2}, 3), b = uniform<double>({2, n}, 4);
      Array<T> g({m, n});
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) g[i * n + j] = static_cast<T>(3 * a[2 * i] * b[j] + a[2 * i + 1] * b[n + j]);
      Array<T> basis(left ? Shape{m, 2} : Shape{2, n});
      ops.singular_basis(basis, g, left);
      const int64_t length = left ? m : n, other = left ? n : m;
      double energy[2] = {}, worst = 0;
      for (int64_t o = 0; o < other; ++o) {
        const auto at = [&, n = n](int64_t i) { return static_cast<double>(left ? g[i * n + o] : g[o * n + i]); };
        double projection[2] = {};
        for (int p = 0; p < 2; ++p) {
          for (int64_t i = 0; i < length; ++i) projection[p] += at(i) * entry(basis, left, p, i);
          energy[p] += projection[p] * projection[p];
        }
        for (int64_t i = 0; i < length; ++i)
          worst = std::max(worst, std::abs(at(i) - projection[0] * entry(basis, left, 0, i) - projection[1] * entry(basis, left, 1, i)));
      }
      EXPECT_LT(worst, tolerance<T>(1e-5, 1e-13));
      EXPECT_GT(energy[0], energy[1]);
      EXPECT_NEAR(energy[0] + energy[1], dot(g, g), tolerance<T>(1e-3, 1e-11));
    }
}

TYPED_TEST(Linalg, ADivergedGradientLeavesTheBasis) {
  using T = TypeParam;
  CpuOps ops(1);
  for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    auto g = uniform<T>({4, 4}, 5);
    g[3] = bad;
    const auto before = uniform<T>({4, 2}, 6);
    Array<T> basis = before;
    ops.singular_basis(basis, g, true);
    EXPECT_EQ(basis.v, before.v);
    g[3] = 1;
    ops.singular_basis(basis, g, true);
    EXPECT_NE(basis.v, before.v);
  }
}

// Q of a matrix whose rows depend on each other, too: orthonormal, and its space holds them.
TYPED_TEST(Linalg, OrthonormalRowsSpanWhatWasThere) {
  using T = TypeParam;
  CpuOps ops(1);
  const auto inner = [](const Array<T>& a, int64_t i, const Array<T>& b, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < 30; ++k) sum += static_cast<double>(a[i * 30 + k]) * static_cast<double>(b[j * 30 + k]);
    return sum;
  };
  for (const int64_t independent : {0, 2, 5}) {
    Array<T> q = uniform<T>({5, 30}, 7);
    for (int64_t j = independent; j < 5; ++j)
      for (int64_t i = 0; i < 30; ++i) q[j * 30 + i] = independent > 0 ? q[j % independent * 30 + i] * static_cast<T>(j) : T(0);
    const Array<T> before = q;
    ops.run(op::Orthonormal{q});
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_NEAR(inner(q, i, q, j), i == j, tolerance<T>(1e-5, 1e-13)) << independent << ", " << i << ", " << j;
    for (int64_t j = 0; j < 5; ++j) {
      const double whole = inner(before, j, before, j);
      double inside = 0;
      for (int64_t i = 0; i < 5; ++i) inside += inner(before, j, q, i) * inner(before, j, q, i);
      if (j < independent) {
        EXPECT_GT(inner(before, j, q, j), 0) << "the diagonal of L";
      }
      EXPECT_NEAR(inside, whole, tolerance<T>(1e-3, 1e-11) * (1 + whole));
    }
  }
}

TYPED_TEST(Linalg, NormalDrawsAreThoseOfTheHost) {
  using T = TypeParam;
  CpuOps ops(1);
  StepScalars scalars;
  scalars.seed = 9, scalars.step = 4;
  Array<T> y({1001});
  ops.run(op::Normal{y, 3, block_tensor(scalars)});
  const std::vector<double> expected = draw_normals({9, 4, 3}, 1001);
  for (int64_t i = 0; i < 1001; ++i) EXPECT_NEAR(y[i], expected[static_cast<size_t>(i)], tolerance<T>(1e-6, 1e-14));
}

}  // namespace
}  // namespace comera::test
