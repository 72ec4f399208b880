#include "core/methods/rank_canonical.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace comera {
namespace {

// Row-major, on the host.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
  double& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
};

Matrix product(const Matrix& a, const Matrix& b) {
  CHECK(a.columns == b.rows);
  Matrix out(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k) {
      const double value = a.at(i, k);
      for (int64_t j = 0; j < b.columns; ++j) out.at(i, j) += value * b.at(k, j);
    }
  return out;
}

Matrix transposed(const Matrix& a) {
  Matrix out(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
  return out;
}

// M = sum_i s_i q_i p_i^T, s falling. Vectors are rows, those of s_i = 0 are 0 in q.
struct Svd {
  Matrix q;               // (columns of M, rows of M)
  std::vector<double> s;  // (columns of M)
  Matrix p;               // (columns of M, columns of M)
};

// By rotating pairs of columns until all are orthogonal (one-sided Jacobi): small singular values come out as exact as
// large ones, and on every machine in the same way. Matrices here have as many columns as a bond has entries.
Svd svd(const Matrix& m) {
  const int64_t n = m.columns, length = m.rows;
  Matrix q = transposed(m), p(n, n);
  for (int64_t i = 0; i < n; ++i) p.at(i, i) = 1;
  const auto rotate = [](double* a, double* b, int64_t count, double cosine, double sine) {
    for (int64_t i = 0; i < count; ++i) {
      const double x = a[i], y = b[i];
      a[i] = cosine * x - sine * y;
      b[i] = sine * x + cosine * y;
    }
  };
  bool turned = true;
  for (int sweep = 0; sweep < 60 && turned; ++sweep) {
    turned = false;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) {
        double *a = &q.at(i, 0), *b = &q.at(j, 0);
        const double aa = std::inner_product(a, a + length, a, 0.0), bb = std::inner_product(b, b + length, b, 0.0),
                     ab = std::inner_product(a, a + length, b, 0.0);
        if (std::fabs(ab) <= 1e-14 * std::sqrt(aa * bb) || ab == 0) continue;
        turned = true;
        const double zeta = (bb - aa) / (2 * ab), tangent = std::copysign(1.0, zeta) / (std::fabs(zeta) + std::hypot(1.0, zeta));
        const double cosine = 1 / std::hypot(1.0, tangent), sine = cosine * tangent;
        rotate(a, b, length, cosine, sine);
        rotate(&p.at(i, 0), &p.at(j, 0), n, cosine, sine);
      }
  }
  std::vector<double> norms;
  for (int64_t i = 0; i < n; ++i) norms.push_back(std::sqrt(std::inner_product(&q.at(i, 0), &q.at(i, 0) + length, &q.at(i, 0), 0.0)));
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return norms[static_cast<size_t>(i)] > norms[static_cast<size_t>(j)]; });
  Svd out{Matrix(n, length), {}, Matrix(n, n)};
  // What is left of nothing after rounding.
  const double nothing = 1e-13 * norms[static_cast<size_t>(order.front())];
  for (int64_t to = 0; to < n; ++to) {
    const int64_t from = order[static_cast<size_t>(to)];
    const double norm = norms[static_cast<size_t>(from)];
    out.s.push_back(norm > nothing ? norm : 0);
    if (norm > nothing)
      for (int64_t k = 0; k < length; ++k) out.q.at(to, k) = q.at(from, k) / norm;
    for (int64_t k = 0; k < n; ++k) out.p.at(to, k) = p.at(from, k);
  }
  return out;
}

// A train on the host: core k as (r_{k-1}, l_k, r_k), with the rank parameters multiplied in.
struct Train {
  std::vector<int64_t> ranks;  // r_0 .. r_K
  std::vector<std::vector<double>> cores;
  std::vector<std::vector<double>> singular;  // of each bond

  // Core k as a matrix: (r_{k-1} l_k, r_k), or (r_{k-1}, l_k r_k).
  Matrix tall(size_t k) const { return shaped(k, static_cast<int64_t>(cores[k].size()) / ranks[k + 1], ranks[k + 1]); }
  Matrix wide(size_t k) const { return shaped(k, ranks[k], static_cast<int64_t>(cores[k].size()) / ranks[k]); }
  Matrix shaped(size_t k, int64_t rows, int64_t columns) const {
    Matrix out(rows, columns);
    out.values = cores[k];
    return out;
  }
};

double norm(const std::vector<double>& values) { return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0)); }

// Rows of `wide` times a factor each, or columns of `tall`.
void scale_rows(std::vector<double>& core, int64_t rank, const std::vector<double>& factors) {
  const size_t length = core.size() / static_cast<size_t>(rank);
  for (size_t i = 0; i < core.size(); ++i) core[i] *= factors[i / length];
}
void scale_columns(std::vector<double>& core, const std::vector<double>& factors) {
  for (size_t i = 0; i < core.size(); ++i) core[i] *= factors[i % factors.size()];
}

// From the right every core becomes one with orthonormal rows, then from the left one with orthonormal columns while
// the singular values of its right bond come to light.
void orthogonalise(Train& train) {
  const size_t last = train.cores.size() - 1;
  for (size_t k = last; k > 0; --k) {
    const Svd parts = svd(transposed(train.wide(k)));
    Matrix rest = transposed(parts.p);  // (r, r): core k = rest diag(s) q
    scale_columns(rest.values, parts.s);
    train.cores[k] = parts.q.values;
    train.cores[k - 1] = product(train.tall(k - 1), rest).values;
  }
  for (size_t k = 0; k < last; ++k) {
    const Svd parts = svd(train.tall(k));
    Matrix rest = parts.p;  // core k = q^T diag(s) p
    scale_rows(rest.values, rest.rows, parts.s);
    train.cores[k] = transposed(parts.q).values;
    train.cores[k + 1] = product(rest, train.wide(k + 1)).values;
    train.singular.push_back(parts.s);
  }
}

// Half of each bond's singular values to either side, and every core the norm it is to have, up to one factor for all.
void balance(Train& train, const std::vector<double>& norms) {
  for (size_t k = 0; k < train.singular.size(); ++k) {
    std::vector<double> half, back;
    for (const double s : train.singular[k]) {
      half.push_back(std::sqrt(s));
      back.push_back(s > 0 ? 1 / std::sqrt(s) : 0);
    }
    scale_columns(train.cores[k], half);
    scale_rows(train.cores[k + 1], train.ranks[k + 1], back);
  }
  double product_of_all = 0;  // logarithm of the factors so far
  std::vector<double> factors;
  for (size_t k = 0; k < train.cores.size(); ++k) {
    factors.push_back(norms[k] / norm(train.cores[k]));
    product_of_all += std::log(factors.back());
  }
  const double even = std::exp(-product_of_all / static_cast<double>(factors.size()));
  for (size_t k = 0; k < train.cores.size(); ++k)
    for (double& value : train.cores[k]) value *= factors[k] * even;
}

// Rank parameters of a bond: sqrt(s), scaled to the mean `level`, those that carry something above the threshold.
std::vector<double> rank_values(const std::vector<double>& singular, double level, double threshold) {
  double sum = 0, count = 0;
  for (const double s : singular) {
    sum += std::sqrt(s);
    count += s > 0 ? 1 : 0;
  }
  std::vector<double> out;
  for (const double s : singular) out.push_back(s > 0 ? std::max(std::sqrt(s) * level * count / sum, threshold * (1 + 1e-3)) : 0);
  return out;
}

void write(Param& param, Optimizer& optimizer, Device& device, Ctx& ctx, const std::vector<double>& values) {
  from_host(device, param.value, values);
  std::vector<StateNumbers> states = optimizer.capture(device, ctx, param);
  for (StateNumbers& state : states) {
    std::vector<double>& numbers = state.values;
    if (state.spec.anew == StateSpec::stays) continue;
    const double mean =
        state.spec.anew == StateSpec::zero ? 0 : std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
    std::fill(numbers.begin(), numbers.end(), mean);
  }
  optimizer.restore(device, ctx, param, states);
}

}  // namespace

void make_canonical(ParamSet& params, Optimizer& optimizer, Device& device, Ctx& ctx, double threshold) {
  for (const RankLayer& layer : params.rank_layers()) {
    Train train{{1}, {}, {}};
    std::vector<double> norms, levels;
    for (size_t k = 0; k < layer.cores.size(); ++k) {
      train.cores.push_back(to_host(device, layer.cores[k]->value));
      train.ranks.push_back(layer.cores[k]->shape[-1]);
      if (k < layer.ranks.size()) {
        std::vector<double> masked = to_host(device, layer.ranks[k]->value);
        double sum = 0, count = 0;
        for (double& value : masked) {
          if (!(value > threshold)) value = 0;
          sum += value;
          count += value > 0 ? 1 : 0;
        }
        levels.push_back(count > 0 ? sum / count : 0);
        scale_columns(train.cores.back(), masked);
      }
      norms.push_back(norm(train.cores.back()));
    }
    if (std::any_of(norms.begin(), norms.end(), [](double value) { return !(value > 0) || !std::isfinite(value); })) continue;
    orthogonalise(train);
    if (std::any_of(train.singular.begin(), train.singular.end(), [](const std::vector<double>& s) { return !(s.front() > 0); })) continue;
    balance(train, norms);
    for (size_t k = 0; k < layer.cores.size(); ++k) {
      if (k < layer.ranks.size()) {
        const std::vector<double> ranks = rank_values(train.singular[k], levels[k], threshold);
        std::vector<double> back;
        for (const double value : ranks) back.push_back(value > 0 ? 1 / value : 0);
        scale_columns(train.cores[k], back);
        write(*layer.ranks[k], optimizer, device, ctx, ranks);
      }
      write(*layer.cores[k], optimizer, device, ctx, train.cores[k]);
    }
  }
}

}  // namespace comera
