#include "tests/ops/host.h"

namespace comera::test {
namespace {

struct NormCase {
  int64_t rows, columns;
  bool branch;
  double dropout;
  bool rms = false;
  int64_t rank = 0;  // of a product that is the branch, and of one that is added to dy
  bool before = false;
};
const NormCase kNormCases[] = {{3, 16, true, 0.2, false, 2, true},
                               {5, 70, true, 0, true, 5},
                               {33, 65, true, 0.1, false, 7},
                               {64, 768, true, 0.1, false, 31},
                               {50, 768, true, 0.1, true, 33, true},
                               {130, 600, true, 0.5, false, 8, true},
                               {1, 1, false, 0},
                               {1, 5, true, 0},
                               {3, 16, true, 0.2},
                               {7, 63, false, 0},
                               {33, 65, true, 0.1},
                               {64, 768, true, 0.1},
                               {100, 768, false, 0},
                               {130, 129, true, 0.5},
                               {40, 1500, true, 0.3},
                               {1, 1, false, 0, true},
                               {3, 16, true, 0.2, true},
                               {7, 63, false, 0, true},
                               {64, 768, true, 0.1, true},
                               {40, 1500, true, 0.3, true}};

template <class T>
struct Norm {
  CpuOps ops;
  StepScalars scalars;
  NormCase c;
  Dropout dropout, after;
  Array<T> x, branch, gamma, beta, y, sum, mean, rstd, dy, dsum, dbranch, dgamma, dbeta;
  Array<T> t, r, u, l, means, rstds, scale, shift;  // of the products, and of the norm before
  Array<T> onward, w;                               // dbranch w^T, and w

  Norm(const NormCase& c, int threads)
      : ops(threads),
        c(c),
        dropout{c.dropout, 9},
        after{c.rank % 2 == 1 ? 0.3 : 0, 8},
        x(uniform<T>({c.rows, c.columns}, 1, -2, 3)),
        branch(uniform<T>({c.rows, c.columns}, 2)),
        gamma(uniform<T>({c.columns}, 3, 0.5, 1.5)),
        beta(uniform<T>({c.columns}, 4)),
        y({c.rows, c.columns}),
        sum({c.rows, c.columns}),
        mean({c.rows}),
        rstd({c.rows}),
        dy(uniform<T>({c.rows, c.columns}, 5)),
        dsum({c.rows, c.columns}),
        dbranch({c.rows, c.columns}),
        dgamma({c.columns}),
        dbeta({c.columns}),
        t(uniform<T>({c.rows, c.rank}, 6)),
        r(uniform<T>({c.rank, c.columns}, 7)),
        u(uniform<T>({c.rows, c.rank}, 8)),
        l(uniform<T>({c.columns, c.rank}, 9)),
        means(uniform<T>({c.rows}, 10)),
        rstds(uniform<T>({c.rows}, 11, 0.5, 1.5)),
        scale(uniform<T>({c.columns}, 12, 0.5, 1.5)),
        shift(uniform<T>({c.columns}, 13)),
        onward({c.rows, c.rank}),
        w(uniform<T>({c.rank, c.columns}, 14)) {
    scalars.seed = 4;
    scalars.step = 2;
  }
  void forward(bool writes_sum = true) {
    op::NormForward call{y,
                         c.branch && writes_sum ? Tensor(sum) : Tensor(),
                         some(mean),
                         rstd,
                         x,
                         c.branch && c.rank == 0 ? Tensor(branch) : Tensor(),
                         gamma,
                         some(beta),
                         1e-5,
                         dropout,
                         block_tensor(scalars)};
    if (c.rank > 0) call.thin = {Mat(t, c.rows, c.rank), Mat(r, c.rank, c.columns)};
    if (c.before) call.before = {some(means), rstds, scale, some(shift)};
    call.after = after;
    ops.run(call);
  }
  void backward() {
    op::NormBackward call{dsum,
                          c.branch ? Tensor(dbranch) : Tensor(),
                          dgamma,
                          some(dbeta),
                          dy,
                          c.branch ? Tensor(sum) : Tensor(x),
                          some(mean),
                          rstd,
                          gamma,
                          dropout,
                          block_tensor(scalars)};
    if (c.rank > 0) call.thin = {Mat(u, c.rows, c.rank), Mat(l, c.columns, c.rank), true};
    if (c.rank > 0) call.onward = {Mat(onward, c.rows, c.rank), Mat(w, c.rank, c.columns)};
    call.after = after;
    ops.run(call);
  }
  // What the op makes of its arguments: x, the branch and dy of element i.
  double x_at(int64_t i) const {
    const auto v = static_cast<double>(x[i]);
    if (!c.before) return v;
    const int64_t row = i / c.columns, j = i % c.columns;
    const auto of = [](const Array<T>& a, int64_t at) { return static_cast<double>(a[at]); };
    return (v - (c.rms ? 0 : of(means, row))) * of(rstds, row) * of(scale, j) + (c.rms ? 0 : of(shift, j));
  }
  double branch_at(int64_t i) const {
    double v = c.rank > 0 ? 0 : static_cast<double>(branch[i]);
    for (int64_t k = 0; k < c.rank; ++k)
      v += static_cast<double>(t[i / c.columns * c.rank + k]) * static_cast<double>(r[k * c.columns + i % c.columns]);
    return v;
  }
  double dy_at(int64_t i) const {
    auto v = static_cast<double>(dy[i]);
    for (int64_t k = 0; k < c.rank; ++k)
      v += static_cast<double>(u[i / c.columns * c.rank + k]) * static_cast<double>(l[i % c.columns * c.rank + k]);
    return v * factor(after, i);
  }
  Tensor some(Array<T>& values) { return c.rms ? Tensor() : Tensor(values); }  // an RMS norm has no mean and no shift
  static double factor(Dropout dropout, int64_t i) { return dropout_factor({4, 2, dropout.site}, i, dropout.probability); }
  double factor(int64_t i) const { return factor(dropout, i); }
};

template <class T>
class LayerNorm : public ::testing::Test {};
TYPED_TEST_SUITE(LayerNorm, FloatTypes);

// Written over what they are made of, results have the same bits.
TYPED_TEST(LayerNorm, InPlaceChangesNoBit) {
  using T = TypeParam;
  for (const NormCase& c : kNormCases) {
    if (c.rank > 0) continue;
    Norm<T> apart(c, 2), over(c, 2);
    apart.forward(), apart.backward();
    const Tensor step = block_tensor(over.scalars), kept = c.branch ? Tensor(over.branch) : Tensor(over.x);
    const Tensor y = c.branch ? Tensor(over.x) : Tensor(over.y);  // without a branch x is the sum, which backward reads
    over.ops.norm_forward(y, c.branch ? Tensor(over.branch) : Tensor(), over.some(over.mean), over.rstd, over.x,
                          c.branch ? Tensor(over.branch) : Tensor(), over.gamma, over.some(over.beta), 1e-5, over.dropout, step);
    EXPECT_TRUE(same_bits(c.branch ? over.x : over.y, apart.y));
    if (c.branch) {
      EXPECT_TRUE(same_bits(over.branch, apart.sum));
    }
    over.ops.norm_backward(over.dy, c.branch ? kept : Tensor(), over.dgamma, over.some(over.dbeta), over.dy, kept, over.some(over.mean),
                           over.rstd, over.gamma, over.dropout, step);
    EXPECT_TRUE(same_bits(over.dy, apart.dsum));
    EXPECT_TRUE(same_bits(over.dgamma, apart.dgamma));
    if (c.branch) {
      EXPECT_TRUE(same_bits(over.branch, apart.dbranch));
    }
  }
}

// y in place of x, without the sum; and the gradients in place of dy and of the sum.
TYPED_TEST(LayerNorm, OfAProductInPlaceChangesNoBit) {
  using T = TypeParam;
  for (const NormCase& c : kNormCases) {
    if (c.rank == 0) continue;
    Norm<T> apart(c, 2), over(c, 2);
    apart.forward(), apart.backward();
    const Tensor step = block_tensor(over.scalars);
    op::NormForward forward{over.x,       {},  over.some(over.mean), over.rstd, over.x, {}, over.gamma, over.some(over.beta), 1e-5,
                            over.dropout, step};
    forward.after = over.after;
    forward.thin = {Mat(over.t, c.rows, c.rank), Mat(over.r, c.rank, c.columns)};
    if (c.before) forward.before = {over.some(over.means), over.rstds, over.scale, over.some(over.shift)};
    over.ops.run(forward);
    EXPECT_TRUE(same_bits(over.x, apart.y));
    EXPECT_TRUE(same_bits(over.rstd, apart.rstd));
    over.sum = apart.sum;
    op::NormBackward backward{
        over.dy,    over.sum,     over.dgamma, over.some(over.dbeta), over.dy, over.sum, over.some(over.mean), over.rstd,
        over.gamma, over.dropout, step};
    backward.after = over.after;
    backward.thin = {Mat(over.u, c.rows, c.rank), Mat(over.l, c.columns, c.rank), true};
    over.ops.run(backward);
    EXPECT_TRUE(same_bits(over.dy, apart.dsum));
    EXPECT_TRUE(same_bits(over.sum, apart.dbranch));
    EXPECT_TRUE(same_bits(over.dgamma, apart.dgamma));
  }
}

TYPED_TEST(LayerNorm, AgainstDirectSums) {
  using T = TypeParam;
  for (const NormCase& c : kNormCases)
    for (int threads : {1, 3}) {
      Norm<T> n(c, threads);
      n.forward();
      n.backward();
      const auto D = static_cast<double>(c.columns);
      std::vector<double> dgamma(static_cast<size_t>(c.columns)), dbeta = dgamma;
      const double near = tolerance<T>(1e-5, 1e-12);
      for (int64_t t = 0; t < c.rows; ++t) {
        std::vector<double> s(static_cast<size_t>(c.columns));
        double mean = 0, variance = 0, g_mean = 0, gx_mean = 0;
        for (int64_t j = 0; j < c.columns; ++j) {
          const int64_t i = t * c.columns + j;
          s[static_cast<size_t>(j)] = n.x_at(i) + (c.branch ? n.factor(i) * n.branch_at(i) : 0);
          if (c.branch) {
            ASSERT_NEAR(n.sum[i], s[static_cast<size_t>(j)], near);
          }
          mean += c.rms ? 0 : s[static_cast<size_t>(j)] / D;
        }
        for (double v : s) variance += (v - mean) * (v - mean) / D;
        const double rstd = 1 / std::sqrt(variance + 1e-5);
        if (!c.rms) {
          ASSERT_NEAR(n.mean[t], mean, near);
        }
        ASSERT_NEAR(n.rstd[t] / rstd, 1, near);
        for (int64_t j = 0; j < c.columns; ++j) {
          const int64_t i = t * c.columns + j;
          const double xhat = (s[static_cast<size_t>(j)] - mean) * rstd, dy = n.dy_at(i), g = static_cast<double>(n.gamma[j]);
          ASSERT_NEAR(n.y[i], n.factor(n.after, i) * (xhat * g + (c.rms ? 0 : static_cast<double>(n.beta[j]))), near * 4);
          dgamma[static_cast<size_t>(j)] += dy * xhat;
          dbeta[static_cast<size_t>(j)] += dy;
          g_mean += c.rms ? 0 : dy * g / D;
          gx_mean += dy * g * xhat / D;
        }
        for (int64_t j = 0; j < c.columns; ++j) {
          const int64_t i = t * c.columns + j;
          const double xhat = (s[static_cast<size_t>(j)] - mean) * rstd;
          const double want = rstd * (n.dy_at(i) * static_cast<double>(n.gamma[j]) - g_mean - xhat * gx_mean);
          ASSERT_NEAR(n.dsum[i], want, near * 4 * std::max(1.0, rstd));
          if (c.branch) {
            ASSERT_NEAR(n.dbranch[i], want * n.factor(i), near * 8 * std::max(1.0, rstd));
          }
        }
        for (int64_t k = 0; k < c.rank; ++k) {
          double product = 0;
          for (int64_t j = 0; j < c.columns; ++j)
            product += static_cast<double>(n.dbranch[t * c.columns + j]) * static_cast<double>(n.w[k * c.columns + j]);
          ASSERT_NEAR(n.onward[t * c.rank + k], product, near * 20);
        }
      }
      for (int64_t j = 0; j < c.columns; ++j) {
        ASSERT_NEAR(n.dgamma[j], dgamma[static_cast<size_t>(j)], near * 20);
        ASSERT_NEAR(n.dbeta[j], c.rms ? 0 : dbeta[static_cast<size_t>(j)], near * 20);
      }
    }
}

TYPED_TEST(LayerNorm, SameForAnyNumberOfThreads) {
  for (const NormCase& c : kNormCases) {
    Norm<TypeParam> a(c, 1), b(c, 2), d(c, 3);
    for (Norm<TypeParam>* n : {&a, &b, &d}) n->forward(c.rank % 2 == 0), n->backward();
    for (const Norm<TypeParam>* n : {&b, &d}) {
      EXPECT_TRUE(same_bits(a.y, n->y));
      EXPECT_TRUE(same_bits(a.dsum, n->dsum));
      EXPECT_TRUE(same_bits(a.dbranch, n->dbranch));
      EXPECT_TRUE(same_bits(a.dgamma, n->dgamma));
      EXPECT_TRUE(same_bits(a.dbeta, n->dbeta));
    }
  }
}

TEST(LayerNorm, FiniteDifferences) {
  for (const NormCase& c : {NormCase{4, 9, false, 0}, NormCase{5, 8, true, 0}, NormCase{3, 17, true, 0.3}, NormCase{4, 9, false, 0, true},
                            NormCase{3, 17, true, 0.3, true}}) {
    Norm<double> n(c, 2);
    const auto f = [&] {
      n.forward();
      return dot(n.y, n.dy);
    };
    const Array<double> dx = numeric_gradient(n.x, f), dbranch = numeric_gradient(n.branch, f), dgamma = numeric_gradient(n.gamma, f),
                        dbeta = numeric_gradient(n.beta, f);
    n.forward();
    n.backward();
    EXPECT_LT(largest_difference(n.dsum, dx), 1e-7);
    if (c.branch) {
      EXPECT_LT(largest_difference(n.dbranch, dbranch), 1e-7);
    }
    EXPECT_LT(largest_difference(n.dgamma, dgamma), 1e-7);
    EXPECT_LT(largest_difference(n.dbeta, dbeta), 1e-7);
  }
}

TYPED_TEST(LayerNorm, NaNStaysInItsRow) {
  Norm<TypeParam> n({10, 100, true, 0.5}, 2);
  n.branch[3 * 100 + 8] = static_cast<TypeParam>(NAN);
  n.forward();
  for (int64_t i = 0; i < n.y.count(); ++i) ASSERT_EQ(std::isnan(n.y[i]), i / 100 == 3);
}

}  // namespace
}  // namespace comera::test
