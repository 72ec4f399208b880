// Column sums of a matrix. Rows are split into pieces by their number alone: no atomics, and the same bits for any launch
// shape.
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

inline constexpr int64_t kRowsAPiece = 8, kMostPieces = 128;
inline int64_t row_pieces(int64_t rows) { return std::clamp<int64_t>(rows / kRowsAPiece, 1, kMostPieces); }

// partial (pieces, kSums, columns) = sums over the rows of a piece, where term(row, column, sums) adds to sums[kSums].
template <class T, class Term>
struct ColumnPartials {
  int64_t rows, columns, pieces;
  Term term;
  T* partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t tiles = ceil_div(columns, g.threads());
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

// Adds the pieces: element `column` of sum i comes from partial elements i * columns + column.
template <class T, int kSums>
struct FoldPieces {
  T* sums[kSums];
  const T* partial;
  int64_t columns, pieces;
  KERNEL void operator()(int64_t at) const {
    T total = partial[at];
    for (int64_t piece = 1; piece < pieces; ++piece) total += partial[piece * kSums * columns + at];
    if constexpr (kSums == 1)
      sums[0][at] = total;
    else
      for (int i = 0; i < kSums; ++i)  // constant index: a computed one would put the body's arrays into local memory
        if (at / columns == i) sums[i][at % columns] = total;
  }
};

// sums[i] (columns) = sum over the rows of the i-th sum of `term`.
template <class T, class Machine, class Term>
void column_sums(Machine& machine, int64_t rows, int64_t columns, const Term& term, T* const (&sums)[Term::kSums]) {
  const int64_t pieces = row_pieces(rows), stride = Term::kSums * columns;
  T* partial = machine.template scratch<T>(pieces * stride);
  LaunchShape shape = over_items(ceil_div(columns, kBlock) * pieces, columns);
  machine.launch(shape, ColumnPartials<T, Term>{rows, columns, pieces, term, partial});
  FoldPieces<T, Term::kSums> fold{{}, partial, columns, pieces};
  std::copy(std::begin(sums), std::end(sums), fold.sums);
  machine.launch(over_elements(stride), Elements<FoldPieces<T, Term::kSums>>{stride, fold});
}

}  // namespace comera::gpu
