// Tensor trains written out by plain loops on the host: what the layers are judged by.
#pragma once
#include <vector>

#include "core/layers/param.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {

// The train contracted to (l_1 l_2 .. l_K): entry [i_1, .., i_K] = U_1[:, i_1, :] thr(D_1) U_2[:, i_2, :] thr(D_2) ..
// Cores (r_{k-1}, l_k, r_k), rank vectors (r_k) for k < K.
inline Values contract(const std::vector<Values>& cores, const std::vector<Values>& ranks, const std::vector<int64_t>& sizes,
                       double threshold) {
  Values product{1};  // (l_1..l_k, r_k)
  int64_t before = 1;
  for (size_t k = 0; k < cores.size(); ++k) {
    const int64_t rows = static_cast<int64_t>(product.size()) / before, mode = sizes[k];
    const int64_t after = static_cast<int64_t>(cores[k].size()) / (before * mode);
    Values next(static_cast<size_t>(rows * mode * after), 0.0);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t a = 0; a < before; ++a)
        for (int64_t i = 0; i < mode; ++i)
          for (int64_t b = 0; b < after; ++b) {
            double factor = 1;
            if (k < ranks.size()) {
              const double d = ranks[k][static_cast<size_t>(b)];
              factor = d > threshold ? d : 0;
            }
            next[static_cast<size_t>((row * mode + i) * after + b)] +=
                product[static_cast<size_t>(row * before + a)] * cores[k][static_cast<size_t>((a * mode + i) * after + b)] * factor;
          }
    product = std::move(next);
    before = after;
  }
  return product;
}

inline Values contract(Rig& rig, const RankLayer& layer) {
  std::vector<Values> cores, ranks;
  for (const Param* core : layer.cores) cores.push_back(rig.get(core->value));
  for (const Param* rank : layer.ranks) ranks.push_back(rig.get(rank->value));
  return contract(cores, ranks, layer.mode_sizes, rig.scalars.threshold);
}

// Table (rows, columns) of a contracted TTM (m_1 n_1, .., m_K n_K).
inline Values table_of(const Values& train, const std::vector<int64_t>& row_modes, const std::vector<int64_t>& column_modes) {
  int64_t rows = 1, columns = 1;
  for (size_t k = 0; k < row_modes.size(); ++k) {
    rows *= row_modes[k];
    columns *= column_modes[k];
  }
  Values table(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t i = row, j = column, index = 0, stride = 1;
      for (size_t k = row_modes.size(); k-- > 0;) {
        index += stride * ((i % row_modes[k]) * column_modes[k] + j % column_modes[k]);
        stride *= row_modes[k] * column_modes[k];
        i /= row_modes[k];
        j /= column_modes[k];
      }
      table[static_cast<size_t>(row * columns + column)] = train[static_cast<size_t>(index)];
    }
  return table;
}

// x (T, I) W^T (N, M) + b -> (T, O): the first I rows and O columns of W^T.
inline Values apply_dense(const Values& x, int64_t in, const Values& wt, int64_t width, const Values& bias) {
  const int64_t out = static_cast<int64_t>(bias.size()), tokens = static_cast<int64_t>(x.size()) / in;
  Values y(static_cast<size_t>(tokens * out));
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < out; ++j) {
      double sum = bias[static_cast<size_t>(j)];
      for (int64_t i = 0; i < in; ++i) sum += x[static_cast<size_t>(t * in + i)] * wt[static_cast<size_t>(i * width + j)];
      y[static_cast<size_t>(t * out + j)] = sum;
    }
  return y;
}

// Rank values that are neither all one nor near the threshold; every `dead_every`-th entry is dead (0 = none).
inline Values rank_values(int64_t count, uint64_t seed, int64_t dead_every = 0) {
  Values values = noise_values(count, seed + 100, 0.5);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += 1.0;
    if (dead_every > 0 && static_cast<int64_t>(i) % dead_every == dead_every - 1) values[i] = i % 2 == 0 ? 0.004 : -0.7;
  }
  return values;
}

}  // namespace comera::layer_test
