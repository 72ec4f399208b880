// Rows that stand for all of a matrix (METHODS.md 8 and 11).
#pragma once
#include "core/ops/row_sampling_math.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

// One block a row.
template <class T>
struct RowScores {
  int64_t rows, width;
  const T* x;
  double* score;
  RowDraws draws;
  uint32_t site;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t row = g.block(); row < rows; row += g.blocks()) {
      double squares = 0;
      for (int64_t i = g.thread(); i < width; i += g.threads()) {
        const double v = static_cast<double>(x[row * width + i]);
        squares += v * v;
      }
      squares = g.reduce(squares, Sum{});
      if (g.thread() != 0) continue;
      const double of_row = row_score(squares, draws.power);
      const uint64_t part = draws.by_part ? step->part : 0;
      score[row] = draws.distinct ? race_key(of_row, sampling_uniform(sampling_stream(*step, site), part, rows, row)) : of_row;
    }
  }
};

// The place of row i in descending order is the number of rows before it: T^2 comparisons, of numbers that all threads read together.
struct RowPlaces {
  int64_t rows;
  const double* score;
  double* ordered;
  int* order;
  KERNEL void operator()(int64_t i) const {
    const double mine = score[i];
    int64_t place = 0;
    for (int64_t j = 0; j < rows; ++j) place += score[j] > mine || (score[j] == mine && j < i);
    ordered[place] = mine;
    order[place] = static_cast<int>(i);
  }
};

// One block. Each thread adds up a piece, the last piece first, and then the pieces behind its own.
template <class T>
struct ChosenRows {
  int64_t rows, kept, certain;
  bool by_part;
  uint32_t site;
  const double* score;
  double *rest, *pieces;  // (rows + 1), (threads)
  const int* order;
  int* index;
  T* weight;
  const StepScalars* step;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const Range mine = Range{0, rows}.piece(g.thread(), g.threads());
    double sum = 0;
    for (int64_t i = mine.end; i-- > mine.begin;) rest[i] = sum += score[i];
    pieces[g.thread()] = sum;
    g.sync();
    double behind = 0;
    for (int64_t piece = g.threads() - 1; piece > g.thread(); --piece) behind += pieces[piece];
    for (int64_t i = mine.begin; i < mine.end; ++i) rest[i] += behind;
    if (g.thread() == 0) rest[rows] = 0;
    g.sync();
    const SampledRows sampled{score, rest, rows, kept};
    int64_t first = certain;
    if (certain < 0) {
      double least = sampled.cost(0);
      for (int64_t c = g.thread(); c < kept; c += g.threads()) least = Smallest{}(least, sampled.cost(c));
      least = g.reduce(least, Smallest{});
      first = kept - 1;
      for (int64_t c = g.thread(); c < kept; c += g.threads())
        if (sampled.cost(c) == least) first = Smallest{}(first, c);
      first = g.reduce(first, Smallest{});
    }
    const Philox stream = sampling_stream(*step, site);
    for (int64_t i = g.thread(); i < kept; i += g.threads()) {
      const int64_t place = i < first ? i : sampled.drawn(sampling_uniform(stream, by_part ? step->part : 0, kept, i), first);
      index[i] = order[place];
      weight[i] = i < first ? T(1) : static_cast<T>(sampled.weight(place, first));
    }
  }
};

// The place of an element of the k rows, or columns, in the matrix that they are from.
struct PickedPlace {
  const int* index;
  int64_t width, picked_width;  // of the matrix; of the k rows
  bool columns;
  KERNEL int64_t number(int64_t i) const { return columns ? i % picked_width : i / picked_width; }  // of the row
  KERNEL int64_t operator()(int64_t i) const {
    return columns ? i / picked_width * width + index[i % picked_width] : index[i / picked_width] * width + i % picked_width;
  }
};

template <class T>
struct PickedRows {
  T* y;
  const T *x, *weight;  // weight may be null
  PickedPlace place;
  KERNEL void operator()(int64_t i) const {
    const T value = x[place(i)];
    y[i] = weight ? weight[place.number(i)] * value : value;
  }
};

// The thread of the first of the rows that go to one place adds them all.
template <class T>
struct AddedRows {
  T* x;
  const T *u, *weight;  // weight may be null
  T factor;
  int64_t kept;
  PickedPlace place;
  KERNEL void operator()(int64_t i) const {
    const int64_t first = place.number(i), apart = place.columns ? 1 : place.picked_width;  // from a row to the next
    const int row = place.index[first];
    for (int64_t before = 0; before < first; ++before)
      if (place.index[before] == row) return;
    T sum = x[place(i)];
    for (int64_t other = first; other < kept; ++other)
      if (place.index[other] == row) sum += factor * (weight ? weight[other] : T(1)) * u[i + (other - first) * apart];
    x[place(i)] = sum;
  }
};

template <class M>
void GpuOps<M>::body(const op::SampleRows& args) {
  begin(args, args.x.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    const int64_t rows = args.x.size(0), width = args.x.size(1);
    double *score = machine_.template scratch<double>(rows), *ordered = machine_.template scratch<double>(rows);
    double *rest = machine_.template scratch<double>(rows + 1), *pieces = machine_.template scratch<double>(kBlock);
    int* order = machine_.template scratch<int>(rows);
    machine_.launch(over_items(rows, width),
                    RowScores<T>{rows, width, args.x.data<T>(), score, args.draws, args.site, scalars_in(args.step)});
    each(rows, RowPlaces{rows, score, ordered, order});
    const int64_t first = args.draws.distinct ? args.index.count() : args.certain;
    machine_.launch({1, kBlock}, ChosenRows<T>{rows, args.index.count(), first, args.draws.by_part, args.site, ordered, rest, pieces, order,
                                               args.index.data<int>(), args.weight.data<T>(), scalars_in(args.step)});
  });
}

template <class M>
void GpuOps<M>::body(const op::PickRows& args) {
  begin(args, args.y.shape());
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    each(args.y.count(), PickedRows<T>{args.y.data<T>(),
                                       args.x.data<T>(),
                                       args.weight ? args.weight.data<T>() : nullptr,
                                       {args.index.data<int>(), args.x.size(1), args.y.size(1), args.columns}});
  });
}

template <class M>
void GpuOps<M>::body(const op::AddRows& args) {
  begin(args, args.u.shape());
  by_float_type(args.x, [&](auto type) {
    using T = decltype(type);
    each(args.u.count(), AddedRows<T>{args.x.data<T>(),
                                      args.u.data<T>(),
                                      args.weight ? args.weight.data<T>() : nullptr,
                                      static_cast<T>(args.factor),
                                      args.index.count(),
                                      {args.index.data<int>(), args.x.size(1), args.u.size(1), args.columns}});
  });
}

}  // namespace comera::gpu
