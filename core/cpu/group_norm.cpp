// Norms over groups of channels. Sums are made by cells (core/ops/group_norm_math.h) and channels, so loops run over neighbours for few
// groups and many; then the cells and channels of a group are added in order.
#include "core/ops/group_norm_math.h"

#include <cmath>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/typed.h"

namespace comera {
namespace {

GroupCells cells_of(const Tensor& x, const Tensor& mean) { return {x.size(0), x.size(1), mean.size(0), mean.size(1)}; }

int64_t cell_grain(const GroupCells& cells) { return kElementGrain / std::max<int64_t>(cells.size * cells.channels, 1) + 1; }

// body(group of an example, its number) for all.
template <class Body>
void for_groups(ThreadPool& pool, const GroupCells& cells, const Body& body) {
  const int64_t terms = cells.pieces * cells.in_group();
  pool.parallel_for(cells.examples * cells.groups, kElementGrain / std::max<int64_t>(terms, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) body(at);
  });
}

// body(cell, channel) for the cells and channels of a group of an example, in their order.
template <class Body>
void each_part(const GroupCells& cells, int64_t at, const Body& body) {
  const int64_t example = at / cells.groups, first = at % cells.groups * cells.in_group();
  for (int64_t cell = example * cells.pieces; cell < (example + 1) * cells.pieces; ++cell)
    for (int64_t c = first; c < first + cells.in_group(); ++c) body(cell, c);
}

// By example and channel (E, 2, C): mean and 1 / sqrt(variance + eps).
template <class T>
void spread(ThreadPool& pool, const GroupCells& cells, const T* mean, const T* variance, double eps, T* to) {
  pool.parallel_for(cells.examples, kElementGrain / std::max<int64_t>(cells.channels, 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      T *means = to + e * 2 * cells.channels, *rstds = means + cells.channels;
      for (int64_t g = 0; g < cells.groups; ++g) {
        const int64_t at = e * cells.groups + g, first = g * cells.in_group(), last = first + cells.in_group();
        std::fill(means + first, means + last, mean[at]);
        std::fill(rstds + first, rstds + last, T(1) / std::sqrt(variance[at] + static_cast<T>(eps)));
      }
    }
  });
}

// Of each cell and channel (cells, 2, C): sums over its rows of dy and of dy x^.
template <class T>
void cell_sums(ThreadPool& pool, const GroupCells& cells, const T* x, const T* dy, const T* wide, T* parts) {
  const int64_t channels = cells.channels;
  pool.parallel_for(cells.count(), cell_grain(cells), [&](int64_t first, int64_t last) {
    for (int64_t cell = first; cell < last; ++cell) {
      const T *means = wide + cells.example(cell) * 2 * channels, *rstds = means + channels;
      T *sums = parts + cell * 2 * channels, *products = sums + channels;
      std::fill(sums, sums + 2 * channels, T(0));
      for (int64_t row = cells.begin(cell); row < cells.end(cell); ++row) {
        const T *in = x + row * channels, *d = dy + row * channels;
#pragma GCC ivdep
        for (int64_t c = 0; c < channels; ++c) {
          sums[c] += d[c];
          products[c] += d[c] * ((in[c] - means[c]) * rstds[c]);
        }
      }
    }
  });
}

// dgamma and dbeta: those sums over all cells, in their order.
template <class T>
void add_cells(ThreadPool& pool, const GroupCells& cells, const T* parts, T* dgamma, T* dbeta) {
  const int64_t channels = cells.channels;
  pool.parallel_for(channels, kElementGrain / std::max<int64_t>(cells.count(), 1) + 1, [&](int64_t begin, int64_t end) {
    std::fill(dbeta + begin, dbeta + end, T(0));
    std::fill(dgamma + begin, dgamma + end, T(0));
    for (int64_t cell = 0; cell < cells.count(); ++cell) {
      const T *sums = parts + cell * 2 * channels, *products = sums + channels;
      for (int64_t c = begin; c < end; ++c) {
        dbeta[c] += sums[c];
        dgamma[c] += products[c];
      }
    }
  });
}

}  // namespace

// Each cell's means and square deviations from them (its rows are in the cache for the second loop), then those of all cells together:
// the sum over cells of [squares + rows (their mean - mean)^2].
void CpuOps::body(const op::GroupStatistics& args) {
  const GroupCells cells = cells_of(args.x, args.mean);
  const int64_t channels = cells.channels;
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* x = args.x.data<T>();
    T *mean = args.mean.data<T>(), *variance = args.variance.data<T>();
    T* parts = pool_.scratch_of<T>(cells.count() * 2 * channels);
    pool_.parallel_for(cells.count(), cell_grain(cells), [&](int64_t first, int64_t last) {
      for (int64_t cell = first; cell < last; ++cell) {
        T *means = parts + cell * 2 * channels, *squares = means + channels;
        const T *begin = x + cells.begin(cell) * channels, *end = x + cells.end(cell) * channels;
        const T rows = static_cast<T>(cells.end(cell) - cells.begin(cell));
        std::fill(means, means + 2 * channels, T(0));
        for (const T* row = begin; row < end; row += channels)
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) means[c] += row[c];
        for (int64_t c = 0; c < channels; ++c) means[c] /= rows;
        for (const T* row = begin; row < end; row += channels)
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) squares[c] += (row[c] - means[c]) * (row[c] - means[c]);
      }
    });
    for_groups(pool_, cells, [&](int64_t at) {
      const auto rows = [&](int64_t cell) { return static_cast<T>(cells.end(cell) - cells.begin(cell)); };
      const T numbers = static_cast<T>(cells.numbers());
      T sum = 0, squares = 0;
      each_part(cells, at, [&](int64_t cell, int64_t c) { sum += rows(cell) * parts[cell * 2 * channels + c]; });
      const T average = sum / numbers;
      each_part(cells, at, [&](int64_t cell, int64_t c) {
        const T* part = parts + cell * 2 * channels + c;
        const T apart = part[0] - average;
        squares += part[channels] + rows(cell) * apart * apart;
      });
      mean[at] = average;
      variance[at] = squares / numbers;
    });
  });
}

void CpuOps::body(const op::GroupNormForward& args) {
  const GroupCells cells = cells_of(args.x, args.mean);
  const int64_t channels = cells.channels;
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T *x = args.x.data<T>(), *gamma = args.gamma.data<T>(), *beta = args.beta.data<T>();
    T *y = args.y.data<T>(), *wide = pool_.scratch_of<T>(cells.examples * 2 * channels);
    spread(pool_, cells, args.mean.data<T>(), args.variance.data<T>(), args.eps, wide);
    pool_.parallel_for(cells.count(), cell_grain(cells), [&](int64_t first, int64_t last) {
      for (int64_t cell = first; cell < last; ++cell) {
        const T *means = wide + cells.example(cell) * 2 * channels, *rstds = means + channels;
        for (int64_t row = cells.begin(cell); row < cells.end(cell); ++row) {
          const T* in = x + row * channels;
          T* out = y + row * channels;
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c) out[c] = (in[c] - means[c]) * rstds[c] * gamma[c] + beta[c];
        }
      }
    });
  });
}

void CpuOps::body(const op::GroupNormBackward& args) {
  const GroupCells cells = cells_of(args.x, args.mean);
  const int64_t channels = cells.channels;
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T *x = args.x.data<T>(), *dy = args.dy.data<T>(), *gamma = args.gamma.data<T>();
    T *dx = args.dx.data<T>(), *dgamma = args.dgamma.data<T>(), *dbeta = args.dbeta.data<T>();
    T* wide = pool_.scratch_of<T>((cells.count() + 2 * cells.examples) * 2 * channels);
    T* slopes = wide + cells.examples * 2 * channels;   // (E, 2, C): means of dy gamma and of dy gamma x^ over the group
    T* parts = slopes + cells.examples * 2 * channels;  // (cells, 2, C)
    spread(pool_, cells, args.mean.data<T>(), args.variance.data<T>(), args.eps, wide);
    cell_sums(pool_, cells, x, dy, wide, parts);
    add_cells(pool_, cells, parts, dgamma, dbeta);
    for_groups(pool_, cells, [&](int64_t at) {
      const T numbers = static_cast<T>(cells.numbers());
      T sum = 0, product = 0;
      if (!args.constant)
        each_part(cells, at, [&](int64_t cell, int64_t c) {
          const T* part = parts + cell * 2 * channels + c;
          sum += gamma[c] * part[0];
          product += gamma[c] * part[channels];
        });
      T* to = slopes + at / cells.groups * 2 * channels + at % cells.groups * cells.in_group();
      std::fill(to, to + cells.in_group(), sum / numbers);
      std::fill(to + channels, to + channels + cells.in_group(), product / numbers);
    });
    pool_.parallel_for(cells.count(), cell_grain(cells), [&](int64_t first, int64_t last) {
      for (int64_t cell = first; cell < last; ++cell) {
        const int64_t of_example = cells.example(cell) * 2 * channels;
        const T *means = wide + of_example, *rstds = means + channels, *average = slopes + of_example, *product = average + channels;
        for (int64_t row = cells.begin(cell); row < cells.end(cell); ++row) {
          const T *in = x + row * channels, *d = dy + row * channels;
          T* out = dx + row * channels;
#pragma GCC ivdep
          for (int64_t c = 0; c < channels; ++c)
            out[c] = rstds[c] * (d[c] * gamma[c] - average[c] - (in[c] - means[c]) * rstds[c] * product[c]);
        }
      }
    });
  });
}

}  // namespace comera
