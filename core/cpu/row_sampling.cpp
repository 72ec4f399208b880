// Rows that stand for all of an activation (METHODS.md 11).
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
    pool_.parallel_for(rows, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + row * width;
        const T squares = row_sum<T>(width, [in](auto kind, int64_t i) {
          const auto v = at<decltype(kind)>(in + i);
          return v * v;
        });
        found[row] = {row_score(static_cast<double>(squares)), row};
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
    const int64_t certain = args.certain < 0 ? sampled.best_certain() : args.certain;
    const StepScalars& scalars = scalars_in(args.step);
    const Philox stream = sampling_stream(scalars, args.site);
    int* index = args.index.data<int>();
    T* weight = args.weight.data<T>();
    for (int64_t i = 0; i < kept; ++i) {
      const int64_t place = i < certain ? i : sampled.drawn(sampling_uniform(stream, scalars.part, kept, i), certain);
      index[i] = static_cast<int>(found[place].row);
      weight[i] = i < certain ? T(1) : static_cast<T>(sampled.weight(place, certain));
    }
  });
}

void CpuOps::body(const op::PickRows& args) {
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t width = args.x.size(1);
    const T *x = args.x.data<T>(), *weight = args.weight ? args.weight.data<T>() : nullptr;
    const int* index = args.index.data<int>();
    T* y = args.y.data<T>();
    pool_.parallel_for(args.y.size(0), std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + index[row] * width;
        T* out = y + row * width;
        const T factor = weight ? weight[row] : T(1);
        for (int64_t i = 0; i < width; ++i) out[i] = factor * in[i];
      }
    });
  });
}

}  // namespace comera
