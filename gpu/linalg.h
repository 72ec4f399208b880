// Linear algebra between the programs of a step.
//
// Leading singular vectors of a gradient by one-sided Jacobi: pairs of rows of the matrix (or of its transpose, whichever has
// fewer) are rotated until all are orthogonal. Their norms are then the singular values, the normalised rows the singular vectors
// of the long side, and the product of the rotations has the vectors of the short side. A round pairs every row with one other,
// one block a pair; a sweep of rounds covers all pairs. Where an entry is not finite the basis stays as it is. A vector of the long
// side with singular value 0 stays 0.
#pragma once
#include "core/ops/coap_math.h"
#include "gpu/gpu_ops.h"

namespace comera::gpu {

struct SizeOf {
  double largest, not_finite;  // largest |entry|, number of entries that are not finite
};

template <class T>
struct FindSize {
  int64_t count;
  const T* x;
  SizeOf* size;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double largest = 0, bad = 0;
    for (int64_t i = g.thread(); i < count; i += g.threads()) {
      largest = Largest{}(largest, std::fabs(static_cast<double>(x[i])));
      bad += x[i] - x[i] == T(0) ? 0 : 1;
    }
    largest = g.reduce(largest, Largest{});
    bad = g.reduce(bad, Sum{});
    if (g.thread() == 0) *size = {largest, bad};
  }
};

// Rows to rotate: row i is a vector (length) followed, if turns > 0, by its row of the rotations' product (turns).
template <class T>
struct JacobiRows {
  T* data;
  int64_t rows, length, turns;
  HD int64_t step() const { return length + turns; }
  HD T* row(int64_t i) const { return data + i * step(); }
};

// Initial rows: g (m, n) divided by its largest entry, so that squares neither overflow nor underflow, and the identity.
template <class T>
struct LoadRows {
  JacobiRows<T> to;
  const T* g;
  bool transposed;
  const SizeOf* size;
  KERNEL void operator()(int64_t i) const {
    const int64_t row = i / to.step(), at = i % to.step();
    const T factor = size->largest > 0 ? static_cast<T>(1 / size->largest) : T(0);
    to.data[i] = at >= to.length ? T(at - to.length == row) : factor * g[transposed ? at * to.rows + row : row * to.length + at];
  }
};

// Pairs of a round by the circle method of round-robin tournaments: one row is fixed, the others rotate.
struct Round {
  int64_t rows, round;
  HD int64_t seats() const { return rows + rows % 2; }
  HD int64_t pairs() const { return seats() / 2; }
  HD int64_t left(int64_t pair) const { return pair == 0 ? seats() - 1 : (round + pair) % (seats() - 1); }
  HD int64_t right(int64_t pair) const { return (round + seats() - 1 - pair) % (seats() - 1); }
};

template <class T>
struct TurnPairs {
  JacobiRows<T> rows;
  Round round;
  T least;  // |cosine| below this counts as orthogonal
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t pair = g.block(); pair < round.pairs(); pair += g.blocks()) {
      const int64_t i = round.left(pair), j = round.right(pair);
      if (i >= rows.rows || j >= rows.rows) continue;  // an odd number: one row has no partner
      T *a = rows.row(i), *b = rows.row(j), aa = 0, bb = 0, ab = 0;
      for (int64_t c = g.thread(); c < rows.length; c += g.threads()) {
        aa += a[c] * a[c];
        bb += b[c] * b[c];
        ab += a[c] * b[c];
      }
      aa = g.reduce(aa, Sum{});
      bb = g.reduce(bb, Sum{});
      ab = g.reduce(ab, Sum{});
      if (std::fabs(ab) <= least * std::sqrt(aa) * std::sqrt(bb)) continue;
      const T zeta = (bb - aa) / (2 * ab), t = (zeta < 0 ? T(-1) : T(1)) / (std::fabs(zeta) + std::sqrt(1 + zeta * zeta));
      const T cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
      for (int64_t c = g.thread(); c < rows.step(); c += g.threads()) {
        const T x = a[c], y = b[c];
        a[c] = cosine * x - sine * y;
        b[c] = sine * x + cosine * y;
      }
    }
  }
};

template <class T>
struct RowLengths {
  JacobiRows<T> rows;
  T* value;  // (rows) singular values of the scaled matrix
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = g.block(); i < rows.rows; i += g.blocks()) {
      const T* row = rows.row(i);
      T sum = 0;
      for (int64_t c = g.thread(); c < rows.length; c += g.threads()) sum += row[c] * row[c];
      sum = g.reduce(sum, Sum{});
      if (g.thread() == 0) value[i] = std::sqrt(sum);
    }
  }
};

// Singular vectors of the `rank` largest values, normalised, with their largest |entry| positive. Entry c of vector p goes to
// basis[p * row_step + c * column_step].
template <class T>
struct WriteBasis {
  JacobiRows<T> rows;
  const T* value;
  int64_t rank;
  T* basis;
  int64_t row_step, column_step;
  T least;  // values below this fraction of the largest count as 0
  const SizeOf* size_of;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    if (size_of->not_finite > 0) return;
    const bool rotations = rows.turns > 0;
    const int64_t count = rotations ? rows.turns : rows.length;
    for (int64_t i = g.block(); i < rows.rows; i += g.blocks()) {
      double before = 0;  // rank of the row: rows with larger values, ties by index
      T most = 0;
      for (int64_t j = g.thread(); j < rows.rows; j += g.threads()) {
        before += value[j] > value[i] || (value[j] == value[i] && j < i);
        most = Largest{}(most, value[j]);
      }
      const int64_t place = static_cast<int64_t>(g.reduce(before, Sum{}));
      most = g.reduce(most, Largest{});
      if (place >= rank) continue;
      const T* from = rows.row(i) + (rotations ? rows.length : 0);
      T squares = 0, size = 0;
      for (int64_t c = g.thread(); c < count; c += g.threads()) {
        squares += from[c] * from[c];
        size = Largest{}(size, std::fabs(from[c]));
      }
      squares = g.reduce(squares, Sum{});
      size = g.reduce(size, Largest{});
      int64_t at = count;  // index of the first largest |entry|
      for (int64_t c = g.thread(); c < count; c += g.threads())
        if (c < at && std::fabs(from[c]) == size) at = c;
      at = g.reduce(at, Smallest{});
      T factor = at < count && from[at] < 0 ? -1 / std::sqrt(squares) : 1 / std::sqrt(squares);
      if (!rotations && value[i] <= least * most) factor = 0;
      for (int64_t c = g.thread(); c < count; c += g.threads()) basis[place * row_step + c * column_step] = factor * from[c];
    }
  }
};

// Sweeps over all pairs. Convergence is quadratic once rows are nearly orthogonal; 6 to 10 sweeps are usual.
template <class T>
constexpr int kSweeps = sizeof(T) == 4 ? 12 : 16;

template <class M>
void GpuOps<M>::body(const op::SingularBasis& args) {
  begin(args, args.g.shape());
  if (args.basis.count() == 0) return;
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const int64_t m = args.g.size(0), n = args.g.size(1), rank = args.basis.size(args.left ? 1 : 0);
    SizeOf* size = machine_.template scratch<SizeOf>(1);
    const bool transposed = m > n, short_side = args.left != transposed;  // whether the basis belongs to the side of the rows
    JacobiRows<T> rows{nullptr, std::min(m, n), std::max(m, n), short_side ? std::min(m, n) : 0};
    rows.data = machine_.template scratch<T>(rows.rows * rows.step());
    T* value = machine_.template scratch<T>(rows.rows);
    if (dry) return;
    machine_.launch({1, kBlock}, FindSize<T>{args.g.count(), args.g.data<T>(), size});
    const T precision = sizeof(T) == 4 ? T(1.2e-7) : T(2.3e-16);
    each(rows.rows * rows.step(), LoadRows<T>{rows, args.g.data<T>(), transposed, size});
    for (int sweep = 0; sweep < kSweeps<T>; ++sweep)
      for (Round round{rows.rows, 0}; round.round < round.seats() - 1; ++round.round)
        machine_.launch(over_items(round.pairs(), rows.step()), TurnPairs<T>{rows, round, precision});
    machine_.launch(over_items(rows.rows, rows.length), RowLengths<T>{rows, value});
    machine_.launch(over_items(rows.rows, rows.step()), WriteBasis<T>{rows, value, rank, args.basis.data<T>(), args.left ? 1 : n,
                                                                      args.left ? rank : 1, precision * static_cast<T>(rows.length), size});
  });
}

// Orthonormal rows by Gram-Schmidt. Three rounds of projection a row: what is left after the first is either the row's direction or
// rounding, and then a unit vector takes its place; the second and third leave nothing along earlier rows.
template <class T>
struct ScaleByLargest {  // divided by the largest entry, as LoadRows does
  T* q;
  const SizeOf* size;
  KERNEL void operator()(int64_t i) const { q[i] *= size->largest > 0 ? static_cast<T>(1 / size->largest) : T(0); }
};

// product[i] = rows i and j; for i = j too.
template <class T>
struct RowProducts {
  const T* data;
  int64_t length, j;
  T* product;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = g.block(); i <= j; i += g.blocks()) {
      T sum = 0;
      for (int64_t c = g.thread(); c < length; c += g.threads()) sum += data[i * length + c] * data[j * length + c];
      sum = g.reduce(sum, Sum{});
      if (g.thread() == 0) product[i] = sum;
    }
  }
};
template <class T>
struct SubtractRows {
  T* data;
  int64_t length, j;
  const T* product;
  KERNEL void operator()(int64_t c) const {
    T sum = 0;
    for (int64_t i = 0; i < j; ++i) sum += product[i] * data[i * length + c];
    data[j * length + c] -= sum;
  }
};
// Row j, whose square was `before`: over its length where `last`, else a unit vector where no more than `least` of it is left.
template <class T>
struct FinishRow {
  T* row;
  int64_t length, j;
  const T* before;
  T least;
  bool last;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    T square = 0;
    for (int64_t c = g.thread(); c < length; c += g.threads()) square += row[c] * row[c];
    square = g.reduce(square, Sum{});
    const T bound = last ? T(0) : least * least * *before;
    if (square <= bound) {
      for (int64_t c = g.thread(); c < length; c += g.threads()) row[c] = !last && c == j ? T(1) : T(0);
    } else if (last) {
      const T factor = 1 / std::sqrt(square);
      for (int64_t c = g.thread(); c < length; c += g.threads()) row[c] *= factor;
    }
  }
};

template <class M>
void GpuOps<M>::body(const op::Orthonormal& args) {
  begin(args, args.q.shape());
  if (args.q.count() == 0) return;
  by_float_type(args.q, [&](auto type) {
    using T = decltype(type);
    const int64_t rank = args.q.size(0), length = args.q.size(1);
    SizeOf* size = machine_.template scratch<SizeOf>(1);
    T *product = machine_.template scratch<T>(rank), *data = args.q.data<T>();
    if (dry) return;
    machine_.launch({1, kBlock}, FindSize<T>{args.q.count(), data, size});
    each(args.q.count(), ScaleByLargest<T>{data, size});
    const T least = static_cast<T>(length) * (sizeof(T) == 4 ? T(1.2e-7) : T(2.3e-16));
    for (int64_t j = 0; j < rank; ++j)
      for (int round = 0; round < 3; ++round) {
        machine_.launch(over_items(j + 1, length), RowProducts<T>{data, length, j, product});
        each(length, SubtractRows<T>{data, length, j, product});
        if (round != 1) machine_.launch({1, kBlock}, FinishRow<T>{data + j * length, length, j, product + j, least, round == 2});
      }
  });
}

// The sums of one row. One block a row.
template <class T>
struct CoapRows {
  int64_t rows, columns;
  const T *lost, *moment, *grad;
  CoapRow* out;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = g.block(); i < rows; i += g.blocks()) {
      CoapRow sums = {0, 0, 0, 0};
      for (int64_t j = g.thread(); j < columns; j += g.threads()) {
        const double e = static_cast<double>(lost[i * columns + j]), x = static_cast<double>(grad[i * columns + j]),
                     c = static_cast<double>(moment[i * columns + j]);
        sums.lost += e * e;
        sums.g += x * x;
        sums.moment += c * c;
        sums.both += c * x;
      }
      sums.lost = g.reduce(sums.lost, Sum{});
      sums.g = g.reduce(sums.g, Sum{});
      sums.moment = g.reduce(sums.moment, Sum{});
      sums.both = g.reduce(sums.both, Sum{});
      if (g.thread() == 0) out[i] = sums;
    }
  }
};
// One block. rank > 0: rows have ||G_i||^2 in place of ||E_i||^2, and <s - 2 I, q> is added.
template <class T>
struct SumCoapRows {
  int64_t rows, columns, rank;
  bool normalised;
  const T *s, *q;
  const CoapRow* row;
  CoapSums* sums;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    CoapSums all;
    for (int64_t i = g.thread(); i < rows; i += g.threads()) all.lost += row[i].lost, all.g += row[i].g;
    for (int64_t i = g.thread(); i < rank * rank; i += g.threads())
      all.lost += coap_lost_term(static_cast<double>(s[i]), static_cast<double>(q[i]), i / rank == i % rank);
    all.lost = coap_square(g.reduce(all.lost, Sum{}));
    all.g = g.reduce(all.g, Sum{});
    const CoapMath math(all, rows, columns, normalised);
    double cosines = 0;
    for (int64_t i = g.thread(); i < rows; i += g.threads()) cosines += math.cosine(row[i]);
    all.cosines = g.reduce(cosines, Sum{});
    if (g.thread() == 0) *sums = all;
  }
};
template <class T>
struct WriteDirections {
  int64_t rows, columns;
  bool normalised;
  T *lost, *moment;
  const T* grad;
  const CoapRow* row;
  const CoapSums* sums;
  KERNEL void operator()(int64_t i) const {
    const CoapMath math(*sums, rows, columns, normalised);
    const CoapRow of_row = row[i / columns];
    lost[i] *= static_cast<T>(math.of_lost());
    moment[i] = static_cast<T>(math.of_g(of_row)) * grad[i] - static_cast<T>(math.of_moment(of_row)) * moment[i];
  }
};

template <class M>
void GpuOps<M>::body(const op::CoapDirections& args) {
  begin(args, args.g.shape());
  const int64_t rows = args.g.size(0), columns = args.g.size(1);
  if (args.g.count() == 0) return;
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    T *lost = args.lost.data<T>(), *moment = args.moment.data<T>();
    const T* grad = args.g.data<T>();
    CoapRow* row = machine_.template scratch<CoapRow>(rows);
    CoapSums* sums = machine_.template scratch<CoapSums>(1);
    machine_.launch(over_items(rows, columns), CoapRows<T>{rows, columns, lost, moment, grad, row});
    machine_.launch({1, kBlock}, SumCoapRows<T>{rows, columns, 0, args.normalised, nullptr, nullptr, row, sums});
    each(rows * columns, WriteDirections<T>{rows, columns, args.normalised, lost, moment, grad, row, sums});
  });
}

// The sums of one row where C = U V. One block a row.
template <class T>
struct CoapFactorRows {
  int64_t rows, columns, rank;
  const T *grad, *u, *gv, *uv;  // u: nullptr without a first moment
  CoapRow* out;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t i = g.block(); i < rows; i += g.blocks()) {
      CoapRow sums = {0, 0, 0, 0};
      for (int64_t j = g.thread(); j < columns; j += g.threads()) {
        const double x = static_cast<double>(grad[i * columns + j]);
        sums.g += x * x;
      }
      if (u)
        for (int64_t j = i * rank + g.thread(); j < (i + 1) * rank; j += g.threads()) {
          sums.moment += static_cast<double>(u[j]) * static_cast<double>(uv[j]);
          sums.both += static_cast<double>(u[j]) * static_cast<double>(gv[j]);
        }
      sums.lost = sums.g = g.reduce(sums.g, Sum{});
      sums.moment = coap_square(g.reduce(sums.moment, Sum{}));
      sums.both = g.reduce(sums.both, Sum{});
      if (g.thread() == 0) out[i] = sums;
    }
  }
};
template <class T>
struct WriteCoapSquares {
  int64_t rows, columns, rank;
  bool normalised;
  T *s, *q;
  const CoapSums* sums;
  KERNEL void operator()(int64_t i) const {
    const double factor = CoapMath(*sums, rows, columns, normalised).of_lost();
    s[i] = static_cast<T>(factor * (static_cast<double>(s[i]) - (i / rank == i % rank ? 2 : 0)));
    q[i] = static_cast<T>(factor * static_cast<double>(q[i]));
  }
};
template <class T>
struct WriteCoapFactors {
  int64_t rows, columns, rank;
  bool normalised;
  const T *x, *y;
  T *of_g, *of_moment;
  const CoapRow* row;
  const CoapSums* sums;
  KERNEL void operator()(int64_t i) const {
    const CoapMath math(*sums, rows, columns, normalised);
    const CoapRow of_row = row[i / rank];
    of_g[i] = static_cast<T>(math.of_g(of_row) * static_cast<double>(x[i]));
    of_moment[i] = static_cast<T>(math.of_moment(of_row) * static_cast<double>(y[i]));
  }
};

template <class M>
void GpuOps<M>::body(const op::CoapFactors& args) {
  begin(args, args.g.shape());
  const int64_t rows = args.g.size(0), columns = args.g.size(1), rank = args.s.size(0);
  if (args.g.count() == 0 || rank == 0) return;
  by_float_type(args.g, [&](auto type) {
    using T = decltype(type);
    const bool with_moment = static_cast<bool>(args.u);
    const auto data = [&](const Tensor& t) { return with_moment ? t.data<T>() : nullptr; };
    const T *grad = args.g.data<T>(), *u = data(args.u), *gv = data(args.gv), *uv = data(args.uv);
    T *s = args.s.data<T>(), *q = args.q.data<T>();
    CoapRow* row = machine_.template scratch<CoapRow>(rows);
    CoapSums* sums = machine_.template scratch<CoapSums>(1);
    machine_.launch(over_items(rows, columns), CoapFactorRows<T>{rows, columns, rank, grad, u, gv, uv, row});
    machine_.launch({1, kBlock}, SumCoapRows<T>{rows, columns, rank, args.normalised, s, q, row, sums});
    each(rank * rank, WriteCoapSquares<T>{rows, columns, rank, args.normalised, s, q, sums});
    if (!with_moment) return;
    each(rows * rank, WriteCoapFactors<T>{rows, columns, rank, args.normalised, args.left ? gv : u, args.left ? uv : u, args.of_g.data<T>(),
                                          args.of_moment.data<T>(), row, sums});
  });
}

template <class T>
struct SquareOf {
  int64_t count;
  const T* x;
  double* square;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double sum = 0;
    for (int64_t i = g.thread(); i < count; i += g.threads()) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sum = g.reduce(sum, Sum{});
    if (g.thread() == 0) *square = sum;
  }
};
template <class T>
struct StepClipped {
  T* y;
  const T* x;
  double size;
  const double* square;
  KERNEL void operator()(int64_t i) const {
    const T factor = static_cast<T>(clipped_step(size, *square));
    if (factor != 0) y[i] -= factor * x[i];
  }
};

template <class M>
void GpuOps<M>::body(const op::ClippedStep& args) {
  begin(args, args.y.shape());
  double* square = machine_.template scratch<double>(1);
  by_float_type(args.y, [&](auto type) {
    using T = decltype(type);
    machine_.launch({1, kBlock}, SquareOf<T>{args.x.count(), args.x.data<T>(), square});
    each(args.y.count(), StepClipped<T>{args.y.data<T>(), args.x.data<T>(), args.size, square});
  });
}

// One block.
template <class T>
struct FirstDirection {
  int64_t count, apart;
  const T* basis;
  T *last, *queue;
  int* counts;
  LazyRefreshMath math;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    double product = 0, square = 0, square_before = 0;
    for (int64_t i = g.thread(); i < count; i += g.threads()) {
      const double now = static_cast<double>(basis[i * apart]), before = static_cast<double>(last[i]);
      product += now * before;
      square += now * now;
      square_before += before * before;
      last[i] = basis[i * apart];
    }
    product = g.reduce(product, Sum{});
    square = g.reduce(square, Sum{});
    square_before = g.reduce(square_before, Sum{});
    if (g.thread() == 0) math.take(product, square, square_before, queue, counts);
  }
};

template <class M>
void GpuOps<M>::body(const op::LazyRefresh& args) {
  begin(args, args.basis.shape());
  by_float_type(args.basis, [&](auto type) {
    using T = decltype(type);
    machine_.launch({1, kBlock}, FirstDirection<T>{args.last.count(),
                                                   args.left ? args.basis.size(1) : 1,
                                                   args.basis.data<T>(),
                                                   args.last.data<T>(),
                                                   args.queue.data<T>(),
                                                   args.counts.data<int>(),
                                                   {args.threshold, args.factor, args.queue.count()}});
  });
}

}  // namespace comera::gpu
