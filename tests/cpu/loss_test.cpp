#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class Loss : public ::testing::Test {};
TYPED_TEST_SUITE(Loss, FloatTypes);

// Labels of which about a fifth are missing.
Array<int> some_labels(int64_t rows, int64_t classes) {
  Array<int> labels = random_ids(rows, static_cast<int>(classes * 5), 8);
  for (int& label : labels.v) label = label % 5 == 0 ? -1 : label % static_cast<int>(classes);
  return labels;
}

TYPED_TEST(Loss, CrossEntropy) {
  using T = TypeParam;
  CpuOps ops(2);
  for (int64_t rows : {1, 3, 32, 1000})
    for (int64_t classes : {1, 2, 3, 17, 130, 1000}) {
      const Array<T> logits = uniform<T>({rows, classes}, 1, -9, 9);
      Array<int> labels = some_labels(rows, classes);
      if (rows == 1) labels[0] = 0;
      StepResults results;
      Array<T> d({rows, classes}, T(5)), row_loss({rows}, T(5));
      ops.cross_entropy(block_tensor(results), d, row_loss, logits, labels);
      double loss = 0, examples = 0, correct = 0;
      for (int64_t s = 0; s < rows; ++s) examples += labels[s] >= 0;
      for (int64_t s = 0; s < rows; ++s) {
        const T* z = &logits[s * classes];
        if (labels[s] < 0) {
          EXPECT_EQ(row_loss[s], T(0));
          for (int64_t c = 0; c < classes; ++c) ASSERT_EQ(d[s * classes + c], T(0));
          continue;
        }
        double sum = 0;
        int64_t best = 0;
        for (int64_t c = 0; c < classes; ++c) {
          sum += std::exp(static_cast<double>(z[c]));
          if (z[c] > z[best]) best = c;
        }
        const double own = std::log(sum) - static_cast<double>(z[labels[s]]);
        ASSERT_NEAR(row_loss[s], own, tolerance<T>(1e-5, 1e-12));
        loss += own;
        correct += best == labels[s];
        for (int64_t c = 0; c < classes; ++c)
          ASSERT_NEAR(d[s * classes + c], (std::exp(static_cast<double>(z[c])) / sum - (c == labels[s])) / examples, tolerance<T>(1e-6, 1e-13));
      }
      EXPECT_NEAR(results.ce, examples > 0 ? loss / examples : 0, tolerance<T>(1e-5, 1e-12));
      EXPECT_EQ(results.examples, examples);
      EXPECT_EQ(results.correct, correct);
    }
}

TYPED_TEST(Loss, BinaryCrossEntropy) {
  using T = TypeParam;
  CpuOps ops(2);
  for (int64_t rows : {1, 5, 1000}) {
    const Array<T> logits = uniform<T>({rows, 1}, 1, -30, 30);
    Array<int> labels = some_labels(rows, 2);
    StepResults results;
    Array<T> d({rows, 1}, T(5));
    ops.binary_cross_entropy(block_tensor(results), d, Tensor(), logits, labels);
    double loss = 0, examples = 0, correct = 0;
    for (int64_t s = 0; s < rows; ++s) examples += labels[s] >= 0;
    for (int64_t s = 0; s < rows; ++s) {
      if (labels[s] < 0) {
        EXPECT_EQ(d[s], T(0));
        continue;
      }
      const double z = static_cast<double>(logits[s]), sigmoid = 1 / (1 + std::exp(-z));
      loss += labels[s] ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
      correct += (z > 0) == (labels[s] == 1);
      ASSERT_NEAR(d[s], (sigmoid - labels[s]) / examples, tolerance<T>(1e-6, 1e-13));
    }
    EXPECT_NEAR(results.ce, examples > 0 ? loss / examples : 0, tolerance<T>(1e-5, 1e-11));
    EXPECT_EQ(results.examples, examples);
    EXPECT_EQ(results.correct, correct);
  }
}

TEST(Loss, FiniteDifferences) {
  CpuOps ops(2);
  StepResults results;
  Array<double> logits = uniform<double>({7, 5}, 1, -3, 3), d({7, 5}), one = uniform<double>({7, 1}, 2, -3, 3), d_one({7, 1});
  const Array<int> labels({7}, std::vector<int>{0, 4, -1, 2, 2, -1, 1}), binary({7}, std::vector<int>{0, 1, -1, 1, 1, -1, 0});
  const auto ce = [&] {
    ops.cross_entropy(block_tensor(results), d, Tensor(), logits, labels);
    return results.ce;
  };
  const auto bce = [&] {
    ops.binary_cross_entropy(block_tensor(results), d_one, Tensor(), one, binary);
    return results.ce;
  };
  const Array<double> want = numeric_gradient(logits, ce), want_one = numeric_gradient(one, bce);
  ce(), bce();
  EXPECT_LT(largest_difference(d, want), 1e-8);
  EXPECT_LT(largest_difference(d_one, want_one), 1e-8);
}

TYPED_TEST(Loss, SameForAnyNumberOfThreads) {
  using T = TypeParam;
  const Array<T> logits = uniform<T>({999, 33}, 1, -9, 9);
  const Array<int> labels = some_labels(999, 33);
  StepResults first;
  Array<T> d_first({999, 33});
  CpuOps(1).cross_entropy(block_tensor(first), d_first, Tensor(), logits, labels);
  for (int threads : {2, 3}) {
    StepResults results;
    Array<T> d({999, 33});
    CpuOps(threads).cross_entropy(block_tensor(results), d, Tensor(), logits, labels);
    EXPECT_EQ(results.ce, first.ce);
    EXPECT_TRUE(same_bits(d, d_first));
  }
}

TYPED_TEST(Loss, NoLabelsIsNoLoss) {
  using T = TypeParam;
  StepResults results;
  results.ce = 9;
  Array<T> d({4, 3}, T(1));
  CpuOps(1).cross_entropy(block_tensor(results), d, Tensor(), uniform<T>({4, 3}, 1), Array<int>({4}, -1));
  EXPECT_EQ(results.ce, 0);
  EXPECT_EQ(results.examples, 0);
  for (T value : d.v) EXPECT_EQ(value, T(0));
}

TYPED_TEST(Loss, BadLabelIsNamed) {
  using T = TypeParam;
  StepResults results;
  Array<T> d({4, 3});
  const Array<int> labels({4}, std::vector<int>{0, 1, 3, 2});
  try {
    CpuOps(1).cross_entropy(block_tensor(results), d, Tensor(), uniform<T>({4, 3}, 1), labels);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_EQ(error.why(), "row 2 of the batch");
  }
}

TYPED_TEST(Loss, NaNIsSeen) {
  using T = TypeParam;
  StepResults results;
  Array<T> logits = uniform<T>({4, 3}, 1), d({4, 3});
  logits[4] = static_cast<T>(NAN);
  CpuOps(2).cross_entropy(block_tensor(results), d, Tensor(), logits, Array<int>({4}, 1));
  EXPECT_TRUE(std::isnan(results.ce));
  EXPECT_TRUE(std::isnan(d[3]));
  EXPECT_FALSE(std::isnan(d[0]));
}

TYPED_TEST(Loss, OfEqualLogitsTheFirstIsThePrediction) {
  using T = TypeParam;
  StepResults results;
  Array<T> d({3, 3});
  const Array<T> logits({3, 3}, std::vector<T>{1, 1, 0, 0, 1, 1, 1, 1, 1});
  CpuOps(1).cross_entropy(block_tensor(results), d, Tensor(), logits, Array<int>({3}, std::vector<int>{1, 1, 0}));
  EXPECT_EQ(results.correct, 2);
}

TYPED_TEST(Loss, NaNIsNeverCorrect) {
  using T = TypeParam;
  for (const int label : {0, 1}) {
    StepResults results;
    Array<T> d({2, 1});
    const Array<int> labels({2}, label);
    CpuOps(1).binary_cross_entropy(block_tensor(results), d, Tensor(), Array<T>({2, 1}, static_cast<T>(NAN)), labels);
    EXPECT_EQ(results.correct, 0) << label;
  }
}

TYPED_TEST(Loss, ScaleByWeight) {
  using T = TypeParam;
  StepResults results;
  results.ce_weight = 0.25;
  Array<T> y({1000}, T(4));
  CpuOps(2).scale_by_ce_weight(y, block_tensor(results));
  for (T value : y.v) ASSERT_EQ(value, T(1));
}

}  // namespace
}  // namespace comera::test
