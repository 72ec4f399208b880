// Layer norm with the residual branch folded in: a block a row.
#pragma once
#include "gpu/column_sums.h"

namespace comera::gpu {

template <class T>
struct NormForward {
  int64_t rows, columns;
  const T *x, *branch, *gamma, *beta;  // branch may be null
  T *y, *sum, *mean, *rstd;
  T eps;
  DropoutSite<T> site;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    DropoutWords<T> words(site);
    const T count = static_cast<T>(columns);
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      const T* in = x + row * columns;
      T part = 0;
      if (branch) {
        T* total = sum + row * columns;
        each_by_four(g, columns, [&](int64_t j) {
          const int64_t i = row * columns + j;
          part += total[j] = in[j] + words.apply(branch[i], i);
        });
        in = total;  // each thread reads what it wrote
      } else {
        each_by_four(g, columns, [&](int64_t j) { part += in[j]; });
      }
      const T average = g.reduce(part, Sum{}) / count;
      part = 0;
      each_by_four(g, columns, [&](int64_t j) { part += (in[j] - average) * (in[j] - average); });
      const T inverse = T(1) / std::sqrt(g.reduce(part, Sum{}) / count + eps);
      each_by_four(g, columns, [&](int64_t j) { y[row * columns + j] = (in[j] - average) * inverse * gamma[j] + beta[j]; });
      if (g.thread() == 0) {
        mean[row] = average;
        rstd[row] = inverse;
      }
    }
  }
};

// dsum, and dbranch where it is not null.
template <class T>
struct NormBackward {
  int64_t rows, columns;
  const T *dy, *x, *mean, *rstd, *gamma;
  T *dsum, *dbranch;
  DropoutSite<T> site;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    DropoutWords<T> words(site);
    const T count = static_cast<T>(columns);
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      const T *d = dy + row * columns, *in = x + row * columns, average = mean[row], inverse = rstd[row];
      T part = 0, part_x = 0;
      each_by_four(g, columns, [&](int64_t j) {
        part += d[j] * gamma[j];
        part_x += d[j] * gamma[j] * ((in[j] - average) * inverse);
      });
      const T g_mean = g.reduce(part, Sum{}) / count, gx_mean = g.reduce(part_x, Sum{}) / count;
      each_by_four(g, columns, [&](int64_t j) {
        const int64_t i = row * columns + j;
        const T xhat = (in[j] - average) * inverse, out = inverse * (d[j] * gamma[j] - g_mean - xhat * gx_mean);
        dsum[i] = out;
        if (dbranch) dbranch[i] = words.apply(out, i);
      });
    }
  }
};

// dgamma and dbeta.
template <class T>
struct NormWeights {
  static constexpr int kSums = 2;
  int64_t columns;
  const T *dy, *x, *mean, *rstd;
  KERNEL void operator()(int64_t row, int64_t column, T (&sums)[kSums]) const {
    const T d = dy[row * columns + column];
    sums[0] += d * ((x[row * columns + column] - mean[row]) * rstd[row]);
    sums[1] += d;
  }
};

template <class M>
void GpuOps<M>::do_norm_forward(const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& x,
                                const Tensor& branch, const Tensor& gamma, const Tensor& beta, double eps, Dropout dropout,
                                const Tensor& step) {
  begin("norm_forward", x.shape());
  const int64_t rows = x.size(0), columns = x.size(1);
  by_float_type(x, [&](auto type) {
    using T = decltype(type);
    const NormForward<T> body{rows,
                              columns,
                              x.data<T>(),
                              branch ? branch.data<T>() : nullptr,
                              gamma.data<T>(),
                              beta.data<T>(),
                              y.data<T>(),
                              branch ? sum.data<T>() : nullptr,
                              mean.data<T>(),
                              rstd.data<T>(),
                              static_cast<T>(eps),
                              DropoutSite<T>(dropout, step)};
    machine_.launch(over_items(rows, pieces_of(columns, 4)), body);
  });
}

template <class M>
void GpuOps<M>::do_norm_backward(const Tensor& dsum, const Tensor& dbranch, const Tensor& dgamma, const Tensor& dbeta, const Tensor& dy,
                                 const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Tensor& gamma, Dropout dropout,
                                 const Tensor& step) {
  begin("norm_backward", dy.shape());
  const int64_t rows = dy.size(0), columns = dy.size(1);
  by_float_type(dy, [&](auto type) {
    using T = decltype(type);
    const T *d = dy.data<T>(), *x = sum.data<T>(), *means = mean.data<T>(), *rstds = rstd.data<T>();
    const NormBackward<T> body{rows,
                               columns,
                               d,
                               x,
                               means,
                               rstds,
                               gamma.data<T>(),
                               dsum.data<T>(),
                               dbranch ? dbranch.data<T>() : nullptr,
                               DropoutSite<T>(dropout, step)};
    machine_.launch(over_items(rows, pieces_of(columns, 4)), body);
    column_sums<T>(machine_, rows, columns, NormWeights<T>{columns, d, x, means, rstds}, {dgamma.data<T>(), dbeta.data<T>()});
  });
}

}  // namespace comera::gpu
