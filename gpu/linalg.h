// Leading singular vectors of a gradient by one-sided Jacobi: pairs of rows of the matrix (or of its transpose, whichever has
// fewer) are rotated until all are orthogonal. Their norms are then the singular values, the normalised rows the singular vectors
// of the long side, and the product of the rotations has the vectors of the short side. A round pairs every row with one other,
// one block a pair; a sweep of rounds covers all pairs. Where an entry is not finite the basis stays as it is. A vector of the long
// side with singular value 0 stays 0.
#pragma once
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

}  // namespace comera::gpu
