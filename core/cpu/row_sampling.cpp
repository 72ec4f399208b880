// Rows that stand for all of a matrix (METHODS.md 8 and 11).
#include <algorithm>

#include "core/cpu/cpu_ops.h"
#include "core/cpu/lanes.h"
#include "core/cpu/typed.h"
#include "core/ops/row_sampling_math.h"

namespace comera {
namespace {

struct ScoredRow {
  double score;
  int64_t row;
};

}  // namespace

void CpuOps::body(const op::SampleRows& args) {
  const int64_t rows = args.x.size(0), width = args.x.size(1), kept = args.index.count();
  ScoredRow* found = pool_.scratch_of<ScoredRow>(2 * rows + 1);  // and as much room for the numbers below
  double *score = reinterpret_cast<double*>(found + rows), *rest = score + rows;
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const T* x = args.x.data<T>();
    const RowDraws draws = args.draws;
    const StepScalars& scalars = scalars_in(args.step);
    const Philox stream = sampling_stream(scalars, args.site);
    const uint64_t part = draws.by_part ? scalars.part : 0;
    pool_.parallel_for(rows, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + row * width;
        const T squares = row_sum<T>(width, [in](auto kind, int64_t i) {
          const auto v = at<decltype(kind)>(in + i);
          return v * v;
        });
        const double of_row = row_score(static_cast<double>(squares), draws.power);
        found[row] = {draws.distinct ? race_key(of_row, sampling_uniform(stream, part, rows, row)) : of_row, row};
      }
    });
    std::sort(found, found + rows,
              [](const ScoredRow& a, const ScoredRow& b) { return a.score != b.score ? a.score > b.score : a.row < b.row; });
    rest[rows] = 0;
    for (int64_t i = rows; i-- > 0;) {
      score[i] = found[i].score;
      rest[i] = rest[i + 1] + score[i];
    }
    const SampledRows sampled{score, rest, rows, kept};
    const int64_t certain = draws.distinct ? kept : args.certain < 0 ? sampled.best_certain() : args.certain;
    int* index = args.index.data<int>();
    T* weight = args.weight.data<T>();
    for (int64_t i = 0; i < kept; ++i) {
      const int64_t place = i < certain ? i : sampled.drawn(sampling_uniform(stream, part, kept, i), certain);
      index[i] = static_cast<int>(found[place].row);
      weight[i] = i < certain ? T(1) : static_cast<T>(sampled.weight(place, certain));
    }
  });
}

void CpuOps::body(const op::PickRows& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.y.size(0), width = args.y.size(1), from = args.x.size(1);
    const T *x = args.x.data<T>(), *weight = args.weight ? args.weight.data<T>() : nullptr;
    const int* index = args.index.data<int>();
    const bool columns = args.columns;
    T* y = args.y.data<T>();
    pool_.parallel_for(rows, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + (columns ? row : index[row]) * from;
        T* out = y + row * width;
        if (columns) {
          for (int64_t i = 0; i < width; ++i) out[i] = (weight ? weight[i] : T(1)) * in[index[i]];
        } else {
          const T factor = weight ? weight[row] : T(1);
          for (int64_t i = 0; i < width; ++i) out[i] = factor * in[i];
        }
      }
    });
  });
}

// A row may be there several times: threads share out the other axis.
void CpuOps::body(const op::AddRows& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t kept = args.index.count(), width = args.x.size(1), shared = args.x.size(args.columns ? 0 : 1);
    const T *u = args.u.data<T>(), *weight = args.weight ? args.weight.data<T>() : nullptr, factor = static_cast<T>(args.factor);
    const int* index = args.index.data<int>();
    const bool columns = args.columns;
    T* x = args.x.data<T>();
    pool_.parallel_for(shared, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, kept)), [=](int64_t begin, int64_t end) {
      if (columns) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < kept; ++i) x[row * width + index[i]] += factor * (weight ? weight[i] : T(1)) * u[row * kept + i];
      } else {
        for (int64_t i = 0; i < kept; ++i) {
          const T of_row = factor * (weight ? weight[i] : T(1));
          for (int64_t j = begin; j < end; ++j) x[index[i] * width + j] += of_row * u[i * width + j];
        }
      }
    });
  });
}

}  // namespace comera
