// Second moments of rows and columns, and the steps of Adafactor and CAME, Flora's history. All sums depend on shapes alone, not on the
// number of threads.
#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/row_blocks.h"
#include "core/cpu/typed.h"
#include "core/ops/factored_math.h"

namespace comera {
namespace {

template <class T>
double mean_square(ThreadPool& pool, const Tensor& x) {
  const T* in = x.data<T>();
  const int64_t count = x.count(), blocks = ceil_div(count, kElementGrain);
  double* partial = pool.scratch_of<double>(std::max<int64_t>(blocks, 1));
  pool.parallel_for(blocks, 1, [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const T* from = in + block * kElementGrain;
      partial[block] = static_cast<double>(row_sum<T>(std::min(count - block * kElementGrain, kElementGrain), [=](auto like, int64_t i) {
        const auto value = at<decltype(like)>(from + i);
        return value * value;
      }));
    }
  });
  double sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += partial[block];
  return sum / static_cast<double>(std::max<int64_t>(count, 1));
}

}  // namespace

void CpuOps::body(const op::FactoredMoments& args) {
  const Tensor &row = args.row, &column = args.column, &g = args.g, &step = args.step;
  const double eps = args.eps;
  CHECK(scalars_in(step).optimizer_step >= 1, "factored_moments: its beta needs step 1 or later");
  const double beta = factored_beta(args.decay, scalars_in(step));
  by_float_type(g, [&](auto type) {
    using T = decltype(type);
    const T* in = g.data<T>();
    T* of_rows = row.data<T>();
    if (!column) {
      pool_.parallel_for(row.count(), kElementGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          of_rows[i] = factored_moment(of_rows[i], static_cast<double>(in[i]) * static_cast<double>(in[i]), beta, eps);
      });
      return;
    }
    T* of_columns = column.data<T>();
    const int64_t width = column.count();
    const RowBlocks blocks(row.count());
    const T* partials = partial_sums<T>(pool_, blocks, width, [=](T* partial, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = in + i * width;
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) partial[j] += x[j] * x[j];
        const T sum = row_sum<T>(width, [=](auto like, int64_t j) {
          const auto value = at<decltype(like)>(x + j);
          return value * value;
        });
        of_rows[i] = factored_moment(of_rows[i], static_cast<double>(sum) / static_cast<double>(width), beta, eps);
      }
    });
    pool_.parallel_for(width, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(blocks.count, 1)), [=](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        double sum = 0;
        for (int64_t block = 0; block < blocks.count; ++block) sum += static_cast<double>(partials[block * width + j]);
        of_columns[j] = factored_moment(of_columns[j], sum / static_cast<double>(blocks.rows), beta, eps);
      }
    });
  });
}

void CpuOps::body(const op::FactoredUpdate& args) {
  const Tensor &u = args.u, &g = args.g, &row = args.row, &column = args.column;
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    T* out = u.data<T>();
    const T *in = g.data<T>(), *of_rows = row.data<T>();
    if (!column) {
      pool_.parallel_for(u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = in[i] * factor_of(of_rows[i], 1);
      });
      return;
    }
    const int64_t rows = row.count(), width = column.count();
    double mean = 0;
    for (int64_t i = 0; i < rows; ++i) mean += static_cast<double>(of_rows[i]);
    mean /= static_cast<double>(std::max<int64_t>(rows, 1));
    T* factors = pool_.scratch_of<T>(std::max<int64_t>(width, 1));
    for (int64_t j = 0; j < width; ++j) factors[j] = factor_of(column.data<T>()[j], 1);
    pool_.parallel_for(rows, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(width, 1)), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T of_row = factor_of(of_rows[i], mean);
#pragma GCC ivdep
        for (int64_t j = 0; j < width; ++j) out[i * width + j] = in[i * width + j] * of_row * factors[j];
      }
    });
  });
}

void CpuOps::body(const op::ClippedMoment& args) {
  const Tensor &u = args.u, &m = args.m;
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    const auto math = clipped_moment_math<T>(args.beta, args.clip, mean_square<T>(pool_, u));
    T *update = u.data<T>(), *moment = m.data<T>();
    pool_.parallel_for(u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      const ClippedMomentMath<T> of_thread = math;
#pragma GCC ivdep
      for (int64_t i = begin; i < end; ++i) update[i] = of_thread.rest(update[i], moment[i]);
    });
  });
}

void CpuOps::body(const op::AdafactorUpdate& args) {
  const Tensor &u = args.u, &w = args.w, &m = args.m;
  const AdafactorRule& rule = args.rule;
  by_float_type(u, [&](auto type) {
    using T = decltype(type);
    const double u_square = std::isfinite(rule.clip) ? mean_square<T>(pool_, u) : 0;
    const double w_square = rule.scale_parameter ? mean_square<T>(pool_, w) : 0;
    const AdafactorMath<T> math = adafactor_math<T>(rule, args.group, scalars_in(args.step), u_square, w_square);
    T *update = u.data<T>(), *weight = w.data<T>(), *moment = m ? m.data<T>() : nullptr;
    pool_.parallel_for(u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      const AdafactorMath<T> of_thread = math;
      if (moment)
        for (int64_t i = begin; i < end; ++i) update[i] = of_thread.update(update[i], moment[i]);
      else
        for (int64_t i = begin; i < end; ++i) update[i] = of_thread.update(update[i]);
    });
    if (math.keep == 1) return;
    pool_.parallel_for(w.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) weight[i] *= math.keep;
    });
  });
}

void CpuOps::body(const op::FloraHistory& args) {
  by_float_type(args.u, [&](auto type) {
    using T = decltype(type);
    const FloraMath<T> math(args.beta1, args.gap, scalars_in(args.step));
    T *u = args.u.data<T>(), *c = args.c.data<T>();
    const T* sum = args.sum.data<T>();
    pool_.parallel_for(args.u.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) u[i] = math.of_update(u[i], sum[i]);
    });
    pool_.parallel_for(args.c.count(), kElementGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) c[i] = math.of_history(c[i]);
    });
  });
}

}  // namespace comera
