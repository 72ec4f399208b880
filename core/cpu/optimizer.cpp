// Adam, plain gradient descent, Adagrad and weight decay, element by element; APOLLO's scales of channels and its step.
#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/parts.h"
#include "core/cpu/row_blocks.h"
#include "core/cpu/typed.h"
#include "core/ops/optimizer_math.h"

namespace comera {

namespace {

void check_time(const StepScalars& step) { CHECK(step.optimizer_step >= 1, "Adam's bias corrections need step 1 or later"); }

int64_t rows_a_task(int64_t columns) { return std::max<int64_t>(1, kElementGrain / std::max<int64_t>(columns, 1)); }

template <class T>
double square_sum(const T* x, int64_t count) {
  return static_cast<double>(row_sum<T>(count, [=](auto like, int64_t i) {
    const auto value = at<decltype(like)>(x + i);
    return value * value;
  }));
}

// Sums of squares of u and r.
struct ApolloSquares {
  double u = 0, r = 0;
};

// Moves the moments of one row.
template <class T>
ApolloSquares move_row(const AdamMath<T>& math, const T* r, T* m, T* v, int64_t count) {
  constexpr int64_t kPiece = 256;
  T u[kPiece];
  ApolloSquares sums;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t piece = std::min(kPiece, count - begin);
    for (int64_t i = 0; i < piece; ++i) u[i] = math.update(r[begin + i], m[begin + i], v[begin + i]);
    sums.u += square_sum(u, piece);
    sums.r += square_sum(r + begin, piece);
  }
  return sums;
}

// The same for all rows, and the scale of each column.
template <class T>
void scale_columns(ThreadPool& pool, const AdamMath<T>& math, const op::ApolloScales& args) {
  const int64_t width = args.r.size(1);
  const T* grad = args.r.data<T>();
  T *scale = args.scale.data<T>(), *first = args.m.data<T>(), *second = args.v.data<T>();
  const RowBlocks blocks(args.r.size(0));
  const T* partials = partial_sums<T>(pool, blocks, 2 * width, [=](T* partial, int64_t begin, int64_t end) {
    const AdamMath<T> of_thread = math;
    for (int64_t i = begin; i < end; ++i) {
      const T* r = grad + i * width;
      T *m = first + i * width, *v = second + i * width;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        const T u = of_thread.update(r[j], m[j], v[j]);
        partial[j] += u * u;
        partial[width + j] += r[j] * r[j];
      }
    }
  });
  pool.parallel_for(width, rows_a_task(blocks.count), [=](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      ApolloSquares sums;
      for (int64_t block = 0; block < blocks.count; ++block) {
        sums.u += static_cast<double>(partials[2 * block * width + j]);
        sums.r += static_cast<double>(partials[(2 * block + 1) * width + j]);
      }
      scale[j] = static_cast<T>(apollo_scale(sums.u, sums.r));
    }
  });
}

// The sum of squares of d, row by row.
template <class T>
double step_square(ThreadPool& pool, const Tensor& g, const T* scale, Channels channels) {
  const int64_t rows = g.size(0), columns = g.size(1);
  const T* grad = g.data<T>();
  double* of_rows = pool.scratch_of<double>(std::max<int64_t>(rows, 1));
  pool.parallel_for(rows, rows_a_task(columns), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = grad + i * columns;
      if (channels == Channels::columns) {
        of_rows[i] = static_cast<double>(row_sum<T>(columns, [=](auto like, int64_t j) {
          const auto value = at<decltype(like)>(x + j) * at<decltype(like)>(scale + j);
          return value * value;
        }));
      } else {
        const double of_row = static_cast<double>(scale[channels == Channels::rows ? i : 0]);
        of_rows[i] = square_sum(x, columns) * of_row * of_row;
      }
    }
  });
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += of_rows[i];
  return sum;
}

}  // namespace

void CpuOps::body(const op::Adam& args) {
  check_time(scalars_in(args.step));
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    const AdamOfGroups<T> math(args.rule, scalars_in(args.step));
    for_parts(
        pool_, args.all.view(), kElementGrain, [](const AdamTensors& p) { return p.w.count(); },
        [&](const AdamTensors& p, int64_t begin, int64_t end) {
          const AdamMath<T> rule_of_thread = math[p.group];  // a local copy: the stores below might alias it
          T *weight = p.w.data<T>(), *first = p.m.data<T>(), *second = p.v.data<T>();
          const T* grad = p.g.data<T>();
          for (int64_t i = begin; i < end; ++i)
            weight[i] = rule_of_thread.apply(weight[i], rule_of_thread.update(grad[i], first[i], second[i]));
        });
  });
}

void CpuOps::body(const op::AdamUpdate& args) {
  check_time(scalars_in(args.step));
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    const AdamMath<T> math = adam_math<T>(args.rule, args.group, scalars_in(args.step));
    T *out = args.u.data<T>(), *first = args.m.data<T>(), *second = args.v.data<T>();
    const T* grad = args.g.data<T>();
    pool_.parallel_for(args.u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      const AdamMath<T> rule_of_thread = math;
      for (int64_t i = begin; i < end; ++i) out[i] = rule_of_thread.update(grad[i], first[i], second[i]);
    });
  });
}

void CpuOps::body(const op::WeightDecay& args) {
  const StepScalars& scalars = scalars_in(args.step);
  const double keep = 1 - rate_of(scalars, args.group) * decay_of(scalars, args.group);
  if (keep == 1) return;
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    T* weight = args.w.data<T>();
    const T factor = static_cast<T>(keep);
    pool_.parallel_for(args.w.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) weight[i] *= factor;
    });
  });
}

void CpuOps::body(const op::Sgd& args) {
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    const StepScalars& scalars = scalars_in(args.step);
    for_parts(
        pool_, args.all.view(), kElementGrain, [](const SgdTensors& p) { return p.w.count(); },
        [&](const SgdTensors& p, int64_t begin, int64_t end) {
          const SgdMath<T> math = sgd_math<T>(args.limit, p.group, scalars);
          T* weight = p.w.data<T>();
          const T* grad = p.g.data<T>();
          for (int64_t i = begin; i < end; ++i) weight[i] = math.apply(weight[i], grad[i]);
        });
  });
}

void CpuOps::body(const op::Adagrad& args) {
  by_float_type(args.all[0].w, [&](auto type) {
    using T = decltype(type);
    const StepScalars& scalars = scalars_in(args.step);
    for_parts(
        pool_, args.all.view(), kElementGrain, [](const AdagradTensors& p) { return p.w.count(); },
        [&](const AdagradTensors& p, int64_t begin, int64_t end) {
          const AdagradMath<T> math = adagrad_math<T>(args.eps, p.group, scalars);
          T *weight = p.w.data<T>(), *sum = p.sum.data<T>();
          const T* grad = p.g.data<T>();
          for (int64_t i = begin; i < end; ++i) {
            sum[i] += grad[i] * grad[i];
            weight[i] = math.apply(weight[i], grad[i], sum[i]);
          }
        });
  });
}

void CpuOps::body(const op::AdagradRows& args) {
  const int64_t rows = args.w.size(0), columns = args.w.size(1);
  by_float_type(args.w, [&](auto type) {
    using T = decltype(type);
    const AdagradMath<T> math = adagrad_math<T>(args.eps, args.group, scalars_in(args.step));
    T *weight = args.w.data<T>(), *sum = args.sum.data<T>();
    const T* grad = args.g.data<T>();
    pool_.parallel_for(rows, rows_a_task(columns), [=](int64_t begin, int64_t end) {
      const AdagradMath<T> of_thread = math;
      for (int64_t i = begin; i < end; ++i) {
        T* w = weight + i * columns;
        const T* g = grad + i * columns;
        const T now = sum[i] += static_cast<T>(square_sum(g, columns) / static_cast<double>(columns));
        for (int64_t j = 0; j < columns; ++j) w[j] = of_thread.apply(w[j], g[j], now);
      }
    });
  });
}

void CpuOps::body(const op::ApolloScales& args) {
  by_float_type(args.r, [&](auto type) {
    using T = decltype(type);
    const AdamMath<T> math = unscaled_adam_math<T>(args.rule);
    if (args.channels == Channels::columns) return scale_columns(pool_, math, args);
    const int64_t rows = args.r.size(0), columns = args.r.size(1);
    const T* r = args.r.data<T>();
    T *scale = args.scale.data<T>(), *m = args.m.data<T>(), *v = args.v.data<T>();
    ApolloSquares* of_rows = pool_.scratch_of<ApolloSquares>(std::max<int64_t>(rows, 1));
    pool_.parallel_for(rows, rows_a_task(columns), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) of_rows[i] = move_row(math, r + i * columns, m + i * columns, v + i * columns, columns);
    });
    ApolloSquares sums;
    for (int64_t i = 0; i < rows; ++i) {
      if (args.channels == Channels::rows) scale[i] = static_cast<T>(apollo_scale(of_rows[i].u, of_rows[i].r));
      sums.u += of_rows[i].u, sums.r += of_rows[i].r;
    }
    if (args.channels == Channels::all) scale[0] = static_cast<T>(apollo_scale(sums.u, sums.r));
  });
}

void CpuOps::body(const op::ApolloStep& args) {
  check_time(scalars_in(args.step));
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const Channels channels = args.rule.channels;
    const T *grad = args.g.data<T>(), *scale = args.scale.data<T>();
    T *weight = args.w.data<T>(), *norm = args.norm.data<T>();
    const ApolloLength length(args.rule, step_square(pool_, args.g, scale, channels), static_cast<double>(*norm));
    *norm = static_cast<T>(length.norm);
    const AdamMath<T> math = adam_math<T>(args.adam, args.group, scalars_in(args.step));
    const T factor = -math.size * static_cast<T>(length.factor);
    const int64_t columns = args.g.size(1);
    pool_.parallel_for(args.g.size(0), rows_a_task(columns), [=](int64_t begin, int64_t end) {
      const AdamMath<T> of_thread = math;
      for (int64_t i = begin; i < end; ++i) {
        const T *x = grad + i * columns,
                of_row = channels == Channels::columns ? factor : factor * scale[channels == Channels::rows ? i : 0];
        T* w = weight + i * columns;
        if (channels == Channels::columns)
#pragma GCC ivdep
          for (int64_t j = 0; j < columns; ++j) w[j] = of_thread.apply(w[j], of_row * scale[j] * x[j]);
        else
#pragma GCC ivdep
          for (int64_t j = 0; j < columns; ++j) w[j] = of_thread.apply(w[j], of_row * x[j]);
      }
    });
  });
}

}  // namespace comera
