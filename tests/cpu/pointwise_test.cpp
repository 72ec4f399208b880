#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class Pointwise : public ::testing::Test {
 protected:
  CpuOps ops{2};
  StepScalars scalars;
  Tensor step = block_tensor(scalars);
  void SetUp() override {
    scalars.seed = 99;
    scalars.step = 5;
  }
};
TYPED_TEST_SUITE(Pointwise, FloatTypes);

const int64_t kCounts[] = {1, 3, 16, 63, 1000, 4096, 4097, 100003};

TYPED_TEST(Pointwise, FillWritesOnlyItsColumns) {
  using T = TypeParam;
  for (int64_t rows : {1, 5, 300})
    for (int64_t ld : {7, 300}) {
      Array<T> y({rows, ld}, T(1));
      this->ops.fill(Mat(y).columns(2, 4), 3.5);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < ld; ++j) ASSERT_EQ(y[i * ld + j], j >= 2 && j < 6 ? T(3.5) : T(1));
      this->ops.fill(Mat(y), -1);
      for (T value : y.v) ASSERT_EQ(value, T(-1));
    }
}

TYPED_TEST(Pointwise, CopyAddScaleAxpy) {
  using T = TypeParam;
  for (int64_t n : kCounts) {
    const Array<T> a = uniform<T>({n}, 1), b = uniform<T>({n}, 2);
    Array<T> y({n});
    this->ops.copy(y, a);
    EXPECT_TRUE(same_bits(y, a));
    this->ops.add(y, a, b);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] + b[i]);
    y = a;
    this->ops.add(y, y, b);  // in place, either side
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] + b[i]);
    y = b;
    this->ops.add(y, a, y);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] + b[i]);
    this->ops.scale(y, a, 0.3);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] * T(0.3));
    y = a;
    this->ops.scale(y, y, 0.3);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] * T(0.3));
    y = b;
    this->ops.axpy(y, -0.7, a);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(y[i], static_cast<double>(b[i]) - 0.7 * static_cast<double>(a[i]), tolerance<T>(3e-7, 1e-15));
  }
}

TEST(Copy, OfIndices) {
  CpuOps ops(2);
  const Array<int> x = random_ids(50000, 1000, 1);
  Array<int> y({50000});
  ops.copy(y, x);
  EXPECT_EQ(x.v, y.v);
}

TYPED_TEST(Pointwise, Permute) {
  using T = TypeParam;
  const std::vector<std::pair<Shape, std::vector<int>>> cases = {
      {{7}, {0}},
      {{5, 9}, {1, 0}},
      {{1, 9}, {1, 0}},
      {{300, 257}, {1, 0}},
      {{4, 5, 6}, {2, 0, 1}},
      {{4, 5, 6}, {0, 2, 1}},
      {{4, 5, 6}, {1, 0, 2}},
      {{4, 5, 6}, {0, 1, 2}},
      {{3, 1, 4, 5}, {3, 1, 0, 2}},
      {{16, 12, 30, 20}, {0, 2, 1, 3}},
      {{2, 3, 4, 3, 2, 5}, {5, 3, 1, 4, 0, 2}},
      {{2, 3, 4, 3, 2, 5}, {4, 2, 0, 1, 3, 5}},
      {{1, 1, 1}, {2, 1, 0}},
  };
  for (const auto& [from, axes] : cases) {
    const Array<T> x = uniform<T>(from, 3);
    Shape to;
    for (int axis : axes) to.push_back(from[axis]);
    Array<T> y(to);
    this->ops.permute(y, x, axes);
    for (int64_t i = 0; i < y.count(); ++i) {
      int64_t at[Shape::kMaxRank] = {}, rest = i, index = 0;
      for (int axis = to.rank() - 1; axis >= 0; rest /= to[axis--]) at[axes[static_cast<size_t>(axis)]] = rest % to[axis];
      for (int axis = 0; axis < from.rank(); ++axis) index = index * from[axis] + at[axis];
      ASSERT_EQ(y[i], x[index]) << from.text() << " to " << to.text();
    }
  }
}

TYPED_TEST(Pointwise, BroadcastAndColumnSum) {
  using T = TypeParam;
  for (int64_t rows : {1, 2, 31, 33, 1000, 5000})
    for (int64_t columns : {1, 3, 30, 768}) {
      const Array<T> row = uniform<T>({columns}, 1), x = uniform<T>({rows, columns}, 2);
      Array<T> y({rows, columns}), sum({columns}, T(7));
      this->ops.broadcast_rows(y, row);
      for (int64_t i = 0; i < y.count(); ++i) ASSERT_EQ(y[i], row[i % columns]);
      this->ops.column_sum(sum, x);
      for (int64_t j = 0; j < columns; ++j) {
        double want = 0, size = 0;
        for (int64_t i = 0; i < rows; ++i)
          want += static_cast<double>(x[i * columns + j]), size += std::fabs(static_cast<double>(x[i * columns + j]));
        ASSERT_NEAR(sum[j], want, size * tolerance<T>(2e-7, 1e-15) + 1e-30);
      }
    }
}

TYPED_TEST(Pointwise, ColumnSumIsTheSameForAnyNumberOfThreads) {
  using T = TypeParam;
  CpuOps one(1), three(3);
  for (int64_t rows : {31, 1000, 10000}) {
    const Array<T> x = uniform<T>({rows, 77}, 2);
    Array<T> a({77}), b = a, c = a;
    one.column_sum(a, x);
    this->ops.column_sum(b, x);
    three.column_sum(c, x);
    EXPECT_TRUE(same_bits(a, b));
    EXPECT_TRUE(same_bits(a, c));
  }
}

constexpr Activation kActivations[] = {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::tanh, Activation::relu};

double true_activation(Activation kind, double x) {
  switch (kind) {
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::relu:
      return std::max(x, 0.0);
  }
  return NAN;
}

TYPED_TEST(Pointwise, Activations) {
  using T = TypeParam;
  for (Activation kind : kActivations)
    for (int64_t n : kCounts) {
      const Array<T> x = uniform<T>({n}, 1, -6, 6), dy = uniform<T>({n}, 2);
      Array<T> y({n}), dx({n});
      this->ops.activation_forward(kind, y, x);
      const Array<T>& saved = kind == Activation::tanh ? y : x;
      this->ops.activation_backward(kind, dx, dy, saved);
      for (int64_t i = 0; i < n; ++i) {
        const double v = static_cast<double>(x[i]), h = 1e-5;
        const double slope = (true_activation(kind, v + h) - true_activation(kind, v - h)) / (2 * h);
        ASSERT_NEAR(y[i], true_activation(kind, v), tolerance<T>(1e-6, 1e-14));
        if (kind != Activation::relu || std::fabs(v) > h) {
          ASSERT_NEAR(dx[i], static_cast<double>(dy[i]) * slope, tolerance<T>(1e-6, 1e-9)) << v;
        }
      }
      Array<T> in_place = dy;
      this->ops.activation_backward(kind, in_place, in_place, saved);
      EXPECT_TRUE(same_bits(in_place, dx));
    }
}

TEST(Gated, IsTheActivationTimesTheGate) {
  CpuOps ops(2);
  for (const Activation kind : kActivations) {
    if (kind == Activation::tanh) continue;
    Array<double> x = uniform<double>({37}, 1, -3, 3), gate = uniform<double>({37}, 2), y({37}), dx({37}), dgate({37});
    const Array<double> dy = uniform<double>({37}, 3);
    const auto f = [&] {
      ops.run(op::GatedForward{kind, y, x, gate});
      return dot(y, dy);
    };
    f();
    for (int64_t i = 0; i < 37; ++i) ASSERT_NEAR(y[i], true_activation(kind, x[i]) * gate[i], 1e-14);
    const Array<double> of_x = numeric_gradient(x, f), of_gate = numeric_gradient(gate, f);
    ops.run(op::GatedBackward{kind, dx, dgate, dy, x, gate});
    EXPECT_LT(largest_difference(dx, of_x), 1e-8);
    EXPECT_LT(largest_difference(dgate, of_gate), 1e-8);
    Array<double> own = x, other = gate, from = dy;  // in place of any two inputs
    ops.run(op::GatedBackward{kind, own, other, dy, own, other});
    EXPECT_TRUE(same_bits(own, dx) && same_bits(other, dgate));
    ops.run(op::GatedBackward{kind, own, from, from, x, gate});
    EXPECT_TRUE(same_bits(own, dx) && same_bits(from, dgate));
  }
}

TYPED_TEST(Pointwise, DropoutIsThePhiloxMask) {
  using T = TypeParam;
  for (int64_t n : kCounts)
    for (double p : {0.1, 0.5, 0.93}) {
      const Array<T> x = uniform<T>({n}, 1);
      Array<T> y({n}), in_place = x;
      this->ops.dropout(y, x, {p, 12}, this->step);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], x[i] * static_cast<T>(dropout_factor({99, 5, 12}, i, p)));
      this->ops.dropout(in_place, in_place, {p, 12}, this->step);
      EXPECT_TRUE(same_bits(y, in_place) || n > 0);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], in_place[i]);
    }
}

TYPED_TEST(Pointwise, DropoutOff) {
  using T = TypeParam;
  const Array<T> x = uniform<T>({100}, 1);
  Array<T> y({100});
  this->ops.dropout(y, x, {}, Tensor());
  EXPECT_TRUE(same_bits(x, y));
}

// <dropout(x), g> as a function of x has the gradient dropout(g): the op is its own backward.
TEST(Dropout, IsItsOwnBackward) {
  CpuOps ops(2);
  StepScalars scalars;
  scalars.seed = 3;
  scalars.step = 8;
  const Tensor step = block_tensor(scalars);
  Array<double> x = uniform<double>({37}, 1), y({37}), dx({37});
  const Array<double> g = uniform<double>({37}, 2);
  const auto f = [&] {
    ops.dropout(y, x, {0.3, 4}, step);
    return dot(y, g);
  };
  const Array<double> numeric = numeric_gradient(x, f);
  ops.dropout(dx, g, {0.3, 4}, step);
  EXPECT_LT(largest_difference(numeric, dx), 1e-8);
}

TYPED_TEST(Pointwise, NaNPropagates) {
  using T = TypeParam;
  Array<T> x = uniform<T>({100}, 1), y({100});
  x[41] = static_cast<T>(NAN);
  for (Activation kind : kActivations) {
    this->ops.activation_forward(kind, y, x);
    for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(std::isnan(y[i]), i == 41);
    this->ops.activation_backward(kind, y, x, uniform<T>({100}, 2));
    for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(std::isnan(y[i]), i == 41);
    this->ops.activation_backward(kind, y, uniform<T>({100}, 2), x);
    for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(std::isnan(y[i]), i == 41);
  }
  this->ops.dropout(y, x, {0.9, 1}, this->step);
  for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(std::isnan(y[i]), i == 41);
}

}  // namespace
}  // namespace comera::test
