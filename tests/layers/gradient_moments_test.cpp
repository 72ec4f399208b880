// Matrices of low rank by gradients: the error that is said, that no other matrix of the rank has a smaller one, and what plain SVD gives.
#include "core/layers/gradient_moments.h"

#include <numeric>

#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

constexpr double kIdentity = 0.05;

// Sums of squares of samples, some of them much larger than others.
std::vector<float> moments_of(int64_t side, uint32_t seed, bool diagonal) {
  const Values samples = noise_values(2 * side * side, seed);
  std::vector<float> out(static_cast<size_t>(diagonal ? side : side * side));
  for (int64_t s = 0; s < 2 * side; ++s)
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j < side; ++j) {
        const auto sample = [&](int64_t k) {
          return static_cast<float>(samples[static_cast<size_t>(s * side + k)] * std::pow(0.7, static_cast<double>(k)));
        };
        if (!diagonal) out[static_cast<size_t>(i * side + j)] += sample(i) * sample(j);
        if (diagonal && i == j) out[static_cast<size_t>(i)] += sample(i) * sample(i);
      }
  return out;
}

// (side, side), as METHODS.md 1.11 scales them.
Values weights_of(const std::vector<float>& moments, int64_t side) {
  const bool diagonal = std::ssize(moments) == side;
  double trace = 0;
  for (int64_t i = 0; i < side; ++i) trace += moments[static_cast<size_t>(diagonal ? i : i * side + i)];
  Values out(static_cast<size_t>(side * side));
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j) {
      const double moment = !diagonal ? moments[static_cast<size_t>(i * side + j)] : i == j ? moments[static_cast<size_t>(i)] : 0;
      out[static_cast<size_t>(i * side + j)] = (1 - kIdentity) * moment * static_cast<double>(side) / trace + (i == j ? kIdentity : 0);
    }
  return out;
}

Values product(const Values& a, const Values& b, int64_t m, int64_t k, int64_t n) {
  Values out(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        out[static_cast<size_t>(i * n + j)] += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
  return out;
}

struct Case {
  Case(int64_t m, int64_t n) : m(m), n(n), matrix(noise_values(m * n, 4)) {
    const int64_t k = std::min(m, n), l = std::max(m, n);
    moments = {moments_of(k, 1, false), moments_of(l, 2, k < l)};
    of_rows = weights_of(m <= n ? moments.shorter : moments.longer, m);
    of_columns = weights_of(m <= n ? moments.longer : moments.shorter, n);
  }
  double square(const Values& d) const { return dot(product(product(of_rows, d, m, m, n), of_columns, m, n, n), d); }
  double error(const Values& near) const {
    Values d = near;
    for (size_t i = 0; i < d.size(); ++i) d[i] -= matrix[i];
    return std::sqrt(square(d) / square(matrix));
  }
  int64_t m, n;
  Values matrix, of_rows, of_columns;
  GradientMoments moments;
};

TEST(NearestOfRank, AtFullRankNothingIsLost) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{7, 12}, {12, 7}, {9, 9}}) {
    const Case c(m, n);
    const NearestOfRank near = nearest_of_rank(c.matrix, m, n, std::min(m, n), c.moments);
    EXPECT_LE(c.error(near.matrix), 1e-12);
    EXPECT_LE(near.error, 1e-7);
  }
}

TEST(NearestOfRank, SaysTheErrorThatThereIsAndNoNeighbourHasASmallerOne) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{7, 12}, {12, 7}, {9, 9}})
    for (const int64_t rank : {1, 3}) {
      const Case c(m, n);
      const NearestOfRank near = nearest_of_rank(c.matrix, m, n, rank, c.moments);
      EXPECT_NEAR(c.error(near.matrix), near.error, 1e-9);
      // W' + a step within the matrices of this rank: (I + e X) W' (I + e Y).
      for (uint32_t seed = 10; seed < 30; ++seed) {
        Values left = noise_values(m * m, seed), right = noise_values(n * n, seed + 100);
        for (double& x : left) x *= 1e-2;
        for (double& x : right) x *= 1e-2;
        for (int64_t i = 0; i < m; ++i) left[static_cast<size_t>(i * m + i)] += 1;
        for (int64_t i = 0; i < n; ++i) right[static_cast<size_t>(i * n + i)] += 1;
        EXPECT_GT(c.error(product(product(left, near.matrix, m, m, n), right, m, n, n)), near.error);
      }
    }
}

TEST(NearestOfRank, LeavesTheCostsOfTheRanksBehindIt) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{7, 12}, {12, 7}, {9, 9}}) {
    const Case c(m, n);
    double trace = 0;
    for (int64_t i = 0; i < std::min(m, n); ++i) trace += c.moments.shorter[static_cast<size_t>(i * std::min(m, n) + i)];
    // The second derivative M x N / T of unscaled moments is that of scaled ones times T / (m n), but for the share of the identity.
    const double unit = trace / static_cast<double>(m * n), all = unit * c.square(c.matrix);
    const Values costs = costs_of_ranks(c.matrix, m, n, &c.moments);
    ASSERT_EQ(std::ssize(costs), std::min(m, n));
    EXPECT_TRUE(std::is_sorted(costs.rbegin(), costs.rend()));
    EXPECT_NEAR(std::accumulate(costs.begin(), costs.end(), 0.0), all, 1e-9 * all);
    for (int64_t rank = 1; rank < std::min(m, n); ++rank) {
      Values d = nearest_of_rank(c.matrix, m, n, rank, c.moments).matrix;
      for (size_t i = 0; i < d.size(); ++i) d[i] -= c.matrix[i];
      EXPECT_NEAR(std::accumulate(costs.begin() + rank, costs.end(), 0.0), unit * c.square(d), 1e-9 * all) << rank;
    }
  }
}

TEST(NearestOfRank, WithoutGradientsItIsPlain) {
  const Case c(6, 10);
  const GradientMoments none{std::vector<float>(36), std::vector<float>(10)};
  GradientMoments even{std::vector<float>(36), std::vector<float>(10, 3.0f)};
  for (size_t i = 0; i < 6; ++i) even.shorter[7 * i] = 2;
  const Values plain = nearest_of_rank(c.matrix, 6, 10, 2, none).matrix, same = nearest_of_rank(c.matrix, 6, 10, 2, even).matrix;
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], same[i], 1e-12);
  const Values costs = costs_of_ranks(c.matrix, 6, 10, nullptr);
  Values d = plain;
  for (size_t i = 0; i < d.size(); ++i) d[i] -= c.matrix[i];
  EXPECT_NEAR(std::accumulate(costs.begin() + 2, costs.end(), 0.0), dot(d, d), 1e-12);
  EXPECT_NEAR(std::accumulate(costs.begin(), costs.end(), 0.0), dot(c.matrix, c.matrix), 1e-12);
  EXPECT_EQ(costs_of_ranks(c.matrix, 6, 10, &none), Values(6)) << "what changes no loss costs nothing";
  EXPECT_GT(c.error(plain), nearest_of_rank(c.matrix, 6, 10, 2, c.moments).error);
}

}  // namespace
}  // namespace comera::layer_test
