// Matrices of low rank that change the loss little: errors weighted by the gradients of the loss. On the host in double.
#pragma once
#include <cstdint>
#include <vector>

namespace comera {

// Second moments of the gradients G of a matrix (m, n), summed over batches. The shorter side is the rows where m <= n, else the columns.
struct GradientMoments {
  std::vector<float> shorter;  // rows: sum of G G^T (m, m); columns: sum of G^T G (n, n)
  std::vector<float> longer;   // the other sum: whole where m = n, else its diagonal
};

// The matrix W' (m, n) of rank r, row-major, that minimises trace(M D N D^T) for the error D = W' - W, where M and N are the moments of
// rows and columns, each scaled to a mean diagonal of 1 and mixed: 0.95 of it with 0.05 of the identity (METHODS.md 1.11).
// `error`: the square root of that cost relative to the cost of D = W, 0..1.
struct NearestOfRank {
  std::vector<double> matrix;
  double error = 0;
};
NearestOfRank nearest_of_rank(const std::vector<double>& matrix, int64_t m, int64_t n, int64_t rank, const GradientMoments& moments);

// What each rank takes off the cost, (min(m, n)) in descending order: the cost at rank r is the sum of those behind the first r. For all
// matrices of a model in one unit, the change of the loss up to a factor: with sums of G G^T of trace T, M x N / T approximates its second
// derivative, so the cost above counts times T / (m n). Without moments: squares of singular values.
std::vector<double> costs_of_ranks(const std::vector<double>& matrix, int64_t m, int64_t n, const GradientMoments* moments);

}  // namespace comera
