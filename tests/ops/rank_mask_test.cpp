// Masked cores and the norm of the cores.
#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class RankMask : public ::testing::Test {};
TYPED_TEST_SUITE(RankMask, FloatTypes);

TYPED_TEST(RankMask, MultipliesTheLastAxisByLiveEntries) {
  using T = TypeParam;
  CpuOps ops(2);
  StepScalars step;
  const Array<T> u({2, 3}, {1, 2, 3, 4, 5, 6}), d({3}, {T(0.5), T(-2), T(2)});
  Array<T> e({2, 3});
  ops.rank_mask(e, u, d, block_tensor(step));
  EXPECT_EQ(e.v, (std::vector<T>{T(0.5), 0, 6, 2, 0, 12}));
  const Array<T> edge({3}, {T(0.01), T(0), T(0.0101)});
  ops.rank_mask(e, u, edge, block_tensor(step));
  EXPECT_EQ(e[0], T(0));
  EXPECT_NE(e[2], T(0));
  step.pruning = 0;
  ops.rank_mask(e, u, d, block_tensor(step));
  EXPECT_EQ(e.v, u.v);
  Array<T> dd({3}, T(9));
  const auto de = uniform<T>({2, 3}, 1);
  Array<T> du({2, 3});
  ops.rank_mask_backward(du, dd, de, u, d, block_tensor(step));
  EXPECT_EQ(du.v, de.v);
  EXPECT_EQ(dd.v, std::vector<T>(3, T(0)));
}

// <D, dD> = <U, dU> (METHODS.md 1.1), with dU in dE's place, and the same bits on any number of threads.
TYPED_TEST(RankMask, BackwardIdentityAndThreads) {
  using T = TypeParam;
  StepScalars step;
  const auto u = uniform<T>({60, 20, 31}, 2), de = uniform<T>({60, 20, 31}, 3);
  auto d = uniform<T>({31}, 4, -0.3, 1);
  Array<T> du = de, dd({31});
  CpuOps one(1);
  one.rank_mask_backward(du, dd, du, u, d, block_tensor(step));
  EXPECT_NEAR(dot(d, dd), dot(u, du), tolerance<T>(1e-2, 1e-10));
  for (int threads : {2, 3}) {
    CpuOps ops(threads);
    Array<T> du_again = de, dd_again({31});
    ops.rank_mask_backward(du_again, dd_again, du_again, u, d, block_tensor(step));
    EXPECT_TRUE(same_bits(du, du_again) && same_bits(dd, dd_again)) << threads;
  }
}

TEST(RankMaskGradient, ByFiniteDifferences) {
  CpuOps ops(2);
  StepScalars step;
  auto u = uniform<double>({3, 4, 5}, 5), d = uniform<double>({5}, 6, 0.3, 2);
  d[2] = -0.4;
  const auto de = uniform<double>({3, 4, 5}, 7);
  Array<double> e({3, 4, 5}), du({3, 4, 5}), dd({5});
  ops.rank_mask_backward(du, dd, de, u, d, block_tensor(step));
  const auto loss = [&] {
    ops.rank_mask(e, u, d, block_tensor(step));
    return dot(e, de);
  };
  EXPECT_LT(largest_difference(du, numeric_gradient(u, loss)), 1e-8);
  EXPECT_LT(largest_difference(dd, numeric_gradient(d, loss)), 1e-8);
}

TYPED_TEST(RankMask, SumOfSquaresAndItsGradient) {
  using T = TypeParam;
  const auto x = uniform<T>({50001}, 8);
  double first = 0;
  for (int threads : {1, 2, 3}) {
    CpuOps ops(threads);
    StepResults results;
    results.core_norm2 = 5;
    ops.sum_of_squares(block_tensor(results), x);
    EXPECT_NEAR(results.core_norm2, 5 + dot(x, x), 1e-8);
    if (threads == 1) first = results.core_norm2;
    EXPECT_EQ(results.core_norm2, first);
  }
  CpuOps ops(2);
  StepScalars step;
  step.beta = 0.25;
  Array<T> dw({50001}, T(1));
  ops.core_penalty_backward(dw, x, block_tensor(step));
  EXPECT_EQ(dw[7], T(1));  // paper mode only
  step.paper = 1;
  ops.core_penalty_backward(dw, x, block_tensor(step));
  for (int64_t i = 0; i < dw.count(); i += 997) EXPECT_NEAR(dw[i], 1 + 0.5 * static_cast<double>(x[i]), 1e-6);
}

}  // namespace
}  // namespace comera::test
