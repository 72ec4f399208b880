// Second moments of rows and columns, and the steps of Adafactor and CAME, Flora's history (core/ops/factored_math.h).
#pragma once
#include "core/ops/factored_math.h"
#include "gpu/column_sums.h"
#include "gpu/ranks.h"

namespace comera::gpu {

// row <- from the mean square of each row. One block a row.
template <class T>
struct RowMoments {
  int64_t rows, columns;
  T* row;
  const T* grad;
  MomentDecay decay;
  double eps;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const double beta = factored_beta(decay, *step);
    for (int64_t i = g.block(); i < rows; i += g.blocks()) {
      T sum = 0;
      for (int64_t j = g.thread(); j < columns; j += g.threads()) sum += grad[i * columns + j] * grad[i * columns + j];
      sum = g.reduce(sum, Sum{});
      if (g.thread() == 0) row[i] = factored_moment(row[i], static_cast<double>(sum) / static_cast<double>(columns), beta, eps);
    }
  }
};

template <class T>
struct SquareOfColumn {
  static constexpr int kSums = 1;
  const T* x;
  int64_t columns;
  KERNEL void operator()(int64_t row, int64_t column, T (&sums)[kSums]) const {
    sums[0] += x[row * columns + column] * x[row * columns + column];
  }
};

// moment <- from sums of `rows` squares each.
template <class T>
struct MomentsOfSums {
  T* moment;
  const T* sums;
  int64_t rows;
  MomentDecay decay;
  double eps;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const {
    moment[i] = factored_moment(moment[i], static_cast<double>(sums[i]) / static_cast<double>(rows), factored_beta(decay, *step), eps);
  }
};
template <class T>
struct MomentsOfElements {
  T* moment;
  const T* grad;
  MomentDecay decay;
  double eps;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const {
    moment[i] = factored_moment(moment[i], static_cast<double>(grad[i]) * static_cast<double>(grad[i]), factored_beta(decay, *step), eps);
  }
};

// One block: factors of all rows.
template <class T>
struct RowFactors {
  int64_t rows;
  const T* row;
  T* factors;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double mean = 0;
    for (int64_t i = g.thread(); i < rows; i += g.threads()) mean += static_cast<double>(row[i]);
    mean = g.reduce(mean, Sum{}) / static_cast<double>(rows);
    for (int64_t i = g.thread(); i < rows; i += g.threads()) factors[i] = factor_of(row[i], mean);
  }
};
template <class T>
struct Factors {
  const T* moment;
  T* factors;
  KERNEL void operator()(int64_t i) const { factors[i] = factor_of(moment[i], 1); }
};

// u = g times the factors of its row and, with columns, of its column.
template <class T>
struct FactoredUpdate {
  T* u;
  const T *grad, *of_rows, *of_columns;
  int64_t columns;
  KERNEL void operator()(int64_t i) const {
    u[i] = of_columns ? grad[i] * of_rows[i / columns] * of_columns[i % columns] : grad[i] * of_rows[i];
  }
};

// Sums of squares of pieces of x.
template <class T, class M>
const double* squares_of_pieces(M& machine, const Tensor& x, int64_t& pieces) {
  pieces = std::clamp<int64_t>(ceil_div(x.count(), 8 * kBlock), 1, 1024);
  double* partial = machine.template scratch<double>(pieces);
  machine.launch(over_items(pieces, kBlock), SquaresOfPiece<T>{x.count(), pieces, x.data<T>(), partial});
  return partial;
}

// One block.
template <class T>
struct ClippedMomentConstants {
  int64_t count, pieces;
  const double* partial;
  double beta, clip;
  ClippedMomentMath<T>* math;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double sum = 0;
    for (int64_t i = g.thread(); i < pieces; i += g.threads()) sum += partial[i];
    sum = g.reduce(sum, Sum{});
    if (g.thread() == 0) *math = clipped_moment_math<T>(beta, clip, sum / static_cast<double>(count));
  }
};
template <class T>
struct ClippedMoment {
  T *u, *m;
  const ClippedMomentMath<T>* math;
  KERNEL void operator()(int64_t i) const { u[i] = math->rest(u[i], m[i]); }
};

// One block: what the step needs of both sums of squares.
template <class T>
struct AdafactorConstants {
  int64_t u_count, u_pieces, w_count, w_pieces;  // no pieces: not needed
  const double *u_partial, *w_partial;
  AdafactorRule rule;
  ParamGroup group;
  const StepScalars* step;
  AdafactorMath<T>* math;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double u = 0, w = 0;
    for (int64_t i = g.thread(); i < u_pieces; i += g.threads()) u += u_partial[i];
    for (int64_t i = g.thread(); i < w_pieces; i += g.threads()) w += w_partial[i];
    u = g.reduce(u, Sum{});
    w = g.reduce(w, Sum{});
    if (g.thread() == 0) *math = adafactor_math<T>(rule, group, *step, u / static_cast<double>(u_count), w / static_cast<double>(w_count));
  }
};

template <class T>
struct AdafactorUpdate {
  T *u, *m;  // m may be null
  const AdafactorMath<T>* math;
  KERNEL void operator()(int64_t i) const { u[i] = m ? math->update(u[i], m[i]) : math->update(u[i]); }
};
template <class T>
struct AdafactorDecay {
  T* w;
  const AdafactorMath<T>* math;
  KERNEL void operator()(int64_t i) const { w[i] *= math->keep; }
};

template <class T>
struct FloraUpdate {
  T* u;
  const T* sum;
  double beta1;
  int64_t gap;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const { u[i] = FloraMath<T>(beta1, gap, *step).of_update(u[i], sum[i]); }
};
template <class T>
struct FloraKept {
  T* c;
  double beta1;
  int64_t gap;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const { c[i] = FloraMath<T>(beta1, gap, *step).of_history(c[i]); }
};

template <class M>
void GpuOps<M>::body(const op::FactoredMoments& args) {
  begin(args, args.g.shape());
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.row.count(), columns = args.column ? args.column.count() : 1;
    if (!args.column)
      return each(rows, MomentsOfElements<T>{args.row.data<T>(), args.g.data<T>(), args.decay, args.eps, scalars_in(args.step)});
    machine_.launch(over_items(rows, columns),
                    RowMoments<T>{rows, columns, args.row.data<T>(), args.g.data<T>(), args.decay, args.eps, scalars_in(args.step)});
    T* const sums[1] = {machine_.template scratch<T>(columns)};
    column_sums(machine_, rows, columns, SquareOfColumn<T>{args.g.data<T>(), columns}, sums);
    each(columns, MomentsOfSums<T>{args.column.data<T>(), sums[0], rows, args.decay, args.eps, scalars_in(args.step)});
  });
}

template <class M>
void GpuOps<M>::body(const op::FactoredUpdate& args) {
  begin(args, args.u.shape());
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.row.count(), columns = args.column ? args.column.count() : 1;
    T *of_rows = machine_.template scratch<T>(rows), *of_columns = args.column ? machine_.template scratch<T>(columns) : nullptr;
    if (args.column) {
      machine_.launch({1, kBlock}, RowFactors<T>{rows, args.row.data<T>(), of_rows});
      each(columns, Factors<T>{args.column.data<T>(), of_columns});
    } else {
      each(rows, Factors<T>{args.row.data<T>(), of_rows});
    }
    each(args.u.count(), FactoredUpdate<T>{args.u.data<T>(), args.g.data<T>(), of_rows, of_columns, columns});
  });
}

template <class M>
void GpuOps<M>::body(const op::ClippedMoment& args) {
  begin(args, args.u.shape());
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    ClippedMomentConstants<T> constants{args.u.count(), 0, nullptr, args.beta, args.clip, nullptr};
    constants.partial = squares_of_pieces<T>(machine_, args.u, constants.pieces);
    ClippedMomentMath<T>* math = constants.math = machine_.template scratch<ClippedMomentMath<T>>(1);
    machine_.launch({1, kBlock}, constants);
    each(args.u.count(), ClippedMoment<T>{args.u.data<T>(), args.m.data<T>(), math});
  });
}

template <class M>
void GpuOps<M>::body(const op::AdafactorUpdate& args) {
  begin(args, args.u.shape());
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    AdafactorConstants<T> constants{args.u.count(), 0,          args.w.count(),        0,      nullptr, nullptr,
                                    args.rule,      args.group, scalars_in(args.step), nullptr};
    if (std::isfinite(args.rule.clip)) constants.u_partial = squares_of_pieces<T>(machine_, args.u, constants.u_pieces);
    if (args.rule.scale_parameter) constants.w_partial = squares_of_pieces<T>(machine_, args.w, constants.w_pieces);
    AdafactorMath<T>* math = constants.math = machine_.template scratch<AdafactorMath<T>>(1);
    machine_.launch({1, kBlock}, constants);
    each(args.u.count(), AdafactorUpdate<T>{args.u.data<T>(), args.m ? args.m.data<T>() : nullptr, math});
    each(args.w.count(), AdafactorDecay<T>{args.w.data<T>(), math});
  });
}

template <class M>
void GpuOps<M>::body(const op::FloraHistory& args) {
  begin(args, args.u.shape());
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    each(args.u.count(), FloraUpdate<T>{args.u.data<T>(), args.sum.data<T>(), args.beta1, args.gap, scalars_in(args.step)});
    each(args.c.count(), FloraKept<T>{args.c.data<T>(), args.beta1, args.gap, scalars_in(args.step)});
  });
}

}  // namespace comera::gpu
