// Adam, plain gradient descent, Adagrad and weight decay, element by element: each block computes the step's constants once. APOLLO's
// scales of channels and its step.
#pragma once
#include "core/ops/optimizer_math.h"
#include "gpu/column_sums.h"
#include "gpu/entry_list.h"

namespace comera::gpu {

// Adam's constants of each parameter group, in the block's shared memory at `room`. Every thread must call.
template <class T, class Group>
KERNEL const AdamMath<T>* shared_adam(Group& g, AdamMath<T>* room, const AdamRule& rule, const StepScalars* step) {
  for (int i = g.thread(); i < kParamGroups; i += g.threads()) room[i] = adam_math<T>(rule, static_cast<ParamGroup>(i), *step);
  g.sync();
  return room;
}

template <class T>
struct AdamEntry {
  T* w;
  const T* grad;
  T *m, *v;
  int64_t count, first;
  ParamGroup group;
  bool by_four;
};

template <class T>
struct Adam {
  AdamRule rule;
  const StepScalars* step;
  EntryList<AdamEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const AdamMath<T>* maths = shared_adam(g, g.template shared<AdamMath<T>>(), rule, step);
    each_four_of_list(g, list, [&](const AdamEntry<T>& p, int64_t i) {
      const AdamMath<T> math = maths[static_cast<int>(p.group)];
      const bool whole = p.by_four && i + 4 <= p.count;
      const Four<T> grad = read_four(p.grad, i, p.count, whole);
      Four<T> w = read_four(p.w, i, p.count, whole), m = read_four(p.m, i, p.count, whole), v = read_four(p.v, i, p.count, whole);
      for (int l = 0; l < 4; ++l) w.v[l] = math.apply(w.v[l], math.update(grad.v[l], m.v[l], v.v[l]));
      write_four(p.w, i, p.count, whole, w);
      write_four(p.m, i, p.count, whole, m);
      write_four(p.v, i, p.count, whole, v);
    });
  }
};

// u = the update, which the caller adds.
template <class T>
struct AdamUpdate {
  int64_t count;
  T* u;
  const T* grad;
  T *m, *v;
  AdamRule rule;
  ParamGroup group;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const AdamMath<T> math = shared_adam(g, g.template shared<AdamMath<T>>(), rule, step)[static_cast<int>(group)];
    for (int64_t i = first_element(g); i < count; i += all_threads(g)) u[i] = math.update(grad[i], m[i], v[i]);
  }
};

template <class T>
struct WeightDecay {
  T* w;
  ParamGroup group;
  const StepScalars* step;
  KERNEL void operator()(int64_t i) const { w[i] *= static_cast<T>(1 - rate_of(*step, group) * decay_of(*step, group)); }
};

template <class T>
struct SgdEntry {
  T* w;
  const T* grad;
  int64_t count, first;
  ParamGroup group;
  bool by_four;
};

template <class T>
struct Sgd {
  double limit;
  const StepScalars* step;
  EntryList<SgdEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    each_four_of_list(g, list, [&](const SgdEntry<T>& p, int64_t i) {
      const SgdMath<T> math = sgd_math<T>(limit, p.group, *step);
      const bool whole = p.by_four && i + 4 <= p.count;
      const Four<T> grad = read_four(p.grad, i, p.count, whole);
      Four<T> w = read_four(p.w, i, p.count, whole);
      for (int l = 0; l < 4; ++l) w.v[l] = math.apply(w.v[l], grad.v[l]);
      write_four(p.w, i, p.count, whole, w);
    });
  }
};

template <class T>
struct AdagradEntry {
  T* w;
  const T* grad;
  T* sum;
  int64_t count, first;
  ParamGroup group;
  bool by_four;
};

template <class T>
struct Adagrad {
  double eps;
  const StepScalars* step;
  EntryList<AdagradEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    each_four_of_list(g, list, [&](const AdagradEntry<T>& p, int64_t i) {
      const AdagradMath<T> math = adagrad_math<T>(eps, p.group, *step);
      const bool whole = p.by_four && i + 4 <= p.count;
      const Four<T> grad = read_four(p.grad, i, p.count, whole);
      Four<T> w = read_four(p.w, i, p.count, whole), sum = read_four(p.sum, i, p.count, whole);
      for (int l = 0; l < 4; ++l) {
        sum.v[l] += grad.v[l] * grad.v[l];
        w.v[l] = math.apply(w.v[l], grad.v[l], sum.v[l]);
      }
      write_four(p.w, i, p.count, whole, w);
      write_four(p.sum, i, p.count, whole, sum);
    });
  }
};

// One row a block.
template <class T>
struct AdagradRows {
  int64_t rows, columns;
  T* w;
  const T* grad;
  T* sum;
  double eps;
  ParamGroup group;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const AdagradMath<T> math = adagrad_math<T>(eps, group, *step);
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      const T before = sum[row];
      const int64_t begin = row * columns, end = begin + columns;
      double squares = 0;
      for (int64_t i = begin + g.thread(); i < end; i += g.threads())
        squares += static_cast<double>(grad[i]) * static_cast<double>(grad[i]);
      const T now = before + static_cast<T>(g.reduce(squares, Sum{}) / static_cast<double>(columns));
      for (int64_t i = begin + g.thread(); i < end; i += g.threads()) w[i] = math.apply(w[i], grad[i], now);
      if (g.thread() == 0) sum[row] = now;
    }
  }
};

// Moves moments and gives sums of squares of u and r: of one row a block.
struct ApolloSquares {
  double u, r;
};
template <class T>
struct ApolloRows {
  int64_t rows, columns;
  const T* r;
  T *m, *v;
  AdamMath<T> math;
  ApolloSquares* of_row;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = g.block(); i < rows; i += g.blocks()) {
      double of_u = 0, of_r = 0;
      for (int64_t j = i * columns + g.thread(); j < (i + 1) * columns; j += g.threads()) {
        const double u = static_cast<double>(math.update(r[j], m[j], v[j]));
        of_u += u * u;
        of_r += static_cast<double>(r[j]) * static_cast<double>(r[j]);
      }
      of_u = g.reduce(of_u, Sum{});
      of_r = g.reduce(of_r, Sum{});
      if (g.thread() == 0) of_row[i] = {of_u, of_r};
    }
  }
};
template <class T>
struct ScaleOfRow {
  const ApolloSquares* of_row;
  T* scale;
  KERNEL void operator()(int64_t i) const { scale[i] = static_cast<T>(apollo_scale(of_row[i].u, of_row[i].r)); }
};
// One block.
template <class T>
struct ScaleOfAll {
  int64_t rows;
  const ApolloSquares* of_row;
  T* scale;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double u = 0, r = 0;
    for (int64_t i = g.thread(); i < rows; i += g.threads()) u += of_row[i].u, r += of_row[i].r;
    u = g.reduce(u, Sum{});
    r = g.reduce(r, Sum{});
    if (g.thread() == 0) *scale = static_cast<T>(apollo_scale(u, r));
  }
};

// The same by columns: every element is added once, so its moments move there.
template <class T>
struct ApolloColumns {
  static constexpr int kSums = 2;
  int64_t columns;
  const T* r;
  T *m, *v;
  AdamMath<T> math;
  KERNEL void operator()(int64_t row, int64_t column, T (&sums)[kSums]) const {
    const int64_t i = row * columns + column;
    const T u = math.update(r[i], m[i], v[i]);
    sums[0] += u * u;
    sums[1] += r[i] * r[i];
  }
};
template <class T>
struct ScaleOfColumn {
  const T *u, *r;
  T* scale;
  KERNEL void operator()(int64_t j) const { scale[j] = static_cast<T>(apollo_scale(static_cast<double>(u[j]), static_cast<double>(r[j]))); }
};

// d = g times the scale of its channel.
template <class T>
struct ApolloDirection {
  int64_t columns;
  const T *grad, *scale;
  Channels channels;
  HD T operator()(int64_t i) const {
    return grad[i] * scale[channels == Channels::rows ? i / columns : channels == Channels::columns ? i % columns : 0];
  }
};
// Sum of the squares of d in one row a block.
template <class T>
struct ApolloStepSquares {
  int64_t rows;
  ApolloDirection<T> d;
  double* of_row;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = g.block(); i < rows; i += g.blocks()) {
      double sum = 0;
      for (int64_t j = i * d.columns + g.thread(); j < (i + 1) * d.columns; j += g.threads())
        sum += static_cast<double>(d(j)) * static_cast<double>(d(j));
      sum = g.reduce(sum, Sum{});
      if (g.thread() == 0) of_row[i] = sum;
    }
  }
};
// One block: the norm that is kept, and what the step needs.
template <class T>
struct ApolloConstants {
  int64_t rows;
  const double* of_row;
  T* norm;
  AdamRule adam;
  ApolloRule rule;
  ParamGroup group;
  const StepScalars* step;
  AdamMath<T>* math;  // its size with the factor of the length
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double square = 0;
    for (int64_t i = g.thread(); i < rows; i += g.threads()) square += of_row[i];
    square = g.reduce(square, Sum{});
    if (g.thread() != 0) return;
    const ApolloLength length(rule, square, static_cast<double>(*norm));
    *norm = static_cast<T>(length.norm);
    *math = adam_math<T>(adam, group, *step);
    math->size *= static_cast<T>(length.factor);
  }
};
template <class T>
struct ApolloApply {
  T* w;
  ApolloDirection<T> d;
  const AdamMath<T>* math;
  KERNEL void operator()(int64_t i) const { w[i] = math->apply(w[i], -math->size * d(i)); }
};

template <class M>
void GpuOps<M>::body(const op::Adam& args) {
  begin(args, shape_of_list(args.all, [](const AdamTensors& p) { return p.w.count(); }));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, Adam<T>{args.rule, scalars_in(args.step), {}}, args.all, kBlock, kParamGroups * sizeof(AdamMath<T>),
                 [](const AdamTensors& p) {
                   return std::pair{AdamEntry<T>{p.w.data<T>(), p.g.data<T>(), p.m.data<T>(), p.v.data<T>(), p.w.count(), 0, p.group,
                                                 of_fours(4, p.w.data<T>(), p.g.data<T>(), p.m.data<T>(), p.v.data<T>())},
                                    ceil_div(p.w.count(), kListPiece)};
                 });
  });
}

template <class M>
void GpuOps<M>::body(const op::AdamUpdate& args) {
  begin(args, args.u.shape());
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    machine_.launch(over_elements(args.u.count(), kParamGroups * sizeof(AdamMath<T>)),
                    AdamUpdate<T>{args.u.count(), args.u.data<T>(), args.g.data<T>(), args.m.data<T>(), args.v.data<T>(), args.rule,
                                  args.group, scalars_in(args.step)});
  });
}

template <class M>
void GpuOps<M>::body(const op::WeightDecay& args) {
  begin(args, args.w.shape());
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    each(args.w.count(), WeightDecay<T>{args.w.data<T>(), args.group, scalars_in(args.step)});
  });
}

template <class M>
void GpuOps<M>::body(const op::Sgd& args) {
  begin(args, shape_of_list(args.all, [](const SgdTensors& p) { return p.w.count(); }));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, Sgd<T>{args.limit, scalars_in(args.step), {}}, args.all, kBlock, 0, [](const SgdTensors& p) {
      return std::pair{SgdEntry<T>{p.w.data<T>(), p.g.data<T>(), p.w.count(), 0, p.group, of_fours(4, p.w.data<T>(), p.g.data<T>())},
                       ceil_div(p.w.count(), kListPiece)};
    });
  });
}

template <class M>
void GpuOps<M>::body(const op::Adagrad& args) {
  begin(args, shape_of_list(args.all, [](const AdagradTensors& p) { return p.w.count(); }));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, Adagrad<T>{args.eps, scalars_in(args.step), {}}, args.all, kBlock, 0, [](const AdagradTensors& p) {
      return std::pair{AdagradEntry<T>{p.w.data<T>(), p.g.data<T>(), p.sum.data<T>(), p.w.count(), 0, p.group,
                                       of_fours(4, p.w.data<T>(), p.g.data<T>(), p.sum.data<T>())},
                       ceil_div(p.w.count(), kListPiece)};
    });
  });
}

template <class M>
void GpuOps<M>::body(const op::AdagradRows& args) {
  begin(args, args.w.shape());
  const int64_t rows = args.w.size(0), columns = args.w.size(1);
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    machine_.launch(over_items(rows, columns), AdagradRows<T>{rows, columns, args.w.data<T>(), args.g.data<T>(), args.sum.data<T>(),
                                                              args.eps, args.group, scalars_in(args.step)});
  });
}

template <class M>
void GpuOps<M>::body(const op::ApolloScales& args) {
  begin(args, args.r.shape());
  const int64_t rows = args.r.size(0), columns = args.r.size(1);
  by_float_type(args.r, [&](auto type) {
    using T = decltype(type);
    const T* r = args.r.data<T>();
    T *m = args.m.data<T>(), *v = args.v.data<T>(), *scale = args.scale.data<T>();
    const AdamMath<T> math = unscaled_adam_math<T>(args.rule);
    if (args.channels == Channels::columns) {
      T* const sums[2] = {machine_.template scratch<T>(columns), machine_.template scratch<T>(columns)};
      column_sums(machine_, rows, columns, ApolloColumns<T>{columns, r, m, v, math}, sums);
      return each(columns, ScaleOfColumn<T>{sums[0], sums[1], scale});
    }
    ApolloSquares* of_row = machine_.template scratch<ApolloSquares>(rows);
    machine_.launch(over_items(rows, columns), ApolloRows<T>{rows, columns, r, m, v, math, of_row});
    if (args.channels == Channels::rows)
      each(rows, ScaleOfRow<T>{of_row, scale});
    else
      machine_.launch({1, kBlock}, ScaleOfAll<T>{rows, of_row, scale});
  });
}

template <class M>
void GpuOps<M>::body(const op::ApolloStep& args) {
  begin(args, args.w.shape());
  const int64_t rows = args.g.size(0), columns = args.g.size(1);
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const ApolloDirection<T> d{columns, args.g.data<T>(), args.scale.data<T>(), args.rule.channels};
    double* of_row = machine_.template scratch<double>(rows);
    AdamMath<T>* math = machine_.template scratch<AdamMath<T>>(1);
    machine_.launch(over_items(rows, columns), ApolloStepSquares<T>{rows, d, of_row});
    machine_.launch({1, kBlock},
                    ApolloConstants<T>{rows, of_row, args.norm.data<T>(), args.adam, args.rule, args.group, scalars_in(args.step), math});
    each(rows * columns, ApolloApply<T>{args.w.data<T>(), d, math});
  });
}

}  // namespace comera::gpu
