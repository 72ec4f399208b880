// Matrices of low rank that change the loss little: errors weighted by the gradients of the loss. On the host in double.
#pragma once
#include <cstdint>
#include <vector>

namespace comera {

// Second moments of the gradients G of a matrix (m, n), summed over batches. The shorter side is the rows where m <= n.
struct GradientMoments {
  std::vector<float> shorter;  // of rows: sum of G G^T (m, m); of columns: sum of G^T G (n, n)
  std::vector<float> longer;   // the same of the other side: all of it where m = n, else its diagonal
};

// The matrix W' (m, n), row-major, of rank r that comes nearest to W where the error D = W' - W counts as trace(M D N D^T), M and N the
// moments of rows and columns. Each is scaled to a mean diagonal of 1 and becomes 0.95 of itself plus 0.05 of the identity, so that no
// direction is free. `error`: the root of the share of W that is left out, counted alike, 0..1. METHODS.md 1.11.
struct NearestOfRank {
  std::vector<double> matrix;
  double error = 0;
};
NearestOfRank nearest_of_rank(const std::vector<double>& matrix, int64_t m, int64_t n, int64_t rank, const GradientMoments& moments);

}  // namespace comera
