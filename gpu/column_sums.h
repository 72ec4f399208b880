// Sums over the rows of a matrix, column by column, in pieces of rows whose borders depend on the number of rows only:
// no atomics, and the same bits for any shape of the launch.
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

inline constexpr int64_t kRowsAPiece = 32, kMostPieces = 128;
inline int64_t row_pieces(int64_t rows) { return std::clamp<int64_t>(rows / kRowsAPiece, 1, kMostPieces); }

// partial (pieces, kSums, columns) = sums over the rows of a piece of what term(row, column, sums) adds to sums[kSums].
template <class T, class Term>
struct ColumnPartials {
  int64_t rows, columns, pieces;
  Term term;
  T* partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t tiles = pieces_of(columns, g.threads());
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t column = item % tiles * g.threads() + g.thread(), piece = item / tiles;
      if (column >= columns) continue;
      T sums[Term::kSums] = {};
      const Range range = Range{0, rows}.piece(piece, pieces);
      for (int64_t row = range.begin; row < range.end; ++row) term(row, column, sums);
      for (int i = 0; i < Term::kSums; ++i) partial[(piece * Term::kSums + i) * columns + column] = sums[i];
    }
  }
};

// sum (columns) = sum over the pieces, whose parts lie `stride` apart.
template <class T>
struct FoldPieces {
  T* sum;
  const T* partial;
  int64_t stride, pieces;
  KERNEL void operator()(int64_t column) const {
    T total = partial[column];
    for (int64_t piece = 1; piece < pieces; ++piece) total += partial[piece * stride + column];
    sum[column] = total;
  }
};

// sums[i] (columns) = sum over rows of what `term` adds to its i-th sum.
template <class T, class Machine, class Term>
void column_sums(Machine& machine, int64_t rows, int64_t columns, const Term& term, T* const (&sums)[Term::kSums]) {
  const int64_t pieces = row_pieces(rows), stride = Term::kSums * columns;
  T* partial = machine.template scratch<T>(pieces * stride);
  LaunchShape shape = over_items(pieces_of(columns, kBlock) * pieces, columns);
  machine.launch(shape, ColumnPartials<T, Term>{rows, columns, pieces, term, partial});
  for (int i = 0; i < Term::kSums; ++i)
    machine.launch(over_elements(columns), Elements<FoldPieces<T>>{columns, {sums[i], partial + i * columns, stride, pieces}});
}

}  // namespace comera::gpu
