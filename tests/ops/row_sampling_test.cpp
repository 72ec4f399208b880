// Rows that stand for all: which are certain, how often the others are drawn, the mean and the variance of the products that they give
// (METHODS.md 11).
#include "core/ops/row_sampling_math.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/ops/host.h"

namespace comera::test {
namespace {

// Rows of very different norms, in no order.
template <class T>
Array<T> uneven(int64_t rows, int64_t width, double spread) {
  Array<T> x = uniform<T>({rows, width}, 3);
  for (int64_t row = 0; row < rows; ++row) {
    const auto size =
        static_cast<T>(std::exp(spread * static_cast<double>(uniform_half(Philox{5, 0, 1}.word(static_cast<uint64_t>(row))))));
    for (int64_t i = 0; i < width; ++i) x[row * width + i] *= size;
  }
  return x;
}

template <class T>
double norm_of(const Array<T>& x, int64_t row) {
  double squares = 0;
  for (int64_t i = 0; i < x.shape[1]; ++i)
    squares += static_cast<double>(x[row * x.shape[1] + i]) * static_cast<double>(x[row * x.shape[1] + i]);
  return std::sqrt(squares);
}

template <class T>
struct Sample {
  Array<int> index;
  Array<T> weight;
  Sample(CpuOps& ops, const Array<T>& x, int64_t kept, int64_t certain, uint64_t step) : index({kept}), weight({kept}) {
    StepScalars scalars;
    scalars.seed = 11;
    scalars.step = step;
    ops.run(op::SampleRows{index, weight, x, certain, 21, block_tensor(scalars)});
  }
};

// The number of certain rows that METHODS.md 11 chooses, by trying all.
int64_t best_certain(std::vector<double> scores, int64_t kept) {
  std::sort(scores.rbegin(), scores.rend());
  const double all = std::accumulate(scores.begin(), scores.end(), 0.0);
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t certain = 0; certain < kept; ++certain) {
    const double rest = all - std::accumulate(scores.begin(), scores.begin() + certain, 0.0),
                 cost = rest / static_cast<double>(kept - certain);
    if (cost >= least * (1 - 1e-12)) continue;
    least = cost;
    best = certain;
  }
  return best;
}

template <class T>
class SampledRowsOf : public ::testing::Test {};
TYPED_TEST_SUITE(SampledRowsOf, FloatTypes);

TYPED_TEST(SampledRowsOf, LargestAreCertainAndTheRestIsWeighted) {
  using T = TypeParam;
  CpuOps ops(2);
  for (const double spread : {0.0, 2.0, 6.0})
    for (const int64_t kept : {1, 12, 39}) {
      const Array<T> x = uneven<T>(40, 5, spread);
      std::vector<double> scores;
      for (int64_t row = 0; row < 40; ++row) scores.push_back(norm_of(x, row) + 1e-8);
      for (const int64_t asked : {int64_t{-1}, int64_t{0}, kept / 2}) {
        const int64_t certain = asked < 0 ? best_certain(scores, kept) : asked;
        const Sample<T> sample(ops, x, kept, asked, 3);
        std::vector<double> left = scores;
        for (int64_t i = 0; i < certain; ++i) {
          const auto largest = std::max_element(left.begin(), left.end());
          EXPECT_EQ(sample.index[i], largest - left.begin());
          EXPECT_EQ(sample.weight[i], T(1));
          *largest = 0;
        }
        const double rest = std::accumulate(left.begin(), left.end(), 0.0);
        for (int64_t i = certain; i < kept; ++i) {
          const double score = left.at(static_cast<size_t>(sample.index[i]));
          ASSERT_GT(score, 0) << "a certain row was drawn";
          EXPECT_NEAR(static_cast<double>(sample.weight[i]) * static_cast<double>(kept - certain) * score / rest, 1,
                      tolerance<T>(1e-5, 1e-12));
        }
      }
    }
}

// Of the first `certain` rows exactly, of the others by draws: mean and variance of d^T x as METHODS.md 11 gives them.
TEST(SampledRows, ProductsHaveTheMeanAndTheVarianceOfTheFormula) {
  constexpr int64_t kRows = 60, kWidth = 3, kOut = 2, kKept = 15, kDraws = 20000;
  CpuOps ops(1);
  const Array<double> x = uneven<double>(kRows, kWidth, 4);
  Array<double> d({kRows, kOut});  // of the same size in every row, so that the probabilities are those of |x| |d|
  for (int64_t row = 0; row < kRows; ++row) {
    d[row * kOut] = std::cos(static_cast<double>(row));
    d[row * kOut + 1] = std::sin(static_cast<double>(row));
  }
  for (const int64_t certain : {int64_t{0}, int64_t{6}, int64_t{-1}}) {
    Array<double> exact({kOut, kWidth}), mean({kOut, kWidth}), product({kOut, kWidth}), rows_x({kKept, kWidth}), rows_d({kKept, kOut});
    ops.gemm(Tensor(exact), Tensor(d), true, Tensor(x), false);
    double variance = 0;
    for (uint64_t step = 1; step <= kDraws; ++step) {
      const Sample<double> sample(ops, x, kKept, certain, step);
      ops.run(op::PickRows{rows_x, x, sample.index, {}});
      ops.run(op::PickRows{rows_d, d, sample.index, sample.weight});
      ops.gemm(Tensor(product), Tensor(rows_d), true, Tensor(rows_x), false);
      for (int64_t i = 0; i < product.count(); ++i) {
        mean[i] += product[i] / kDraws;
        variance += (product[i] - exact[i]) * (product[i] - exact[i]) / kDraws;
      }
    }
    std::vector<double> norms;
    for (int64_t row = 0; row < kRows; ++row) norms.push_back(norm_of(x, row));
    const int64_t first = certain < 0 ? best_certain(norms, kKept) : certain;
    std::vector<int64_t> order(kRows);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int64_t a, int64_t b) { return norms[static_cast<size_t>(a)] > norms[static_cast<size_t>(b)]; });
    double rest = 0;
    Array<double> drawn({kOut, kWidth});
    for (size_t i = static_cast<size_t>(first); i < order.size(); ++i) {
      rest += norms[static_cast<size_t>(order[i])];
      for (int64_t o = 0; o < kOut; ++o)
        for (int64_t c = 0; c < kWidth; ++c) drawn[o * kWidth + c] += d[order[i] * kOut + o] * x[order[i] * kWidth + c];
    }
    const double expected = (rest * rest - dot(drawn, drawn)) / static_cast<double>(kKept - first);
    EXPECT_NEAR(variance / expected, 1, 0.05) << first << " certain rows";
    const double error = std::sqrt(expected / kDraws);  // of the whole mean
    Array<double> off = mean;
    for (int64_t i = 0; i < off.count(); ++i) off[i] -= exact[i];
    EXPECT_LT(std::sqrt(dot(off, off)), 4 * error) << first << " certain rows";
  }
}

TEST(SampledRows, RepeatForAStepAndDifferBetweenStepsAndParts) {
  CpuOps one(1), two(2);
  const Array<float> x = uneven<float>(3000, 40, 1);
  const Sample<float> first(one, x, 300, -1, 5), again(two, x, 300, -1, 5), later(one, x, 300, -1, 6);
  EXPECT_TRUE(same_bits(first.index, again.index) && same_bits(first.weight, again.weight)) << "other rows with two threads";
  EXPECT_FALSE(same_bits(first.index, later.index));
  StepScalars part;
  part.seed = 11;
  part.step = 5;
  part.part = 1;
  Array<int> index({300});
  Array<float> weight({300});
  one.run(op::SampleRows{index, weight, x, -1, 21, block_tensor(part)});
  EXPECT_FALSE(same_bits(first.index, index));
}

// Rows of zeros and of what is not a number: every weight is finite, every row is one of x.
TEST(SampledRows, RowsOfZerosAndNan) {
  CpuOps ops(1);
  for (const float value : {0.0f, std::numeric_limits<float>::quiet_NaN()}) {
    Array<float> x({30, 4}, value);
    for (int64_t i = 0; i < 8; ++i) x[i] = 1;
    const Sample<float> sample(ops, x, 12, -1, 1);
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_TRUE(std::isfinite(sample.weight[i]));
      EXPECT_TRUE(sample.index[i] >= 0 && sample.index[i] < 30);
    }
    EXPECT_EQ(sample.index[0] + sample.index[1], 1) << "the two rows that are not";
  }
}

// Two of three rows without replacement: row i is first with q_i, and second behind j with q_j q_i / (1 - q_j).
TEST(SampledRows, WithoutReplacementEachIsDrawnAmongThoseThatAreLeft) {
  constexpr int64_t kDraws = 40000;
  CpuOps ops(1);
  const Array<double> x({3, 1}, {1, -2, 5});
  for (const int power : {0, 1, 2}) {
    const double q[3] = {std::pow(1, power), std::pow(2, power), std::pow(5, power)}, all = q[0] + q[1] + q[2];
    double first[3] = {}, second[3] = {};
    for (uint64_t step = 1; step <= kDraws; ++step) {
      StepScalars scalars;
      scalars.seed = 3;
      scalars.step = step;
      Array<int> index({2});
      Array<double> weight({2});
      ops.run(op::SampleRows{index, weight, x, 0, 21, block_tensor(scalars), {.power = power, .distinct = true}});
      ASSERT_NE(index[0], index[1]);
      EXPECT_EQ(weight[0] + weight[1], 2);
      first[index[0]] += 1.0 / kDraws;
      second[index[1]] += 1.0 / kDraws;
    }
    for (int i = 0; i < 3; ++i) {
      double behind = 0;
      for (int j = 0; j < 3; ++j)
        if (j != i) behind += q[j] / all * q[i] / (all - q[j]);
      // five standard deviations
      EXPECT_NEAR(first[i], q[i] / all, 5 * std::sqrt(q[i] / all * (1 - q[i] / all) / kDraws)) << power << " row " << i;
      EXPECT_NEAR(second[i], behind, 5 * std::sqrt(behind * (1 - behind) / kDraws)) << power << " row " << i;
    }
  }
}

TEST(SampledRows, OfTheWholeBatchTheyAreThoseOfEveryPart) {
  CpuOps ops(1);
  const Array<float> x = uneven<float>(50, 3, 1);
  for (const bool by_part : {false, true}) {
    Array<int> index[2] = {Array<int>({20}), Array<int>({20})};
    for (uint64_t part : {0, 1}) {
      StepScalars scalars;
      scalars.step = 1;
      scalars.part = part;
      Array<float> weight({20});
      ops.run(op::SampleRows{index[part], weight, x, 0, 21, block_tensor(scalars), {.by_part = by_part}});
    }
    EXPECT_EQ(same_bits(index[0], index[1]), !by_part);
  }
}

// A row that is there twice gets both.
TEST(AddRows, IsTheTransposeOfPickRows) {
  CpuOps ops(2);
  const Array<int> index({4}, {2, 0, 2, 2});
  const Array<double> weight({4}, {1, -3, 0.5, 2});
  for (const bool columns : {false, true}) {
    const Shape shape = columns ? Shape{6, 3} : Shape{3, 6}, picked = columns ? Shape{6, 4} : Shape{4, 6};
    const Array<double> x = uniform<double>(shape, 1), u = uniform<double>(picked, 2);
    Array<double> y(picked), sum = x;
    ops.run(op::PickRows{y, x, index, weight, columns});
    ops.run(op::AddRows{sum, 0.5, u, index, weight, columns});
    Array<double> expected = x;
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 6; ++j) {
        const int64_t of_x = columns ? j * 3 + index[i] : index[i] * 6 + j, of_u = columns ? j * 4 + i : i * 6 + j;
        EXPECT_DOUBLE_EQ(y[of_u], weight[i] * x[of_x]);
        expected[of_x] += 0.5 * weight[i] * u[of_u];
      }
    for (int64_t i = 0; i < x.count(); ++i) EXPECT_NEAR(sum[i], expected[i], 1e-14) << i;
  }
}

}  // namespace
}  // namespace comera::test
