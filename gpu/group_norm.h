// Norms over groups of channels: sums by cells and channels, then those of a group in order (core/ops/group_norm_math.h).
#pragma once
#include "core/ops/group_norm_math.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// parts (cells, kSums, C) = sums over the rows of a cell, where term(row, channel, group of the example, sums) adds to sums[kSums].
template <class T, class Term>
struct CellSums {
  GroupCells cells;
  Term term;
  T* parts;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t tiles = ceil_div(cells.channels, g.threads());
    for (int64_t item = g.block(); item < tiles * cells.count(); item += g.blocks()) {
      const int64_t channel = item % tiles * g.threads() + g.thread(), cell = item / tiles;
      if (channel >= cells.channels) continue;
      T sums[Term::kSums] = {};
      const int64_t group = cells.example(cell) * cells.groups + cells.group(channel);
      for (int64_t row = cells.begin(cell); row < cells.end(cell); ++row) term(row, channel, group, sums);
      for (int i = 0; i < Term::kSums; ++i) parts[(cell * Term::kSums + i) * cells.channels + channel] = sums[i];
    }
  }
};

// to[at] = mean over a group of an example, from its sums by cells and channels.
template <class T>
struct GroupMean {
  GroupCells cells;
  const T* parts;
  T* to;
  KERNEL void operator()(int64_t at) const {
    const int64_t example = at / cells.groups, first = at % cells.groups * cells.in_group();
    T sum = 0;
    for (int64_t cell = example * cells.pieces; cell < (example + 1) * cells.pieces; ++cell)
      for (int64_t c = first; c < first + cells.in_group(); ++c) sum += parts[cell * cells.channels + c];
    to[at] = sum / static_cast<T>(cells.numbers());
  }
};

template <class T>
struct SumTerm {
  static constexpr int kSums = 1;
  const T* x;
  int64_t channels;
  KERNEL void operator()(int64_t row, int64_t channel, int64_t, T (&sums)[kSums]) const { sums[0] += x[row * channels + channel]; }
};

template <class T>
struct SquareTerm {
  static constexpr int kSums = 1;
  const T *x, *mean;
  int64_t channels;
  KERNEL void operator()(int64_t row, int64_t channel, int64_t group, T (&sums)[kSums]) const {
    const T apart = x[row * channels + channel] - mean[group];
    sums[0] += apart * apart;
  }
};

// Mean and 1 / sqrt(variance + eps) of a group.
template <class T>
struct GroupValues {
  const T *mean, *variance;
  T eps;
  KERNEL T rstd(int64_t group) const { return T(1) / std::sqrt(variance[group] + eps); }
};

template <class T>
struct GroupNormForward {
  GroupCells cells;
  GroupValues<T> values;
  const T *x, *gamma, *beta;
  T* y;
  KERNEL void operator()(int64_t i) const {
    const int64_t channel = i % cells.channels, group = i / cells.channels / cells.rows * cells.groups + cells.group(channel);
    y[i] = (x[i] - values.mean[group]) * values.rstd(group) * gamma[channel] + beta[channel];
  }
};

template <class T>
struct SlopeTerm {
  static constexpr int kSums = 2;  // of dy and of dy x^
  GroupValues<T> values;
  const T *x, *dy;
  int64_t channels;
  KERNEL void operator()(int64_t row, int64_t channel, int64_t group, T (&sums)[kSums]) const {
    const T d = dy[row * channels + channel];
    sums[0] += d;
    sums[1] += d * ((x[row * channels + channel] - values.mean[group]) * values.rstd(group));
  }
};

// dbeta and dgamma from the sums by cells (cells, 2, C).
template <class T>
struct GroupNormWeights {
  GroupCells cells;
  const T* parts;
  T *dgamma, *dbeta;
  KERNEL void operator()(int64_t channel) const {
    T sum = 0, product = 0;
    for (int64_t cell = 0; cell < cells.count(); ++cell) {
      sum += parts[cell * 2 * cells.channels + channel];
      product += parts[(cell * 2 + 1) * cells.channels + channel];
    }
    dbeta[channel] = sum;
    dgamma[channel] = product;
  }
};

// slopes (E G, 2): means of dy gamma and of dy gamma x^ over a group.
template <class T>
struct GroupSlopes {
  GroupCells cells;
  const T *parts, *gamma;
  T* slopes;
  KERNEL void operator()(int64_t at) const {
    const int64_t example = at / cells.groups, first = at % cells.groups * cells.in_group();
    T sum = 0, product = 0;
    for (int64_t cell = example * cells.pieces; cell < (example + 1) * cells.pieces; ++cell)
      for (int64_t c = first; c < first + cells.in_group(); ++c) {
        sum += gamma[c] * parts[cell * 2 * cells.channels + c];
        product += gamma[c] * parts[(cell * 2 + 1) * cells.channels + c];
      }
    slopes[2 * at] = sum / static_cast<T>(cells.numbers());
    slopes[2 * at + 1] = product / static_cast<T>(cells.numbers());
  }
};

template <class T>
struct GroupNormBackward {
  GroupCells cells;
  GroupValues<T> values;
  const T *x, *dy, *gamma, *slopes;  // slopes are null for a constant mean and variance
  T* dx;
  KERNEL void operator()(int64_t i) const {
    const int64_t channel = i % cells.channels, group = i / cells.channels / cells.rows * cells.groups + cells.group(channel);
    const T rstd = values.rstd(group), d = dy[i] * gamma[channel];
    dx[i] = slopes ? rstd * (d - slopes[2 * group] - (x[i] - values.mean[group]) * rstd * slopes[2 * group + 1]) : rstd * d;
  }
};

template <class M>
void GpuOps<M>::body(const op::GroupStatistics& args) {
  begin(args, args.x.shape());
  const GroupCells cells(args.x.size(0), args.x.size(1), args.mean.size(0), args.mean.size(1));
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* x = args.x.data<T>();
    T *mean = args.mean.data<T>(), *variance = args.variance.data<T>();
    T* parts = machine_.template scratch<T>(cells.count() * cells.channels);
    const LaunchShape shape = over_items(ceil_div(cells.channels, kBlock) * cells.count(), cells.channels);
    machine_.launch(shape, CellSums<T, SumTerm<T>>{cells, {x, cells.channels}, parts});
    each(args.mean.count(), GroupMean<T>{cells, parts, mean});
    machine_.launch(shape, CellSums<T, SquareTerm<T>>{cells, {x, mean, cells.channels}, parts});
    each(args.mean.count(), GroupMean<T>{cells, parts, variance});
  });
}

template <class M>
void GpuOps<M>::body(const op::GroupNormForward& args) {
  begin(args, args.x.shape());
  const GroupCells cells(args.x.size(0), args.x.size(1), args.mean.size(0), args.mean.size(1));
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const GroupValues<T> values{args.mean.data<T>(), args.variance.data<T>(), static_cast<T>(args.eps)};
    each(args.x.count(), GroupNormForward<T>{cells, values, args.x.data<T>(), args.gamma.data<T>(), args.beta.data<T>(), args.y.data<T>()});
  });
}

template <class M>
void GpuOps<M>::body(const op::GroupNormBackward& args) {
  begin(args, args.x.shape());
  const GroupCells cells(args.x.size(0), args.x.size(1), args.mean.size(0), args.mean.size(1));
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T *x = args.x.data<T>(), *dy = args.dy.data<T>(), *gamma = args.gamma.data<T>();
    const GroupValues<T> values{args.mean.data<T>(), args.variance.data<T>(), static_cast<T>(args.eps)};
    T* parts = machine_.template scratch<T>(cells.count() * 2 * cells.channels);
    T* slopes = machine_.template scratch<T>(args.mean.count() * 2);
    machine_.launch(over_items(ceil_div(cells.channels, kBlock) * cells.count(), cells.channels),
                    CellSums<T, SlopeTerm<T>>{cells, {values, x, dy, cells.channels}, parts});
    each(cells.channels, GroupNormWeights<T>{cells, parts, args.dgamma.data<T>(), args.dbeta.data<T>()});
    if (!args.constant) each(args.mean.count(), GroupSlopes<T>{cells, parts, gamma, slopes});
    each(args.x.count(), GroupNormBackward<T>{cells, values, x, dy, gamma, args.constant ? nullptr : slopes, args.dx.data<T>()});
  });
}

}  // namespace comera::gpu
