// Second moments of rows and columns, and the steps of Adafactor and CAME on them. Whole steps are compared with published ones in
// tests/optim/adafactor_test.cpp and came_test.cpp.
#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class Factored : public ::testing::Test {};
TYPED_TEST_SUITE(Factored, FloatTypes);

StepScalars at_step(uint64_t t) {
  StepScalars step;
  step.optimizer_step = t;
  for (double& rate : step.learning_rate) rate = 0.1;
  return step;
}

// More rows than a block of sums holds, and columns beyond whole vectors.
const Shape kShapes[] = {{1, 1}, {1, 37}, {37, 1}, {5, 300}, {700, 67}};

TYPED_TEST(Factored, MomentsAreMeansOfSquares) {
  using T = TypeParam;
  CpuOps ops(2);
  for (const Shape& shape : kShapes) {
    const int64_t rows = shape[0], columns = shape[1];
    auto row = uniform<T>({rows}, 1, 0, 1), column = uniform<T>({columns}, 2, 0, 1);
    std::vector<double> of_rows(row.v.begin(), row.v.end()), of_columns(column.v.begin(), column.v.end());
    for (uint64_t t = 3; t <= 5; ++t) {
      const auto g = uniform<T>(shape, 10 + static_cast<uint32_t>(t));
      StepScalars step = at_step(t);
      ops.factored_moments(row, column, g, 0.8, 0.25, block_tensor(step));
      const double beta = 1 - std::pow(static_cast<double>(t), -0.8);
      for (double& value : of_rows) value *= beta;
      for (double& value : of_columns) value *= beta;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const double square = static_cast<double>(g[i * columns + j]) * static_cast<double>(g[i * columns + j]) + 0.25;
          of_rows[static_cast<size_t>(i)] += (1 - beta) * square / static_cast<double>(columns);
          of_columns[static_cast<size_t>(j)] += (1 - beta) * square / static_cast<double>(rows);
        }
    }
    for (int64_t i = 0; i < rows; ++i) ASSERT_NEAR(row[i], of_rows[static_cast<size_t>(i)], tolerance<T>(1e-6, 1e-13)) << i;
    for (int64_t j = 0; j < columns; ++j) ASSERT_NEAR(column[j], of_columns[static_cast<size_t>(j)], tolerance<T>(1e-6, 1e-13)) << j;
  }
}

// A constant beta, and one whose moments equal those of the constant one over 1 - beta^t.
TYPED_TEST(Factored, MomentsOfAConstantBetaAndCorrected) {
  using T = TypeParam;
  CpuOps ops(1);
  const int64_t n = 37;
  const double beta = 0.9;
  for (const int64_t columns : {int64_t{1}, n}) {
    const Shape shape{n, columns};
    Array<T> plain({n}), corrected({n}), plain_column({columns}), corrected_column({columns});
    std::vector<double> expected(static_cast<size_t>(n));
    for (uint64_t t = 1; t <= 20; ++t) {
      const auto g = uniform<T>(shape, static_cast<uint32_t>(t));
      StepScalars step = at_step(t);
      const Tensor block = block_tensor(step);
      ops.run(op::FactoredMoments{plain, plain_column, g, {.beta = beta}, 0.25, block});
      ops.run(op::FactoredMoments{corrected, corrected_column, g, {.beta = beta, .corrected = true}, 0.25, block});
      const double over = 1 - std::pow(beta, static_cast<double>(t));
      for (int64_t i = 0; i < n; ++i) {
        double square = 0.25;
        for (int64_t j = 0; j < columns; ++j)
          square += static_cast<double>(g[i * columns + j]) * static_cast<double>(g[i * columns + j]) / static_cast<double>(columns);
        double& moment = expected[static_cast<size_t>(i)];
        moment = beta * moment + (1 - beta) * square;
        ASSERT_NEAR(plain[i], moment, tolerance<T>(1e-6, 1e-13)) << i;
        ASSERT_NEAR(corrected[i], moment / over, tolerance<T>(1e-6, 1e-13)) << i << " at " << t;
      }
      for (int64_t j = 0; j < columns; ++j)
        ASSERT_NEAR(corrected_column[j], static_cast<double>(plain_column[j]) / over, tolerance<T>(2e-6, 1e-13)) << j;
    }
  }
}

// Above the clip and below.
TYPED_TEST(Factored, AClippedMomentLeavesTheRest) {
  using T = TypeParam;
  CpuOps ops(2);
  for (const Shape& shape : kShapes)
    for (const double clip : {0.1, 10.0}) {
      auto u = uniform<T>(shape, 1), m = uniform<T>(shape, 2);
      const auto first = u, moment = m;
      double square = 0;
      for (int64_t i = 0; i < u.count(); ++i) square += static_cast<double>(u[i]) * static_cast<double>(u[i]);
      const double size = std::max(1.0, std::sqrt(square / static_cast<double>(u.count())) / clip);
      ops.run(op::ClippedMoment{u, m, 0.9, clip});
      for (int64_t i = 0; i < u.count(); ++i) {
        const double clipped = static_cast<double>(first[i]) / size, now = 0.9 * static_cast<double>(moment[i]) + 0.1 * clipped;
        ASSERT_NEAR(m[i], now, tolerance<T>(1e-6, 1e-13)) << i;
        ASSERT_NEAR(u[i], clipped - now, tolerance<T>(1e-6, 1e-13)) << i;
      }
    }
}

// |G| = a b^T: its square is the product of its rows and columns, so u = sign(G).
TYPED_TEST(Factored, OfRankOneTheFirstUpdateIsTheSign) {
  using T = TypeParam;
  CpuOps ops(1);
  const int64_t rows = 40, columns = 21;
  const auto a = uniform<T>({rows}, 1, 1e-3, 1), b = uniform<T>({columns}, 2, 1e-3, 1), sign = uniform<T>({rows, columns}, 3);
  Array<T> g({rows, columns}), u({rows, columns}), row({rows}), column({columns});
  for (int64_t i = 0; i < g.count(); ++i) g[i] = a[i / columns] * b[i % columns] * (sign[i] < 0 ? T(-1) : T(1));
  StepScalars step = at_step(1);
  ops.factored_moments(row, column, g, 0.8, 1e-30, block_tensor(step));
  ops.factored_update(u, g, row, column);
  for (int64_t i = 0; i < g.count(); ++i) ASSERT_NEAR(u[i], g[i] < 0 ? -1 : 1, tolerance<T>(1e-5, 1e-12)) << i;
}

// Rows and columns without a gradient, as dead entries have: their moments are eps, and nothing is divided by 0.
TYPED_TEST(Factored, RowsAndColumnsOfZerosStayAtZero) {
  using T = TypeParam;
  CpuOps ops(1);
  const int64_t n = 12;
  auto g = uniform<T>({n, n}, 1);
  for (int64_t i = 0; i < n; ++i) g[3 * n + i] = g[i * n + 5] = T(0);
  Array<T> u({n, n}), row({n}), column({n});
  for (uint64_t t = 1; t <= 1'000'000; t *= 10) {
    StepScalars step = at_step(t);
    row[3] = column[5] = T(0);  // as of new entries
    ops.factored_moments(row, column, g, 0.8, 1e-30, block_tensor(step));
    ops.factored_update(u, g, row, column);
    for (int64_t i = 0; i < u.count(); ++i) {
      ASSERT_TRUE(std::isfinite(u[i])) << i << " at " << t;
      if (g[i] == T(0)) {
        ASSERT_EQ(u[i], T(0));
      }
    }
  }
}

TYPED_TEST(Factored, IsTheSameForAnyNumberOfThreads) {
  using T = TypeParam;
  for (const Shape& shape : kShapes) {
    std::vector<std::vector<T>> results[2];
    for (const int which : {0, 1}) {
      CpuOps ops(which == 0 ? 1 : 3);
      const auto g = uniform<T>(shape, 4);
      Array<T> row({shape[0]}), column({shape[1]}), m(shape), u(shape);
      auto w = uniform<T>(shape, 5);
      StepScalars step = at_step(2);
      step.weight_decay = 0.1;
      ops.factored_moments(row, column, g, 0.8, 1e-30, block_tensor(step));
      ops.factored_update(u, g, row, column);
      ops.run(op::ClippedMoment{u, m, 0.9, 0.5});
      ops.adafactor_update(u, w, m, {.beta1 = 0.9}, ParamGroup::rest, block_tensor(step));
      results[which] = {row.v, column.v, u.v, m.v, w.v};
    }
    EXPECT_EQ(results[0], results[1]) << shape.text();
  }
}

TEST(FactoredTime, StepZeroIsRefused) {
  CpuOps ops(1);
  Array<float> row({2}), column({3}), g({2, 3});
  StepScalars step = at_step(0);
  EXPECT_THROW(ops.factored_moments(row, column, g, 0.8, 1e-30, block_tensor(step)), Error);
}

}  // namespace
}  // namespace comera::test
