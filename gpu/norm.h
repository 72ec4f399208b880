// Layer norm and RMS norm with fused residual and dropout (METHODS.md 15.2): one block a row.
#pragma once
#include "gpu/column_sums.h"

namespace comera::gpu {

template <class T>
struct NormForward {
  int64_t rows, columns;
  const T *x, *branch, *gamma, *beta;  // branch may be null; beta and mean serve where centred
  T *y, *sum, *mean, *rstd;
  T eps;
  bool centred;  // false: RMS norm
  bool whole;    // of_fours()
  DropoutSite<T> site;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    DropoutWords<T> words(site);
    const T count = static_cast<T>(columns);
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      const int64_t first = row * columns;
      const T* in = x + first;
      T part = 0;
      each_four(g, columns, [&](int64_t j) {
        Four<T> a = read_four(in, j, columns, whole);
        if (branch) {
          const Four<T> b = read_four(branch + first, j, columns, whole);
          for (int l = 0; l < 4; ++l) a.v[l] += words.apply(b.v[l], first + j + l);
          write_four(sum + first, j, columns, whole, a);
        }
        for (int l = 0; l < 4; ++l)
          if (j + l < columns) part += a.v[l];
      });
      if (branch) in = sum + first;  // each thread reads only entries that it wrote
      const T average = centred ? g.reduce(part, Sum{}) / count : T(0);
      part = 0;
      each_four(g, columns, [&](int64_t j) {
        const Four<T> a = read_four(in, j, columns, whole);
        for (int l = 0; l < 4; ++l)
          if (j + l < columns) part += (a.v[l] - average) * (a.v[l] - average);
      });
      const T inverse = T(1) / std::sqrt(g.reduce(part, Sum{}) / count + eps);
      each_four(g, columns, [&](int64_t j) {
        Four<T> a = read_four(in, j, columns, whole);
        const Four<T> by = read_four(gamma, j, columns, whole), to = centred ? read_four(beta, j, columns, whole) : Four<T>{};
        for (int l = 0; l < 4; ++l) a.v[l] = (a.v[l] - average) * inverse * by.v[l] + to.v[l];
        write_four(y + first, j, columns, whole, a);
      });
      if (g.thread() == 0) {
        if (centred) mean[row] = average;
        rstd[row] = inverse;
      }
    }
  }
};

// dsum, and dbranch where it is not null. mean serves where centred.
template <class T>
struct NormBackward {
  int64_t rows, columns;
  const T *dy, *x, *mean, *rstd, *gamma;
  T *dsum, *dbranch;
  bool centred;  // false: RMS norm
  bool whole;    // of_fours()
  DropoutSite<T> site;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    DropoutWords<T> words(site);
    const T count = static_cast<T>(columns);
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      const int64_t first = row * columns;
      const T average = centred ? mean[row] : T(0), inverse = rstd[row];
      // Four neighbours of dy gamma and of the normalised x; 0 past the last column.
      struct Entries {
        Four<T> d, xhat;
      };
      const auto entries = [&](int64_t j) {
        Entries e{read_four(dy + first, j, columns, whole), read_four(x + first, j, columns, whole)};
        const Four<T> by = read_four(gamma, j, columns, whole);
        for (int l = 0; l < 4; ++l) {
          e.d.v[l] *= by.v[l];
          e.xhat.v[l] = (e.xhat.v[l] - average) * inverse;
        }
        return e;
      };
      T part = 0, part_x = 0;
      each_four(g, columns, [&](int64_t j) {
        const Entries e = entries(j);
        for (int l = 0; l < 4; ++l)
          if (j + l < columns) {
            part += e.d.v[l];
            part_x += e.d.v[l] * e.xhat.v[l];
          }
      });
      const T g_mean = centred ? g.reduce(part, Sum{}) / count : T(0), gx_mean = g.reduce(part_x, Sum{}) / count;
      each_four(g, columns, [&](int64_t j) {
        const Entries e = entries(j);
        Four<T> out;
        for (int l = 0; l < 4; ++l) out.v[l] = inverse * (e.d.v[l] - g_mean - e.xhat.v[l] * gx_mean);
        write_four(dsum + first, j, columns, whole, out);
        if (!dbranch) return;
        for (int l = 0; l < 4; ++l) out.v[l] = words.apply(out.v[l], first + j + l);
        write_four(dbranch + first, j, columns, whole, out);
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

// dgamma of RMS norm.
template <class T>
struct RmsNormWeights {
  static constexpr int kSums = 1;
  int64_t columns;
  const T *dy, *x, *rstd;
  KERNEL void operator()(int64_t row, int64_t column, T (&sums)[kSums]) const {
    sums[0] += dy[row * columns + column] * (x[row * columns + column] * rstd[row]);
  }
};

template <class M>
void GpuOps<M>::body(const op::NormForward& args) {
  begin(args, args.x.shape());
  const int64_t rows = args.x.size(0), columns = args.x.size(1);
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T *in = args.x.data<T>(), *more = args.branch ? args.branch.data<T>() : nullptr, *by = args.gamma.data<T>(),
            *to = args.beta ? args.beta.data<T>() : nullptr;
    T *out = args.y.data<T>(), *total = args.branch ? args.sum.data<T>() : nullptr;
    const NormForward<T> body{rows,
                              columns,
                              in,
                              more,
                              by,
                              to,
                              out,
                              total,
                              args.mean ? args.mean.data<T>() : nullptr,
                              args.rstd.data<T>(),
                              static_cast<T>(args.eps),
                              static_cast<bool>(args.beta),
                              of_fours(columns, in, more, by, to, out, total),
                              DropoutSite<T>(args.dropout, args.step, args.x.count())};
    machine_.launch(over_items(rows, ceil_div(columns, 4)), body);
  });
}

template <class M>
void GpuOps<M>::body(const op::NormBackward& args) {
  begin(args, args.dy.shape());
  const int64_t rows = args.dy.size(0), columns = args.dy.size(1);
  by_float_type(args.dy, [&](auto type) {
    using T = decltype(type);
    const T *d = args.dy.data<T>(), *x = args.sum.data<T>(), *means = args.mean ? args.mean.data<T>() : nullptr,
            *rstds = args.rstd.data<T>();
    const T* by = args.gamma.data<T>();
    T *out = args.dsum.data<T>(), *branch = args.dbranch ? args.dbranch.data<T>() : nullptr;
    const NormBackward<T> body{rows,
                               columns,
                               d,
                               x,
                               means,
                               rstds,
                               by,
                               out,
                               branch,
                               static_cast<bool>(args.mean),
                               of_fours(columns, d, x, by, out, branch),
                               DropoutSite<T>(args.dropout, args.step, args.dy.count())};
    machine_.launch(over_items(rows, ceil_div(columns, 4)), body);
    if (args.mean)
      column_sums<T>(machine_, rows, columns, NormWeights<T>{columns, d, x, means, rstds}, {args.dgamma.data<T>(), args.dbeta.data<T>()});
    else
      column_sums<T>(machine_, rows, columns, RmsNormWeights<T>{columns, d, x, rstds}, {args.dgamma.data<T>()});
  });
}

}  // namespace comera::gpu
